//! Files that are there whole or not at all.

use crate::random;
use std::ffi::OsString;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, fchown};
use std::path::{Path, PathBuf};

/// Symbolic links that are followed from one to the next, as many as the kernel follows (path_resolution(7)).
const LINKS_MAX: usize = 40;

/// A new file beside the one whose place it is to take, removed when this value is dropped before. Nobody can have laid
/// anything in its way: its name is random, and it is made or fails.
#[derive(Debug)]
pub struct NewFile {
    file: File,
    /// Where it is and where it is to go, until it has gone there; nothing for what is written straight.
    way: Option<(PathBuf, PathBuf)>,
}

impl NewFile {
    /// One for a path that somebody named, as a shell's `>` takes it: links are followed, and what is no plain file (a
    /// pipe, a device, an open descriptor) is written straight, so that it is not whole or nothing.
    ///
    /// # Errors
    /// If none can be made there, or what is there cannot be opened.
    pub fn named(path: &Path) -> io::Result<Self> {
        let path = at_end_of_links(path)?;
        let is_special = |there: Metadata| !there.is_file() || is_in_proc(&path);
        if fs::metadata(&path).is_ok_and(is_special) {
            return Ok(Self { file: OpenOptions::new().append(true).open(path)?, way: None });
        }
        Self::beside(&path)
    }

    /// Makes one beside a path, in the same folder, with the mode of the plain file that is there. A link that is there
    /// will be replaced: whoever may write into the folder decides nothing about other files.
    ///
    /// # Errors
    /// If none can be made there.
    pub fn beside(path: &Path) -> io::Result<Self> {
        let random: String = random::bytes::<6>()?.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut name = path.file_name().map_or_else(OsString::new, OsString::from);
        name.push(format!(".{random}.part"));
        let old = fs::symlink_metadata(path).ok().filter(Metadata::is_file);
        let mode = old.as_ref().map_or(0o666, |old| old.mode() & 0o777);
        let own = path.with_file_name(name);
        // Fails if anything is there already, a link too (open(2), O_EXCL).
        let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&own)?;
        let new = Self { file, way: Some((own, path.to_owned())) };
        if let Some(old) = old {
            // Only root gives files away; whoever else writes it owns it.
            let _ = fchown(&new.file, Some(old.uid()), Some(old.gid()));
            // What umask took from the mode.
            new.file.set_permissions(old.permissions())?;
        }
        Ok(new)
    }

    /// What to write to.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Puts it where it is to go; readers see the old file or the new one.
    ///
    /// # Errors
    /// If it cannot be written or renamed; the old one is still there then.
    pub fn finish(mut self) -> io::Result<()> {
        let Some((own, path)) = &self.way else { return Ok(()) };
        self.file.sync_all()?;
        fs::rename(own, path)?;
        self.way = None;
        Ok(())
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if let Some((own, _)) = &self.way {
            // Its space may be what the next attempt needs.
            let _ = fs::remove_file(own);
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
    new.finish()
}

/// Where the links at a path lead, be anything there or not. Links to open descriptors lead nowhere else: what they say is
/// no path, or not the file's any more.
fn at_end_of_links(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        match fs::read_link(&path) {
            Ok(to) if !is_in_proc(&path) => path = path.parent().unwrap_or(Path::new("")).join(to),
            _ => return Ok(path),
        }
    }
    Err(io::Error::from_raw_os_error(libc::ELOOP))
}

fn is_in_proc(path: &Path) -> bool {
    path.parent().and_then(|folder| folder.canonicalize().ok()).is_some_and(|folder| folder.starts_with("/proc"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folder::TemporaryFolder;
    use std::fs::Permissions;
    use std::io::Read as _;
    use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _, symlink};
    use std::process::Command;

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

    fn write_named(path: &Path, text: &str) -> io::Result<()> {
        let new = NewFile::named(path)?;
        new.file().write_all(text.as_bytes())?;
        new.finish()
    }

    #[test]
    fn links_stay_and_what_they_lead_to_is_written_with_its_mode() {
        let folder = TemporaryFolder::make("pushlab-new-file-links").unwrap();
        let path = |name: &str| folder.path().join(name);
        write(&path("old"), b"old").unwrap();
        fs::set_permissions(path("old"), Permissions::from_mode(0o620)).unwrap();
        fs::create_dir(path("below")).unwrap();
        symlink("../old", path("below/link")).unwrap();
        symlink("below/link", path("links")).unwrap();
        symlink("new", path("dangling")).unwrap();
        write_named(&path("links"), "one").unwrap();
        assert!(path("links").is_symlink() && path("below/link").is_symlink());
        let mode = || fs::metadata(path("old")).unwrap().permissions().mode() & 0o7777;
        assert_eq!((fs::read_to_string(path("old")).unwrap(), mode()), ("one".to_owned(), 0o620));
        write_named(&path("dangling"), "two").unwrap();
        assert_eq!(fs::read_to_string(path("new")).unwrap(), "two");
        symlink("circle", path("circle")).unwrap();
        assert!(write_named(&path("circle"), "").is_err() && write_named(&path("below"), "").is_err());
        // What nobody named is laid into the folder, whatever is in the way.
        write(&path("links"), b"three").unwrap();
        assert!(!path("links").is_symlink());
        assert_eq!(fs::read_to_string(path("old")).unwrap(), "one");
    }

    #[test]
    fn what_is_no_plain_file_is_written_straight() {
        let folder = TemporaryFolder::make("pushlab-new-file-straight").unwrap();
        let pipe = folder.path().join("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let from = pipe.clone();
        let reader = std::thread::spawn(move || fs::read_to_string(from).unwrap());
        write_named(&pipe, "through it").unwrap();
        assert_eq!(reader.join().unwrap(), "through it");
        assert!(fs::symlink_metadata(&pipe).unwrap().file_type().is_fifo());
        write_named(Path::new("/dev/null"), "gone").unwrap();
        assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
        // Whoever redirected a descriptor goes on writing where it leads.
        let mut open = File::options().read(true).append(true).create(true).open(folder.path().join("log")).unwrap();
        open.write_all(b"one ").unwrap();
        write_named(Path::new(&format!("/dev/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&open))), "two ").unwrap();
        open.write_all(b"three").unwrap();
        let mut text = String::new();
        File::open(folder.path().join("log")).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "one two three");
    }
}
