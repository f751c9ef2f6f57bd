//! What warnings go by beside the record.

use pushlab_probe::MachineLoad;
use pushlab_stats::GeneratorLimits;

/// What is known about a run beside its record.
pub struct Evidence<'a> {
    /// Cores of the subject.
    pub subject_cores: &'a [usize],
    /// Cores of the generator on the subject's machine.
    pub load_cores: &'a [usize],
    /// Cores of the generator, wherever they are.
    pub load_cores_count: u32,
    /// What the generator may do.
    pub limits: &'a GeneratorLimits,
    /// Planned readings that the probes missed.
    pub ticks_missed: u64,
    /// How busy the lab's machine was in the load phase.
    pub machine: Option<MachineLoad>,
    /// Where the subject is on another machine, how busy that was, if it is known.
    pub elsewhere: Option<Option<MachineLoad>>,
}
