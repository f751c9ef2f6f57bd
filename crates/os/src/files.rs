//! Opening files in ways that [`std::fs`] has not.

use rustix::fs::{MemfdFlags, Mode, OFlags};
use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::Path;

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
