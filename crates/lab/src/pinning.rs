//! Which cores the subject and the load may use.

use pushlab_os::affinity::{allowed_cores, pin_to};

/// Cores of the two sides. On a machine with one core both share it, and every run bears a warning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pinning {
    /// Cores of the subject.
    pub subject: Vec<usize>,
    /// Cores of the generator, and of the lab itself.
    pub load: Vec<usize>,
}

impl Pinning {
    /// The first core this process may use for the subject, the others for the load.
    pub fn of_this_machine() -> Self {
        let mut cores = allowed_cores().unwrap_or_else(|_| vec![0]);
        if cores.len() < 2 {
            return Self { subject: cores.clone(), load: cores };
        }
        let load = cores.split_off(1);
        Self { subject: cores, load }
    }
}

/// Does something on the load's cores, away from the subject's, and with it all threads that it starts: for what runs
/// beside a measurement. Where that is not allowed it runs anywhere, and the warning about shared cores says so.
pub fn on_load_cores<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let cores = Pinning::of_this_machine().load;
    let pinned = || {
        let _ = pin_to(&cores);
        work()
    };
    let done = std::thread::scope(|scope| scope.spawn(pinned).join());
    done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
