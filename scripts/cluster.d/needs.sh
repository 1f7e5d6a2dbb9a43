# shellcheck shell=bash disable=SC2034,SC2154 # variables of the other parts
# The requirements of the machine.

need_root() {
  [ "$(uname -s)" = Linux ] || die 'a node requires Linux'
  [ "$(id -u)" = 0 ] || die "a node requires root, because it creates network and mount namespaces; try again with: sudo -E $0 $command"
}

# The folder of the CNI plugins.
cni_folder() {
  local folder
  for folder in /usr/lib/cni /opt/cni/bin /usr/libexec/cni; do
    [ ! -x "$folder/bridge" ] || [ ! -x "$folder/host-local" ] || { echo "$folder" && return; }
  done
}

need_kernel() {
  local controller
  modprobe -a overlay veth bridge br_netfilter 2>/dev/null || true
  grep -qw overlay /proc/filesystems || die 'this kernel has no overlay file system (CONFIG_OVERLAY_FS)'
  for controller in cpu cpuset memory pids; do
    if [ "$groups_version" = 2 ]; then
      grep -qw "$controller" /sys/fs/cgroup/cgroup.controllers
    else
      [ -d "/sys/fs/cgroup/$controller" ]
    fi || die "the control groups of this machine have no '$controller'; a node requires cpu, cpuset, memory and pids"
  done
  [ -w "$groups_book" ] || die "$groups_book is read-only; a container needs --privileged"
  unshare --mount --net --pid --fork true 2>/dev/null ||
    die 'this kernel refuses new namespaces, even to root; a container needs --privileged'
}

need_machine() {
  need_root
  "$root/scripts/needs" cluster
  need_kernel
  "$root/scripts/control-plane" --node
}
