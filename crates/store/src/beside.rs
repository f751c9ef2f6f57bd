//! Files beside the database.

use std::path::{Path, PathBuf};

/// The file beside `path` whose name has `suffix` after it.
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}
