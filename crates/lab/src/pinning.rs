//! Which cores the subject, the load and the prober may use.
//!
//! Two CPUs of one physical core share all that makes it fast, so siblings are one core here: each side gets one CPU of
//! each of its cores, and the others stay idle.

use pushlab_experiment::Experiment;
use pushlab_os::affinity::pin_to;
use pushlab_probe::machine::{Check, Cpu, Verdict, physical_cores, usable_cpus};

/// Cores that the load keeps where the prober has one of its own.
const LOAD_MIN_BESIDE_PROBER: usize = 2;

/// CPUs of the two sides, each of another physical core. Where the subject has all that there are, the load shares the last
/// of them, and every run bears a warning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pinning {
    /// CPUs of the subject.
    pub subject: Vec<usize>,
    /// CPUs of the generator, and of the lab itself.
    pub load: Vec<usize>,
    /// The prober's own, where there are enough: nothing of the load's stands before a ping then.
    pub prober: Option<usize>,
}

/// Why the subject cannot have the cores that an experiment asks for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PinningError {
    /// There are too few.
    #[error(
        "subject_cores is {wanted}, and this process may use {found} physical cores: measure on a machine with more, or \
         ask for fewer"
    )]
    TooFew {
        /// Asked for.
        wanted: usize,
        /// There.
        found: usize,
    },
    /// Experiments that run together ask for different numbers.
    #[error("{first} has subject_cores = {one}, and {second} {other}: experiments that run together need the same")]
    Different {
        /// An experiment.
        first: String,
        /// Its cores.
        one: u32,
        /// Another.
        second: String,
        /// Its cores.
        other: u32,
    },
}

impl Pinning {
    /// A core for the subject, the others for the load.
    pub fn of_this_machine() -> Self {
        Self::of(&usable_cpus(), 1).unwrap_or_else(|_| Self { subject: vec![0], load: vec![0], prober: None })
    }

    /// What experiments that run together ask for.
    ///
    /// # Errors
    /// See [`PinningError`].
    pub fn for_experiments(experiments: &[Experiment]) -> Result<Self, PinningError> {
        let Some(first) = experiments.first() else { return Ok(Self::of_this_machine()) };
        if let Some(second) = experiments.iter().find(|second| second.subject_cores != first.subject_cores) {
            return Err(PinningError::Different {
                first: first.name.clone(),
                one: first.subject_cores,
                second: second.name.clone(),
                other: second.subject_cores,
            });
        }
        Self::of(&usable_cpus(), first.subject_cores as usize)
    }

    /// The first physical cores are the subject's, the last is the load's, and what is between them the load's too. The
    /// last but one is the prober's where the load keeps two. All are of one socket where one has enough.
    fn of(cpus: &[Cpu], subject_cores: usize) -> Result<Self, PinningError> {
        let cores = physical_cores(cpus);
        if cores.len() <= 1 && subject_cores <= 1 {
            let all: Vec<usize> = cpus.iter().map(|cpu| cpu.number).collect();
            return Ok(Self { subject: all.clone(), load: all, prober: None });
        }
        let in_package = |package: u64| cores.iter().filter(|core| core.package == package).count();
        let package = cores.iter().map(|core| core.package).find(|package| in_package(*package) > subject_cores);
        let near = cores.iter().filter(|core| package.is_none_or(|package| core.package == package));
        let near: Vec<usize> = near.map(|core| core.number).collect();
        if near.len() < subject_cores {
            return Err(PinningError::TooFew { wanted: subject_cores, found: near.len() });
        }
        let (subject, rest) = near.split_at(subject_cores);
        let mut load = if rest.is_empty() { subject[subject_cores - 1..].to_vec() } else { rest.to_vec() };
        let prober = (load.len() > LOAD_MIN_BESIDE_PROBER).then(|| load.remove(load.len() - 2));
        Ok(Self { subject: subject.to_vec(), load, prober })
    }
}

/// What the two sides of a measurement would have on this machine.
pub fn check_pinning() -> Check {
    judge(&usable_cpus())
}

fn judge(cpus: &[Cpu]) -> Check {
    let list = |cpus: &[usize]| cpus.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let cores = physical_cores(cpus).len();
    let (verdict, found) = match Pinning::of(cpus, 1) {
        Ok(Pinning { subject, load, prober }) if subject != load => {
            let prober = prober.map_or_else(|| "on one of them".to_owned(), |core| format!("on CPU {core}"));
            let idle = cpus.len() - cores;
            let idle = if idle == 0 { String::new() } else { format!("; {idle} siblings stay idle") };
            let (subject, load) = (list(&subject), list(&load));
            (Verdict::Ok, format!("subject on CPU {subject}, load on {load}, prober {prober}{idle}"))
        }
        _ => (
            Verdict::Bad,
            format!(
                "one physical core for both sides (CPU {})",
                list(&cpus.iter().map(|c| c.number).collect::<Vec<_>>())
            ),
        ),
    };
    Check {
        name: "pinning",
        verdict,
        found,
        why: "the CPUs of one physical core take from each other: subject and load need cores of their own",
        fix: "use a machine with two physical cores or more, or allow this process more of them",
    }
}

/// The CPU that no experiment gives to a subject, however many cores that has.
pub fn beside() -> Vec<usize> {
    physical_cores(&usable_cpus()).last().map(|core| core.number).into_iter().collect()
}

/// Does something away from the subject's cores, and with it all threads that it starts: for what runs
/// beside a measurement. Where that is not allowed it runs anywhere, and the warning about shared cores says so.
pub fn on_load_cores<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let cores = beside();
    let pinned = || {
        let _ = pin_to(&cores);
        work()
    };
    let done = std::thread::scope(|scope| scope.spawn(pinned).join());
    done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CPUs as Linux numbers them: first one of each core, then their siblings.
    fn machine(packages: u64, cores: u64, threads: u64) -> Vec<Cpu> {
        let all =
            (0..threads).flat_map(|_| (0..packages).flat_map(|package| (0..cores).map(move |core| (package, core))));
        all.enumerate().map(|(number, (package, core))| Cpu { package, core, number }).collect()
    }

    fn pinned(cpus: &[Cpu], subject_cores: usize) -> (Vec<usize>, Vec<usize>, Option<usize>) {
        let Pinning { subject, load, prober } = Pinning::of(cpus, subject_cores).unwrap();
        (subject, load, prober)
    }

    #[test]
    fn siblings_are_one_core() {
        let laptop = machine(1, 4, 2);
        assert_eq!(pinned(&laptop, 1), (vec![0], vec![1, 3], Some(2)));
        assert_eq!(pinned(&laptop, 2), (vec![0, 1], vec![2, 3], None), "the load keeps two");
        assert_eq!(pinned(&laptop, 3), (vec![0, 1, 2], vec![3], None));
        // Some machines number siblings one after the other.
        let mut paired = machine(1, 2, 2);
        paired.iter_mut().for_each(|cpu| cpu.number = (cpu.core * 2) as usize + usize::from(cpu.number > 1));
        assert_eq!(pinned(&paired, 1), (vec![0], vec![2], None));
        assert_eq!(pinned(&machine(1, 2, 1), 1), (vec![0], vec![1], None));
    }

    #[test]
    fn one_core_is_shared_even_if_it_has_two_threads() {
        assert_eq!(pinned(&machine(1, 1, 1), 1), (vec![0], vec![0], None));
        assert_eq!(pinned(&machine(1, 1, 2), 1), (vec![0, 1], vec![0, 1], None));
        assert_eq!(judge(&machine(1, 1, 2)).verdict, Verdict::Bad);
        let check = judge(&machine(1, 4, 2));
        assert_eq!(check.verdict, Verdict::Ok);
        assert_eq!(check.found, "subject on CPU 0, load on 1, 3, prober on CPU 2; 4 siblings stay idle");
    }

    #[test]
    fn both_sides_are_on_one_socket_where_one_has_enough() {
        let server = machine(2, 4, 2);
        assert_eq!(pinned(&server, 1), (vec![0], vec![1, 3], Some(2)));
        assert_eq!(pinned(&server, 3), (vec![0, 1, 2], vec![3], None));
        assert_eq!(pinned(&server, 5), (vec![0, 1, 2, 3, 4], vec![5, 7], Some(6)));
        // Of the first socket this process may use one core.
        let allowed: Vec<Cpu> = server.into_iter().filter(|cpu| cpu.number >= 3 && cpu.number < 8).collect();
        assert_eq!(pinned(&allowed, 1), (vec![4], vec![5, 7], Some(6)));
    }

    #[test]
    fn what_may_not_be_used_is_not_given() {
        let laptop = machine(1, 4, 2);
        let masked: Vec<Cpu> = laptop.iter().copied().filter(|cpu| [1, 5, 7].contains(&cpu.number)).collect();
        assert_eq!(pinned(&masked, 1), (vec![1], vec![7], None));
        let siblings: Vec<Cpu> = laptop.iter().copied().filter(|cpu| cpu.core == 1).collect();
        assert_eq!(pinned(&siblings, 1), (vec![1, 5], vec![1, 5], None));
        let error = Pinning::of(&masked, 3).unwrap_err();
        assert_eq!(error, PinningError::TooFew { wanted: 3, found: 2 });
        assert!(error.to_string().contains("may use 2 physical cores"), "{error}");
        assert!(Pinning::of(&siblings, 2).is_err());
    }

    #[test]
    fn a_subject_that_has_all_cores_shares_the_last_with_the_load() {
        assert_eq!(pinned(&machine(1, 2, 1), 2), (vec![0, 1], vec![1], None));
        assert_eq!(pinned(&machine(2, 2, 2), 4), (vec![0, 1, 2, 3], vec![3], None));
        assert_eq!(Pinning::of(&machine(1, 2, 2), 3), Err(PinningError::TooFew { wanted: 3, found: 2 }));
    }

    #[test]
    fn no_core_is_of_two_sides() {
        for (packages, cores, threads) in [(1, 2, 1), (1, 3, 2), (1, 16, 2), (2, 1, 1), (2, 8, 2), (4, 2, 1)] {
            let cpus = machine(packages, cores, threads);
            let last = physical_cores(&cpus).last().unwrap().number;
            for subject_cores in 1..(packages * cores) as usize {
                let (subject, load, prober) = pinned(&cpus, subject_cores);
                let mut all: Vec<usize> = subject.iter().chain(&load).copied().chain(prober).collect();
                all.sort_unstable();
                let used = all.len();
                let core =
                    |number: &usize| cpus.iter().find(|cpu| cpu.number == *number).map(|cpu| (cpu.package, cpu.core));
                all.dedup_by_key(|number| core(number));
                assert_eq!((all.len(), subject.len()), (used, subject_cores), "{packages} {cores} {threads}");
                assert!(!load.is_empty() && !subject.contains(&last));
            }
        }
    }

    #[test]
    fn experiments_that_run_together_have_the_same_cores() {
        let one = crate::experiments::load("tangen-chat", None).unwrap();
        let mut other = crate::experiments::load("tangen-broadcast", None).unwrap();
        assert!(Pinning::for_experiments(&[one.clone(), other.clone()]).is_ok());
        other.subject_cores = 2;
        let error = Pinning::for_experiments(&[one, other]).unwrap_err().to_string();
        assert!(error.contains("tangen-chat has subject_cores = 1, and tangen-broadcast 2"), "{error}");
    }
}
