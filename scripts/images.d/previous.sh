# shellcheck shell=bash
# shellcheck disable=SC2154  # root, parts, images and work are set by scripts/images
# The image of an older version, under the tag `previous`, and its chart in the folder previous-chart: the version that the
# tests upgrade from. Each release sets `revision` to the commit of the release before.
revision=84a2fbd78dd661990a62bf163449f232b552c52c
profile=${CAIPE_IMAGE_PROFILE:-release}

inputs() { echo "$profile $revision"; }

make() {
  local source=$work/source
  git -C "$root" cat-file -e "$revision^{commit}" 2>/dev/null ||
    die "this clone lacks the commit $revision; fetch the whole history: git fetch --unshallow"
  mkdir -p "$source"
  # New times, because cargo compares sources by age.
  git -C "$root" archive "$revision" | tar -x --touch -C "$source"
  # This version's script shares the dependencies with the other images.
  cp -r "$root/scripts/static" "$root/scripts/static.d" "$source/scripts/"
  CAIPE_IMAGE_PROFILE=$profile "$source/scripts/image" "$1" ghcr.io/caipe-io/caipe-operator:previous
  rm -rf "$images/previous-chart"
  cp -r "$source/charts/caipe-operator" "$images/previous-chart"
}
