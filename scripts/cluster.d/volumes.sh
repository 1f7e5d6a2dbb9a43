# shellcheck shell=bash disable=SC2034,SC2154 # variables of the other parts
# Places for data. There is no driver that makes volumes on demand: there are some, for claims that name no class. One that
# was given up is emptied and offered again by the next `up`.

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

# `local` rather than `hostPath`: it belongs to the pod's group.
volume() {
  printf '%s\n' 'apiVersion: v1' 'kind: PersistentVolume' "metadata: {name: volume-$1, labels: {caipe.test/volume: ''}}" \
    'spec:' '  capacity: {storage: 10Gi}' '  accessModes: [ReadWriteOnce]' '  persistentVolumeReclaimPolicy: Retain' \
    "  local: {path: \"$state/volumes/$1\"}" '  nodeAffinity:' '    required:' '      nodeSelectorTerms:' \
    "      - matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [$node_name]}]" ---
}
