# shellcheck shell=bash disable=SC2034,SC2154 # variables of the other parts
# The namespaces of the node: a network, a mount and a process namespace, which isolate its pods from the machine. Their
# first process keeps them. When it ends, the kernel ends the others and removes their mounts.

# The /proc folders of the node's programs, without processes in containers.
own_processes() {
  local file=$groups_book/$name/node/cgroup.procs
  [ ! -f "$file" ] || sed 's,^,/proc/,' "$file"
}

# The process id of the first process, outside of the namespaces; empty if they do not exist.
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

# await SECONDS WHAT COMMAND...: waits until the command succeeds.
await() {
  local until=$((SECONDS + $1)) what=$2
  shift 2
  until "$@"; do
    [ $SECONDS -lt $until ] || {
      echo "cluster: timed out waiting for $what" >&2
      return 1
    }
    sleep 0.05
  done
}

# inside COMMAND...: runs a command in all namespaces of the node.
inside() {
  local first
  first=$(space)
  [ -n "$first" ] || die 'the cluster does not run; start it with: scripts/cluster up'
  nsenter --target "$first" --mount --net --pid -- "$@"
}

# run COMMAND...: runs a command in the node's network, with the user's files and processes.
run() {
  local first
  first=$(space)
  [ -n "$first" ] || die 'the cluster does not run; start it with: make cluster'
  join run
  export KUBECONFIG=$state/kubeconfig PATH=$bin:$PATH
  exec nsenter "--net=/proc/$first/ns/net" -- "$@"
}

# kubectl ARGUMENT...: for the requests of these scripts.
kubectl() {
  nsenter "--net=/proc/$(space)/ns/net" -- "$bin/kubectl" --kubeconfig "$state/kubeconfig" "$@"
}
