//! Processes that outlived their lab.
//!
//! Subjects and workers are killed by the kernel when their lab ends, and network namespaces vanish with the last
//! process in them, so that a killed lab leaves nothing behind. Where the kernel's promise fails (a child that changes
//! its credentials is let off, and so is whatever a child has started), they are found in the control group that their
//! lab made for them, or by a mark in their environment that says whose they are.

use pushlab_os::Errno;
use pushlab_os::control_group::ControlGroup;
use pushlab_os::process::{self, Signal};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Environment variable of everything that a lab starts: the lab's process id, when it began, and the namespace in
/// which that number is its own.
pub const MARK: &str = "PUSHLAB_LAB";
/// Environment variable of one child and of all that it starts.
pub const CHILD_MARK: &str = "PUSHLAB_CHILD";
/// What the names of control groups of labs begin with; the rest is a [`CHILD_MARK`] with hyphens.
const GROUPS: &str = "pushlab-";
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

/// Whether a process belongs to a child, of this lab or of another, that has a different mark.
pub fn is_of_another_child(pid: u32, mark: &str) -> bool {
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let value = |variable: &[u8]| variable.strip_prefix(CHILD_MARK.as_bytes())?.strip_prefix(b"=").map(<[u8]>::to_vec);
    environment.split(|&byte| byte == 0).find_map(value).is_some_and(|found| found != mark.as_bytes())
}

/// Kills every process that has this [`CHILD_MARK`]: what a child has started and sent out of its process group. One
/// that forks meanwhile, or whose program is just being loaded, is found by a later look.
pub fn kill_marked(mark: &str) {
    const LOOKS_MAX: usize = 100;
    const REST: Duration = Duration::from_millis(5);
    for _ in 0..LOOKS_MAX {
        match kill_marked_once(mark) {
            (0, 0) => return,
            (0, _) => std::thread::sleep(REST),
            _ => {}
        }
    }
}

/// How many processes had the mark, and how many may have it and do not show it yet.
fn kill_marked_once(mark: &str) -> (usize, usize) {
    let (mut found, mut unknown) = (0, 0);
    let line = format!("{CHILD_MARK}={mark}");
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        let read = |name| fs::read(entry.path().join(name));
        let environment = read("environ").unwrap_or_default();
        if environment.split(|&byte| byte == 0).any(|variable| variable == line.as_bytes()) {
            // It may have ended since.
            let _ = process::send(pid, Signal::KILL);
            found += 1;
        } else if environment.is_empty() {
            // While a program is being loaded, its process has neither environment nor arguments. The kernel's own, which
            // never have any, have no program.
            let has_program = fs::read_link(entry.path().join("exe")).is_ok();
            unknown += usize::from(has_program && read("cmdline").is_ok_and(|words| words.is_empty()));
        }
    }
    (found, unknown)
}

/// The control group for the child with this mark; `None` where this process may make none.
pub fn make_group(mark: &str) -> Option<ControlGroup> {
    ControlGroup::make(&format!("{GROUPS}{}", mark.replace(':', "-"))).ok()
}

/// Control groups of labs that are gone, whose process ids are of this namespace.
fn groups(namespace: u64) -> Vec<ControlGroup> {
    let mut groups = ControlGroup::named(GROUPS);
    groups.retain(|group| {
        let mark = group.name().strip_prefix(GROUPS).map(|mark| mark.replace('-', ":"));
        mark.as_deref().and_then(|mark| mark.rsplit_once(':')).is_some_and(|(lab, _child)| is_gone(lab, namespace))
    });
    groups
}

/// Where process ids mean what they mean to this process: a lab in a container has others.
fn namespace_of_numbers() -> u64 {
    fs::metadata("/proc/self/ns/pid").map(|namespace| namespace.ino()).unwrap_or_default()
}

/// Processes of labs that are gone. Those of other users cannot be seen.
pub fn find() -> Vec<Leftover> {
    let namespace = namespace_of_numbers();
    found_in(&groups(namespace), namespace)
}

fn found_in(groups: &[ControlGroup], namespace: u64) -> Vec<Leftover> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let marked = numbers.filter(|&pid| is_orphan(pid, namespace));
    let grouped = groups.iter().flat_map(ControlGroup::processes);
    let found: BTreeMap<u32, String> = marked.chain(grouped).filter_map(|pid| Some((pid, command_of(pid)?))).collect();
    found.into_iter().map(|(pid, command)| Leftover { pid, command }).collect()
}

/// Kills them, and returns what could be. Control groups of labs that are gone are removed.
///
/// # Errors
/// Of the first that could not be killed.
pub fn clean() -> io::Result<Vec<Leftover>> {
    clean_in(namespace_of_numbers())
}

fn clean_in(namespace: u64) -> io::Result<Vec<Leftover>> {
    let groups = groups(namespace);
    let found = found_in(&groups, namespace);
    for group in &groups {
        group.kill().map_err(io::Error::other)?;
    }
    for leftover in &found {
        if let Err(error) = process::send(leftover.pid, Signal::KILL)
            && error.raw_os_error() != Some(Errno::SRCH.raw_os_error())
        {
            return Err(io::Error::new(error.kind(), format!("process {}: {error}", leftover.pid)));
        }
    }
    let deadline = Instant::now() + GONE_WITHIN;
    while found.iter().any(|leftover| is_orphan(leftover.pid, namespace)) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(5));
    }
    for group in groups {
        // One with a process that the kernel cannot end now is removed the next time.
        let _ = group.remove(deadline.saturating_duration_since(Instant::now()));
    }
    Ok(found)
}

/// Whether a process has the mark of a lab that is gone.
fn is_orphan(pid: u32, namespace: u64) -> bool {
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let mut variables = environment.split(|&byte| byte == 0);
    let mark = variables.find_map(|line| line.strip_prefix(MARK.as_bytes())?.strip_prefix(b"="));
    mark.and_then(|mark| std::str::from_utf8(mark).ok()).is_some_and(|mark| is_gone(mark, namespace))
}

/// Whether the lab with this [`MARK`] is gone. Of one whose process ids are others nobody here knows.
fn is_gone(mark: &str, namespace: u64) -> bool {
    let mut parts = mark.split(':');
    let (Some(Ok(lab)), Some(began), Some(its_namespace), None) =
        (parts.next().map(str::parse), parts.next(), parts.next(), parts.next())
    else {
        return false;
    };
    let is_alive = started(lab).is_some_and(|start| start == began);
    !is_alive && its_namespace == namespace.to_string()
}

/// The command line of a process; `None` if there is no such process.
fn command_of(pid: u32) -> Option<String> {
    let command = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let words = command.split(|&byte| byte == 0).filter(|word| !word.is_empty());
    let words: Vec<_> = words.map(String::from_utf8_lossy).collect();
    Some(words.join(" "))
}

/// When a process began, in clock ticks since boot: field 22 of `/proc/PID/stat` (proc(5)). A zombie has ended.
pub fn started(pid: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    let state = fields.next()?;
    (state != "Z").then(|| fields.nth(18).map(str::to_owned))?
}

#[cfg(test)]
mod tests {
    use super::*;
    use pushlab_os::child::Prepare as _;
    use std::process::Command;

    /// The marks of a lab that is this process and of one that is gone, whose process ids are of a namespace that there is
    /// not: nobody else cleans what has these marks, and nobody else's is cleaned here.
    fn labs(test: u64) -> (u64, String, String) {
        let (pid, namespace) = (std::process::id(), u64::from(std::process::id()) << 32 | test);
        // Our process id, and another beginning: an earlier process of that number.
        (namespace, format!("{pid}:{}:{namespace}", started(pid).unwrap()), format!("{pid}:1:{namespace}"))
    }

    #[test]
    fn only_what_has_no_lab_any_more_is_a_leftover() {
        let start = |mark: &str| Command::new("sleep").arg("60").env(MARK, mark).spawn().unwrap();
        let (namespace, this, gone) = labs(1);
        let own = start(&this);
        let mut orphaned = start(&gone);
        let elsewhere = start(&format!("{}:1:1", std::process::id()));
        let found = || found_in(&groups(namespace), namespace);
        // A child shows its new environment once it has called exec.
        let deadline = Instant::now() + Duration::from_secs(60);
        while found().is_empty() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        let expected = [Leftover { pid: orphaned.id(), command: "sleep 60".to_owned() }];
        assert_eq!(found(), expected);
        assert_eq!(clean_in(namespace).unwrap(), expected);
        orphaned.wait().unwrap();
        assert_eq!(found(), []);
        for mut child in [own, elsewhere] {
            assert!(child.try_wait().unwrap().is_none(), "alive");
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Where this process may make no control group, there is nothing to test.
    #[test]
    fn groups_of_labs_that_are_gone_are_emptied_and_removed() {
        let (namespace, this, gone) = labs(2);
        let Some(group) = make_group(&format!("{gone}:0")) else { return };
        let empty = make_group(&format!("{gone}:1")).unwrap();
        let own = make_group(&format!("{this}:0")).unwrap();
        // Its environment says nothing.
        let mut command = Command::new("sleep");
        let mut orphaned = command.arg("60").enter_control_group(group.entrance().unwrap()).spawn().unwrap();
        let expected = [Leftover { pid: orphaned.id(), command: "sleep 60".to_owned() }];
        assert_eq!(clean_in(namespace).unwrap(), expected);
        orphaned.wait().unwrap();
        let is_there = |group: &ControlGroup| !ControlGroup::named(group.name()).is_empty();
        assert!(!is_there(&group) && !is_there(&empty) && is_there(&own));
        own.remove(GONE_WITHIN).unwrap();
    }

    /// The marks of this process are read as they are written.
    #[test]
    fn a_lab_that_lives_is_not_gone() {
        assert!(!is_gone(&mark_of_this_process(), namespace_of_numbers()));
        let before = format!("{}:1:{}", std::process::id(), namespace_of_numbers());
        assert!(is_gone(&before, namespace_of_numbers()) && !is_gone(&before, 1));
    }
}
