# shellcheck shell=bash
# The folder of the CNI plugins: the first one that has them, or that of Debian.
cni_folder() {
  local folder
  for folder in /usr/lib/cni /opt/cni/bin /usr/libexec/cni; do
    [ ! -x "$folder/bridge" ] || [ ! -x "$folder/host-local" ] || { echo "$folder" && return; }
  done
  echo /usr/lib/cni
}
