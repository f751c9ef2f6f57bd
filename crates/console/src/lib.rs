//! The web console: results and reports, live figures of a running experiment, experiments from a form.
//!
//! [`Console`] is an [`Application`]: given to a server, it answers pages and their interface ([`interface`]) on the port of
//! the transports, and tells live figures on [`CHANNEL`], which the server must keep for it and its pages.
//!
//! ```no_run
//! use pushlab_console::{CHANNELS, Config, Console};
//! use pushlab_server::Server;
//! use std::sync::Arc;
//!
//! let console = Arc::new(Console::new(Config::default())?);
//! let mut config = pushlab_server::Config::new("127.0.0.1:8000".parse()?);
//! config.application = Some(console);
//! config.reserved_channels = vec![CHANNELS.to_owned()];
//! config.same_origin_channels = vec![CHANNELS.to_owned()];
//! config.site.is_loopback_only = true;
//! let server = Server::start(config)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod assets;
mod campaigns;
mod experiments;
pub mod interface;
mod live;
mod measurements;
mod results;

pub use assets::{Files, REPORT_PAGE};
pub use campaigns::Starting;
pub use live::CHANNEL;
pub use measurements::MAX_MEASUREMENTS;

use campaigns::Campaigns;
use interface::About;
use live::Board;
use measurements::Measurements;
use pushlab_application::requests::{Refusal, json, respond};
use pushlab_application::routes::{Route, Routes};
use pushlab_application::{Application, Publisher, Request, Response};
use pushlab_lab::LiveState;
use pushlab_server::Origin;
use pushlab_wire::codes::ErrorCode;
use pushlab_wire::transport::Transport;
use results::Results;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

/// What the names of the console's channels begin with.
pub const CHANNELS: &str = "console.";

/// Transports that a browser can use, in the order in which clients try them.
const TRANSPORTS: [Transport; 5] =
    [Transport::WebSocket, Transport::Sse, Transport::HttpStreaming, Transport::LongPolling, Transport::Polling];

const TABLE: &[Route<Console>] = &[
    ("GET", "/api/about", |console, _, _| Ok(json(&console.about))),
    ("GET", "/api/results", |console, _, _| console.results.list()),
    ("GET", "/api/presets", |_, _, _| Ok(experiments::list())),
    ("GET", "/api/presets/{*name}", |_, _, name| experiments::text(name)),
    ("POST", "/api/experiments/check", |console, request, _| experiments::examine(request, console.targets())),
    ("POST", "/api/campaigns", |console, request, _| console.campaigns()?.start(request)),
    ("DELETE", "/api/campaigns", |console, _, _| console.campaigns()?.stop()),
    ("GET", "/api/live", |console, _, _| Ok(json(&console.board.start()))),
    ("POST", "/api/measurements", |console, request, _| console.measurements()?.keep(request, &console.results)),
    ("GET", "/reports/compare", |console, request, _| console.results.comparison(request)),
    ("GET", "/reports/", |console, _, id| console.results.report(id)),
    ("GET", "/reports/{*id}", |console, _, id| console.results.report(id)),
];

static ROUTES: LazyLock<Routes<Console>> = LazyLock::new(|| Routes::new(TABLE));

/// What a console may do.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// The results database; `None` for the user's own. One that is missing is an empty list.
    pub store: Option<PathBuf>,
    /// Whether results stay unseen, whatever store there is.
    pub hides_results: bool,
    /// How experiments are started from a form; `None` where none may be.
    pub starting: Option<Starting>,
    /// Whether measurements of browsers are stored.
    pub stores_measurements: bool,
    /// Demos that are served beside it.
    pub demos: Vec<String>,
    /// Addresses of its pages, where they are named: those of the server's [`pushlab_server::Site`].
    pub origins: Vec<Origin>,
}

/// The console. Dropping it interrupts an experiment that it started.
pub struct Console {
    about: About,
    results: Results,
    measurements: Option<Measurements>,
    board: Arc<Board>,
    campaigns: Option<Campaigns>,
    files: Files,
}

impl Console {
    /// A console. Call it in a thread that may run on any core: the experiments that it starts inherit that.
    ///
    /// # Errors
    /// When the operating system refuses a thread.
    pub fn new(config: Config) -> io::Result<Self> {
        let board = Arc::new(Board::default());
        let about = About {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            can_run: config.starting.is_some(),
            can_store: config.stores_measurements,
            transports: TRANSPORTS.to_vec(),
            demos: config.demos,
            live_channel: CHANNEL.to_owned(),
        };
        let campaigns = config.starting.map(|starting| Campaigns::new(starting, Arc::clone(&board))).transpose()?;
        Ok(Self {
            about,
            results: Results::new(config.store, config.hides_results),
            measurements: config.stores_measurements.then(Measurements::default),
            board,
            campaigns,
            files: Files::new(config.origins),
        })
    }

    /// Shows these live figures from now on: for a campaign that this process carries out itself.
    pub fn tell(&self, state: LiveState) {
        self.board.tell(state);
    }

    /// Interrupts the experiment that a page started, if one is carried out: what it has measured is stored.
    pub fn interrupt(&self) {
        if let Some(campaigns) = &self.campaigns {
            campaigns.interrupt();
        }
    }

    /// Servers that are running and may be measured, where experiments may be started.
    fn targets(&self) -> Option<&[Origin]> {
        self.campaigns.as_ref().map(Campaigns::targets)
    }

    fn campaigns(&self) -> Result<&Campaigns, Refusal> {
        let refused = || forbidden("no experiment can be started here; `pushlab console` on your own machine can");
        self.campaigns.as_ref().ok_or_else(refused)
    }

    fn measurements(&self) -> Result<&Measurements, Refusal> {
        let refused = || forbidden("no measurement is stored here; `pushlab console` stores them");
        self.measurements.as_ref().ok_or_else(refused)
    }
}

impl Application for Console {
    fn begin(&self, publisher: Publisher) {
        self.board.begin(publisher);
    }

    fn answer(&self, request: &Request) -> Option<Response> {
        ROUTES.answer(self, request).map(respond).or_else(|| self.files.answer(request))
    }
}

fn forbidden(message: &'static str) -> Refusal {
    Refusal::new(ErrorCode::Forbidden, message)
}
