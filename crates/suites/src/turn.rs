//! One run per folder: two at once would write each other's logs, and measure each other.

use std::fs::{File, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::path::Path;

/// That this process runs the tests in a folder. It ends with the value or with the process, however that ends: the
/// kernel keeps it (flock(2)), and no child inherits it.
#[derive(Debug)]
pub struct Turn {
    _file: File,
}

/// Takes the turn in a folder.
///
/// # Errors
/// Says who has it.
pub fn take(folder: &Path) -> Result<Turn, String> {
    let path = folder.join("running");
    let failed = |error: std::io::Error| format!("cannot lock {}: {error}", path.display());
    let mut file = File::options().read(true).write(true).create(true).truncate(false).open(&path).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut owner = String::new();
            file.read_to_string(&mut owner).map_err(failed)?;
            return Err(format!("process {owner} runs tests in this folder: wait for it, or test another clone"));
        }
        Err(TryLockError::Error(error)) => return Err(failed(error)),
    }
    let write = |file: &mut File| {
        file.set_len(0)?;
        file.rewind()?;
        write!(file, "{}", std::process::id())
    };
    write(&mut file).map_err(failed)?;
    Ok(Turn { _file: file })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pushlab_os::folder::TemporaryFolder;

    #[test]
    fn a_folder_has_one_run_at_a_time() {
        let folder = TemporaryFolder::make("turn").expect("there is room");
        std::fs::write(folder.path().join("running"), "12345678").expect("there is room");
        let turn = take(folder.path()).expect("a file that an ended process left is no obstacle");
        let told =
            format!("process {} runs tests in this folder: wait for it, or test another clone", std::process::id());
        assert_eq!(take(folder.path()).expect_err("it is taken"), told);
        drop(turn);
        take(folder.path()).expect("it is free again");
    }
}
