# shellcheck shell=bash
# shellcheck disable=SC2154  # root, parts, images and work are set by scripts/images
# The image of an older version, under the tag `previous`, and its chart in the folder previous-chart: the version that the
# tests upgrade from. Each release sets `revision` to the commit of the release before. Its rendered specs get the schema version
# after this version's and a field that no program knows, so that the tests have programs of two schema versions.
revision=72d8b5093ad44002ce8b1f3f80fdd85e6c4497e3
profile=${CAIPE_IMAGE_PROFILE:-release}

inputs() { echo "$profile $revision $(next_schema)"; }

# The schema version after the one of this version's rendered specs.
next_schema() {
  local constant='s/^pub const SCHEMA_VERSION: u32 = \([0-9]*\);$/\1/p'
  echo $(($(sed -n "$constant" "$root/crds/src/rendered.rs") + 1))
}

# change FILE EXPRESSION: changes a source with sed, and fails if that changes nothing.
change() {
  cp "$1" "$work/before"
  sed -i "$2" "$1"
  ! cmp -s "$work/before" "$1" || die "found nothing to change in $1 of $revision: correct scripts/images.d/previous.sh"
}

# other_schema SOURCE: changes the schema version and adds the field `ofAnotherVersion`.
other_schema() {
  change "$1/crds/src/rendered.rs" "s/^\(pub const SCHEMA_VERSION: u32 =\) [0-9]*;$/\1 $(next_schema);/"
  change "$1/operator/src/supervisor/build/config_map.rs" \
    's/^\( *\)if text\.len() > MAX_SPEC_BYTES {$/\1let text = format!("ofAnotherVersion: {{}}\\n{text}");\n&/'
}

make() {
  local source=$work/source
  git -C "$root" cat-file -e "$revision^{commit}" 2>/dev/null ||
    die "this clone lacks the commit $revision; fetch the whole history: git fetch --unshallow"
  mkdir -p "$source"
  # New times, because cargo compares sources by age.
  git -C "$root" archive "$revision" | tar -x --touch -C "$source"
  other_schema "$source"
  # This version's script shares the dependencies with the other images.
  cp -r "$root/scripts/static" "$root/scripts/static.d" "$source/scripts/"
  CAIPE_IMAGE_PROFILE=$profile "$source/scripts/image" "$1" ghcr.io/caipe-io/caipe-operator:previous
  rm -rf "$images/previous-chart"
  cp -r "$source/charts/caipe-operator" "$images/previous-chart"
}
