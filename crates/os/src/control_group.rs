//! Control groups, those of version 2 (cgroups(7)) but where it says otherwise. A process may leave its process group,
//! its session and its parent and change its environment, but leaves a control group only if it may write into another
//! one. So a group holds whatever a child starts, and ends it all at once.
//!
//! The groups made here have no controllers: they change nothing about how their processes run. To the time of a
//! process that does nothing but wait and wake they add some 3 %, for what the kernel counts on each level.

use rustix::fs::{Access, access};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The file of a group that ends it.
const KILL: &str = "cgroup.kill";
/// How often a group is looked at while its processes end.
const WATCH: Duration = Duration::from_millis(1);

/// What could not be done with control groups.
#[derive(Debug, thiserror::Error)]
#[error("{}: cannot {what}", path.display())]
pub struct ControlGroupError {
    /// The file or folder.
    pub path: PathBuf,
    what: &'static str,
    source: io::Error,
}

fn cannot(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> ControlGroupError {
    let path = path.to_owned();
    move |source| ControlGroupError { path, what, source }
}

/// A control group.
#[derive(Debug)]
pub struct ControlGroup {
    folder: PathBuf,
}

impl ControlGroup {
    /// Makes one below that of this process.
    ///
    /// # Errors
    /// Where there is no hierarchy of version 2, this process may not change its part of it, or the kernel cannot end
    /// groups (before Linux 5.14).
    pub fn make(name: &str) -> Result<Self, ControlGroupError> {
        let folder = Hierarchy::find()?.folder_of_this_process()?.join(name);
        fs::create_dir(&folder).map_err(cannot("make a control group", &folder))?;
        let group = Self { folder };
        // It is counted for whoever reads it, which nobody does, at the cost of every process in the group.
        let _ = fs::write(group.folder.join("cgroup.pressure"), "0");
        let kill = group.folder.join(KILL);
        match fs::metadata(&kill) {
            Ok(_) => Ok(group),
            Err(error) => {
                group.remove(Duration::ZERO)?;
                Err(cannot("end control groups", &kill)(error))
            }
        }
    }

    /// Groups whose names begin like this and that this process may end, in all of the hierarchy; none where there is no
    /// hierarchy.
    pub fn named(beginning: &str) -> Vec<Self> {
        let mut found = Vec::new();
        if let Ok(hierarchy) = Hierarchy::find() {
            walk(&hierarchy.mounted_at, &mut |folder| {
                let is_named =
                    folder.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(beginning));
                if is_named && access(folder.join(KILL), Access::WRITE_OK).is_ok() {
                    found.push(Self { folder: folder.to_owned() });
                }
            });
        }
        found
    }

    /// The name that it was made with.
    pub fn name(&self) -> &str {
        self.folder.file_name().and_then(|name| name.to_str()).unwrap_or_default()
    }

    /// A descriptor through which a child [enters](crate::child::Prepare::enter_control_group).
    ///
    /// # Errors
    /// What opening answers.
    pub fn entrance(&self) -> Result<File, ControlGroupError> {
        let path = self.folder.join("cgroup.procs");
        File::options().write(true).open(&path).map_err(cannot("enter the control group", &path))
    }

    /// Its processes, those of groups below it too. What has ended does not count, even if nobody has waited for it.
    pub fn processes(&self) -> Vec<u32> {
        let mut found = Vec::new();
        walk(&self.folder, &mut |folder| {
            let listed = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
            // 0 stands for one that this process cannot see.
            found.extend(listed.lines().filter_map(|line| line.parse::<u32>().ok()).filter(|&pid| pid != 0));
        });
        found
    }

    /// Kills all its processes, those of groups below it too, and whatever they start meanwhile. One that was removed has
    /// none.
    ///
    /// # Errors
    /// Where it is another user's.
    pub fn kill(&self) -> Result<(), ControlGroupError> {
        let path = self.folder.join(KILL);
        match fs::write(&path, "1") {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(cannot("end the control group", &path)(error)),
            _ => Ok(()),
        }
    }

    /// Removes it once its processes have ended, and groups that they made below it.
    ///
    /// # Errors
    /// If they have not within `patience`.
    pub fn remove(self, patience: Duration) -> Result<(), ControlGroupError> {
        let deadline = Instant::now() + patience;
        loop {
            // Those below come later in the list.
            let mut folders = Vec::new();
            walk(&self.folder, &mut |folder| folders.push(folder.to_owned()));
            let removed = folders.iter().rev().try_for_each(fs::remove_dir);
            match removed {
                Ok(()) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                Err(error) if Instant::now() >= deadline => {
                    return Err(cannot("remove the control group", &self.folder)(error));
                }
                Err(_) => std::thread::sleep(WATCH),
            }
        }
    }
}

/// Where the groups of version 2 are.
struct Hierarchy {
    mounted_at: PathBuf,
    /// The group that is mounted there: not always the root of all.
    root: PathBuf,
}

impl Hierarchy {
    fn find() -> Result<Self, ControlGroupError> {
        let path = Path::new("/proc/self/mountinfo");
        let mounts = fs::read_to_string(path).map_err(cannot("read what is mounted", path))?;
        let missing = || cannot("find control groups of version 2", path)(io::ErrorKind::NotFound.into());
        mounts.lines().find_map(Self::of_mount).ok_or_else(missing)
    }

    /// `ID PARENT DEVICE ROOT MOUNTED-AT OPTIONS … - TYPE …` (proc_pid_mountinfo(5)).
    fn of_mount(line: &str) -> Option<Self> {
        let (mount, kind) = line.split_once(" - ")?;
        kind.starts_with("cgroup2 ").then(|| Self::mounted(mount)).flatten()
    }

    fn mounted(mount: &str) -> Option<Self> {
        let mut fields = mount.split(' ').skip(3);
        Some(Self { root: fields.next()?.into(), mounted_at: fields.next()?.into() })
    }

    /// The folders of a group and of those above it; of one that is not below what is mounted, what is mounted.
    fn folders_up_from(&self, group: &str) -> Vec<PathBuf> {
        let below = Path::new(group).strip_prefix(&self.root).unwrap_or(Path::new(""));
        let folder = self.mounted_at.join(below);
        folder.ancestors().take_while(|above| above.starts_with(&self.mounted_at)).map(Path::to_owned).collect()
    }

    fn folder_of_this_process(&self) -> Result<PathBuf, ControlGroupError> {
        let path = Path::new("/proc/self/cgroup");
        let groups = fs::read_to_string(path).map_err(cannot("read the control group", path))?;
        let own = groups.lines().find_map(|line| line.strip_prefix("0::")).map(Path::new);
        let below = own.and_then(|own| own.strip_prefix(&self.root).ok());
        let missing = || cannot("find the control group below what is mounted", path)(io::ErrorKind::NotFound.into());
        below.map(|below| self.mounted_at.join(below)).ok_or_else(missing)
    }
}

/// Folders of the groups, of either version, whose quotas hold for the CPU time of a process, as far as they can be seen.
pub fn folders_with_cpu_quota(process: u32) -> Vec<PathBuf> {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    cpu_folders(&read("/proc/self/mountinfo"), &read(&format!("/proc/{process}/cgroup")))
}

/// The groups of a process are lines `ID:CONTROLLERS:PATH`; those of version 2 have ID 0 and no controllers.
fn cpu_folders(mounts: &str, groups: &str) -> Vec<PathBuf> {
    let has_cpu = |list: &str| list.split(',').any(|controller| controller == "cpu");
    let group_of = |is_its: &dyn Fn(&str, &str) -> bool| {
        groups.lines().find_map(|line| {
            let mut fields = line.splitn(3, ':');
            let (id, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
            is_its(id, controllers).then_some(path)
        })
    };
    let mut folders = Vec::new();
    for (mount, kind) in mounts.lines().filter_map(|line| line.split_once(" - ")) {
        let group = match kind.split(' ').next() {
            Some("cgroup2") => group_of(&|id, controllers| id == "0" && controllers.is_empty()),
            Some("cgroup") if kind.rsplit(' ').next().is_some_and(has_cpu) => {
                group_of(&|_, controllers| has_cpu(controllers))
            }
            _ => None,
        };
        let hierarchy = Hierarchy::mounted(mount);
        folders.extend(hierarchy.zip(group).map_or_else(Vec::new, |(own, group)| own.folders_up_from(group)));
    }
    folders
}

/// This folder and all below it, each before what is in it. What vanishes meanwhile is left out.
fn walk(folder: &Path, visit: &mut impl FnMut(&Path)) {
    visit(folder);
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            walk(&entry.path(), visit);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::child::Prepare as _;
    use std::process::Command;

    #[test]
    fn a_hierarchy_is_where_the_kernel_says() {
        let found = |line| Hierarchy::of_mount(line).map(|found| (found.root, found.mounted_at));
        let line = "35 24 0:30 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate";
        assert_eq!(found(line), Some(("/".into(), "/sys/fs/cgroup".into())));
        let line = "41 24 0:30 /a /sys/fs/cgroup/unified rw - cgroup2 none rw";
        assert_eq!(found(line), Some(("/a".into(), "/sys/fs/cgroup/unified".into())));
        for other in ["", "36 24 0:31 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu", "35 24 0:30 / - cgroup2 none rw"]
        {
            assert_eq!(found(other), None, "{other}");
        }
    }

    #[test]
    fn quotas_are_those_of_a_group_and_of_all_above_it() {
        let has = |mounts: &str, groups: &str, expected: &[&str]| {
            let expected: Vec<PathBuf> = expected.iter().map(PathBuf::from).collect();
            assert_eq!(cpu_folders(mounts, groups), expected, "{groups}");
        };
        let second = "35 24 0:30 / /sys/fs/cgroup rw shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";
        let (slice, scope) = ("/sys/fs/cgroup/a.slice", "/sys/fs/cgroup/a.slice/b.scope");
        has(second, "0::/a.slice/b.scope\n", &[scope, slice, "/sys/fs/cgroup"]);
        has(second, "0::/\n", &["/sys/fs/cgroup"]);
        let first = "41 24 0:30 /docker/abc /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n\
                     42 24 0:31 /docker/abc /sys/fs/cgroup/cpuset ro - cgroup cgroup rw,cpuset\n";
        let groups = "5:cpuset:/docker/abc\n4:cpu,cpuacct:/docker/abc/x\n0::/\n";
        has(first, groups, &["/sys/fs/cgroup/cpu,cpuacct/x", "/sys/fs/cgroup/cpu,cpuacct"]);
        has(first, "4:cpu,cpuacct:/elsewhere\n", &["/sys/fs/cgroup/cpu,cpuacct"]);
        has(first, "0::/\n", &[]);
        has("", groups, &[]);
        // There may be none here, and a process that there is not has none.
        folders_with_cpu_quota(std::process::id());
        assert!(folders_with_cpu_quota(u32::MAX).is_empty());
    }

    /// Where this process may make none, making one says so; then there is nothing to test.
    #[test]
    fn a_group_holds_what_a_child_starts_and_ends_it() {
        let name = format!("pushlab-os-test-{}", std::process::id());
        let group = match ControlGroup::make(&name) {
            Ok(group) => group,
            Err(error) => {
                assert!(error.to_string().starts_with('/'), "{error}");
                return;
            }
        };
        assert!(group.name() == name && group.processes().is_empty());
        assert!(ControlGroup::make(&name).is_err(), "there is one");
        let below = group.folder.join("below");
        let mut command = Command::new("sh");
        let script =
            format!("(setsid sleep 60 &); mkdir {0}; echo $$ > {0}/cgroup.procs; exec sleep 60", below.display());
        let mut child = command.args(["-c", &script]).enter_control_group(group.entrance().unwrap()).spawn().unwrap();
        let deadline = Instant::now() + Duration::from_secs(10);
        let is_below = || fs::read_to_string(below.join("cgroup.procs")).is_ok_and(|pids| !pids.is_empty());
        while group.processes().len() < 2 || !is_below() {
            assert!(Instant::now() < deadline);
            std::thread::sleep(WATCH);
        }
        assert!(ControlGroup::named(&name).iter().any(|found| found.folder == group.folder));
        group.kill().unwrap();
        assert!(!child.wait().unwrap().success());
        let same = ControlGroup { folder: group.folder.clone() };
        group.remove(Duration::from_secs(10)).unwrap();
        assert!(ControlGroup::named(&name).is_empty());
        same.kill().unwrap();
        same.remove(Duration::ZERO).unwrap();
    }

    #[test]
    fn what_is_in_use_is_not_removed() {
        let Ok(group) = ControlGroup::make(&format!("pushlab-os-test-used-{}", std::process::id())) else { return };
        let mut command = Command::new("sleep");
        let mut child = command.arg("60").enter_control_group(group.entrance().unwrap()).spawn().unwrap();
        let same = ControlGroup { folder: group.folder.clone() };
        let error = same.remove(Duration::ZERO).unwrap_err();
        assert!(error.to_string().contains("remove"), "{error}");
        assert_eq!(group.processes(), [child.id()]);
        child.kill().unwrap();
        child.wait().unwrap();
        group.remove(Duration::from_secs(10)).unwrap();
    }
}
