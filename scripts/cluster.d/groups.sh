# shellcheck shell=bash disable=SC2034,SC2154 # variables of the other parts
# Control groups. The groups of a cluster have its name: its programs are in `node`, commands of `scripts/cluster run` in
# `run`, pods in `kubepods`. Processes stay in their group, so the scripts find them without a search by name.

if [ -f /sys/fs/cgroup/cgroup.controllers ]; then
  groups_version=2 groups_book=/sys/fs/cgroup
else
  # With version 1, one of the hierarchies lists the members.
  groups_version=1 groups_book=/sys/fs/cgroup/pids
fi

make_groups() {
  local hierarchy controller down=''
  if [ "$groups_version" = 2 ]; then
    mkdir -p "$groups_book/$name"
    # The kubelet requires all of its controllers that the machine has.
    for controller in cpu cpuset memory hugetlb pids; do
      ! grep -qw "$controller" "$groups_book/cgroup.controllers" || down+="+$controller "
    done
    for hierarchy in "$groups_book" "$groups_book/$name"; do
      echo "$down" >"$hierarchy/cgroup.subtree_control" ||
        die "$hierarchy does not hand its controllers down; is this a container without a control group namespace?"
    done
  else
    # The kubelet requires its group in each hierarchy.
    for hierarchy in /sys/fs/cgroup/*/; do
      if [ ! -f "$hierarchy/cgroup.procs" ] || [ -f "$hierarchy/cgroup.controllers" ]; then continue; fi
      mkdir -p "$hierarchy$name"
      inherit_cpuset "$hierarchy" "$hierarchy$name"
    done
  fi
  mkdir -p "$groups_book/$name/node" "$groups_book/$name/run"
}

# A new group of version 1 has no processors and no memory nodes. Copies those of its parent.
inherit_cpuset() {
  [ -f "$2/cpuset.cpus" ] || return 0
  cat "$1/cpuset.cpus" >"$2/cpuset.cpus"
  cat "$1/cpuset.mems" >"$2/cpuset.mems"
}

# join GROUP: moves this process and its future children into the group.
join() {
  echo "$BASHPID" >"$groups_book/$name/$1/cgroup.procs"
}

# members FOLDER: the processes of a group and of the groups below.
members() {
  find "$1" -name cgroup.procs -exec cat {} + 2>/dev/null | sort -un
}

# The groups of all clusters of this project, in all hierarchies.
all_groups() {
  find /sys/fs/cgroup -maxdepth 2 -type d -name 'caipe-????????' 2>/dev/null
}

remove_groups() {
  local folder
  for folder in /sys/fs/cgroup/"$name" /sys/fs/cgroup/*/"$name"; do
    [ ! -d "$folder" ] || find "$folder" -depth -type d -exec rmdir {} + 2>/dev/null || true
  done
}
