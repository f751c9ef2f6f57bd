//! Installing foreign servers into a cache, never into the repository.

use super::catalogue::Entry;
use crate::process::{Process, describe};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Longest that one command of an installation may take: a build on a slow machine.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(20 * 60);
/// How often a running command is looked at.
const WATCH: Duration = Duration::from_millis(20);
/// What an installation leaves when it is whole.
const MARKER: &str = "pushlab-installed.json";
/// What the commands said.
const LOG: &str = "pushlab-install.log";

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
    /// A program is missing.
    #[error("{name} needs {tool}, which is not on the PATH: {hint}")]
    MissingTool {
        /// The subject.
        name: String,
        /// The program.
        tool: String,
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
        let home = || named("HOME").map(|home| home.join(".cache"));
        let user = || named("XDG_CACHE_HOME").or_else(home).unwrap_or_else(std::env::temp_dir).join("pushlab");
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

    /// Where a subject is or would be installed. Another version of its files lies elsewhere.
    pub fn folder(&self, entry: &Entry) -> PathBuf {
        self.subjects().join(format!("{}-{:016x}", entry.manifest.name, entry.fingerprint()))
    }

    /// The installation of a subject.
    ///
    /// # Errors
    /// [`InstallError::NotInstalled`], or [`InstallError::MissingTool`] where it could not be used anyway.
    pub fn find(&self, entry: &Entry) -> Result<Installed, InstallError> {
        missing_tool(entry).map_or(Ok(()), Err)?;
        let folder = self.folder(entry);
        let text = fs::read(folder.join(MARKER)).ok();
        let installed = text.and_then(|text| serde_json::from_slice::<Installed>(&text).ok());
        match installed {
            Some(installed) => Ok(Installed { folder, ..installed }),
            None => Err(InstallError::NotInstalled { name: entry.manifest.name.clone() }),
        }
    }

    /// Installs a subject, unless it is there already. `is_interrupted` is asked while commands run.
    ///
    /// # Errors
    /// See [`InstallError`].
    pub fn install(&self, entry: &Entry, is_interrupted: &mut dyn FnMut() -> bool) -> Result<Installed, InstallError> {
        if let Ok(installed) = self.find(entry) {
            return Ok(installed);
        }
        missing_tool(entry).map_or(Ok(()), Err)?;
        let folder = self.folder(entry);
        let cache = |source| InstallError::Cache { folder: folder.clone(), source };
        fs::create_dir_all(self.subjects()).map_err(cache)?;
        // Two labs that install the same wait for each other.
        let lock = File::create(folder.with_extension("lock")).map_err(cache)?;
        lock.lock().map_err(cache)?;
        if let Ok(installed) = self.find(entry) {
            return Ok(installed);
        }
        if folder.exists() {
            // An installation that was broken off.
            fs::remove_dir_all(&folder).map_err(cache)?;
        }
        let begin = Instant::now();
        write_files(entry, &folder).map_err(cache)?;
        let log = folder.join(LOG);
        let output = File::create(&log).map_err(cache)?;
        for command in &entry.manifest.install {
            run_command(&entry.manifest.name, command, &folder, &output, &log, is_interrupted)?;
        }
        let installed = Installed {
            bytes: size_of_folder(&folder).map_err(cache)?,
            folder: folder.clone(),
            version: entry.manifest.version.clone(),
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

/// The first program that a subject needs and this machine does not have.
pub fn missing_tool(entry: &Entry) -> Option<InstallError> {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let is_there = |tool: &str| std::env::split_paths(&paths).any(|folder| folder.join(tool).is_file());
    let manifest = &entry.manifest;
    let tool = manifest.tools.iter().find(|tool| !is_there(tool))?;
    Some(InstallError::MissingTool { name: manifest.name.clone(), tool: tool.clone(), hint: manifest.hint.clone() })
}

fn write_files(entry: &Entry, folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    for (below, content) in &entry.files {
        let path = folder.join(below);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(path, content)?;
    }
    Ok(())
}

/// Runs one command of an installation in its folder; `output` is the open `log`.
pub(super) fn run_command(
    name: &str,
    command: &[String],
    folder: &Path,
    output: &File,
    log: &Path,
    is_interrupted: &mut dyn FnMut() -> bool,
) -> Result<(), InstallError> {
    let failed = |why: String| {
        let (name, tail) = (name.to_owned(), super::running::last_words(log));
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
