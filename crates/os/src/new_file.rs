//! Files that are there whole or not at all.

use crate::random;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// A new file beside the one whose place it is to take, removed when this value is dropped before. Nobody can have laid
/// anything in its way: its name is random, and it is made or fails.
#[derive(Debug)]
pub struct NewFile {
    file: File,
    /// Where it is, until it has been renamed.
    path: Option<PathBuf>,
}

impl NewFile {
    /// Makes one beside a path, in the same folder.
    ///
    /// # Errors
    /// If none can be made there.
    pub fn beside(path: &Path) -> io::Result<Self> {
        let random: String = random::bytes::<6>()?.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut name = path.file_name().map_or_else(OsString::new, OsString::from);
        name.push(format!(".{random}.part"));
        let path = path.with_file_name(name);
        // Fails if anything is there already, a link too (open(2), O_EXCL).
        let file = OpenOptions::new().write(true).create_new(true).open(&path)?;
        Ok(Self { file, path: Some(path) })
    }

    /// What to write to.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Puts it in place of another; readers see the old one or the new one.
    ///
    /// # Errors
    /// If it cannot be written or renamed; the old one is still there then.
    pub fn replace(mut self, path: &Path) -> io::Result<()> {
        self.file.sync_all()?;
        let own = self.path.take().unwrap_or_default();
        fs::rename(&own, path).inspect_err(|_| self.path = Some(own))
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // Its space may be what the next attempt needs.
            let _ = fs::remove_file(path);
        }
    }
}

/// Writes a file whole or not at all.
///
/// # Errors
/// If it cannot be written; what was there before is still there then.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let new = NewFile::beside(path)?;
    new.file().write_all(bytes)?;
    new.replace(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folder::TemporaryFolder;

    #[test]
    fn a_file_is_there_whole_or_as_it_was() {
        let folder = TemporaryFolder::make("pushlab-new-file").unwrap();
        let path = folder.path().join("a.txt");
        let names = || fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>();
        write(&path, b"one").unwrap();
        let mut new = NewFile::beside(&path).unwrap();
        new.file.write_all(b"tw").unwrap();
        assert_eq!((fs::read_to_string(&path).unwrap(), names().len()), ("one".to_owned(), 2));
        drop(new);
        assert_eq!(names(), ["a.txt"]);
        write(&path, b"two").unwrap();
        assert_eq!((fs::read_to_string(&path).unwrap(), names().len()), ("two".to_owned(), 1));
        assert!(write(&folder.path().join("none/a.txt"), b"").is_err());
    }
}
