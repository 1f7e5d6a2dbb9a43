# shellcheck shell=bash disable=SC2034,SC2154 # variables of the other parts
# Credentials: created for each cluster in one step, so that an interrupted start leaves nothing incomplete.

node_name=node-1
node_address=10.90.0.1
pod_range=10.244.0.0/16
service_range=10.96.0.0/16
dns_address=10.96.0.10

# Users of the API server, and the groups they are in.
users='admin=system:masters
system:node:node-1=system:nodes
system:kube-controller-manager=
system:kube-scheduler=
system:kube-proxy=
system:coredns='

make_access() {
  [ ! -d "$state/access" ] || return 0
  local new=$state/access.new user token
  rm -rf "$new"
  mkdir -m 700 "$new"
  # The API server signs and verifies tokens of service accounts with these keys.
  quietly openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$new/accounts.key"
  quietly openssl pkey -in "$new/accounts.key" -pubout -out "$new/accounts.pub"
  # The client certificate of the API server for requests to the kubelet, such as logs.
  quietly openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3650 \
    -subj /O=system:masters/CN=kube-apiserver -addext extendedKeyUsage=clientAuth \
    -keyout "$new/kubelet-client.key" -out "$new/kubelet-client.crt"
  while IFS='=' read -r user group; do
    token=$(openssl rand -hex 16)
    echo "$token,$user,$user,$group" >>"$new/tokens.csv"
    kubeconfig "$token" >"$new/${user##*:}.kubeconfig"
  done <<<"$users"
  mv "$new" "$state/access"
}

# quietly COMMAND...: prints the output only if the command fails.
quietly() {
  local said
  said=$("$@" 2>&1) || die "failed to run $1 $2: $said"
}

# The API server creates a self-signed certificate at its first start, which is also the authority.
kubeconfig() {
  cat <<YAML
apiVersion: v1
kind: Config
current-context: caipe
clusters:
  - {name: caipe, cluster: {server: "https://$node_address:6443", certificate-authority: "$state/apiserver/apiserver.crt"}}
users:
  - {name: caipe, user: {token: "$1"}}
contexts:
  - {name: caipe, context: {cluster: caipe, user: caipe}}
YAML
}
