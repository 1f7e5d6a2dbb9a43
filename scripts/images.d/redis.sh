# shellcheck shell=bash
# shellcheck disable=SC2154  # root, parts, images and work are set by scripts/images
# Redis, as Debian has it. By default it writes nothing to disk.

inputs() { :; }

make() {
  local dir=$work/root
  debian "$dir" redis-server
  pack "$dir" "$1" caipe.test/redis:1 --env PATH=/usr/bin --workdir /tmp --port 6379 \
    -- /usr/bin/redis-server --save '' --appendonly no --protected-mode no
}
