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
pub mod page;
mod results;

pub use campaigns::Starting;
pub use live::CHANNEL;
pub use measurements::MAX_MEASUREMENTS;

use campaigns::Campaigns;
use interface::About;
use live::Board;
use measurements::Measurements;
use pushlab_lab::LiveState;
use pushlab_server::Origin;
use pushlab_server::application::{Application, Publisher, Request, Response};
use pushlab_server::requests::{Answer, Refusal, check, json, respond};
use pushlab_wire::codes::ErrorCode;
use pushlab_wire::transport::Transport;
use results::Results;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// What the names of the console's channels begin with.
pub const CHANNELS: &str = "console.";

/// Transports that a browser can use, in the order in which clients try them.
const TRANSPORTS: [Transport; 5] =
    [Transport::WebSocket, Transport::Sse, Transport::HttpStreaming, Transport::LongPolling, Transport::Polling];

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
    origins: Vec<Origin>,
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
            origins: config.origins,
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

    fn route(&self, request: &Request) -> Option<Answer> {
        let path = request.path.as_str();
        Some(match path {
            "/api/about" => check(request, &["GET"]).map(|()| json(&self.about)),
            "/api/results" => self.results.list(request),
            "/api/presets" => experiments::list(request),
            "/api/experiments/check" => experiments::examine(request, self.about.can_run),
            "/api/campaigns" => match &self.campaigns {
                Some(campaigns) => campaigns.answer(request),
                None => Err(forbidden("no experiment can be started here; `pushlab console` on your own machine can")),
            },
            "/api/live" => check(request, &["GET"]).map(|()| json(&self.board.start())),
            "/api/measurements" => match &self.measurements {
                Some(measurements) => measurements.answer(request, &self.results),
                None => Err(forbidden("no measurement is stored here; `pushlab console` stores them")),
            },
            _ => {
                if let Some(name) = path.strip_prefix("/api/presets/") {
                    experiments::text(request, name)
                } else if let Some(which) = path.strip_prefix("/reports/") {
                    self.results.report(request, which)
                } else {
                    return assets::answer(request, &self.origins);
                }
            }
        })
    }
}

impl Application for Console {
    fn begin(&self, publisher: Publisher) {
        self.board.begin(publisher);
    }

    fn answer(&self, request: &Request) -> Option<Response> {
        self.route(request).map(respond)
    }
}

fn forbidden(message: &'static str) -> Refusal {
    Refusal::new(ErrorCode::Forbidden, message)
}
