# shellcheck shell=bash
# shellcheck disable=SC2154  # root, parts, images and work are set by scripts/images
# The functions that the images share. Sourced by scripts/images, which sets `root`, `images` and, for each image, `work`.

# The user of all images.
user=65532

die() {
  printf 'images: %s\n' "$*" >&2
  exit 1
}

# hash FILE...: the digest of the contents of the files.
hash() { cat "$@" | sha256sum | cut -d ' ' -f 1; }

# sources PATH...: the digest of names and contents of all files below the paths, without files that git ignores.
sources() {
  # shellcheck disable=SC2016  # for the shell of xargs
  (cd "$root" && if git rev-parse --git-dir >/dev/null 2>&1; then
    git ls-files --cached --others --exclude-standard -z -- "$@"
  else
    find "$@" -type f -print0
  fi | sort -z | xargs -0 sh -c 'for file; do [ ! -f "$file" ] || sha256sum "$file"; done' sh | sha256sum)
}

# pack DIRECTORY ARCHIVE NAME [FLAG...] -- ENTRYPOINT...: creates an image from a directory.
pack() {
  local dir=$1 archive=$2 name=$3
  shift 3
  (cd "$root" && "${CARGO:-cargo}" run --quiet --release --locked -p caipe-image -- \
    directory --root "$dir" --out "$archive" --name "$name" --env HOME=/tmp "$@")
}

# furnish DIRECTORY: creates the users, groups and /tmp of a root file system.
furnish() {
  mkdir -p "$1/etc" "$1/tmp"
  chmod 1777 "$1/tmp"
  printf 'root:x:0:0:root:/root:/sbin/nologin\nnobody:x:%s:%s:nobody:/tmp:/sbin/nologin\n' $user $user >"$1/etc/passwd"
  printf 'root:x:0:\nnobody:x:%s:\n' $user >"$1/etc/group"
}

# debian DIRECTORY PACKAGE...: unpacks packages of Debian 12, or of the release `suite`, and their dependencies, without
# configuring them. /etc/packages in the image lists them.
debian() {
  local dir=$1 packages release=${suite:-bookworm}
  shift
  # mmdebstrap unpacks the packages and verifies them with the keyring.
  packages=$(IFS=,; echo "$*")
  # shellcheck disable=SC2016  # for the shell of the hook
  mmdebstrap --quiet --variant=extract --include="$packages" \
    --extract-hook='mkdir -p "$1/etc"; (cd "$1/var/cache/apt/archives" && ls ./*.deb) | sed "s,^\./,," > "$1/etc/packages"' \
    "$release" "$work/debian.tar" \
    "deb http://deb.debian.org/debian $release main" \
    "deb http://deb.debian.org/debian-security $release-security main" 2>"$work/log" || {
    tail -n 20 "$work/log" >&2
    die "failed to unpack $packages of Debian $release; is deb.debian.org reachable?"
  }
  mkdir -p "$dir"
  tar -x --no-same-owner --exclude=./dev -f "$work/debian.tar" -C "$dir"
  rm "$work/debian.tar"
  # Remove documentation, and Perl, which only the configuration of packages needs.
  rm -rf "$dir"/usr/share/{doc,man,info,locale,lintian,bash-completion,bug,gitweb} "$dir"/var/{lib,cache}/{dpkg,apt} \
    "$dir"/usr/{bin/perl*,share/perl*,lib/*/perl*,lib/*/libperl*}
  furnish "$dir"
}

# inside DIRECTORY COMMAND...: runs a program with this directory as its root.
inside() {
  if [ "$(id -u)" = 0 ]; then chroot "$@"; else unshare --user --map-root-user chroot "$@"; fi
}
