# shellcheck shell=bash disable=SC2034,SC2154 # variables of the other parts
# Removes the cluster in any state.

down() {
  # Killing the first process ends all others. Every process gets a signal, in case the first one is missing.
  await 60 'the end of all processes' none_left || die "these do not end: $(others | paste -sd ' ')"
  await 20 'the removal of the control groups' groups_gone || die "control groups stay: $(find /sys/fs/cgroup -maxdepth 2 -name "$name" | paste -sd ' ')"
  remove_folder
  echo 'cluster: nothing is left of it'
}

# The cluster's processes, without this one and its parents if `run` called it.
others() {
  local pid=$BASHPID mine=' '
  while [ "${pid:-0}" -gt 1 ]; do
    mine+="$pid "
    pid=$(awk '$1 == "PPid:" { print $2 }' "/proc/$pid/status" 2>/dev/null)
  done
  for pid in $(members "$groups_book/$name"); do
    [[ $mine == *" $pid "* ]] || echo "$pid"
  done
}

none_left() {
  local pids
  [ -d "$groups_book/$name" ] || return 0
  pids=$(others)
  [ -n "$pids" ] || return 0
  # shellcheck disable=SC2086 # process ids
  kill -KILL $pids 2>/dev/null || true
  return 1
}

groups_gone() {
  remove_groups
  ! all_groups | grep -q "/$name\$"
}

remove_folder() {
  [ -e "$state/$marker" ] || return 0
  local place
  # Unmount remaining mounts first, so that their contents are not removed.
  mounts | while read -r place; do
    umount --lazy "$place"
  done
  rm -rf --one-file-system "$state"
}

# The machine's mounts below the cluster's folder, the deepest first.
mounts() { awk -v folder="$state/" 'index($5, folder) == 1 { print $5 }' /proc/self/mountinfo | sort -r; }

# left [this]: lists the remains of any cluster, or of this one only.
left() {
  local group pid found=0
  for group in $(all_groups); do
    if [ "${1:-}" = this ] && [ "${group##*/}" != "$name" ]; then continue; fi
    echo "control group $group"
    found=1
    for pid in $(members "$group"); do
      # The process may end during this call.
      echo "process $pid $({ tr '\0' ' ' <"/proc/$pid/cmdline"; } 2>/dev/null | cut -c1-100)"
    done
  done
  if mounts | sed 's/^/mount /' | grep .; then found=1; fi
  if ip -brief link show | grep -E '^(node0|pods0)'; then found=1; fi
  if [ -e "$state" ]; then
    echo "folder $state"
    found=1
  fi
  return $found
}
