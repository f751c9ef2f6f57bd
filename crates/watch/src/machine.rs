//! What is read of the machine when the phases of a run begin.

use pushlab_probe::{MachineLoad, TcpActivity, kernel_memory_bytes};
use pushlab_record::KernelMemory;
use pushlab_workload::plan::Phase;

/// What is read of the subject's machine, or of the lab's, at the phases of a run.
#[derive(Default)]
pub struct MachineWatch {
    /// The subject's process, if it can be seen: another one after a restart.
    pub subject: Option<u32>,
    tcp_before: Option<TcpActivity>,
    /// What TCP did in the load and drain phases.
    pub tcp: Option<TcpActivity>,
    before_load: Option<MachineLoad>,
    /// How busy it was in the load phase.
    pub load: Option<MachineLoad>,
    /// Memory of the kernel before anybody was connected, and when everybody was.
    kernel_before_bytes: Option<u64>,
    kernel_idle_bytes: Option<u64>,
}

impl MachineWatch {
    /// Of a run whose subject is this process, if it can be seen. Nobody is connected yet.
    pub fn of(subject: Option<u32>) -> Self {
        Self { subject, kernel_before_bytes: kernel_memory_bytes(), ..Self::default() }
    }

    /// What the kernel held for the clients.
    pub fn kernel(&self) -> Option<KernelMemory> {
        let (before_bytes, idle_bytes) = self.kernel_before_bytes.zip(self.kernel_idle_bytes)?;
        Some(KernelMemory { before_bytes, idle_bytes })
    }

    /// A phase begins.
    pub fn phase(&mut self, phase: Phase) {
        match phase {
            Phase::WarmUp => self.kernel_idle_bytes = kernel_memory_bytes(),
            Phase::Load => {
                self.before_load = MachineLoad::now(self.subject);
                self.tcp_before = self.subject.and_then(TcpActivity::of);
            }
            Phase::After => {
                self.tcp = self.tcp_before.and_then(|then| Some(TcpActivity::of(self.subject?)?.since(then)))
            }
            Phase::Drain => {
                self.load = self.before_load.and_then(|before| Some(MachineLoad::now(self.subject)?.since(before)))
            }
            _ => {}
        }
    }
}
