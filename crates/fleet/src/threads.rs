//! Workers that are threads of this process: for tests, and for programs that bring their own process.

use crate::load::{Division, Fleet, Load};
use crate::worker;
use pushlab_workload::messages::{LoadError, Message, Order, RunEvent};
use pushlab_workload::plan::Plan;
use pushlab_workload::plan_checks::BadPlan;
use pushlab_workload::result::LoadResult;
use std::io;
use std::net::TcpListener;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

/// A fleet of threads; they end with it.
#[derive(Debug)]
pub struct Threads {
    orders: Vec<Sender<Result<Order, String>>>,
    messages: Receiver<(usize, Message)>,
    threads: Vec<JoinHandle<()>>,
}

/// Why a run in this process came to nothing.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// See there.
    #[error("the plan cannot be run: {0}")]
    Plan(#[from] BadPlan),
    /// See there.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// There is no thread left.
    #[error("no thread for a worker: {0}")]
    Thread(#[from] io::Error),
}

impl Threads {
    /// Starts so many workers. The listener is for the back end, if the caller has bound one.
    ///
    /// # Errors
    /// When the kernel gives no thread.
    pub fn start(workers: usize, mut listener: Option<TcpListener>) -> io::Result<Self> {
        let (sender, messages) = mpsc::channel();
        let mut this = Self { orders: Vec::new(), messages, threads: Vec::new() };
        for worker in 0..workers {
            let (orders, own_orders) = mpsc::channel();
            let (sender, listener) = (sender.clone(), listener.take());
            let work = move || {
                // Nobody listens when the run is over already.
                worker::work(&own_orders, listener, None, &mut |message| drop(sender.send((worker, message))));
            };
            this.threads.push(std::thread::Builder::new().name(format!("worker-{worker}")).spawn(work)?);
            this.orders.push(orders);
        }
        Ok(this)
    }

    /// Runs a plan in this process. Events go to `watch` while it runs; the result is returned.
    ///
    /// # Errors
    /// See [`RunError`].
    pub fn run(
        plan: &Plan,
        listener: Option<TcpListener>,
        watch: &mut dyn FnMut(&RunEvent),
    ) -> Result<LoadResult, RunError> {
        let division = Division::of(plan)?;
        let mut load = Load::begin(Self::start(division.workers(), listener)?, division);
        loop {
            let Some(event) = load.listen(Duration::from_secs(1)) else { continue };
            watch(&event);
            match event {
                RunEvent::Done { result } => return Ok(*result),
                RunEvent::Failed(error) => return Err(error.into()),
                RunEvent::Ready | RunEvent::Phase { .. } | RunEvent::Progress(_) => {}
            }
        }
    }
}

impl Fleet for Threads {
    fn tell(&mut self, worker: usize, order: &Order) {
        // One that has ended has said why.
        let _ = self.orders[worker].send(Ok(order.clone()));
    }

    fn hear(&mut self, timeout: Duration) -> Option<(usize, Result<Message, String>)> {
        let (worker, message) = self.messages.recv_timeout(timeout).ok()?;
        Some((worker, Ok(message)))
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.orders.clear();
        for thread in self.threads.drain(..) {
            // A worker that panicked has shown it.
            let _ = thread.join();
        }
    }
}
