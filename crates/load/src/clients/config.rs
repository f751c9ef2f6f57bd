//! What a loop is to do.

use crate::dial::Dialler;
use crate::transport::Requests;
use pushlab_workload::audience::Audience;
use pushlab_workload::pacing::Pacing;
use pushlab_workload::payload::Payload;
use pushlab_workload::storm::Storm;
use pushlab_workload::traffic::{HostLimit, Traffic};

/// What one loop is to do.
#[derive(Debug, Clone)]
pub struct LoopConfig {
    /// How the subject is reached.
    pub dialler: Dialler,
    /// How many connections the clients of a host share; `None` without a limit, and for WebSockets.
    pub hosts: Option<HostLimit>,
    /// Clients of all loops of this transport together.
    pub clients: u32,
    /// This loop takes the clients `lane`, `lane + lanes`, `lane + 2 · lanes` …
    pub lane: u32,
    /// Loops that share the clients.
    pub lanes: u32,
    /// Which place in [`crate::run_state::RunState`] is this loop's.
    pub progress: usize,
    /// What clients ask.
    pub requests: Requests,
    /// What clients send.
    pub traffic: Traffic,
    /// The data they send.
    pub payload: Option<Payload>,
    /// What they are to receive.
    pub audience: Audience,
    /// Whether deliveries that are arrays without a stamp are passed over: the frames of a feed's back end.
    pub ignores_arrays: bool,
    /// How many of all clients publish: the first so many.
    pub publishers: u32,
    /// Whether publications have a place for a receipt mark.
    pub has_receipts: bool,
    /// How the clients of a storm are cut off, and come back; `None` in other scenarios, and for who is no client.
    pub storm: Option<Storm>,
    /// Whether the drain's bytes and deliveries count as the load's.
    pub counts_drain: bool,
    /// Connections opened per second, by all loops together.
    pub connect_rate: u32,
    /// Time between two polls of a client, ns.
    pub poll_interval_ns: u64,
    /// When the first client polls for the first time, ns after the run began.
    pub poll_phase_ns: u64,
    /// Seed of masks, keys and back-off.
    pub seed: u64,
    /// The turns in which the publishers of a closed loop may publish; always where there are none.
    pub turns: Option<pushlab_workload::turns::Turns>,
    /// Least time between the beginnings of two turns that bring something, ns, so that what comes within it is read at once.
    pub gather_ns: u64,
    /// Busy-wait added to every turn, ns.
    pub injected_delay_ns: u64,
}

impl LoopConfig {
    /// How many clients are this loop's.
    pub fn own_clients(&self) -> u32 {
        self.own_of(self.clients)
    }

    /// How many of the first so many clients are this loop's.
    pub(super) fn own_of(&self, clients: u32) -> u32 {
        clients.saturating_sub(self.lane).div_ceil(self.lanes)
    }

    /// One client that neither sends nor is to receive.
    #[cfg(test)]
    pub(crate) fn silent() -> Self {
        let target = pushlab_workload::plan::Target::plain(([127, 0, 0, 1], 1).into());
        Self {
            dialler: Dialler::new(target.address),
            hosts: None,
            clients: 1,
            lane: 0,
            lanes: 1,
            progress: 0,
            requests: Requests::new(&target, "a", "a", 0),
            traffic: Traffic::Silent,
            payload: None,
            audience: Audience::Nobodys,
            ignores_arrays: false,
            publishers: 0,
            has_receipts: false,
            storm: None,
            counts_drain: true,
            connect_rate: 1,
            poll_interval_ns: 1,
            poll_phase_ns: 0,
            seed: 1,
            turns: None,
            gather_ns: 0,
            injected_delay_ns: 0,
        }
    }
}

/// When clients that poll at an interval do: client i of N at i/N of it, after the run's phase. Without
/// one, polls would keep their distance to the publications, which are at an interval too, so that the latency of
/// polling would be a constant of the experiment, and every repeat would have the same.
pub fn polls(config: &LoopConfig, origin_ns: u64) -> Pacing {
    Pacing::endless(origin_ns + config.poll_phase_ns, config.poll_interval_ns, config.clients)
}
