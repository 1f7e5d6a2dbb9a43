# shellcheck shell=bash
# shellcheck disable=SC2154  # root, parts, images and work are set by scripts/images
# The stand-ins `caipe-fixture-mcp` and `caipe-fixture-model`.

profile=${CAIPE_IMAGE_PROFILE:-release}

inputs() {
  echo "$profile"
  sources Cargo.toml Cargo.lock fixtures image supervisor/model scripts/static
}

make() {
  local programs dir=$work/root
  programs=$("$root/scripts/static" "$profile" \
    -p caipe-fixtures -p caipe-fixture-model --no-default-features --bin caipe-fixture-mcp --bin caipe-fixture-model)
  furnish "$dir"
  mkdir -p "$dir/usr/local/bin"
  cp "$programs/caipe-fixture-mcp" "$programs/caipe-fixture-model" "$dir/usr/local/bin/"
  pack "$dir" "$1" caipe.test/fixtures:1 --env PATH=/usr/local/bin --port 8000 -- /usr/local/bin/caipe-fixture-mcp
}
