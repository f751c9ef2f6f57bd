//! Folders that belong to this user alone.

use crate::{process, random};
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

/// A new folder for temporary files, removed when this value is dropped. Other users can neither guess its name nor
/// enter it.
#[derive(Debug)]
pub struct TemporaryFolder(Option<PathBuf>);

impl TemporaryFolder {
    /// Makes one whose name begins with `name`, in the folder that `TMPDIR` names, or `/tmp`.
    ///
    /// # Errors
    /// If none can be made there.
    pub fn make(name: &str) -> io::Result<Self> {
        // Short, as sockets in it have paths of 107 bytes at most (unix(7)).
        let random: String = random::bytes::<6>()?.iter().map(|byte| format!("{byte:02x}")).collect();
        let path = std::env::temp_dir().join(format!("{name}-{random}"));
        // Fails if anything is there already, a link too (mkdir(2)).
        let made = DirBuilder::new().mode(0o700).create(&path);
        made.map_err(|error| io::Error::new(error.kind(), format!("cannot make {}: {error}", path.display())))?;
        Ok(Self(Some(path)))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.0.as_deref().unwrap_or(Path::new(""))
    }

    /// Keeps it: it is no longer removed when this value is dropped.
    pub fn keep(mut self) -> PathBuf {
        self.0.take().unwrap_or_default()
    }

    /// Removes it if it is empty, and keeps it otherwise.
    pub fn keep_unless_empty(self) {
        // Whatever is in it makes this fail.
        let _ = fs::remove_dir(self.keep());
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            // One that stays costs nothing but a look.
            let _ = fs::remove_dir_all(path);
        }
    }
}

/// Checks that a folder belongs to this user and that nobody else may enter it.
///
/// # Errors
/// If not, or if there is no such folder.
pub fn check_private(folder: &Path) -> io::Result<()> {
    let with_name = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", folder.display()));
    let found = fs::metadata(folder).map_err(with_name)?;
    let (own, owner, mode) = (process::effective_ids().0, found.uid(), found.mode() & 0o7777);
    if owner == own && mode & 0o077 == 0 && found.is_dir() {
        return Ok(());
    }
    let why = format!(
        "{} belongs to user {owner} and has mode {mode:04o}: it must be a folder of this process's user, {own}, \
         with mode 0700",
        folder.display()
    );
    Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_temporary_folder_is_ones_own_and_goes_unless_it_is_kept() {
        let [one, other] = [(); 2].map(|()| TemporaryFolder::make("pushlab-os").unwrap());
        let path = one.path().to_owned();
        assert_ne!(path, other.path());
        check_private(&path).unwrap();
        fs::write(path.join("file"), "").unwrap();
        drop(one);
        assert!(!path.exists());
        let path = other.path().to_owned();
        other.keep_unless_empty();
        assert!(!path.exists());
    }

    #[test]
    fn a_folder_that_others_may_enter_is_refused_with_words() {
        let folder = TemporaryFolder::make("pushlab-os").unwrap();
        fs::set_permissions(folder.path(), Permissions::from_mode(0o750)).unwrap();
        let why = check_private(folder.path()).unwrap_err().to_string();
        assert!(why.contains("has mode 0750") && why.contains("mode 0700"), "{why}");
        assert_eq!(check_private(&folder.path().join("no")).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert!(check_private(Path::new("/proc")).is_err());
    }
}
