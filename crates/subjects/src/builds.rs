//! Several builds of our program, held in memory alike.
//!
//! Which pages of its file a process has resident depends on how the page cache came to hold that file: of two identical
//! copies on a disk, one had 0.6 MiB more, 6 % of an idle server. So where builds are compared, each is started from a
//! copy in memory, made in one way and gone with this process.

use crate::named::{Named, Server};
use pushlab_os::files;
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The copies, by the programs of which they are.
#[derive(Debug, Default)]
pub struct Builds(Mutex<HashMap<PathBuf, File>>);

impl Builds {
    /// What to start for a program in an experiment of these subjects: a copy where builds are compared, itself otherwise,
    /// and where no copy can be made.
    pub fn to_start(&self, program: &Path, subjects: &[String]) -> PathBuf {
        let is_other = |text: &String| matches!(Named::parse(text), Ok(Named { server: Server::Ours(Some(_)), .. }));
        if !subjects.iter().any(is_other) {
            return program.to_owned();
        }
        self.copy(program).unwrap_or_else(|_| program.to_owned())
    }

    fn copy(&self, program: &Path) -> io::Result<PathBuf> {
        let mut copies = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !copies.contains_key(program) {
            copies.insert(program.to_owned(), files::copy_to_memory(program)?);
        }
        let descriptor = copies[program].as_raw_fd();
        Ok(PathBuf::from(format!("/proc/{}/fd/{descriptor}", std::process::id())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn only_builds_that_are_compared_are_copied() {
        let (program, builds) = (Path::new("/bin/echo"), Builds::default());
        let subjects = ["pushlab", "other=/bin/true"].map(str::to_owned);
        assert_eq!(builds.to_start(program, &subjects[..1]), program);
        let copy = builds.to_start(program, &subjects);
        assert_ne!(copy, program);
        assert_eq!(builds.to_start(program, &subjects), copy, "copied once");
        assert_eq!(Command::new(&copy).arg("hello").output().unwrap().stdout, b"hello\n");
        let nowhere = Path::new("/nowhere/pushlab");
        assert_eq!(builds.to_start(nowhere, &subjects), nowhere, "the start says what is wrong with it");
    }
}
