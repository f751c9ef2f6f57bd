//! Where two servers meet of which one takes the other's place. The tests of the program use it too.

use pushlab_os::folder::TemporaryFolder;
use std::ops::Deref;
use std::path::{Path, PathBuf};

/// The path of a socket, in a folder of its own.
pub struct Meeting {
    path: PathBuf,
    _folder: TemporaryFolder,
}

impl Meeting {
    /// A path of this test alone; the kernel allows some 100 bytes.
    pub fn new(name: &str) -> Self {
        let folder = TemporaryFolder::make("pushlab").unwrap();
        Self { path: folder.path().join(name), _folder: folder }
    }
}

impl Deref for Meeting {
    type Target = Path;
    fn deref(&self) -> &Path {
        &self.path
    }
}
