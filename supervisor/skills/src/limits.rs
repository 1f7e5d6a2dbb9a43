//! The limits of skills. A skill beyond one is refused with a fault that names it.

/// Most characters of a name.
pub const NAME_CHARS: usize = 64;
/// Most characters of a description.
pub const DESCRIPTION_CHARS: usize = 1024;
/// Most characters of `compatibility`.
pub const COMPATIBILITY_CHARS: usize = 500;
/// Most bytes of the front matter of a `SKILL.md`.
pub const FRONT_MATTER_BYTES: usize = 16 << 10;
/// Most bytes of a `SKILL.md`.
pub const DOCUMENT_BYTES: usize = 256 << 10;
/// Most entries of `metadata`.
pub const METADATA_ENTRIES: usize = 64;
/// Most bytes of a `metadata.json`.
pub const METADATA_BYTES: usize = 16 << 10;
/// Most bytes of a file beside the `SKILL.md`.
pub const RESOURCE_BYTES: usize = 256 << 10;
/// Most files beside the `SKILL.md`.
pub const RESOURCES: usize = 64;
/// Most bytes of all files of a skill.
pub const SKILL_BYTES: usize = 2 << 20;
/// Most characters of a path below the folder of a skill.
pub const PATH_CHARS: usize = 200;
/// Most levels of folders below the folder of a skill.
pub const PATH_DEPTH: usize = 6;
/// Most skills of a source.
pub const SKILLS: usize = 20_000;
/// Most bytes of all skills of a source.
pub const SOURCE_BYTES: usize = 64 << 20;
/// Most skills that people add over the API.
pub const ADDED_SKILLS: usize = 1000;
/// Most faults that a source reports.
pub const FAULTS: usize = 50;
