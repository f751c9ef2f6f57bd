//! Installing foreign servers, and tools of ours, into a cache, never into the repository.

use crate::catalogue::{Entry, File as Content};
use crate::manifest::{Manifest, Probe};
use crate::process::{Process, describe, end_of_log};
use crate::runtimes;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Longest that one command of an installation may take: a build on a slow machine.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(20 * 60);
/// How often a running command is looked at.
const WATCH: Duration = Duration::from_millis(20);
/// Longest that a probe may take: an interpreter that is read from a slow disk.
const PROBE_TIMEOUT: Duration = Duration::from_secs(30);
/// What an installation leaves when it is whole.
const MARKER: &str = "pushlab-installed.json";
/// What the commands said.
const LOG: &str = "pushlab-install.log";

/// What it takes to install something: what the machine must have, files of its own, and the commands that then follow.
#[derive(Debug, Clone, Copy)]
pub struct Recipe<'a> {
    /// What it is called.
    pub name: &'a str,
    /// The version that comes of it.
    pub version: &'a str,
    /// Programs that must be on the PATH.
    pub tools: &'a [String],
    /// Files that must be there.
    pub files: &'a [String],
    /// Commands that must succeed.
    pub probes: &'a [Probe],
    /// What to do where something is missing.
    pub hint: &'a str,
    /// Its own files.
    pub content: &'a [Content],
    /// Commands, run in the folder of its files.
    pub install: &'a [Vec<String>],
}

impl<'a> From<&'a Entry> for Recipe<'a> {
    fn from(entry: &'a Entry) -> Self {
        let Manifest { name, version, tools, files, probes, hint, install, .. } = &entry.manifest;
        Self { name, version, tools, files, probes, hint, content: &entry.files, install }
    }
}

impl Recipe<'_> {
    /// A number that changes with any of its files.
    fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.content.hash(&mut hasher);
        hasher.finish()
    }
}

/// What is known of an installation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Installed {
    /// Where.
    #[serde(skip)]
    pub folder: PathBuf,
    /// The version that the manifest named.
    pub version: String,
    /// How long it took, seconds.
    pub took_s: f64,
    /// What it takes on the disk, bytes.
    pub bytes: u64,
}

/// Why a subject is not installed.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// A program, a file or what a probe looks for is missing.
    #[error("{name} needs {tool}, which is not {place}: {hint}")]
    MissingTool {
        /// The subject.
        name: String,
        /// What is missing.
        tool: String,
        /// Where: `on the PATH`, or just `there`.
        place: &'static str,
        /// What to do.
        hint: String,
    },
    /// It was not asked for yet.
    #[error("{name} is not installed: run `pushlab subjects install {name}`")]
    NotInstalled {
        /// The subject.
        name: String,
    },
    /// The cache cannot be used.
    #[error("cannot use the cache {folder} (set PUSHLAB_CACHE to another): {source}")]
    Cache {
        /// Where.
        folder: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A command of the installation failed.
    #[error("installing {name}: `{command}` {why}; what it said is in {log}{tail}")]
    Command {
        /// The subject.
        name: String,
        /// The command line.
        command: String,
        /// How it ended.
        why: String,
        /// The file with its output.
        log: PathBuf,
        /// The end of that.
        tail: String,
    },
    /// Somebody pressed Ctrl-C.
    #[error("interrupted while {name} was being installed; it will be installed anew")]
    Interrupted {
        /// The subject.
        name: String,
    },
}

/// Where subjects are installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cache(PathBuf);

impl Cache {
    /// The folder named in `PUSHLAB_CACHE`, or `pushlab` in the user's cache folder.
    pub fn of_user() -> Self {
        let named = |variable: &str| std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from);
        // In a folder for temporary files, others could lay programs ready.
        let home = || std::env::home_dir().filter(|home| home.is_absolute()).unwrap_or("/".into()).join(".cache");
        let user = || named("XDG_CACHE_HOME").unwrap_or_else(home).join("pushlab");
        Self(named("PUSHLAB_CACHE").unwrap_or_else(user))
    }

    /// A cache in a folder.
    pub fn at(folder: PathBuf) -> Self {
        Self(folder)
    }

    /// The folder itself.
    pub fn path(&self) -> &Path {
        &self.0
    }

    fn subjects(&self) -> PathBuf {
        self.0.join("subjects")
    }

    /// Where something is or would be installed. Another version of its files lies elsewhere.
    pub fn folder<'a>(&self, what: impl Into<Recipe<'a>>) -> PathBuf {
        let recipe = what.into();
        self.subjects().join(format!("{}-{:016x}", recipe.name, recipe.fingerprint()))
    }

    /// The installation of a subject.
    ///
    /// # Errors
    /// [`InstallError::NotInstalled`], or [`InstallError::MissingTool`] where it could not be used anyway.
    pub fn find<'a>(&self, what: impl Into<Recipe<'a>>) -> Result<Installed, InstallError> {
        let recipe = what.into();
        if let Some(missing) = missing_file(&recipe) {
            return Err(missing);
        }
        // What probes look for is in the installation, once there is one.
        let name = || recipe.name.to_owned();
        let why_not = || missing_by_probe(&recipe).unwrap_or_else(|| InstallError::NotInstalled { name: name() });
        self.installed(&recipe).ok_or_else(why_not)
    }

    fn installed(&self, recipe: &Recipe<'_>) -> Option<Installed> {
        let folder = self.folder(*recipe);
        let text = fs::read(folder.join(MARKER)).ok()?;
        let installed = serde_json::from_slice::<Installed>(&text).ok()?;
        Some(Installed { folder, ..installed })
    }

    /// Installs something, unless it is there already. `is_interrupted` is asked while commands run.
    ///
    /// # Errors
    /// See [`InstallError`].
    pub fn install<'a>(
        &self,
        what: impl Into<Recipe<'a>>,
        is_interrupted: &mut dyn FnMut() -> bool,
    ) -> Result<Installed, InstallError> {
        let recipe = what.into();
        match self.find(recipe) {
            Err(InstallError::NotInstalled { .. }) => {}
            found => return found,
        }
        let folder = self.folder(recipe);
        let cache = |source| InstallError::Cache { folder: folder.clone(), source };
        fs::create_dir_all(self.subjects()).map_err(cache)?;
        // Two labs that install the same wait for each other.
        let lock = File::create(folder.with_extension("lock")).map_err(cache)?;
        lock.lock().map_err(cache)?;
        if let Some(installed) = self.installed(&recipe) {
            return Ok(installed);
        }
        if folder.exists() {
            // An installation that was broken off.
            fs::remove_dir_all(&folder).map_err(cache)?;
        }
        let begin = Instant::now();
        write_files(recipe.content, &folder).map_err(cache)?;
        let log = folder.join(LOG);
        let output = File::create(&log).map_err(cache)?;
        for command in recipe.install {
            run_command(recipe.name, command, &folder, &output, &log, is_interrupted)?;
        }
        let installed = Installed {
            bytes: size_of_folder(&folder).map_err(cache)?,
            folder: folder.clone(),
            version: recipe.version.to_owned(),
            took_s: begin.elapsed().as_secs_f64(),
        };
        let text = serde_json::to_vec_pretty(&installed).map_err(io::Error::from).map_err(cache)?;
        fs::write(folder.join(MARKER), text).map_err(cache)?;
        Ok(installed)
    }

    /// Removes every installation of a subject, of earlier versions too; returns how many there were.
    ///
    /// # Errors
    /// [`InstallError::Cache`].
    pub fn remove(&self, name: &str) -> Result<usize, InstallError> {
        let subjects = self.subjects();
        let cache = |source| InstallError::Cache { folder: subjects.clone(), source };
        let mut removed = 0;
        for entry in fs::read_dir(&subjects).into_iter().flatten() {
            let path = entry.map_err(cache)?.path();
            let file = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let is_of_subject = file.rsplit_once('-').is_some_and(|(known, _)| known == name);
            if !is_of_subject {
                continue;
            }
            if path.is_dir() {
                fs::remove_dir_all(&path).map_err(cache)?;
                removed += 1;
            } else {
                fs::remove_file(&path).map_err(cache)?;
            }
        }
        Ok(removed)
    }
}

/// The first program, file or finding of a probe that a subject needs and this machine does not have. Probes are commands
/// and take their time, mostly some tens of milliseconds each.
pub fn missing_tool(entry: &Entry) -> Option<InstallError> {
    let recipe = Recipe::from(entry);
    missing_file(&recipe).or_else(|| missing_by_probe(&recipe))
}

fn missing_file(recipe: &Recipe<'_>) -> Option<InstallError> {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let is_on_path = |tool: &str| std::env::split_paths(&paths).any(|folder| folder.join(tool).is_file());
    let Recipe { tools, files, .. } = recipe;
    let tool = tools.iter().find(|tool| !is_on_path(tool)).map(|tool| missing(recipe, tool, "on the PATH"));
    let file = || files.iter().find(|file| !Path::new(file).is_file()).map(|file| missing(recipe, file, "there"));
    tool.or_else(file)
}

fn missing_by_probe(recipe: &Recipe<'_>) -> Option<InstallError> {
    let mut probes = recipe.probes.iter();
    let failed = probes.find(|probe| !runtimes::succeeds(&probe.command, PROBE_TIMEOUT))?;
    Some(missing(recipe, &failed.what, "there"))
}

fn missing(recipe: &Recipe<'_>, tool: &str, place: &'static str) -> InstallError {
    let (name, hint) = (recipe.name.to_owned(), recipe.hint.to_owned());
    InstallError::MissingTool { name, tool: tool.to_owned(), place, hint }
}

fn write_files(files: &[Content], folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    for (below, content) in files {
        let path = folder.join(below);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(path, content)?;
    }
    Ok(())
}

/// Runs one command of an installation in its folder; `output` is the open `log`.
pub(crate) fn run_command(
    name: &str,
    command: &[String],
    folder: &Path,
    output: &File,
    log: &Path,
    is_interrupted: &mut dyn FnMut() -> bool,
) -> Result<(), InstallError> {
    let failed = |why: String| {
        let (name, tail) = (name.to_owned(), end_of_log(log));
        InstallError::Command { name, command: command.join(" "), why, log: log.to_owned(), tail }
    };
    let start = || {
        let (program, arguments) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut builder = Command::new(program);
        builder.args(arguments).current_dir(folder).stdin(Stdio::null());
        builder.stdout(output.try_clone()?).stderr(output.try_clone()?);
        Process::start(&mut builder, &[])
    };
    let mut process = start().map_err(|error| failed(format!("cannot be started: {error}")))?;
    let deadline = Instant::now() + COMMAND_TIMEOUT;
    loop {
        match process.ended() {
            Some(status) if status.success() => return Ok(()),
            Some(status) => return Err(failed(format!("ended with {}", describe(status)))),
            None if is_interrupted() => return Err(InstallError::Interrupted { name: name.to_owned() }),
            None if Instant::now() > deadline => return Err(failed(format!("took more than {COMMAND_TIMEOUT:?}"))),
            None => std::thread::sleep(WATCH),
        }
    }
}

/// Bytes of all files below a folder; links count as nothing.
pub fn size_of_folder(folder: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let meta = entry.metadata()?;
        bytes += if meta.is_dir() { size_of_folder(&entry.path())? } else { meta.len() };
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::catalogue;
    use crate::manifest::Probe;

    /// A subject that needs a shell alone, and whose installation does nothing.
    fn subject() -> Entry {
        let mut entry = catalogue().unwrap().find("nchan").unwrap().clone();
        let manifest = &mut entry.manifest;
        (manifest.tools, manifest.files, manifest.probes) = (vec!["sh".to_owned()], Vec::new(), Vec::new());
        manifest.hint = "install the module".to_owned();
        manifest.install = Vec::new();
        entry
    }

    fn probe(what: &str, script: &str) -> Probe {
        Probe { what: what.to_owned(), command: ["sh", "-c", script].map(str::to_owned).to_vec() }
    }

    struct TestCache(Cache);

    impl TestCache {
        fn new(name: &str) -> Self {
            let name = format!("pushlab-install-{name}-{}", std::process::id());
            Self(Cache::at(std::env::temp_dir().join(name)))
        }
    }

    impl Drop for TestCache {
        fn drop(&mut self) {
            // Where nothing was installed there is none.
            let _ = fs::remove_dir_all(self.0.path());
        }
    }

    fn is_missing(found: Result<Installed, InstallError>, sentence: &str) {
        match found {
            Err(error @ InstallError::MissingTool { .. }) => assert_eq!(error.to_string(), sentence),
            other => panic!("{other:?} instead of: {sentence}"),
        }
    }

    #[test]
    fn a_missing_file_is_told_as_a_missing_program_is() {
        let TestCache(cache) = &TestCache::new("files");
        let mut entry = subject();
        entry.manifest.files = vec!["/nowhere/module.so".to_owned()];
        let sentence = "nchan needs /nowhere/module.so, which is not there: install the module";
        is_missing(cache.install(&entry, &mut || false), sentence);
        is_missing(cache.find(&entry), sentence);
        assert!(!cache.path().exists(), "nothing was begun");
        entry.manifest.tools.push("no-such-program-anywhere".to_owned());
        let sentence = "nchan needs no-such-program-anywhere, which is not on the PATH: install the module";
        is_missing(cache.find(&entry), sentence);

        entry.manifest.tools.pop();
        entry.manifest.files = vec![std::env::current_exe().unwrap().to_str().unwrap().to_owned()];
        assert!(matches!(cache.find(&entry), Err(InstallError::NotInstalled { .. })));
        cache.install(&entry, &mut || false).unwrap();
        entry.manifest.files = vec!["/nowhere/module.so".to_owned()];
        assert!(cache.find(&entry).is_err(), "what is installed cannot be used without it");
    }

    #[test]
    fn what_a_probe_does_not_find_is_missing_until_it_is_installed() {
        let TestCache(cache) = &TestCache::new("probes");
        let mut entry = subject();
        entry.manifest.probes = vec![probe("a shell", "exit 0"), probe("the module's own parts", "echo no; exit 1")];
        let sentence = "nchan needs the module's own parts, which is not there: install the module";
        is_missing(cache.install(&entry, &mut || false), sentence);
        assert_eq!(missing_tool(&entry).unwrap().to_string(), sentence);
        entry.manifest.probes.pop();
        assert!(matches!(cache.find(&entry), Err(InstallError::NotInstalled { .. })));
        cache.install(&entry, &mut || false).unwrap();
        entry.manifest.probes = vec![probe("what nobody asks for any more", "exit 1")];
        assert!(cache.find(&entry).is_ok());
    }

    #[test]
    fn what_the_catalogue_takes_from_the_system_is_looked_for_and_not_installed() {
        for entry in catalogue().unwrap().entries() {
            let manifest = &entry.manifest;
            let system = |word: &String| word.starts_with('/');
            assert!(!manifest.install.iter().flatten().any(system), "{}: name it in files", manifest.name);
            let makes_environment = manifest.install.iter().any(|command| command.iter().any(|word| word == "venv"));
            assert_eq!(makes_environment, !manifest.probes.is_empty(), "{}", manifest.name);
        }
    }
}
