//! Processes that outlived their lab.
//!
//! Subjects and workers are killed by the kernel when their lab ends, and network namespaces vanish with the last
//! process in them, so that a killed lab leaves nothing behind. Where the kernel's promise fails (a child that changes
//! its credentials is let off), they are found by a mark in their environment that says whose they are.

use pushlab_os::Errno;
use pushlab_os::process::{self, Signal};
use std::fs;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Environment variable of everything that a lab starts: the lab's process id, when it began, and the namespace in
/// which that number is its own.
pub const MARK: &str = "PUSHLAB_LAB";
/// Environment variable of one child and of all that it starts.
pub const CHILD_MARK: &str = "PUSHLAB_CHILD";
/// Time for a killed process to be gone.
const GONE_WITHIN: Duration = Duration::from_secs(5);

/// A process whose lab is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftover {
    /// Process id.
    pub pid: u32,
    /// Its command line.
    pub command: String,
}

/// What [`MARK`] is for the children of this process: two processes never have the same.
pub fn mark_of_this_process() -> String {
    let pid = std::process::id();
    format!("{pid}:{}:{}", started(pid).unwrap_or_default(), namespace_of_numbers())
}

/// What [`CHILD_MARK`] is for the next child.
pub fn mark_of_a_child() -> String {
    static CHILDREN: AtomicU64 = AtomicU64::new(0);
    format!("{}:{}", mark_of_this_process(), CHILDREN.fetch_add(1, Ordering::Relaxed))
}

/// Kills every process that has this [`CHILD_MARK`]: what a child has started and sent out of its process group. One
/// that forks meanwhile is found by the next look.
pub fn kill_marked(mark: &str) {
    const LOOKS_MAX: usize = 8;
    for _ in 0..LOOKS_MAX {
        if kill_marked_once(mark) == 0 {
            return;
        }
    }
}

fn kill_marked_once(mark: &str) -> usize {
    let mut found = 0;
    let line = format!("{CHILD_MARK}={mark}");
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
        if environment.split(|&byte| byte == 0).any(|variable| variable == line.as_bytes()) {
            // It may have ended since.
            let _ = process::send(pid, Signal::KILL);
            found += 1;
        }
    }
    found
}

/// Where process ids mean what they mean to this process: a lab in a container has others.
fn namespace_of_numbers() -> String {
    fs::read_link("/proc/self/ns/pid").map(|link| link.display().to_string()).unwrap_or_default()
}

/// Processes of labs that are gone. Those of other users cannot be seen.
pub fn find() -> Vec<Leftover> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes.filter_map(|entry| orphan(entry.file_name().to_str()?.parse().ok()?)).collect()
}

/// Kills them, and returns what could be.
///
/// # Errors
/// Of the first that could not be killed.
pub fn clean() -> io::Result<Vec<Leftover>> {
    let found = find();
    for leftover in &found {
        if let Err(error) = process::send(leftover.pid, Signal::KILL)
            && error.raw_os_error() != Some(Errno::SRCH.raw_os_error())
        {
            return Err(io::Error::new(error.kind(), format!("process {}: {error}", leftover.pid)));
        }
    }
    let deadline = Instant::now() + GONE_WITHIN;
    while found.iter().any(|leftover| orphan(leftover.pid).is_some()) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(found)
}

fn orphan(pid: u32) -> Option<Leftover> {
    let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let mark =
        environment.split(|&byte| byte == 0).find_map(|line| line.strip_prefix(MARK.as_bytes())?.strip_prefix(b"="))?;
    let mut mark = std::str::from_utf8(mark).ok()?.splitn(3, ':');
    let (lab, began, namespace) = (mark.next()?, mark.next()?, mark.next()?);
    let is_alive = started(lab.parse().ok()?).is_some_and(|start| start == began);
    if is_alive || namespace != namespace_of_numbers() {
        return None;
    }
    let command = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let words = command.split(|&byte| byte == 0).filter(|word| !word.is_empty());
    let words: Vec<_> = words.map(String::from_utf8_lossy).collect();
    Some(Leftover { pid, command: words.join(" ") })
}

/// When a process began, in clock ticks since boot: field 22 of `/proc/PID/stat` (proc(5)). A zombie has ended.
fn started(pid: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    let state = fields.next()?;
    (state != "Z").then(|| fields.nth(18).map(str::to_owned))?
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn only_what_has_no_lab_any_more_is_a_leftover() {
        let start = |mark: &str| Command::new("sleep").arg("60").env(MARK, mark).spawn().unwrap();
        let own = start(&mark_of_this_process());
        // Our process id, and another beginning: an earlier process of that number.
        let mut orphaned = start(&format!("{}:1:{}", std::process::id(), namespace_of_numbers()));
        let elsewhere = start(&format!("{}:1:pid:[1]", std::process::id()));
        let is_found = |child: &std::process::Child| find().iter().any(|leftover| leftover.pid == child.id());
        // A child shows its new environment once it has called exec.
        let deadline = Instant::now() + Duration::from_secs(10);
        while !is_found(&orphaned) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(is_found(&orphaned) && !is_found(&own));
        let cleaned = clean().unwrap();
        assert!(cleaned.iter().any(|leftover| leftover.pid == orphaned.id() && leftover.command == "sleep 60"));
        orphaned.wait().unwrap();
        assert!(!is_found(&orphaned));
        for mut child in [own, elsewhere] {
            assert!(child.try_wait().unwrap().is_none(), "alive");
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}
