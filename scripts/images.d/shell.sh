# shellcheck shell=bash
# shellcheck disable=SC2154  # root, parts, images and work are set by scripts/images
# The supervisor with a shell and the usual small programs of Debian, for agents with `shell_exec`.

profile=${CAIPE_IMAGE_PROFILE:-release}

inputs() {
  echo "$profile"
  sources Cargo.toml Cargo.lock crds image operator supervisor telemetry scripts/static
}

make() {
  local programs dir=$work/root
  # As scripts/image builds it.
  programs=$("$root/scripts/static" "$profile" -p caipe-supervisor -p caipe-operator --features caipe-supervisor/mimalloc)
  debian "$dir" dash coreutils grep ca-certificates
  mkdir -p "$dir/usr/local/bin" "$dir/data" "$dir/etc/ssl/certs"
  # The script that configures the certificates does not run.
  find "$dir/usr/share/ca-certificates" -name '*.crt' -print0 | sort -z | xargs -0 cat >"$dir/etc/ssl/certs/ca-certificates.crt"
  cp "$programs/caipe-supervisor" "$dir/usr/local/bin/"
  pack "$dir" "$1" caipe.test/shell:1 --env PATH=/usr/local/bin:/usr/bin:/bin --port 8000 -- /usr/local/bin/caipe-supervisor
}
