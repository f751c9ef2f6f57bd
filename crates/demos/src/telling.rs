//! What whoever runs the server is told.

use std::fmt::Arguments;
use std::io::{self, Write as _};

/// Writes a line to standard error. What it leads to may have gone, and `eprintln!` would panic.
pub fn tell(line: Arguments<'_>) {
    let _ = writeln!(io::stderr(), "{line}");
}
