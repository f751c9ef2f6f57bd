//! A headless browser: found, started with a profile of its own, and gone with whoever started it.

use super::trusted::Trusted;
use pushlab_os::child::Prepare as _;
use pushlab_os::folder::TemporaryFolder;
use pushlab_os::process::{self, Signal};
use pushlab_workload::plan::{ClientKind, ClientsIn};
use std::ffi::OsStr;
use std::fs;
use std::io::{self, PipeWriter, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Time for a killed browser's processes to go, and for its files to stand still.
const GONE_WITHIN: Duration = Duration::from_secs(3);
/// Bytes of a browser's last output that are passed on.
const LAST_OUTPUT_MAX: usize = 300;
/// How far a browser stands back for the worker's own threads, on whose cores it runs: setpriority(2). Back end, prober
/// and the reading of reports keep their schedules however busy pages are; where both want a core, the worker gets three
/// quarters of it (sched(7)). More would
/// starve pages wherever other work runs on those cores.
const NICENESS: i32 = 5;
/// Most looks for threads that do not stand back yet; a browser starts few while its pages are at rest.
const LOOKS_MAX: u32 = 20;

/// Longest path of a profile, bytes: Chromium makes a socket in it (`/org.chromium.Chromium.XXXXXX/SingletonSocket`), and
/// the address of one holds 107 (unix(7)). It aborts where that does not fit.
const PROFILE_PATH_MAX: usize = 62;

/// A browser that is known.
struct Kind {
    /// For people.
    name: &'static str,
    /// Its programs, the first that is there is taken.
    programs: &'static [&'static str],
    /// What to install.
    hint: &'static str,
}

const CHROMIUM: Kind = Kind {
    name: "chromium",
    programs: &["chromium", "chromium-browser", "google-chrome-stable", "google-chrome"],
    hint: "Chromium or Chrome (on Debian `apt-get install chromium`)",
};
const FIREFOX: Kind = Kind {
    name: "firefox",
    programs: &["firefox-esr", "firefox"],
    hint: "Firefox (on Debian `apt-get install firefox-esr`)",
};

/// Chromium keeps to itself: no first-run pages, no updates, nothing that it loads by itself. Timers and background pages
/// are left as everybody has them.
const CHROMIUM_OPTIONS: [&str; 19] = [
    "--headless=new",
    "--remote-debugging-pipe",
    "--no-first-run",
    "--no-default-browser-check",
    "--no-proxy-server",
    "--disable-background-networking",
    "--disable-breakpad",
    "--disable-client-side-phishing-detection",
    "--disable-component-extensions-with-background-pages",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-gpu",
    "--disable-sync",
    "--disable-features=Translate,OptimizationHints,MediaRouter",
    "--log-level=3",
    "--metrics-recording-only",
    "--mute-audio",
    "--password-store=basic",
];

/// The same for Firefox; a clock that is not made coarse, as 1 ms is more than what is measured; and requests even where
/// there is no way to the internet, as behind an emulated network.
const FIREFOX_PREFERENCES: &str = r#"user_pref("privacy.reduceTimerPrecision", false);
user_pref("app.normandy.enabled", false);
user_pref("app.update.disabledForTesting", true);
user_pref("browser.aboutwelcome.enabled", false);
user_pref("browser.newtabpage.enabled", false);
user_pref("browser.safebrowsing.malware.enabled", false);
user_pref("browser.safebrowsing.phishing.enabled", false);
user_pref("browser.sessionstore.resume_from_crash", false);
user_pref("browser.shell.checkDefaultBrowser", false);
user_pref("browser.startup.homepage_override.mstone", "ignore");
user_pref("browser.startup.page", 0);
user_pref("browser.tabs.warnOnOpen", false);
user_pref("datareporting.policy.dataSubmissionEnabled", false);
user_pref("datareporting.policy.dataSubmissionPolicyBypassNotification", true);
user_pref("extensions.getAddons.cache.enabled", false);
user_pref("extensions.update.enabled", false);
user_pref("media.gmp-manager.updateEnabled", false);
user_pref("network.captive-portal-service.enabled", false);
user_pref("network.connectivity-service.enabled", false);
user_pref("network.manage-offline-status", false);
user_pref("network.proxy.type", 0);
user_pref("services.settings.server", "data:,");
user_pref("startup.homepage_welcome_url", "");
user_pref("toolkit.telemetry.enabled", false);
user_pref("toolkit.telemetry.server", "data:,");
"#;

/// Ends the browser's process group and removes its profile when whoever holds the other end of its standard input is
/// gone, however that ended.
const KEEPER: &str = r#"read -r _
kill -s KILL -- "-$1"
for _ in 1 2 3 4 5 6 7 8 9 10; do
  rm -rf -- "$2" && [ ! -e "$2" ] && break
  sleep 0.2
done"#;

/// Why there is no browser.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// It is not installed.
    #[error("{name} is not on the PATH: install {hint}, or measure native clients alone")]
    Missing {
        /// Which.
        name: &'static str,
        /// What to install.
        hint: &'static str,
    },
    /// It, or what it needs, could not be started.
    #[error("cannot start {}: {source}", .program.display())]
    Start {
        /// What.
        program: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Its sockets would not fit.
    #[error("a browser's profile {} is longer than {PROFILE_PATH_MAX} bytes: set TMPDIR to a shorter one", .folder.display())]
    LongPath {
        /// Where it would be.
        folder: PathBuf,
    },
    /// There is no room for its profile.
    #[error("a browser's profile: {0}; is there room, and is TMPDIR a folder?")]
    Folder(#[source] io::Error),
    /// Its profile could not be made.
    #[error("cannot make a browser's profile {}: {source}; is there room, and TMPDIR a folder?", .folder.display())]
    Profile {
        /// Where.
        folder: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// A browser that runs; ended, with all of its processes and its profile, when dropped.
#[derive(Debug)]
pub struct Browser {
    name: &'static str,
    child: Child,
    keeper: Child,
    profile: PathBuf,
    /// Chromium ends by itself when this is closed.
    _commands: Option<PipeWriter>,
}

/// Whether a browser can be started here; always, of native clients.
///
/// # Errors
/// [`LaunchError::Missing`].
pub fn check_installed(kind: ClientKind) -> Result<(), LaunchError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    of_kind(kind).map_or(Ok(()), |kind| find(kind, &path).map(drop))
}

fn of_kind(kind: ClientKind) -> Option<&'static Kind> {
    match kind {
        ClientKind::Native => None,
        ClientKind::Chromium => Some(&CHROMIUM),
        ClientKind::Firefox => Some(&FIREFOX),
    }
}

fn find(kind: &Kind, path: &OsStr) -> Result<PathBuf, LaunchError> {
    let folders: Vec<PathBuf> = std::env::split_paths(path).collect();
    let mut places = kind.programs.iter().flat_map(|program| folders.iter().map(move |folder| folder.join(program)));
    places.find(|place| place.is_file()).ok_or(LaunchError::Missing { name: kind.name, hint: kind.hint })
}

impl Browser {
    /// Starts one with these pages: each in a window of its own, or all hidden behind an empty one. Beside those that it
    /// trusts anyway it takes this certificate.
    ///
    /// # Errors
    /// See [`LaunchError`].
    pub fn start(clients_in: &ClientsIn, pages: &[String], trusted: Option<&Trusted>) -> Result<Self, LaunchError> {
        let kind_of = of_kind(clients_in.kind).unwrap_or(&CHROMIUM);
        let program = find(kind_of, &std::env::var_os("PATH").unwrap_or_default())?;
        let made = TemporaryFolder::make("pushlab-browser").map_err(LaunchError::Folder)?;
        if made.path().as_os_str().len() > PROFILE_PATH_MAX {
            return Err(LaunchError::LongPath { folder: made.path().to_owned() });
        }
        let folder = made.keep();
        let started = Self::start_in(kind_of, &program, &folder, clients_in, pages, trusted);
        if started.is_err() {
            remove(&folder);
        }
        started
    }

    fn start_in(
        kind: &'static Kind,
        program: &Path,
        folder: &Path,
        clients_in: &ClientsIn,
        pages: &[String],
        trusted: Option<&Trusted>,
    ) -> Result<Self, LaunchError> {
        let profile = |source| LaunchError::Profile { folder: folder.to_owned(), source };
        let failed = |source| LaunchError::Start { program: program.to_owned(), source };
        let words = fs::File::create(folder.join("output.log")).map_err(profile)?;
        let mut command = Command::new(program);
        // Its home is the profile: nothing of the user's is read or written.
        for variable in ["HOME", "TMPDIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"] {
            command.env(variable, folder);
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(words).process_group(0);
        let commands = match kind.name {
            "firefox" => {
                fs::write(folder.join("user.js"), firefox_preferences(clients_in)).map_err(profile)?;
                if let Some(trusted) = trusted {
                    fs::write(folder.join("cert_override.txt"), trusted.firefox_overrides()).map_err(profile)?;
                }
                firefox_arguments(&mut command, folder, pages, clients_in.hidden);
                None
            }
            _ => {
                command.args(trusted.map(Trusted::chromium_argument));
                Some(chromium_arguments(&mut command, folder).map_err(failed)?)
            }
        };
        // Root's browser would take a priority back, for the pages in front.
        command.end_with_parent(Signal::KILL).give_up_priorities();
        let mut child = command.spawn().map_err(failed)?;
        let keeper = match keeper(child.id(), folder) {
            Ok(keeper) => keeper,
            Err(source) => {
                kill_group(&child);
                let _ = child.wait();
                return Err(LaunchError::Start { program: "sh".into(), source });
            }
        };
        let mut this = Self { name: kind.name, child, keeper, profile: folder.to_owned(), _commands: None };
        if let Some(mut commands) = commands {
            for (id, url) in pages.iter().enumerate() {
                // DevTools protocol, domain Target: over a pipe each message ends with a zero byte.
                let place = if clients_in.hidden { "background" } else { "newWindow" };
                let message = serde_json::json!({
                    "id": id, "method": "Target.createTarget", "params": { "url": url, place: true },
                });
                commands.write_all(format!("{message}\0").as_bytes()).map_err(failed)?;
            }
            this._commands = Some(commands);
        }
        Ok(this)
    }

    /// Its name, for people.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Puts each of its threads behind those of this process; what they start from then on is there too. Not before its
    /// pages are there: on a busy machine they would take much longer to come.
    pub fn lower_priority(&self) {
        let Ok(own) = process::own_niceness() else { return };
        // A thread that has ended is an error of these.
        let is_moved = |thread: u32| {
            process::niceness(thread).is_ok_and(|niceness| niceness < own + NICENESS)
                && process::set_niceness(thread, own + NICENESS).is_ok()
        };
        // Those that were started during a look are found by the next.
        for _ in 0..LOOKS_MAX {
            if self.threads().into_iter().filter(|&thread| is_moved(thread)).count() == 0 {
                return;
            }
        }
    }

    /// All threads of its process group.
    fn threads(&self) -> Vec<u32> {
        let number = |entry: &fs::DirEntry| entry.file_name().to_str()?.parse::<u32>().ok();
        let numbers = |folder: &str| {
            let entries = fs::read_dir(folder).into_iter().flatten().flatten();
            entries.filter_map(|entry| number(&entry)).collect::<Vec<_>>()
        };
        // A process that has ended has no group.
        let is_own = |process: &u32| process::group_of(*process).is_ok_and(|group| group == self.child.id());
        let processes = numbers("/proc").into_iter().filter(is_own);
        processes.flat_map(|process| numbers(&format!("/proc/{process}/task"))).collect()
    }

    /// How it ended, if it has, and its last output.
    pub fn exit_message(&mut self) -> Option<String> {
        let status = self.child.try_wait().ok().flatten()?;
        Some(format!("{} ended with {status}{}", self.name, self.last_output()))
    }

    /// What it has said last, if anything, as the end of a sentence.
    pub fn last_output(&self) -> String {
        let text = fs::read(self.profile.join("output.log")).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let text = text.trim();
        if text.is_empty() {
            return String::new();
        }
        let start = text.ceil_char_boundary(text.len().saturating_sub(LAST_OUTPUT_MAX));
        format!("; it said {}", text[start..].replace('\n', " / "))
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The keeper first: the group's number may be another's once the browser has been waited for.
        let _ = self.keeper.kill();
        let _ = self.keeper.wait();
        kill_group(&self.child);
        let _ = self.child.wait();
        wait_for_group(&self.child);
        remove(&self.profile);
    }
}

/// Chromium's arguments, and the pipe on which it takes commands: descriptor 3 is where it reads, 4 where it would answer.
fn chromium_arguments(command: &mut Command, profile: &Path) -> io::Result<PipeWriter> {
    let (reader, writer) = io::pipe()?;
    let nowhere = fs::OpenOptions::new().write(true).open("/dev/null")?;
    command.args(CHROMIUM_OPTIONS).arg(format!("--user-data-dir={}", profile.display()));
    if process::is_root() {
        // The sandbox refuses to run as root.
        command.arg("--no-sandbox");
    }
    command.arg("about:blank");
    command.give(vec![(reader.into(), 3), (nowhere.into(), 4)]);
    Ok(writer)
}

/// Its profile's file `user.js`: ours, and what the experiment sets.
fn firefox_preferences(clients_in: &ClientsIn) -> String {
    let mut preferences = FIREFOX_PREFERENCES.to_owned();
    for preference in clients_in.preferences() {
        let Some(value) = preference.value else { continue };
        preferences.push_str(&format!("user_pref(\"{}\", {value});\n", preference.name));
    }
    if let Some(value) = clients_in.hidden_timer_min_ms {
        // A hidden page that has used up its time would wait all the same, and without that budget, or with a WebSocket
        // open, another preference holds (TimeoutManager::MinSchedulingDelay).
        let name = "dom.min_background_timeout_value_without_budget_throttling";
        preferences.push_str("user_pref(\"dom.timeout.enable_budget_timer_throttling\", false);\n");
        preferences.push_str(&format!("user_pref(\"{name}\", {value});\n"));
    }
    preferences
}

fn firefox_arguments(command: &mut Command, profile: &Path, pages: &[String], is_hidden: bool) {
    command.args(["--headless", "--no-remote", "--new-instance", "--profile"]).arg(profile);
    if is_hidden {
        command.arg("about:blank").args(pages);
    } else {
        for url in pages {
            command.args(["--new-window", url]);
        }
    }
}

/// Starts the process that cleans up after a killed worker. It is in no group of the lab's and bears no mark of it: it
/// is to outlive both, for a moment.
fn keeper(group: u32, profile: &Path) -> io::Result<Child> {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", KEEPER, "sh"]).arg(group.to_string()).arg(profile);
    command.env_clear().env("PATH", "/usr/bin:/bin").process_group(0);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
}

fn kill_group(child: &Child) {
    // The child leads its group and is waited for only after this, or was found dead a moment ago.
    let _ = process::send_to_group(child.id(), Signal::KILL);
}

/// Waits until no process is left of a group that was killed: what they hold goes when the kernel comes to it.
fn wait_for_group(leader: &Child) {
    let deadline = Instant::now() + GONE_WITHIN;
    // No signal is sent, so that it does no harm if the number is another group's already.
    while process::has_group(leader.id()) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Removes a folder into which processes that have just been killed may still be writing.
fn remove(folder: &Path) {
    let deadline = Instant::now() + GONE_WITHIN;
    while fs::remove_dir_all(folder).is_err_and(|error| error.kind() != io::ErrorKind::NotFound)
        && Instant::now() < deadline
    {
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_says_what_to_install() {
        let folder = std::env::temp_dir().join(format!("pushlab-browser-{:08x}", fastrand::u32(..)));
        fs::create_dir_all(&folder).unwrap();
        for (kind, package) in [(&CHROMIUM, "apt-get install chromium"), (&FIREFOX, "apt-get install firefox-esr")] {
            let error = find(kind, folder.as_os_str()).unwrap_err().to_string();
            assert!(error.contains(kind.name) && error.contains(package), "{error}");
        }
        fs::write(folder.join("firefox"), "").unwrap();
        assert_eq!(find(&FIREFOX, folder.as_os_str()).unwrap(), folder.join("firefox"));
        fs::remove_dir_all(folder).unwrap();
        assert!(check_installed(ClientKind::Native).is_ok());
    }

    #[test]
    fn what_an_experiment_sets_is_in_the_profile() {
        let usual = ClientsIn::of(ClientKind::Firefox, 2);
        assert_eq!(firefox_preferences(&usual), FIREFOX_PREFERENCES);
        let set = ClientsIn {
            connections_per_host_max: Some(32),
            connections_max: Some(2_000),
            websockets_max: Some(300),
            hidden_timer_min_ms: Some(4),
            ..usual
        };
        let all = firefox_preferences(&set);
        let own = all.strip_prefix(FIREFOX_PREFERENCES).unwrap();
        assert_eq!(
            own.lines().collect::<Vec<_>>(),
            [
                "user_pref(\"network.http.max-persistent-connections-per-server\", 32);",
                "user_pref(\"network.http.max-connections\", 2000);",
                "user_pref(\"network.websocket.max-connections\", 300);",
                "user_pref(\"dom.min_background_timeout_value\", 4);",
                "user_pref(\"dom.timeout.enable_budget_timer_throttling\", false);",
                "user_pref(\"dom.min_background_timeout_value_without_budget_throttling\", 4);",
            ]
        );
    }

    #[test]
    fn a_keeper_ends_the_group_and_removes_the_profile_when_its_owner_is_gone() {
        let profile = std::env::temp_dir().join(format!("pushlab-kept-{}", std::process::id()));
        fs::create_dir_all(profile.join("Default")).unwrap();
        let mut browser = Command::new("sh").args(["-c", "sleep 60 & wait"]).process_group(0).spawn().unwrap();
        let mut keeper = keeper(browser.id(), &profile).unwrap();
        assert!(browser.try_wait().unwrap().is_none() && profile.exists());
        drop(keeper.stdin.take());
        assert!(!browser.wait().unwrap().success());
        keeper.wait().unwrap();
        assert!(!profile.exists());
    }
}
