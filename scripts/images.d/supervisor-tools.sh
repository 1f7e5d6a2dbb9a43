# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154  # suite is for common.sh; root, parts, images and work are set by scripts/images
# The tool servers of the catalogue from the lock files of image/tools, with Node.js, Python, uv and git: the stage
# `supervisor-tools` of the Dockerfile without the supervisor, which the pods of tool servers copy from its own image.

locks=$root/image/tools
# The release with a Python of 3.12 or newer.
suite=trixie python=3.13

inputs() { sources image/tools; }

make() {
  local dir=$work/root tools=/opt/caipe/tools installed=${CAIPE_CATALOGUE:-$root/.cache/catalogue} lock
  "$locks/install" "$installed" >&2
  debian "$dir" python3 git nodejs coreutils ca-certificates
  # Debian 13 has its programs below /usr only; a package that nothing depends on has these links.
  ln -s usr/bin "$dir/bin" && ln -s usr/lib "$dir/lib" && ln -s usr/lib64 "$dir/lib64"
  # The script that configures the certificates does not run.
  mkdir -p "$dir/etc/ssl/certs" "$dir$tools/bin" "$dir$tools/python" "$dir/usr/local/bin"
  find "$dir/usr/share/ca-certificates" -name '*.crt' -print0 | sort -z | xargs -0 cat >"$dir/etc/ssl/certs/ca-certificates.crt"
  cp -a "$installed/npm" "$installed/go" "$dir$tools/"
  cp -a "$installed"/bin/. "$dir$tools/bin/"
  uv=$(command -v uv || echo "$installed/uv/bin/uv")
  cp "$uv" "$dir/usr/local/bin/uv"
  for lock in "$locks"/python/*.txt; do environment "$dir" "$tools/python/$(basename "$lock" .txt)" "$lock"; done
  # See mcp-python.sh.
  inside "$dir" /usr/bin/python3 -m compileall -q --invalidation-mode unchecked-hash \
    /usr/lib/python$python "$tools/python" >"$work/log" 2>&1 || { tail -n 5 "$work/log" >&2; die 'failed to compile the Python files'; }
  pack "$dir" "$1" caipe.test/supervisor-tools:1 --env "PATH=$tools/bin:/usr/local/bin:/usr/bin:/bin" \
    --env "CAIPE_TOOLS_DIR=$tools" -- /usr/bin/env
}

# environment DIRECTORY PATH LOCK: an environment for the Python of the image, not of this machine.
environment() {
  local dir=$1$2 packages=$1$2/lib/python$python/site-packages script
  mkdir -p "$dir/bin"
  ln -s /usr/bin/python3 "$dir/bin/python"
  printf 'home = /usr/bin\ninclude-system-site-packages = false\n' >"$dir/pyvenv.cfg"
  "$uv" pip install --quiet --require-hashes --link-mode copy --python-version $python \
    --python-platform "$(uname -m)-manylinux_2_40" --target "$packages" -r "$3" ||
    die "uv could not install $3; is the package index reachable?"
  for script in "$packages"/bin/*; do
    [ ! -f "$script" ] || sed "1s,^#!.*python.*,#!$2/bin/python," "$script" >"$dir/bin/${script##*/}"
  done
  chmod a+x "$dir"/bin/*
  rm -rf "${packages:?}/bin"
  find "$packages" -type d -name tests -prune -exec rm -rf {} +
}
