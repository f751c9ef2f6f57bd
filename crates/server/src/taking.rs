//! How a server begins: afresh, or where another one leaves off.

use crate::config::Config;
use crate::error::ServerError;
use crate::event_loop::Shared;
use crate::handover::{Desk, Following, PATIENCE};
use crate::listening;
use crate::rolling::{Handover, Happened};
use mio::net::TcpListener;
use pushlab_handover::taking::{Predecessor, started};
use pushlab_handover::{HandoverError, Outgoing, Talk};
use pushlab_log::{Account, Log};
use pushlab_os::random;
use pushlab_wire::cursor::Epoch;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What it will need to hand over itself.
pub struct Taking {
    pub handover: Handover,
    pub desk: Desk,
    pub listeners: Vec<OwnedFd>,
}

/// What it begins with.
pub struct Begun {
    pub log: Box<dyn Log>,
    /// The beginning of the clock of publications.
    pub start: Instant,
    /// The process that it took over from.
    pub talk: Option<Talk>,
}

/// The server that runs, if there is one to take over from.
pub fn predecessor(config: &Config, account: &Arc<Account>) -> Result<Option<Predecessor>, ServerError> {
    let Some(handover) = &config.handover else { return Ok(None) };
    Ok(Predecessor::ask(&handover.path, config.limits.history(account), PATIENCE)?)
}

impl Taking {
    /// Prepares what may fail, as long as another process still serves.
    pub fn prepare(config: &Config, listeners: &[Vec<TcpListener>]) -> Result<Option<Self>, ServerError> {
        let Some(handover) = config.handover.clone() else { return Ok(None) };
        let desk = Desk::new(&handover.path).map_err(HandoverError::from)?;
        let listeners = listening::copies(listeners.iter().flatten()).map_err(ServerError::Loop)?;
        Ok(Some(Self { handover, desk, listeners }))
    }
}

/// Begins a log, or goes on with that of the process before.
pub fn begin(config: &Config, account: &Arc<Account>, predecessor: Option<Predecessor>) -> Result<Begun, ServerError> {
    let Some(predecessor) = predecessor else {
        let epoch = Epoch::from_number(u64::from_ne_bytes(random::bytes().map_err(ServerError::Random)?));
        return Ok(Begun { log: config.new_log(epoch, account), start: Instant::now(), talk: None });
    };
    // Both processes have the same clock, so that history grows old as before.
    let age = Duration::from_nanos(predecessor.clock_ns);
    let start = Instant::now().checked_sub(age).unwrap_or_else(Instant::now);
    let (log, talk) = predecessor.take()?;
    Ok(Begun { log: Box::new(log), start, talk: Some(talk) })
}

/// Tells the process before that this one serves, and serves it too.
pub fn start(talk: Option<Talk>, shared: &Arc<Shared>) -> Result<Option<Following>, ServerError> {
    let Some(mut talk) = talk else { return Ok(None) };
    let outgoing = Arc::new(Outgoing::default());
    shared.distributor.follow(outgoing.clone());
    started(&mut talk)?;
    if let Some(handover) = &shared.config.handover {
        (handover.tell)(&Happened::TookOver);
    }
    Following::start(talk, outgoing, shared.distributor.clone()).map(Some).map_err(ServerError::Loop)
}
