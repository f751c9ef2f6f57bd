//! Clients in a real browser: pages that speak plain WebSocket, `EventSource` and `fetch`, reported to the worker and
//! accounted for by the code that accounts for native clients.
//!
//! From the outside in: [`clients`] is the loop, [`launch`] the browser's process, [`listener`] the small server that
//! pages come from and report to, [`scripts`] what they load there, [`messages`] what is said there, [`page_clock`] how a
//! page's clock maps to the worker's, [`trusted`] whom it believes over TLS.

pub mod clients;
pub mod launch;
pub mod listener;
pub mod messages;
mod page_clock;
pub mod scripts;
pub mod trusted;

pub use clients::Pages;
pub use launch::{LaunchError, check_installed};

use pushlab_load::tls::BadCertificate;
use std::io;
use std::path::PathBuf;

/// A browser that is of no use to a run.
#[derive(Debug, thiserror::Error)]
pub enum BrowserError {
    /// See there.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// See there.
    #[error(transparent)]
    Certificate(#[from] BadCertificate),
    /// The client of a foreign subject's framework is not where it was installed.
    #[error("cannot read {}, which pages load: {source}; install the subject again", .path.display())]
    Script {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It ended by itself, or was killed.
    #[error("{0}")]
    Ended(String),
    /// Its pages did not come.
    #[error("{ready} of {pages} pages of {name} were ready within {within_s} s{words}")]
    NotReady {
        /// Which browser.
        name: &'static str,
        /// Pages that were.
        ready: usize,
        /// Pages asked for.
        pages: u32,
        /// Time waited.
        within_s: u64,
        /// What it said last.
        words: String,
    },
    /// The browser shows pages otherwise than it was to.
    #[error("page {page} of {name} is {}, and was to be the opposite", if *.is_hidden { "hidden" } else { "visible" })]
    Visibility {
        /// Which browser.
        name: &'static str,
        /// The first such page.
        page: usize,
        /// What it is.
        is_hidden: bool,
    },
    /// A page was hidden or shown meanwhile, so that its timers ran now in one way and now in the other.
    #[error("page {page} of {name} did not stay {} while the run went on; measure again", if *.is_hidden { "hidden" } else { "visible" })]
    VisibilityChanged {
        /// Which browser.
        name: &'static str,
        /// The first such page.
        page: usize,
        /// What it was to be.
        is_hidden: bool,
    },
    /// A page crashed or hangs.
    #[error(
        "page {page} of {name} has said nothing for {for_s} s: it crashed or was stopped, or its machine has no time for \
         it{words}"
    )]
    Silent {
        /// Which browser.
        name: &'static str,
        /// Which.
        page: usize,
        /// For how long.
        for_s: u64,
        /// What the browser said last.
        words: String,
    },
    /// The worker's own server failed.
    #[error("the server that pages report to failed: {0}")]
    Listener(#[from] io::Error),
}
