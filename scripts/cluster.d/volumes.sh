# shellcheck shell=bash disable=SC2034,SC2154 # variables of the other parts
# Persistent volumes. No driver creates volumes on demand, so the cluster has a fixed number for claims without a class. The
# next `up` empties released volumes and offers them again.

volume_count=50

make_volumes() {
  local found given_up=() missing=() number
  found=$(kubectl get persistentvolumes --selector caipe.test/volume --output \
    'jsonpath={range .items[*]}{.metadata.name} {.status.phase}{"\n"}{end}')
  for ((number = 1; number <= volume_count; number++)); do
    case $found in
      *"volume-$number Released"*) given_up+=("volume-$number") missing+=("$number") ;;
      *"volume-$number "*) ;;
      *) missing+=("$number") ;;
    esac
  done
  [ ${#given_up[@]} = 0 ] || kubectl delete persistentvolumes --ignore-not-found "${given_up[@]}" >/dev/null
  [ ${#missing[@]} = 0 ] || fill_volumes "${missing[@]}"
}

fill_volumes() {
  local number
  rm -rf --one-file-system "${@/#/$state/volumes/}"
  mkdir -p "${@/#/$state/volumes/}"
  chmod 777 "${@/#/$state/volumes/}"
  for number; do volume "$number"; done | kubectl create --validate=false --filename - >/dev/null
}

# Type `local`, because the kubelet does not apply the pod's fsGroup to `hostPath`.
volume() {
  printf '%s\n' 'apiVersion: v1' 'kind: PersistentVolume' "metadata: {name: volume-$1, labels: {caipe.test/volume: ''}}" \
    'spec:' '  capacity: {storage: 10Gi}' '  accessModes: [ReadWriteOnce]' '  persistentVolumeReclaimPolicy: Retain' \
    "  local: {path: \"$state/volumes/$1\"}" '  nodeAffinity:' '    required:' '      nodeSelectorTerms:' \
    "      - matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [$node_name]}]" ---
}
