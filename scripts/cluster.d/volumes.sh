# shellcheck shell=bash disable=SC2034,SC2154 # variables of the other parts
# Places for data. There is no driver that makes volumes on demand: there are some, for claims that name no class. One that
# was given up is emptied and offered again by the next `up`.

volume_count=50

make_volumes() {
  local used unused=() number
  # Those that are free, or a claim's that still exists.
  used=$(kubectl get persistentvolumes --selector caipe.test/volume --output \
    'jsonpath={range .items[?(@.status.phase!="Released")]}{.metadata.name}{"\n"}{end}')
  for ((number = 1; number <= volume_count; number++)); do
    grep -qx "volume-$number" <<<"$used" || unused+=("$number")
  done
  [ ${#unused[@]} -gt 0 ] || return 0
  mkdir -p "$state/volumes"
  kubectl delete persistentvolumes --ignore-not-found "${unused[@]/#/volume-}" >/dev/null
  for number in "${unused[@]}"; do
    rm -rf --one-file-system "$state/volumes/$number"
    mkdir -m 777 "$state/volumes/$number"
    volume "$number"
  done | kubectl create --filename - >/dev/null
}

# `local` rather than `hostPath`: it belongs to the pod's group.
volume() {
  cat <<YAML
apiVersion: v1
kind: PersistentVolume
metadata: {name: volume-$1, labels: {caipe.test/volume: ""}}
spec:
  capacity: {storage: 10Gi}
  accessModes: [ReadWriteOnce]
  persistentVolumeReclaimPolicy: Retain
  local: {path: "$state/volumes/$1"}
  nodeAffinity:
    required: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [$node_name]}]}]}
---
YAML
}
