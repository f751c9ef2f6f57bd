//! What a child does before it becomes the program that it is to run.
//!
//! Between fork and exec a child may only make calls that are async-signal-safe, and not allocate. All of these keep to
//! that, which is why they are here and [`std::os::unix::process::CommandExt::pre_exec`] is nowhere else.

use crate::affinity::Cores;
use crate::process::{self, Signal};
use crate::{namespace, signals};
use rustix::io::{FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd, RawFd};
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::sync::Arc;

/// Steps of a child, in the order in which they are asked for. A step that fails makes starting it fail, unless it says
/// otherwise.
pub trait Prepare {
    /// The kernel sends it a signal when the thread that starts it ends, however that happens. Not if the child changes
    /// its user or group afterwards: the kernel forgets it then (prctl(2)).
    fn end_with_parent(&mut self, signal: Signal) -> &mut Self;

    /// It runs on these cores only.
    fn pin_to(&mut self, cores: &[usize]) -> &mut Self;

    /// No signal is held back from it, whatever its parent waits for.
    fn let_signals_through(&mut self) -> &mut Self;

    /// It may never raise its priority, even as root: it loses CAP_SYS_NICE. One that has no such capability to lose is
    /// left as it is.
    fn give_up_priorities(&mut self) -> &mut Self;

    /// A descriptor stays open in it, under the same number; here it is closed with the command.
    fn keep_open(&mut self, descriptor: OwnedFd) -> &mut Self;

    /// Descriptors are open in it under these numbers, which are below 10; here they are closed with the command.
    fn give(&mut self, descriptors: Vec<(OwnedFd, RawFd)>) -> &mut Self;

    /// It begins in a network namespace.
    fn enter_network(&mut self, namespace: Arc<File>) -> &mut Self;

    /// It begins in a network namespace of its own.
    fn make_network(&mut self) -> &mut Self;

    /// It begins in a control group, given by its [entrance](crate::control_group::ControlGroup::entrance). Where it may
    /// not, it stays in its parent's.
    fn enter_control_group(&mut self, entrance: File) -> &mut Self;
}

impl Prepare for Command {
    fn end_with_parent(&mut self, signal: Signal) -> &mut Self {
        let parent = std::process::id();
        before_exec(self, move || {
            process::end_with_parent(signal)?;
            // The parent may have ended before the line above.
            let now = rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get() as u32);
            if now == Some(parent) { Ok(()) } else { Err(io::ErrorKind::BrokenPipe.into()) }
        })
    }

    fn pin_to(&mut self, cores: &[usize]) -> &mut Self {
        let cores = Cores::of(cores);
        before_exec(self, move || cores.take())
    }

    fn let_signals_through(&mut self) -> &mut Self {
        before_exec(self, signals::let_all_through)
    }

    fn give_up_priorities(&mut self) -> &mut Self {
        before_exec(self, || {
            let _ = rustix::thread::remove_capability_from_bounding_set(rustix::thread::CapabilitySet::SYS_NICE);
            Ok(())
        })
    }

    fn keep_open(&mut self, descriptor: OwnedFd) -> &mut Self {
        before_exec(self, move || Ok(fcntl_setfd(&descriptor, FdFlags::empty())?))
    }

    fn give(&mut self, descriptors: Vec<(OwnedFd, RawFd)>) -> &mut Self {
        const BEYOND: RawFd = 10;
        let mut descriptors = descriptors;
        before_exec(self, move || {
            // All beyond the numbers first, for one's own may be another's target. The copies close with exec.
            for (descriptor, _) in &mut descriptors {
                let copy = fcntl_dupfd_cloexec(&*descriptor, BEYOND)?;
                std::mem::forget(std::mem::replace(descriptor, copy));
            }
            for (descriptor, number) in &descriptors {
                // SAFETY: takes two numbers; what was open under the target in this child is nobody's any more.
                if unsafe { libc::dup2(descriptor.as_raw_fd(), *number) } < 0 {
                    return Err(io::Error::last_os_error());
                }
            }
            Ok(())
        })
    }

    fn enter_network(&mut self, namespace: Arc<File>) -> &mut Self {
        before_exec(self, move || namespace::enter_network(&*namespace))
    }

    fn make_network(&mut self) -> &mut Self {
        before_exec(self, namespace::make_network)
    }

    fn enter_control_group(&mut self, entrance: File) -> &mut Self {
        before_exec(self, move || {
            // 0 is the process that writes it.
            let _ = rustix::io::write(&entrance, b"0");
            Ok(())
        })
    }
}

fn before_exec(command: &mut Command, step: impl FnMut() -> io::Result<()> + Send + Sync + 'static) -> &mut Command {
    // SAFETY: this is private, and each step above makes system calls only: it owns all it reads, takes no lock and
    // neither allocates nor frees.
    unsafe { command.pre_exec(step) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::affinity::allowed_cores;
    use std::io::{Read as _, Write as _};
    use std::process::Stdio;

    #[test]
    fn descriptors_arrive_under_the_numbers_asked_for_even_if_those_are_swapped() {
        let (mut readers, mut given) = (Vec::new(), Vec::new());
        for _ in 0..2 {
            let (reader, writer) = io::pipe().unwrap();
            readers.push(reader);
            given.push(OwnedFd::from(writer));
        }
        let numbers = [given[1].as_raw_fd(), given[0].as_raw_fd()];
        // Beyond 9 the shell cannot name them.
        let numbers = if numbers.iter().all(|&number| number < 10) { numbers } else { [8, 9] };
        let mut command = Command::new("sh");
        command.args(["-c", &format!("echo first >&{}; echo second >&{}", numbers[0], numbers[1])]);
        command.give(given.into_iter().zip(numbers).collect());
        assert!(command.status().unwrap().success());
        drop(command);
        for (mut reader, expected) in readers.into_iter().zip(["first\n", "second\n"]) {
            let mut text = String::new();
            reader.read_to_string(&mut text).unwrap();
            assert_eq!(text, expected);
        }
    }

    #[test]
    fn what_is_kept_open_has_its_number() {
        let (mut reader, writer) = io::pipe().unwrap();
        let kept = OwnedFd::from(writer);
        let path = format!("/proc/self/fd/{}", kept.as_raw_fd());
        let mut command = Command::new("dd");
        command.args([&format!("of={path}"), "status=none"]).stdin(Stdio::piped()).keep_open(kept);
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(b"hello").unwrap();
        assert!(child.wait().unwrap().success());
        drop(command);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "hello");
    }

    #[test]
    fn a_child_is_where_and_what_it_is_asked_to_be() {
        let core = *allowed_cores().unwrap().last().unwrap();
        let child = std::thread::spawn(move || {
            signals::hold_back(&[Signal::USR1]).unwrap();
            let mut command = Command::new("cat");
            command.arg("/proc/self/status").pin_to(&[core]).let_signals_through().give_up_priorities();
            command.end_with_parent(Signal::KILL).output().unwrap()
        });
        let status = String::from_utf8(child.join().unwrap().stdout).unwrap();
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim();
        assert_eq!(field("Cpus_allowed_list:"), core.to_string());
        assert_eq!(u64::from_str_radix(field("SigBlk:"), 16).unwrap(), 0);
    }

    #[test]
    fn a_step_that_fails_starts_nothing() {
        assert!(Command::new("true").pin_to(&[]).spawn().is_err());
        assert!(Command::new("true").enter_network(Arc::new(File::open("/").unwrap())).spawn().is_err());
    }
}
