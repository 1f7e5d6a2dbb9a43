# shellcheck shell=bash disable=SC2034,SC2154 # variables of the other parts
# The place where the node lives: a network, a mount and a process namespace that are kept by their first process, in
# which no pod meets anything of the machine. When that process ends, the kernel ends all the others and drops their mounts.

# The folders in /proc of the programs in it, without those in containers.
own_processes() {
  local file=$groups_book/$name/node/cgroup.procs
  [ ! -f "$file" ] || sed 's,^,/proc/,' "$file"
}

# The first process, as seen from here; empty if the place does not exist.
space() {
  local folder
  for folder in $(own_processes); do
    if grep -qs $'^NSpid:\t[0-9]*\t1$' "$folder/status"; then
      echo "${folder#/proc/}"
      return
    fi
  done
}

make_space() {
  if [ -z "$(space)" ]; then
    (
      join node
      exec setsid unshare --mount --net --pid --fork --propagation private --mount-proc \
        bash "$parts/init" "$state" "$node_address" "$service_range" </dev/null >"$state/log/init.log" 2>&1 9>&-
    ) &
  fi
  await 20 'the namespaces of the node' space_ready || die "the namespaces were not made: $(<"$state/log/init.log")"
}

space_ready() {
  local first
  first=$(space)
  [ -n "$first" ] && [ -e "/proc/$first/root/run/caipe.ready" ]
}

# await SECONDS WHAT COMMAND...: until the command succeeds.
await() {
  local until=$((SECONDS + $1)) what=$2
  shift 2
  until "$@"; do
    [ $SECONDS -lt $until ] || {
      echo "cluster: waited in vain for $what" >&2
      return 1
    }
    sleep 0.05
  done
}

# inside COMMAND...: in all of the place's namespaces.
inside() {
  local first
  first=$(space)
  [ -n "$first" ] || die 'the cluster does not run; start it with: scripts/cluster up'
  nsenter --target "$first" --mount --net --pid -- "$@"
}

# run COMMAND...: in its network alone; files and processes are the user's.
run() {
  local first
  first=$(space)
  [ -n "$first" ] || die 'the cluster does not run; start it with: make cluster'
  join run
  export KUBECONFIG=$state/kubeconfig PATH=$bin:$PATH
  exec nsenter "--net=/proc/$first/ns/net" -- "$@"
}

# The same for what is asked here, on the way.
kubectl() {
  nsenter "--net=/proc/$(space)/ns/net" -- "$bin/kubectl" --kubeconfig "$state/kubeconfig" "$@"
}
