//! Threads for clients and for the prober.

use crate::broadcasts::Broadcasts;
use crate::clients::{self, LoopConfig};
use crate::connection::{Http1, Http2, Protocol};
use crate::prober::{self, EchoPath, OverFrames, OverPosts, OverStreams, ProberConfig, ProberProgress, ProberReport};
use crate::run_state::RunState;
use crate::transport::foreign::{Foreign, TwoWay};
use crate::transport::websocket::WebSocket;
use crate::transport::{Receiver, ReceiverVisitor, with_receiver};
use pushlab_os::affinity::pin_to;
use pushlab_os::descriptors::empty_table;
use pushlab_wire::transport::Transport;
use pushlab_workload::plan::{Http, Plan, ProberPath, Speaks};
use pushlab_workload::result::Part;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

/// An event loop of clients.
pub type LoopThread = JoinHandle<io::Result<Part>>;
/// The prober, and how far it is.
pub type ProberThread = (JoinHandle<io::Result<ProberReport>>, Arc<ProberProgress>);

struct SpawnLoop(Http, LoopConfig, Arc<RunState>);

impl ReceiverVisitor for SpawnLoop {
    type Output = io::Result<LoopThread>;
    fn visit<R: Receiver>(self) -> Self::Output {
        let Self(http, config, state) = self;
        match http {
            Http::Http11 => spawn_clients::<R, Http1>(config, state, || {}),
            Http::Http2 { .. } => spawn_clients::<R, Http2>(config, state, || {}),
        }
    }
}

/// Starts clients of one transport, over connections of one kind, on a thread that leaves the process's descriptor
/// table, except for what wakes a feeder. The thread begins with `begun`.
///
/// # Errors
/// When the kernel gives no thread.
#[expect(unsafe_code, reason = "docs/decisions/0023-os.md")]
pub fn spawn_clients<R: Receiver, P: Protocol>(
    config: LoopConfig,
    state: Arc<RunState>,
    begun: impl FnOnce() + Send + 'static,
) -> io::Result<LoopThread> {
    let name = format!("clients-{}", config.progress);
    std::thread::Builder::new().name(name).spawn(move || {
        // SAFETY: the thread has just begun, and what it was given owns no descriptor but this one. It opens the others itself.
        unsafe { empty_table(state.broadcasts().map(Broadcasts::wakeup)) }?;
        begun();
        clients::run::<R, P>(config, state)
    })
}

/// Starts the clients of one loop.
///
/// # Errors
/// When the kernel gives no thread.
pub fn spawn_loop(
    transport: Transport,
    speaks: Option<&Speaks>,
    http: Http,
    config: LoopConfig,
    state: &Arc<RunState>,
) -> io::Result<LoopThread> {
    with_receiver(transport, speaks, SpawnLoop(http, config, Arc::clone(state)))
}

/// Starts the prober of a plan.
///
/// # Errors
/// When the kernel gives no thread.
pub fn spawn_prober(plan: &Plan, config: ProberConfig, state: &Arc<RunState>) -> io::Result<ProberThread> {
    let start = match (plan.pings_in_frames(), &plan.speaks, prober_http(plan)) {
        (false, _, Http::Http11) => start_prober::<OverPosts, Http1>,
        (false, _, Http::Http2 { .. }) => start_prober::<OverStreams, Http2>,
        (true, None, Http::Http11) => start_prober::<OverFrames<WebSocket>, Http1>,
        (true, None, Http::Http2 { .. }) => start_prober::<OverFrames<WebSocket>, Http2>,
        (true, Some(_), _) => start_prober::<OverFrames<Foreign<TwoWay>>, Http1>,
    };
    let config = ProberConfig { dialler: config.dialler.over(prober_http(plan)), ..config };
    start(config, plan.prober_core, Arc::clone(state))
}

/// What a prober speaks: over the same transport, what the clients do, since it is to see what they would; over a plain
/// POST HTTP/1.1, since that is the same question whatever is measured, and answers to it can be compared.
fn prober_http(plan: &Plan) -> Http {
    let over = plan.prober.as_ref().map(|prober| prober.over);
    if over == Some(ProberPath::Http) { Http::Http11 } else { plan.http() }
}

#[expect(unsafe_code, reason = "docs/decisions/0023-os.md")]
fn start_prober<E: EchoPath, P: Protocol>(
    config: ProberConfig,
    core: Option<usize>,
    state: Arc<RunState>,
) -> io::Result<ProberThread> {
    let progress = Arc::new(ProberProgress::default());
    let shared = Arc::clone(&progress);
    let work = move || {
        if let Some(core) = core {
            // Where that is not allowed it shares the load's cores, as it does where there are few.
            let _ = pin_to(&[core]);
        }
        // SAFETY: as for clients.
        unsafe { empty_table(state.broadcasts().map(Broadcasts::wakeup)) }?;
        prober::run::<E, P>(config, &state, &shared)
    };
    Ok((std::thread::Builder::new().name("prober".into()).spawn(work)?, progress))
}
