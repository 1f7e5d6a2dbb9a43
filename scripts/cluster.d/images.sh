# shellcheck shell=bash disable=SC2034,SC2154 # variables of the other parts
# Container images, imported from archives. There is no registry.

containers() {
  inside "$bin/ctr" --address /run/containerd.sock --namespace k8s.io "$@" 2> >(grep -v 'msg="DEPRECATION' >&2)
}

# pack PROGRAM NAME ARCHIVE: creates an image of one static program.
pack() {
  local folder layer
  folder=$(mktemp -d)
  tar --create --file "$folder/layer.tar" --owner 0 --group 0 --numeric-owner --mtime @0 --mode 0755 \
    --directory "$(dirname "$1")" "$(basename "$1")"
  layer=$(sha256sum <"$folder/layer.tar" | cut -d ' ' -f 1)
  cat >"$folder/config.json" <<JSON
{"architecture": "$(image_architecture)", "os": "linux", "config": {"Entrypoint": ["/$(basename "$1")"]},
 "rootfs": {"type": "layers", "diff_ids": ["sha256:$layer"]}}
JSON
  echo "[{\"Config\": \"config.json\", \"RepoTags\": [\"$2\"], \"Layers\": [\"layer.tar\"]}]" >"$folder/manifest.json"
  tar --create --file "$3.new" --directory "$folder" manifest.json config.json layer.tar
  mv "$3.new" "$3"
  rm -rf "$folder"
}

image_architecture() {
  case $(uname -m) in
    x86_64) echo amd64 ;;
    aarch64) echo arm64 ;;
    *) uname -m ;;
  esac
}

load_pause() {
  local archive=$state/pause.tar
  if [ ! -f "$archive" ]; then
    rm -rf "$state/pause"
    mkdir "$state/pause"
    cc -Os -s -static -o "$state/pause/pause" "$parts/pause.c" ||
      die 'the C compiler cannot build a static program; on Debian and Ubuntu: apt-get install gcc libc6-dev'
    pack "$state/pause/pause" caipe.test/pause:1 "$archive"
  fi
  load "$archive"
}

# The images that the container runtime knows, as `NAME DIGEST`.
image_list() {
  containers images list 'labels."io.cri-containerd.image"==managed' | awk 'NR > 1 { print $1, $3 }' | sort
}

# load ARCHIVE...: imports images, but skips an archive whose content is imported already.
load() {
  local archive note
  mkdir -p "$state/images"
  for archive in "$@"; do
    [ -r "$archive" ] || die "there is no archive '$archive'"
    note=$state/images/$(sha256sum <"$archive" | cut -d ' ' -f 1)
    if [ -s "$note" ] && imported "$note"; then
      echo "cluster: $(cut -d ' ' -f 1 "$note" | paste -sd ' ') is there already"
      continue
    fi
    import "$archive" "$note"
  done
}

# import ARCHIVE NOTE: imports an archive and writes the names of its images to NOTE.
import() {
  local log
  # Open the archive here, because some of the machine's files are not visible inside.
  log=$(containers images import --local - <"$1" 2>&1) || die "failed to import $1: $log"
  # One line for each image: `unpacking NAME (DIGEST)...done`.
  sed -n 's/^unpacking \([^ ]*\) (\([^)]*\)).*/\1 \2/p' <<<"$log" | sort >"$2.new"
  [ -s "$2.new" ] || die "$1 holds no image for this machine: $log"
  await 20 "the images of $1" imported "$2.new" || die 'the container runtime did not take note of them'
  mv "$2.new" "$2"
  echo "cluster: imported $(cut -d ' ' -f 1 "$2" | paste -sd ' ')"
}

imported() {
  [ -z "$(comm -23 "$1" <(image_list))" ]
}
