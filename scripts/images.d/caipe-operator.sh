# shellcheck shell=bash
# shellcheck disable=SC2154  # root, parts, images and work are set by scripts/images
# The image of the supervisor and the operator.

profile=${CAIPE_IMAGE_PROFILE:-release}

inputs() {
  echo "$profile"
  sources Cargo.toml Cargo.lock crds image operator supervisor telemetry scripts/image scripts/static
}

make() { CAIPE_IMAGE_PROFILE=$profile "$root/scripts/image" "$1"; }
