//! Publications that the server brings in by itself: from a back end, or on a timer. Each source is a thread beside the
//! event loops that publishes like anybody else.

mod feed;
mod source;
mod tick;

use crate::config::Config;
use crate::distributor::Distributor;
use crate::stats::Counters;
use source::{Source, Stop};
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

/// The sources of a server, once they run.
#[derive(Default)]
pub struct Sources {
    stop: Arc<Stop>,
    threads: Vec<JoinHandle<()>>,
}

impl Sources {
    /// How many there are of a configuration: as many counters they need.
    pub fn count(config: &Config) -> usize {
        usize::from(config.feed.is_some()) + usize::from(config.tick.is_some())
    }

    /// Starts them, each with counters of its own.
    ///
    /// # Errors
    /// When there can be no more threads; those that run end when this is dropped.
    pub fn start(
        &mut self,
        config: &Config,
        distributor: &Arc<Distributor>,
        counters: &[Arc<Counters>],
    ) -> io::Result<()> {
        let mut counters = counters.iter().cloned();
        let mut source = || {
            let counters = counters.next().expect("there are counters for each source");
            Source { distributor: distributor.clone(), counters, stop: self.stop.clone() }
        };
        if let Some(feed) = config.feed.clone() {
            let (source, limits) = (source(), config.limits.clone());
            let thread = std::thread::Builder::new().name("pushlab-feed".to_owned());
            self.threads.push(thread.spawn(move || feed::run(&feed, &limits, &source))?);
        }
        if let Some(tick) = config.tick.clone() {
            let source = source();
            let thread = std::thread::Builder::new().name("pushlab-tick".to_owned());
            self.threads.push(thread.spawn(move || tick::run(&tick, &source))?);
        }
        Ok(())
    }

    /// Ends them, so that they can start again.
    pub fn pause(&mut self) {
        std::mem::take(self).join();
    }

    /// Asks them to end.
    pub fn stop(&self) {
        self.stop.stop();
    }

    /// Waits until they have ended.
    pub fn join(self) {
        self.stop();
        for thread in self.threads {
            // A source has nothing that panics.
            let _ = thread.join();
        }
    }
}
