//! The repository as text, so that rules can be tested without a disk.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// Path (relative, with `/`) to text, without what `.gitignore` names.
#[derive(Debug, Default)]
pub struct Tree {
    files: BTreeMap<String, String>,
    ignored: Vec<String>,
}

impl Tree {
    /// Reads a folder. A file that is not UTF-8 is there, with empty text. Links are not followed.
    pub fn read(root: &Path) -> io::Result<Self> {
        let ignored = std::fs::read_to_string(root.join(".gitignore")).unwrap_or_default();
        let mut tree = Self::of(&[]);
        tree.ignored = patterns(&ignored);
        tree.read_folder(root, "")?;
        Ok(tree)
    }

    /// A tree in memory.
    pub fn of(files: &[(&str, &str)]) -> Self {
        let owned = |(path, text): &(&str, &str)| ((*path).to_owned(), (*text).to_owned());
        Self { files: files.iter().map(owned).collect(), ignored: Vec::new() }
    }

    fn read_folder(&mut self, folder: &Path, prefix: &str) -> io::Result<()> {
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            let name = entry.file_name();
            let path = format!("{prefix}{}", name.to_string_lossy());
            let kind = entry.file_type()?;
            if kind.is_dir() && name != ".git" && !self.is_ignored(&format!("{path}/")) {
                self.read_folder(&entry.path(), &format!("{path}/"))?;
            } else if kind.is_file() && !self.is_ignored(&path) {
                let text = String::from_utf8(std::fs::read(entry.path())?).unwrap_or_default();
                self.files.insert(path, text);
            }
        }
        Ok(())
    }

    /// The text of a file.
    pub fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    /// Every file below a prefix, sorted; `""` for all.
    pub fn below<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.files
            .iter()
            .filter(move |(path, _)| path.starts_with(prefix))
            .map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// Whether a file or folder of this path is there.
    pub fn exists(&self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        self.files.contains_key(path) || self.below(&format!("{path}/")).next().is_some()
    }

    /// Whether `.gitignore` names this path or a folder above it: a build makes it, nobody writes it.
    pub fn is_ignored(&self, path: &str) -> bool {
        let path = format!("/{path}/");
        self.ignored.iter().any(|pattern| match pattern.strip_prefix("**") {
            Some(name) => path.contains(name),
            None => path.starts_with(pattern),
        })
    }
}

/// The forms our `.gitignore` uses: `/from/the/top/`, `/file` and `name/` at any depth.
fn patterns(text: &str) -> Vec<String> {
    text.lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| {
            let anywhere = if line.starts_with('/') { "" } else { "**/" };
            format!("{anywhere}{}/", line.trim_end_matches('/'))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignores_what_gitignore_names() {
        let mut tree = Tree::of(&[("crates/wire/src/lib.rs", "")]);
        tree.ignored = patterns("/target/\nnode_modules/\n# note\n/web/console/dist/\n");
        for path in [
            "target/release/pushlab",
            "web/console/node_modules/a/b.js",
            "web/console/dist/report.html",
            "node_modules/",
        ] {
            assert!(tree.is_ignored(path), "{path}");
        }
        for path in ["crates/target.rs", "web/console/distance", "targets/"] {
            assert!(!tree.is_ignored(path), "{path}");
        }
    }

    #[test]
    fn a_folder_exists_when_a_file_is_in_it() {
        let tree = Tree::of(&[("crates/wire/src/lib.rs", "")]);
        assert!(tree.exists("crates/wire/") && tree.exists("crates/wire/src/lib.rs"));
        assert!(!tree.exists("crates/wir") && !tree.exists("crates/stats"));
    }
}
