//! Puts the manifests and servers of `subjects/` into the library, so that one binary can install them anywhere, and the
//! sources of our own client, so that its size is told as those of others are.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// What tools leave behind in a folder where somebody has tried a subject by hand.
const LEFT_BEHIND: [&str; 7] = ["node_modules", "target", "lib", "venv", "server", ".git", "NOTES.md"];

fn main() -> io::Result<()> {
    let out = PathBuf::from(env::var("OUT_DIR").unwrap_or_default());
    let left_behind = format!("const LEFT_BEHIND: &[&str] = &{LEFT_BEHIND:?};\n");
    fs::write(out.join("subjects.rs"), left_behind + &table("BUILT_IN", "subjects")?)?;
    fs::write(out.join("client.rs"), table("OWN_CLIENT", "web/client/src")?)
}

/// The files below a folder of the repository as a constant: path and content of each.
fn table(name: &str, folder: &str) -> io::Result<String> {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR").unwrap_or_default()).join("../..").join(folder);
    println!("cargo::rerun-if-changed={}", root.display());
    let mut files = Vec::new();
    walk(&root, &root, &mut files)?;
    files.sort();
    let mut table = format!("const {name}: &[(&str, &[u8])] = &[\n");
    for file in files.iter().filter(|file| !file.ends_with(".test.ts")) {
        let whole = fs::canonicalize(root.join(file))?;
        writeln!(table, "({file:?}, include_bytes!({whole:?})),").map_err(io::Error::other)?;
    }
    table.push_str("];\n");
    Ok(table)
}

/// Paths below `root`, of `/` between their parts.
fn walk(root: &Path, folder: &Path, files: &mut Vec<String>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let (name, path) = (entry.file_name().to_string_lossy().into_owned(), entry.path());
        if LEFT_BEHIND.contains(&name.as_str()) {
            continue;
        }
        if path.is_dir() {
            walk(root, &path, files)?;
        } else if let Ok(below) = path.strip_prefix(root) {
            let parts: Vec<_> = below.iter().map(|part| part.to_string_lossy()).collect();
            files.push(parts.join("/"));
        }
    }
    Ok(())
}
