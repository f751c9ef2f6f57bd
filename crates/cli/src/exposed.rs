//! Files that other users of the machine can read or change but should not.

use pushlab_os::process;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// The warning for an exposed file: a secret that others can read or change, or any file that everybody can change.
pub fn warning(path: &Path, is_secret: bool) -> Option<String> {
    // If it is not there, whoever has to read it says so.
    let metadata = fs::metadata(path).ok()?;
    let is_owner = metadata.uid() == process::effective_ids().0;
    warning_of(path, metadata.mode() & 0o777, is_secret, is_owner)
}

fn warning_of(path: &Path, mode: u32, is_secret: bool, is_owner: bool) -> Option<String> {
    let (unwanted, what) = match (is_secret, is_owner) {
        (true, true) => (0o077, "others can read or change this secret"),
        // It is through the group that this process reads what belongs to another user.
        (true, false) => (0o037, "others can read or change this secret"),
        (false, _) => (0o002, "everybody can change it"),
    };
    let (path, mended) = (path.display(), mode & !unwanted);
    (mended != mode).then(|| format!("warning: {path} has mode {mode:04o}: {what}; chmod {mended:o} {path}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_else_may_read_a_secret_is_warned_of() {
        for (mode, is_secret, is_owner, mended) in [
            (0o600, true, true, None),
            (0o400, true, true, None),
            (0o640, true, true, Some("600")),
            (0o604, true, true, Some("600")),
            (0o620, true, true, Some("600")),
            (0o640, true, false, None),
            (0o664, true, false, Some("640")),
            (0o664, false, true, None),
            (0o646, false, false, Some("644")),
        ] {
            let warning = warning_of(Path::new("a/key"), mode, is_secret, is_owner);
            let expected = mended.map(|mended| format!("chmod {mended} a/key"));
            let is_as_expected = match (&warning, &expected) {
                (Some(warning), Some(expected)) => warning.ends_with(expected),
                (None, None) => true,
                _ => false,
            };
            assert!(is_as_expected, "{mode:o} {warning:?}");
        }
    }
}
