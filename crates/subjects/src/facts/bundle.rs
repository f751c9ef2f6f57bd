//! What a page loads: clients bundled for browsers as a build of a page does it.

use crate::catalogue::Entry;
use crate::install::{self, Cache};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

// `OWN_CLIENT`: the sources of our own client, `web/client/src`.
include!(concat!(env!("OUT_DIR"), "/client.rs"));

/// Bundler and clients, and their lock.
const TOOLS: [(&str, &str); 2] = [
    ("package.json", include_str!("tools/package.json")),
    ("package-lock.json", include_str!("tools/package-lock.json")),
];
const INSTALL: [&str; 5] = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"];
/// What there is when it was installed.
const BUNDLER: &str = "node_modules/.bin/esbuild";
/// Modules of 2022, as our own client is built: what is older is not rewritten.
const BUNDLE: [&str; 8] = [
    "--bundle",
    "--minify",
    "--format=iife",
    "--platform=browser",
    "--target=es2022",
    // Some clients take it for granted, as older bundlers gave it.
    "--define:global=globalThis",
    "--legal-comments=none",
    "--log-level=error",
];
/// Prints how many bytes a file has, compressed as a web server would once and for all.
const GZIPPED: &str = "console.log(zlib.gzipSync(fs.readFileSync(process.argv[1]), { level: 9 }).length)";
const OWN_IMPORT: &str = "import { connect } from './own/pushlab.ts'; globalThis.client = connect;";

/// What a client weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClientSize {
    /// Minified.
    pub minified_bytes: u64,
    /// Minified and compressed by gzip at its highest level.
    pub gzipped_bytes: u64,
}

impl ClientSize {
    /// Of what the browser itself has.
    const NOTHING: Self = Self { minified_bytes: 0, gzipped_bytes: 0 };
}

/// The size of a subject's client: nothing where the browser's own interfaces are enough.
///
/// # Errors
/// As a sentence: node or npm is missing, the bundler cannot be installed, or the client cannot be bundled.
pub fn client_size(
    cache: &Cache,
    entry: &Entry,
    is_interrupted: &mut dyn FnMut() -> bool,
) -> Result<ClientSize, String> {
    let Some(client) = &entry.manifest.client else { return Ok(ClientSize::NOTHING) };
    let locked = locked_version(&client.package)?;
    if locked != client.version {
        let (package, version) = (&client.package, &client.version);
        return Err(format!("the manifest names {package} {version}, but {locked} is locked for bundling"));
    }
    let tools = tools(cache, is_interrupted)?;
    bundled(&tools, &entry.manifest.name, &client.import)
}

/// The size of our own client.
///
/// # Errors
/// As [`client_size`].
pub fn own_client_size(cache: &Cache, is_interrupted: &mut dyn FnMut() -> bool) -> Result<ClientSize, String> {
    let tools = tools(cache, is_interrupted)?;
    bundled(&tools, "own", OWN_IMPORT)
}

fn locked_version(package: &str) -> Result<String, String> {
    let [(_, list), _] = TOOLS;
    let list: serde_json::Value = serde_json::from_str(list).map_err(|error| error.to_string())?;
    let version = list["dependencies"][package].as_str();
    // Of an alias, npm:NAME@VERSION, what stands behind the name.
    let version = version.map(|version| version.rsplit_once('@').map_or(version, |(_, version)| version));
    version.map(str::to_owned).ok_or_else(|| format!("{package} is not among the clients that can be bundled"))
}

/// The folder with bundler and clients, installed when it is needed for the first time.
fn tools(cache: &Cache, is_interrupted: &mut dyn FnMut() -> bool) -> Result<PathBuf, String> {
    let mut hasher = DefaultHasher::new();
    (TOOLS, OWN_CLIENT).hash(&mut hasher);
    let folder = cache.path().join(format!("facts-tools-{:016x}", hasher.finish()));
    if folder.join(BUNDLER).exists() {
        return Ok(folder);
    }
    let unusable = |error: io::Error| format!("cannot use {} (set PUSHLAB_CACHE): {error}", folder.display());
    write_tools(&folder).map_err(unusable)?;
    let log = folder.join("install.log");
    let output = File::create(&log).map_err(unusable)?;
    // Another lab that installs the same is waited for.
    output.lock().map_err(unusable)?;
    if !folder.join(BUNDLER).exists() {
        let command = INSTALL.map(str::to_owned);
        install::run_command("the bundler esbuild", &command, &folder, &output, &log, is_interrupted)
            .map_err(|error| error.to_string())?;
    }
    Ok(folder)
}

fn write_tools(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder.join("own"))?;
    for (name, text) in TOOLS {
        fs::write(folder.join(name), text)?;
    }
    for (name, bytes) in OWN_CLIENT {
        fs::write(folder.join("own").join(name), bytes)?;
    }
    Ok(())
}

fn bundled(tools: &Path, name: &str, import: &str) -> Result<ClientSize, String> {
    let (entry, bundle) = (format!("{name}.entry.js"), format!("{name}.bundle.js"));
    let failed = |error: io::Error| format!("cannot bundle in {}: {error}", tools.display());
    fs::write(tools.join(&entry), import).map_err(failed)?;
    let mut bundler = Command::new(tools.join(BUNDLER));
    said(bundler.arg(&entry).args(BUNDLE).arg(format!("--outfile={bundle}")).current_dir(tools))?;
    let gzipped = said(Command::new("node").args(["-e", GZIPPED, &bundle]).current_dir(tools))?;
    Ok(ClientSize {
        minified_bytes: fs::metadata(tools.join(&bundle)).map_err(failed)?.len(),
        gzipped_bytes: gzipped.trim().parse().map_err(|_| format!("node said {gzipped:?} instead of a size"))?,
    })
}

/// What a command prints.
fn said(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("cannot start {name}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let words = String::from_utf8_lossy(&output.stderr);
    let first: Vec<&str> = words.lines().filter(|line| !line.trim().is_empty()).take(3).collect();
    Err(format!("{name}: {}", first.join(" / ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::catalogue;

    #[test]
    fn every_client_of_the_catalogue_is_locked_in_its_version() {
        for entry in catalogue().unwrap().entries() {
            let Some(client) = &entry.manifest.client else { continue };
            assert_eq!(locked_version(&client.package).as_ref(), Ok(&client.version), "{}", entry.manifest.name);
        }
        assert!(locked_version("left-pad").unwrap_err().contains("left-pad"));
    }

    #[test]
    fn list_and_lock_agree_and_name_no_place() {
        let [list, lock] = TOOLS.map(|(_, text)| serde_json::from_str::<serde_json::Value>(text).unwrap());
        assert_eq!(list["dependencies"], lock["packages"][""]["dependencies"]);
        assert!(!TOOLS[1].1.contains("\"resolved\""));
        assert!(OWN_CLIENT.iter().any(|(name, _)| *name == "pushlab.ts"));
    }

    #[test]
    fn what_cannot_be_had_is_told_by_its_last_words() {
        assert_eq!(said(Command::new("sh").args(["-c", "echo 7"])), Ok("7\n".to_owned()));
        assert_eq!(said(Command::new("sh").args(["-c", "echo no >&2; exit 1"])), Err("sh: no".to_owned()));
        assert!(said(&mut Command::new("/nowhere/esbuild")).unwrap_err().starts_with("cannot start /nowhere/esbuild"));
    }
}
