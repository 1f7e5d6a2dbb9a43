# shellcheck shell=bash
# shellcheck disable=SC2154  # root, parts, images and work are set by scripts/images
# MCP servers and Node.js from npm, on Debian's C library: server-filesystem, which uses stdio and serves /srv/files, and
# server-everything, which serves HTTP.

lock=$parts/mcp-node/package-lock.json

inputs() { hash "$lock" "$parts/mcp-node/terminate.mjs"; }

make() {
  local dir=$work/root modules=/usr/local/lib/node_modules name
  for name in filesystem everything; do same_as_peers "@modelcontextprotocol/server-$name"; done
  debian "$dir" libstdc++6
  mkdir -p "$dir"/usr/local/{bin,lib} "$dir/srv/files"
  cp "$parts/mcp-node/package.json" "$lock" "$parts/mcp-node/terminate.mjs" "$dir/usr/local/lib/"
  # No package needs an install script, so npm runs none.
  npm ci --prefix "$dir/usr/local/lib" --ignore-scripts --no-audit --no-fund --loglevel=error ||
    die "npm could not install $lock; is the registry reachable?"
  mv "$dir$modules"/node-linux-*/bin/node "$dir/usr/local/bin/"
  rm -rf "$dir$modules"/node-linux-*
  for name in filesystem everything; do
    ln -s "$modules/@modelcontextprotocol/server-$name/dist/index.js" "$dir/usr/local/bin/mcp-server-$name"
  done
  # There is no /usr/bin/env.
  sed -i '1s,^#!.*,#!/usr/local/bin/node,' "$dir$modules"/@modelcontextprotocol/server-*/dist/index.js
  chmod a+x "$dir$modules"/@modelcontextprotocol/server-*/dist/index.js
  echo 'The moon is full.' >"$dir/srv/files/moon.txt"
  pack "$dir" "$1" caipe.test/mcp-node:1 --env PATH=/usr/local/bin --env PORT=8000 --port 8000 \
    -- /usr/local/bin/node --import /usr/local/lib/terminate.mjs /usr/local/bin/mcp-server-everything streamableHttp
}

# same_as_peers PACKAGE: fails if the tests without a cluster use another version.
same_as_peers() {
  local pinned
  pinned=$(grep -F "\"$1\":" "$parts/mcp-node/package.json")
  grep -qF "${pinned%,}" "$root/fixtures/peers/package.json" ||
    die "$1 is of another version in fixtures/peers/package.json than in scripts/images.d/mcp-node/package.json"
}
