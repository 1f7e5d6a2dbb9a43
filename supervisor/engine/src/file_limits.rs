//! The sizes of virtual files, and the folders of those that the engine writes.

/// Most bytes of one virtual file.
pub const FILE_BYTES: usize = 1 << 20;

/// Most bytes of all virtual files of a conversation, which are saved with it.
pub const TOTAL_BYTES: usize = 4 << 20;

/// Most bytes of the path of a virtual file.
pub const PATH_BYTES: usize = 512;

/// Most characters of a line that `read_file` and `grep` show.
pub(crate) const LINE_CHARS: usize = 2000;

/// The folder of whole outputs of tools and agents.
pub(crate) const OUTPUTS: &str = "/.outputs";

/// The folder of messages that the model does not read any more.
pub(crate) const HISTORY: &str = "/.history";

/// The folders of the engine, the most expendable first. Their oldest files make room for others.
pub(crate) const FOLDERS: [&str; 2] = [OUTPUTS, HISTORY];
