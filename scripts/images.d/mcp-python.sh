# shellcheck shell=bash
# shellcheck disable=SC2154  # root, parts, images and work are set by scripts/images
# MCP servers from PyPI on Debian's Python: mcp-server-time and mcp-server-git, in the versions of the test peers. They
# use stdio. For mcp-server-git, /srv/repository is a repository with one commit.

locks=$root/fixtures/peers/requirements.txt

inputs() { hash "$locks"; }

make() {
  local dir=$work/root packages=/usr/local/lib/python3.11/dist-packages
  debian "$dir" python3 git
  # Install for the Python of the image, not of this machine. None of the packages needs a build.
  python3 -m pip install --quiet --disable-pip-version-check --root-user-action ignore --no-compile --require-hashes --only-binary :all: \
    --implementation cp --python-version 3.11 --platform "manylinux_2_28_$(uname -m)" \
    --platform "manylinux_2_17_$(uname -m)" --platform "manylinux2014_$(uname -m)" \
    --no-deps --target "$dir$packages" -r "$locks" || die "pip could not install $locks; is the package index reachable?"
  mkdir -p "$dir/usr/local/bin"
  mv "$dir$packages"/bin/mcp-server-* "$dir/usr/local/bin/"
  rm -rf "$dir${packages:?}/bin"
  sed -i '1s,.*,#!/usr/bin/python3,' "$dir"/usr/local/bin/mcp-server-*
  repository "$dir"
  # The root file system is read-only at run time, so compile the Python files here. Python must not check their times,
  # because no file of the image has one.
  inside "$dir" /usr/bin/python3 -m compileall -q --invalidation-mode unchecked-hash \
    /usr/lib/python3.11 "$packages" >"$work/log" 2>&1 || { tail -n 5 "$work/log" >&2; die 'failed to compile the Python files'; }
  pack "$dir" "$1" caipe.test/mcp-python:1 --env PATH=/usr/local/bin:/usr/bin:/bin -- /usr/local/bin/mcp-server-time
}

# repository DIRECTORY: creates a repository with the same commit each time.
repository() {
  local place=$1/srv/repository when='2026-01-01T00:00:00Z'
  mkdir -p "$place"
  echo 'High water is at noon.' >"$place/tides.txt"
  export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
  git -C "$place" init --quiet --initial-branch main --template ''
  git -C "$place" add tides.txt
  GIT_AUTHOR_DATE=$when GIT_COMMITTER_DATE=$when \
    git -C "$place" -c user.name=Tide -c user.email=tide@example.com commit --quiet -m 'Note the tides'
  # Another user than the owner, root, reads the repository.
  printf '[safe]\n\tdirectory = *\n' >"$1/etc/gitconfig"
}
