//! What is counted in files: lines of programs, packages and bytes of installations.

use crate::catalogue::Entry;
use crate::install::Installed;
use crate::manifest::{Manifest, Platform};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The file beside a server that is its smallest page: it subscribes and prints what comes.
pub const CLIENT_FILE: &str = "client.js";

/// What `python3 -m venv` itself puts into an environment.
const VENV_OWN: [&str; 3] = ["pip", "setuptools", "wheel"];

/// How comments look in a file.
struct Comments {
    line: &'static str,
    block: Option<(&'static str, &'static str)>,
}

/// By the end of a file's name; a template, `nginx.conf.in`, is what it is a template of. JSON has no comments.
fn comments_of(path: &str) -> Option<Comments> {
    let path = path.strip_suffix(".in").unwrap_or(path);
    match path.rsplit_once('.').map_or("", |(_, end)| end) {
        "json" => None,
        "py" | "toml" | "yaml" | "yml" | "conf" | "sh" | "rb" => Some(Comments { line: "#", block: None }),
        _ => Some(Comments { line: "//", block: Some(("/*", "*/")) }),
    }
}

/// Lines of a file that are neither empty nor comment alone. `path` tells what comments look like.
pub fn code_lines(path: &str, text: &str) -> u32 {
    let comments = comments_of(path);
    let mut is_in_block = false;
    let mut is_code = |line: &str| {
        let mut rest = line.trim();
        let Some(Comments { line, block }) = &comments else { return !rest.is_empty() };
        loop {
            if let Some((_, close)) = block.filter(|_| is_in_block) {
                let Some(at) = rest.find(close) else { return false };
                is_in_block = false;
                rest = rest[at + close.len()..].trim_start();
            }
            match block.and_then(|(open, _)| rest.strip_prefix(open)) {
                Some(inside) => {
                    is_in_block = true;
                    rest = inside;
                }
                None => return !rest.is_empty() && !rest.starts_with(line),
            }
        }
    };
    text.lines().filter(|line| is_code(line)).count() as u32
}

fn lines_of(entry: &Entry, path: &str) -> Result<u32, String> {
    let file = entry.files.iter().find(|(known, _)| known == path);
    let (_, bytes) = file.ok_or_else(|| format!("its folder has no {path}"))?;
    Ok(code_lines(path, &String::from_utf8_lossy(bytes)))
}

/// Lines of the files that are the server: what somebody has to write who uses it as we do.
///
/// # Errors
/// As a sentence: a file that the manifest names is not there.
pub fn server_lines(entry: &Entry) -> Result<u32, String> {
    entry.manifest.server.iter().map(|path| lines_of(entry, path)).sum()
}

/// Lines of the smallest page.
///
/// # Errors
/// As a sentence: nobody has written one.
pub fn client_lines(entry: &Entry) -> Result<u32, String> {
    lines_of(entry, CLIENT_FILE)
}

/// Packages that an installation has brought, of the platform's own kind: npm packages in `node_modules`, jars, modules
/// that `go.mod` requires, Python distributions, crates in `Cargo.lock`. The server itself is none of them.
///
/// # Errors
/// As a sentence: there are none to count, or they cannot be read.
pub fn packages(manifest: &Manifest, folder: &Path) -> Result<u32, String> {
    let read = |name: &str| {
        let path = folder.join(name);
        fs::read_to_string(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))
    };
    let counted = match manifest.platform {
        Platform::Node | Platform::Bun => npm_packages(&folder.join("node_modules")),
        Platform::Java => jars(folder),
        Platform::Python => distributions(&folder.join("venv/lib")),
        Platform::Go => return Ok(go_modules(&read("go.mod")?)),
        Platform::Rust => return crates(&read("Cargo.lock")?),
        Platform::Nginx => return Err("nginx and its modules are packages of the operating system".to_owned()),
    };
    counted.map_err(|error| format!("cannot count the packages in {}: {error}", folder.display()))
}

/// Bytes that an installation takes: for compiled platforms the program alone, as what its compiler leaves beside it is
/// not needed; for others the whole folder.
///
/// # Errors
/// As a sentence: it is not in its folder, or cannot be looked at.
pub fn installed_bytes(manifest: &Manifest, installed: &Installed) -> Result<u64, String> {
    match manifest.platform {
        Platform::Nginx => Err("nginx and its modules are packages of the operating system".to_owned()),
        Platform::Go | Platform::Rust => {
            let program = installed.folder.join(&manifest.start[0]);
            let meta = fs::metadata(&program);
            Ok(meta.map_err(|error| format!("cannot look at {}: {error}", program.display()))?.len())
        }
        _ => Ok(installed.bytes),
    }
}

/// Folders and files in a folder.
fn inside(folder: &Path) -> io::Result<Vec<(String, PathBuf)>> {
    let entries = fs::read_dir(folder)?.map(|entry| {
        let entry = entry?;
        Ok((entry.file_name().to_string_lossy().into_owned(), entry.path()))
    });
    entries.collect()
}

/// None where there is no such folder: npm makes none for nothing.
fn npm_packages(modules: &Path) -> io::Result<u32> {
    let mut count = 0;
    if !modules.exists() {
        return Ok(0);
    }
    for (name, path) in inside(modules)? {
        if name.starts_with('@') {
            // A scope: packages of one owner.
            count += npm_packages(&path)?;
        } else if !name.starts_with('.') && path.join("package.json").is_file() {
            count += 1 + npm_packages(&path.join("node_modules"))?;
        }
    }
    Ok(count)
}

/// Of libraries: what the build itself has made lies in `target`.
fn jars(folder: &Path) -> io::Result<u32> {
    let mut count = 0;
    for (name, path) in inside(folder)? {
        if path.is_dir() && name != "target" {
            count += jars(&path)?;
        }
        count += u32::from(name.ends_with(".jar"));
    }
    Ok(count)
}

fn distributions(libraries: &Path) -> io::Result<u32> {
    let mut count = 0;
    for (_, python) in inside(libraries)? {
        for (name, _) in inside(&python.join("site-packages"))? {
            let Some((name, _)) = name.strip_suffix(".dist-info").and_then(|name| name.split_once('-')) else {
                continue;
            };
            count += u32::from(!VENV_OWN.contains(&name));
        }
    }
    Ok(count)
}

/// Entries of `require`, indirect ones among them: since Go 1.17 these are all modules of the build.
fn go_modules(go_mod: &str) -> u32 {
    let mut is_in_block = false;
    let mut count = 0;
    for line in go_mod.lines() {
        let words: Vec<&str> = line.split_whitespace().take_while(|word| !word.starts_with("//")).collect();
        match words[..] {
            ["require", "("] => is_in_block = true,
            [")"] => is_in_block = false,
            ["require", _, _] => count += 1,
            [_, _] if is_in_block => count += 1,
            _ => {}
        }
    }
    count
}

/// Those that come from elsewhere.
fn crates(lock: &str) -> Result<u32, String> {
    let lock: toml::Table = lock.parse().map_err(|error| format!("Cargo.lock: {error}"))?;
    let packages = lock.get("package").and_then(toml::Value::as_array).map_or(&[][..], Vec::as_slice);
    Ok(packages.iter().filter(|package| package.get("source").is_some()).count() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::catalogue;

    /// The smallest page says where its library comes from, in an import or a comment, as its documentation teaches it.
    #[test]
    fn every_subject_has_its_server_and_its_smallest_page() {
        for entry in catalogue().unwrap().entries() {
            let name = &entry.manifest.name;
            let lines = [server_lines(entry), client_lines(entry)];
            assert!(lines.iter().all(|lines| lines.as_ref().is_ok_and(|lines| *lines > 0)), "{name}: {lines:?}");
            let (_, page) = entry.files.iter().find(|(path, _)| path == CLIENT_FILE).unwrap();
            let page = String::from_utf8_lossy(page);
            match &entry.manifest.client {
                Some(client) => assert!(page.contains(&client.package), "{name}: {page}"),
                None => assert!(!page.contains("import") && !page.contains("<script"), "{name}: {page}"),
            }
        }
    }

    #[test]
    fn lines_of_comments_and_empty_lines_do_not_count() {
        let script =
            "// one\n\nimport x\n/* two\nthree */ let y\n/** four */\n  x() // five\n/* a */ /* b */ z()\n/*\n//*/ q\n";
        assert_eq!(code_lines("server.mjs", script), 5, "import, let y, x(), z(), q");
        assert_eq!(code_lines("main.rs", "fn main() {}\n//! doc\n"), 1);
        assert_eq!(code_lines("server.py", "# no\nx = 1 # yes\n\n// yes\n"), 2);
        assert_eq!(code_lines("nginx.conf.in", "#\nlisten @PORT@;\n"), 1);
        assert_eq!(code_lines("config.json", "{\n  \"a\": 1\n\n}\n"), 3);
        assert_eq!(code_lines("x.js", "/* never closed\nlet x\n"), 0);
    }

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str, files: &[&str]) -> Self {
            let root = std::env::temp_dir().join(format!("pushlab-count-{name}-{}", std::process::id()));
            for file in files {
                let path = root.join(file);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, "{}").unwrap();
            }
            Self(root)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).unwrap();
        }
    }

    #[test]
    fn packages_are_counted_where_each_platform_has_them() {
        let npm = Folder::new(
            "npm",
            &[
                "a/package.json",
                "a/lib/package.json",
                "a/node_modules/b/package.json",
                "@scope/c/package.json",
                ".bin/x",
                ".cache/package.json",
                "no-package/index.js",
            ],
        );
        assert_eq!(npm_packages(&npm.0).unwrap(), 3, "a, its own b, and one of a scope");
        let java = Folder::new("jars", &["lib/a.jar", "lib/b.jar", "lib/c.txt", "target/server.jar"]);
        assert_eq!(jars(&java.0).unwrap(), 2);
        let info = |name| format!("python3.12/site-packages/{name}.dist-info/METADATA");
        let files = ["pip-25.0", "uvicorn-0.30.0", "setuptools-80.0", "h11-0.16.0"].map(info);
        let venv = Folder::new("venv", &files.each_ref().map(String::as_str));
        assert_eq!(distributions(&venv.0).unwrap(), 2);
        let nowhere = Path::new("/nowhere");
        assert_eq!(npm_packages(nowhere).unwrap(), 0);
        assert!(distributions(nowhere).is_err());
    }

    #[test]
    fn lists_of_modules_and_crates_are_read() {
        let go = "module x\n\ngo 1.24\n\nrequire a.b/c v1.0.0\n\nrequire (\n\td.e/f v1.2.3 // indirect\n\t// none\n\tg.h/i v0.1.0\n)\n\nreplace (\n\tj.k/l => ../l\n)\n";
        assert_eq!(go_modules(go), 3);
        let lock = "version = 4\n[[package]]\nname = \"own\"\nversion = \"0.1.0\"\n[[package]]\nname = \"a\"\nversion = \"1.0.0\"\nsource = \"elsewhere\"\n";
        assert_eq!(crates(lock), Ok(1));
        assert!(crates("[[package").is_err());
    }
}
