//! Threads for clients and for the prober.

use crate::clients::{self, LoopConfig};
use crate::connection::Http1;
use crate::prober::{self, EchoPath, OverFrames, OverPosts, ProberConfig, ProberProgress, ProberReport};
use crate::run_state::RunState;
use crate::transport::foreign::{Foreign, TwoWay};
use crate::transport::websocket::WebSocket;
use crate::transport::{Receiver, ReceiverVisitor, with_receiver};
use pushlab_wire::transport::Transport;
use pushlab_workload::plan::{Plan, Speaks};
use pushlab_workload::result::Part;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

/// An event loop of clients.
pub type LoopThread = JoinHandle<io::Result<Part>>;
/// The prober, and how far it is.
pub type ProberThread = (JoinHandle<io::Result<ProberReport>>, Arc<ProberProgress>);

struct SpawnLoop(LoopConfig, Arc<RunState>);

impl ReceiverVisitor for SpawnLoop {
    type Output = io::Result<LoopThread>;
    fn visit<R: Receiver>(self) -> Self::Output {
        let Self(config, state) = self;
        let name = format!("clients-{}", config.progress);
        std::thread::Builder::new().name(name).spawn(move || clients::run::<R, Http1>(config, state))
    }
}

/// Starts the clients of one loop.
///
/// # Errors
/// When the kernel gives no thread.
pub fn spawn_loop(
    transport: Transport,
    speaks: Option<&Speaks>,
    config: LoopConfig,
    state: &Arc<RunState>,
) -> io::Result<LoopThread> {
    with_receiver(transport, speaks, SpawnLoop(config, Arc::clone(state)))
}

/// Starts the prober of a plan.
///
/// # Errors
/// When the kernel gives no thread.
pub fn spawn_prober(plan: &Plan, config: ProberConfig, state: &Arc<RunState>) -> io::Result<ProberThread> {
    let start = match (plan.pings_in_frames(), &plan.speaks) {
        (false, _) => start_prober::<OverPosts>,
        (true, None) => start_prober::<OverFrames<WebSocket>>,
        (true, Some(_)) => start_prober::<OverFrames<Foreign<TwoWay>>>,
    };
    start(config, Arc::clone(state))
}

fn start_prober<P: EchoPath>(config: ProberConfig, state: Arc<RunState>) -> io::Result<ProberThread> {
    let progress = Arc::new(ProberProgress::default());
    let shared = Arc::clone(&progress);
    let work = move || prober::run::<P, Http1>(config, &state, &shared);
    Ok((std::thread::Builder::new().name("prober".into()).spawn(work)?, progress))
}
