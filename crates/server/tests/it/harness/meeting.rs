//! Where two servers meet of which one takes the other's place. The tests of the program use it too.

use std::ops::Deref;
use std::path::{Path, PathBuf};

/// The path of a socket. Who is killed there leaves its socket behind.
pub struct Meeting(PathBuf);

impl Meeting {
    /// A path of this test alone; the kernel allows some 100 bytes.
    pub fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("pushlab-{}-{name}", std::process::id())))
    }
}

impl Deref for Meeting {
    type Target = Path;
    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Meeting {
    fn drop(&mut self) {
        // Whoever ended by itself has removed it.
        let _ = std::fs::remove_file(&self.0);
    }
}
