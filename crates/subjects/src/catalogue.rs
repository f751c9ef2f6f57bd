//! Every foreign server that is known: those built into the program, or those of a folder.

use crate::manifest::Manifest;
use std::borrow::Cow;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

// `BUILT_IN`: every file below `subjects/`, with `/` between the parts of its path; `LEFT_BEHIND`: what is passed over.
include!(concat!(env!("OUT_DIR"), "/subjects.rs"));

/// The environment variable that names a folder of subjects to take in place of those built in.
pub const FOLDER_VARIABLE: &str = "PUSHLAB_SUBJECTS";

const MANIFEST: &str = "subject.toml";

/// A file: its path below some folder, and its content.
pub type File = (String, Cow<'static, [u8]>);

/// A foreign server: its manifest and all files of its folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// What is known of it.
    pub manifest: Manifest,
    /// Path below its folder, and content.
    pub files: Vec<File>,
}

/// A catalogue that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CatalogueError {
    /// A folder or file cannot be read.
    #[error("cannot read subjects from {folder}: {why}; name a folder of folders with subject.toml each")]
    Unreadable {
        /// Which.
        folder: PathBuf,
        /// Why.
        why: String,
    },
    /// A manifest that makes no sense.
    #[error("subjects/{name}/{MANIFEST}: {why}")]
    Manifest {
        /// Whose.
        name: String,
        /// What is wrong.
        why: String,
    },
    /// There is no such subject.
    #[error("subject {name:?} is not known; known are {known}")]
    Unknown {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
}

/// Foreign servers in the order of their names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Catalogue(Vec<Entry>);

/// The catalogue of this process: the folder named in [`FOLDER_VARIABLE`], or what is built in.
///
/// # Errors
/// See [`CatalogueError`].
pub fn catalogue() -> Result<&'static Catalogue, CatalogueError> {
    static CATALOGUE: OnceLock<Result<Catalogue, CatalogueError>> = OnceLock::new();
    let read = || match std::env::var_os(FOLDER_VARIABLE) {
        Some(folder) => Catalogue::of_folder(Path::new(&folder)),
        None => Catalogue::of_files(BUILT_IN.iter().map(|(path, bytes)| ((*path).to_owned(), Cow::Borrowed(*bytes)))),
    };
    CATALOGUE.get_or_init(read).as_ref().map_err(Clone::clone)
}

impl Catalogue {
    /// Reads a folder of subjects.
    ///
    /// # Errors
    /// See [`CatalogueError`].
    pub fn of_folder(folder: &Path) -> Result<Self, CatalogueError> {
        let failed = |why: io::Error| CatalogueError::Unreadable { folder: folder.to_owned(), why: why.to_string() };
        let mut files = Vec::new();
        for entry in fs::read_dir(folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            if path.join(MANIFEST).is_file() {
                read_folder(folder, &path, &mut files).map_err(failed)?;
            }
        }
        Self::of_files(files.into_iter())
    }

    fn of_files(files: impl Iterator<Item = File>) -> Result<Self, CatalogueError> {
        let mut folders: Vec<(String, Vec<File>)> = Vec::new();
        let mut files: Vec<_> = files.collect();
        files.sort_by(|a, b| a.0.cmp(&b.0));
        for (path, content) in files {
            let Some((name, below)) = path.split_once('/') else { continue };
            match folders.last_mut().filter(|(known, _)| known == name) {
                Some((_, files)) => files.push((below.to_owned(), content)),
                None => folders.push((name.to_owned(), vec![(below.to_owned(), content)])),
            }
        }
        let entries = folders.into_iter().map(|(name, files)| {
            let bad = |why| CatalogueError::Manifest { name: name.clone(), why };
            let text = files.iter().find(|(path, _)| path == MANIFEST).map(|(_, bytes)| bytes.as_ref());
            let text = text.ok_or_else(|| bad("it is missing".to_owned()))?;
            let text = std::str::from_utf8(text).map_err(|error| bad(error.to_string()))?;
            Ok(Entry { manifest: Manifest::parse(text, &name).map_err(bad)?, files })
        });
        entries.collect::<Result<_, _>>().map(Self)
    }

    /// All of them.
    pub fn entries(&self) -> &[Entry] {
        &self.0
    }

    /// The one of this name.
    ///
    /// # Errors
    /// [`CatalogueError::Unknown`].
    pub fn find(&self, name: &str) -> Result<&Entry, CatalogueError> {
        let known = || self.0.iter().map(|entry| entry.manifest.name.as_str()).collect::<Vec<_>>().join(", ");
        let found = self.0.iter().find(|entry| entry.manifest.name == name);
        found.ok_or_else(|| CatalogueError::Unknown { name: name.to_owned(), known: known() })
    }
}

fn read_folder(root: &Path, folder: &Path, files: &mut Vec<File>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.file_name().is_some_and(|name| LEFT_BEHIND.iter().any(|left| name == *left)) {
            continue;
        }
        if path.is_dir() {
            read_folder(root, &path, files)?;
        } else if let Ok(below) = path.strip_prefix(root) {
            let parts: Vec<_> = below.iter().map(|part| part.to_string_lossy()).collect();
            files.push((parts.join("/"), Cow::Owned(fs::read(&path)?)));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::Platform;

    #[test]
    fn who_compresses_reads_from_how_many_bytes_on_and_nobody_else_does() {
        for entry in catalogue().unwrap().entries() {
            let is_read = |bytes: &[u8]| String::from_utf8_lossy(bytes).contains("COMPRESSION_FROM");
            let reads = entry.files.iter().any(|(path, bytes)| path != MANIFEST && is_read(bytes));
            let compresses = entry.manifest.endpoints.iter().any(|endpoint| endpoint.compresses);
            assert_eq!(reads, compresses, "{}", entry.manifest.name);
        }
    }

    #[test]
    fn whoever_runs_on_v8_or_hotspot_in_one_process_can_log_collections_and_is_else_started_as_always() {
        for Manifest { name, platform, cores_min, start, start_logged, .. } in
            catalogue().unwrap().entries().iter().map(|entry| &entry.manifest)
        {
            let added: &[&str] = match platform {
                Platform::Node if *cores_min == 1 => &["stdbuf", "--output=L", "--trace-gc"],
                Platform::Java => &["-Xlog:gc:stdout:none"],
                _ => &[],
            };
            let logged = start_logged.clone().unwrap_or_else(|| start.clone());
            let rest: Vec<&String> = logged.iter().filter(|word| !added.contains(&word.as_str())).collect();
            assert_eq!(rest, start.iter().collect::<Vec<_>>(), "{name}");
            assert_eq!(logged.len(), start.len() + added.len(), "{name}");
        }
    }
}
