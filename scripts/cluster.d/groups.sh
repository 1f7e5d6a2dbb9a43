# shellcheck shell=bash disable=SC2034,SC2154 # variables of the other parts
# Control groups. All that belongs to the cluster is in groups named after it: its own programs in `node`, what users
# run in its network in `run`, pods in `kubepods`. Who is in a group stays in it, so that nothing has to be searched by name.

if [ -f /sys/fs/cgroup/cgroup.controllers ]; then
  groups_version=2 groups_book=/sys/fs/cgroup
else
  # One of the hierarchies of version 1 serves to keep count.
  groups_version=1 groups_book=/sys/fs/cgroup/pids
fi

make_groups() {
  local hierarchy controller down=''
  if [ "$groups_version" = 2 ]; then
    mkdir -p "$groups_book/$name"
    # Of those that the kubelet knows, it wants all that the machine has.
    for controller in cpu cpuset memory hugetlb pids; do
      ! grep -qw "$controller" "$groups_book/cgroup.controllers" || down+="+$controller "
    done
    for hierarchy in "$groups_book" "$groups_book/$name"; do
      echo "$down" >"$hierarchy/cgroup.subtree_control" ||
        die "$hierarchy does not hand its controllers down; is this a container without a control group namespace?"
    done
  else
    # The kubelet wants its group to be there in each hierarchy.
    for hierarchy in /sys/fs/cgroup/*/; do
      if [ ! -f "$hierarchy/cgroup.procs" ] || [ -f "$hierarchy/cgroup.controllers" ]; then continue; fi
      mkdir -p "$hierarchy$name"
      inherit_cpuset "$hierarchy" "$hierarchy$name"
    done
  fi
  mkdir -p "$groups_book/$name/node" "$groups_book/$name/run"
}

# A new group of version 1 may use no processor and no memory until told which; its parent's.
inherit_cpuset() {
  [ -f "$2/cpuset.cpus" ] || return 0
  cat "$1/cpuset.cpus" >"$2/cpuset.cpus"
  cat "$1/cpuset.mems" >"$2/cpuset.mems"
}

# join GROUP: this process, and what it starts from now on.
join() {
  echo "$BASHPID" >"$groups_book/$name/$1/cgroup.procs"
}

# members FOLDER: the processes of a group and of those below.
members() {
  find "$1" -name cgroup.procs -exec cat {} + 2>/dev/null | sort -un
}

# The groups of any cluster of ours, in all hierarchies.
all_groups() {
  find /sys/fs/cgroup -maxdepth 2 -type d -name 'caipe-????????' 2>/dev/null
}

remove_groups() {
  local folder
  for folder in /sys/fs/cgroup/"$name" /sys/fs/cgroup/*/"$name"; do
    [ ! -d "$folder" ] || find "$folder" -depth -type d -exec rmdir {} + 2>/dev/null || true
  done
}
