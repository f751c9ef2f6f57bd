//! What a server of ours serves beside the transports: console and demos.

use super::results::StoreArgs;
use clap::Args;
use pushlab_console::Console;
use pushlab_demos::Demos;
use pushlab_demos::auction::Auction;
use pushlab_lab::{Live, on_load_cores};
use pushlab_server::application::Application;
use pushlab_server::{Config, Server};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Time for browsers to say goodbye to the console of a campaign that has ended.
const GOODBYE: Duration = Duration::from_secs(1);

/// The console of a campaign in this process, to watch it: it starts nothing and stores nothing. It runs beside the
/// generator, away from the subject's core.
pub fn watch(address: SocketAddr, store: &StoreArgs, live: &mut Live) -> anyhow::Result<Server> {
    let console = Arc::new(Console::new(pushlab_console::Config {
        store: store.store.clone(),
        is_loopback_only: address.ip().is_loopback(),
        ..pushlab_console::Config::default()
    })?);
    let told = Arc::clone(&console);
    live.tell(move |state| told.tell(state))?;
    let mut config = Config::new(address);
    config.limits.drain_timeout = GOODBYE;
    give(&mut config, console, None)?;
    Ok(on_load_cores(|| Server::start(config))?)
}

/// Options of the demos.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Database of the auction house: sqlite:PATH, sqlite::memory:, mysql://USER:PASSWORD@HOST:PORT/DATABASE or
    /// postgres://USER:PASSWORD@HOST:PORT/DATABASE. In memory, everything in it ends with this process.
    #[arg(
        long,
        default_value = "sqlite::memory:",
        value_name = "URL",
        env = "PUSHLAB_AUCTION_DATABASE",
        hide_env_values = true
    )]
    auction_database: String,
}

impl DemoArgs {
    /// Names of the demos, for the console.
    pub fn names() -> Vec<String> {
        ["ticker", "chat", "auction"].map(str::to_owned).to_vec()
    }

    fn open(&self) -> anyhow::Result<Demos> {
        Ok(Demos::new(Auction::open(&self.auction_database)?))
    }
}

/// Has a server serve a console and, where there are any, demos, on channels that it keeps for them.
pub fn give(config: &mut Config, console: Arc<Console>, demos: Option<&DemoArgs>) -> anyhow::Result<()> {
    // The console first: it refuses requests that were sent to a name that it must not answer to.
    let mut applications: Vec<Arc<dyn Application>> = vec![console];
    if let Some(demos) = demos {
        applications.push(Arc::new(demos.open()?));
    }
    config.application = Some(Arc::new(applications));
    config.reserved_channels = [pushlab_console::CHANNELS, pushlab_demos::CHANNELS].map(str::to_owned).to_vec();
    Ok(())
}
