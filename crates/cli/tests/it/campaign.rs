//! A place of its own for a test's experiment, store and reports, and the program run on it.

use pushlab_os::process::{Signal, send};
use pushlab_store::Store;
use serde_json::Value;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Longest time that anything awaited may take.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A folder that vanishes with the test.
pub struct Place {
    folder: PathBuf,
}

/// No limits to speak of.
const LENIENT: &str =
    "{ cpu_percent_max = 1000, turn_p99_ms_max = 10000, lateness_p99_ms_max = 10000, share_percent_max = 1000 }";

impl Place {
    pub fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("pushlab-test-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Self { folder }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Writes an experiment of two clients; `changes` are lines of TOML in place of the defaults of the same key.
    pub fn experiment(&self, changes: &[(&str, &str)]) -> PathBuf {
        let mut lines = vec![
            ("name", "\"test\""),
            ("title", "\"Test\""),
            ("transports", "[\"websocket\", \"long-polling\"]"),
            ("clients", "[2]"),
            ("repeats", "1"),
            ("scenario", "{ kind = \"feed\", interval_us = 5000, payload_bytes = 173 }"),
            (
                "phases",
                "{ connect_ms = 10000, idle_ms = 100, warm_up_ms = 100, load_ms = 400, drain_ms = 3000, after_ms = 50 }",
            ),
            // Tests run beside others, so the generator may well be late.
            ("generator_limits", LENIENT),
        ];
        for change in changes {
            lines.retain(|(key, _)| key != &change.0);
            lines.push(*change);
        }
        let text: String = lines.iter().map(|(key, value)| format!("{key} = {value}\n")).collect();
        let path = self.path("experiment.toml");
        std::fs::write(&path, text).unwrap();
        path
    }

    /// `pushlab` with these arguments, in this place.
    pub fn pushlab(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pushlab"));
        command.args(arguments).current_dir(&self.folder).stdin(Stdio::null());
        // Never the results of whoever runs the tests.
        command.env("PUSHLAB_STORE", self.store_path()).env("XDG_DATA_HOME", &self.folder);
        command
    }

    /// The store of everything that runs in this place.
    pub fn store_path(&self) -> PathBuf {
        self.path("results.db")
    }

    /// The store, opened.
    pub fn store(&self) -> Store {
        Store::open(&self.store_path()).unwrap()
    }

    pub fn run(&self, arguments: &[&str]) -> Output {
        self.pushlab(arguments).output().unwrap()
    }

    /// Runs the experiment and gives its report and exit code.
    pub fn report(&self, arguments: &[&str]) -> (Value, i32) {
        let output = self.run(&[&["run", "experiment.toml", "--json"], arguments].concat());
        let text = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        let report = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}\n{errors}"));
        (report, output.status.code().unwrap())
    }

    /// Runs a command that is to succeed, and gives what it printed.
    pub fn prints(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {error}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs a command that is to succeed and to print JSON.
    pub fn json(&self, arguments: &[&str]) -> Value {
        let text = self.prints(arguments);
        serde_json::from_str(&text).unwrap_or_else(|e| panic!("{arguments:?}: {e}: {text}"))
    }

    /// Runs a command that is to fail, and gives its exit code and what it said.
    pub fn fails(&self, arguments: &[&str]) -> (i32, String) {
        let output = self.run(arguments);
        let code = output.status.code().unwrap();
        assert_ne!(code, 0, "{arguments:?}: {}", String::from_utf8_lossy(&output.stdout));
        (code, String::from_utf8_lossy(&output.stderr).into_owned())
    }

    /// The list of what is stored.
    pub fn rows(&self) -> Vec<Value> {
        self.json(&["runs", "--json"]).as_array().unwrap().clone()
    }

    /// The runs of a stored experiment, whole, as they are exported.
    pub fn exported(&self, reference: &str) -> Vec<Value> {
        let export = self.json(&["export", reference, "--format", "json"]);
        export["experiments"][0]["runs"].as_array().unwrap().clone()
    }

    /// How many runs of the experiment that was stored first have a record by now.
    pub fn runs_done(&self) -> usize {
        if !self.store_path().exists() {
            return 0;
        }
        self.store().campaigns().unwrap().first().map_or(0, |row| row.done as usize)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // A folder that stays behind hurts nobody.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Waits until `found` gives something.
pub fn wait_for<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(value) = found() {
            return value;
        }
        assert!(Instant::now() < deadline, "timed out waiting for {what}");
        std::thread::yield_now();
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

/// Process ids of a process's children whose command line holds `word`.
pub fn children(parent: &Child, word: &str) -> Vec<u32> {
    let id = parent.id();
    let text = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
    let is_named =
        |pid: &u32| std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default().contains(word);
    text.split_whitespace().filter_map(|pid| pid.parse().ok()).filter(is_named).collect()
}

/// Sends a signal, by its name without `SIG`.
pub fn signal(pid: u32, name: &str) {
    let signal = match name {
        "INT" => Signal::INT,
        "KILL" => Signal::KILL,
        "STOP" => Signal::STOP,
        "CONT" => Signal::CONT,
        other => panic!("no test sends {other} yet"),
    };
    send(pid, signal).unwrap_or_else(|error| panic!("kill -{name} {pid}: {error}"));
}

/// All points of a report.
pub fn points(report: &Value) -> Vec<&Value> {
    let experiments = report["experiments"].as_array().unwrap();
    let series = experiments.iter().flat_map(|e| e["series"].as_array().unwrap());
    series.flat_map(|s| s["points"].as_array().unwrap()).collect()
}

/// Writes a script that may be run. Another process does: a child that another test starts meanwhile would inherit the
/// open file and keep it from being run.
pub fn write_program(path: &Path, script: &str) {
    let mut shell = Command::new("sh");
    shell.args(["-c", "cat > \"$0\" && chmod 755 \"$0\""]).arg(path).stdin(Stdio::piped());
    let mut shell = shell.spawn().unwrap();
    shell.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    assert!(shell.wait().unwrap().success());
}
