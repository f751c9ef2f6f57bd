//! Opening files in ways that [`std::fs`] has not.

use rustix::fs::{MemfdFlags, Mode, OFlags};
use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsRawFd as _;
use std::path::Path;

/// Longest file of settings, keys or certificates that is read: 16 MiB, which it takes of memory.
pub const SETTINGS_BYTES_MAX: u64 = 16 << 20;

/// Reads a file of settings, keys or certificates. One without an end, such as a device, is not read for ever.
///
/// # Errors
/// What opening or reading answers, and [`io::ErrorKind::FileTooLarge`].
pub fn read_settings(path: &Path) -> io::Result<Vec<u8>> {
    settings_from(File::open(path)?)
}

/// The same of what is open already, such as standard input.
///
/// # Errors
/// What reading answers, and [`io::ErrorKind::FileTooLarge`].
pub fn settings_from(file: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(SETTINGS_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > SETTINGS_BYTES_MAX {
        let why = format!("it is longer than the limit of {} MiB", SETTINGS_BYTES_MAX >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
    }
    Ok(bytes)
}

/// The same of a file of text.
///
/// # Errors
/// Those of [`read_settings`], and [`io::ErrorKind::InvalidData`].
pub fn read_settings_text(path: &Path) -> io::Result<String> {
    settings_text(read_settings(path)?)
}

/// Text of settings.
///
/// # Errors
/// [`io::ErrorKind::InvalidData`].
pub fn settings_text(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not text in UTF-8"))
}

/// How many bytes a user can still write where this folder is.
///
/// # Errors
/// When there is none, or it may not be reached.
pub fn bytes_left(folder: &Path) -> io::Result<u64> {
    let of_disk = rustix::fs::statvfs(folder)?;
    Ok(of_disk.f_bavail.saturating_mul(of_disk.f_frsize))
}

/// Opens a directory for its metadata alone, which takes no right to list it.
///
/// # Errors
/// When there is none, or it may not be reached.
pub fn open_directory_for_metadata(path: impl AsRef<Path>) -> io::Result<File> {
    Ok(rustix::fs::open(path.as_ref(), OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?.into())
}

/// Copies a file into memory, where it lasts until it is closed. The copy is open for reading alone, since a program that
/// is open for writing cannot be started.
///
/// # Errors
/// When the file cannot be read, or memory has no room for it.
pub fn copy_to_memory(path: &Path) -> io::Result<File> {
    let mut copy: File = rustix::fs::memfd_create("copy", MemfdFlags::CLOEXEC)?.into();
    io::copy(&mut File::open(path)?, &mut copy)?;
    File::open(format!("/proc/self/fd/{}", copy.as_raw_fd()))
}

/// Opens a device for reading and writing, so that neither ever waits. Allocates nothing, so that a forked child may
/// call it.
///
/// # Errors
/// When there is none, or it may not be opened.
pub fn open_device(path: &CStr) -> io::Result<File> {
    Ok(rustix::fs::open(path, OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())?.into())
}

/// Writes a setting to a file that exists, in one call. Allocates nothing, so that a forked child may call it.
///
/// # Errors
/// What opening or writing answers.
pub fn write_setting(path: &CStr, text: &str) -> io::Result<()> {
    let file = rustix::fs::open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::io::write(file, text.as_bytes())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folder::TemporaryFolder;

    #[test]
    fn settings_are_read_up_to_their_limit() {
        let folder = TemporaryFolder::make("pushlab-settings").unwrap();
        let path = folder.path().join("a.toml");
        std::fs::write(&path, "a = 1").unwrap();
        assert_eq!(read_settings_text(&path).unwrap(), "a = 1");
        let file = File::options().write(true).open(&path).unwrap();
        file.set_len(SETTINGS_BYTES_MAX).unwrap();
        assert_eq!(read_settings(&path).unwrap().len() as u64, SETTINGS_BYTES_MAX);
        file.set_len(SETTINGS_BYTES_MAX + 1).unwrap();
        for path in [&path, Path::new("/dev/zero")] {
            let error = read_settings_text(path).unwrap_err();
            assert!(error.kind() == io::ErrorKind::FileTooLarge && error.to_string().contains("16 MiB"), "{error}");
        }
        std::fs::write(&path, b"\xff").unwrap();
        assert_eq!(read_settings_text(&path).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
