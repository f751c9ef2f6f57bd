//! What a server of ours serves beside the transports: console and demos.

use super::access::{AccessFile, tell, tell_refusals};
use super::results::StoreArgs;
use crate::exposed;
use crate::signals::{self, Wish};
use clap::Args;
use pushlab_application::Application;
use pushlab_console::Console;
use pushlab_demos::Demos;
use pushlab_demos::auction::Auction;
use pushlab_lab::{Live, on_load_cores};
use pushlab_server::access::LiveAccess;
use pushlab_server::access::proxies::{Network, TrustedProxies};
use pushlab_server::{BadOrigin, Config, Guests, Origin, Server, Site, TlsFiles};
use pushlab_subjects::running::ALLOW_ORIGIN;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

/// How often the main thread looks after the event loops.
const WATCH: Duration = Duration::from_millis(250);
/// Time for browsers to say goodbye to the console of a campaign that has ended.
const GOODBYE: Duration = Duration::from_secs(1);

/// The console of a campaign in this process, to watch it: it starts nothing and stores nothing. It runs beside the
/// generator, away from the subject's core.
pub fn watch(address: SocketAddr, site: &SiteArgs, store: &StoreArgs, live: &mut Live) -> anyhow::Result<Server> {
    let site = site.site(address.ip().is_loopback());
    let console = Arc::new(Console::new(pushlab_console::Config {
        store: store.store.clone(),
        origins: site.origins.clone(),
        ..pushlab_console::Config::default()
    })?);
    let told = Arc::clone(&console);
    live.tell(move |state| told.tell(state))?;
    let mut config = Config::new(address);
    config.limits.drain_timeout = GOODBYE;
    config.site = site;
    give(&mut config, console, None)?;
    Ok(on_load_cores(|| Server::start(config))?)
}

/// Where browsers reach the pages.
#[derive(Debug, Args)]
pub struct SiteArgs {
    /// Address by which browsers reach the pages, where a proxy before them changes Host: https://push.example.org.
    /// Several may be named; what changes something must then come from pages of these.
    #[arg(long = "public-url", value_name = "URL", env = "PUSHLAB_PUBLIC_URL", value_delimiter = ',')]
    public_urls: Vec<Origin>,
    /// Believe this proxy's X-Forwarded-For about who a client is: an address, or a network such as 10.0.0.0/8. Several
    /// may be named. Clients that come through any other proxy count as one address for limits and log-ins.
    #[arg(long = "trusted-proxy", value_name = "ADDRESS", env = "PUSHLAB_TRUSTED_PROXY", value_delimiter = ',')]
    trusted_proxies: Vec<Network>,
}

impl SiteArgs {
    /// The proxies for the server.
    pub fn proxies(&self) -> TrustedProxies {
        TrustedProxies::new(self.trusted_proxies.clone())
    }

    /// The addresses for the server.
    pub fn site(&self, is_loopback_only: bool) -> Site {
        Site { origins: self.public_urls.clone(), is_loopback_only, guests: Guests::default() }
    }
}

/// Whose pages may use the transports, besides the server's own.
#[derive(Debug, Args)]
pub struct GuestArgs {
    /// Let pages of this origin use the transports: https://app.example.org, or '*' for the pages of every site. Several
    /// may be named. Programs may always use them.
    #[arg(long = "allow-origin", value_name = "ORIGIN", env = ALLOW_ORIGIN, value_delimiter = ',')]
    allowed: Vec<Guest>,
}

#[derive(Debug, Clone)]
enum Guest {
    Everybody,
    Page(Origin),
}

impl FromStr for Guest {
    type Err = BadOrigin;

    fn from_str(text: &str) -> Result<Self, BadOrigin> {
        if text == "*" { Ok(Self::Everybody) } else { text.parse().map(Self::Page) }
    }
}

impl GuestArgs {
    /// The same for the server.
    pub fn guests(&self) -> Guests {
        let pages = self.allowed.iter().map(|guest| match guest {
            Guest::Everybody => None,
            Guest::Page(origin) => Some(origin.clone()),
        });
        pages.collect::<Option<_>>().map_or(Guests::Everybody, Guests::These)
    }
}

/// The certificate of a server that speaks TLS.
#[derive(Debug, Args)]
pub struct TlsArgs {
    /// Speak TLS, on every transport: the server's certificate, then those of its issuers, in PEM format. On SIGHUP both
    /// files are read again.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_certificate: Option<PathBuf>,
    /// The certificate's private key, in PEM format, without a passphrase.
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    tls_key: Option<PathBuf>,
}

impl TlsArgs {
    /// The files, if it is to speak TLS.
    pub fn files(&self) -> Option<TlsFiles> {
        let (certificate, key) = self.tls_certificate.clone().zip(self.tls_key.clone())?;
        exposed::warning(&key, true).inspect(|warning| tell(warning));
        Some(TlsFiles { certificate, key })
    }

    /// Holds the signals back for which [`Self::attend`] waits. Call before any thread exists.
    pub fn block_signals(&self, has_access: bool) {
        signals::block();
        if has_access || self.tls_certificate.is_some() {
            signals::block_hangup();
        }
    }

    /// Waits until the server is to stop, or has failed. At SIGHUP it reads its certificate and its access file again;
    /// where it has neither there is nothing to read, and SIGHUP ends the process, as it does any whose terminal has gone.
    pub fn attend(&self, server: &Server, access: Option<&(AccessFile, Arc<LiveAccess>)>) {
        let mut told_at = None;
        while server.is_running() {
            access.inspect(|(_, live)| tell_refusals(live, &mut told_at));
            match signals::wait_as_server(access.is_some() || self.tls_certificate.is_some(), WATCH) {
                None => {}
                Some(Wish::Stop) => return,
                Some(Wish::Reload) => {
                    self.reload(server);
                    access.inspect(|(file, live)| file.reload(live));
                }
            }
        }
    }

    fn reload(&self, server: &Server) {
        let Some(TlsFiles { certificate, .. }) = self.files() else { return };
        let told = match server.reload_tls() {
            Ok(()) => format!("{} was read again; new connections get this certificate", certificate.display()),
            Err(error) => format!("the old certificate stays: {error}; then send SIGHUP again"),
        };
        tell(&told);
    }

    /// With what its addresses begin.
    pub fn scheme(&self) -> &'static str {
        if self.tls_certificate.is_some() { "https" } else { "http" }
    }
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

/// Has a server serve a console and, where there are any, demos, on channels that it keeps for them. Those of the console
/// are for its own pages, as `config.site` says which these are.
pub fn give(config: &mut Config, console: Arc<Console>, demos: Option<&DemoArgs>) -> anyhow::Result<()> {
    let mut applications: Vec<Arc<dyn Application>> = vec![console];
    if let Some(demos) = demos {
        applications.push(Arc::new(demos.open()?));
    }
    config.application = Some(Arc::new(applications));
    config.reserved_channels = [pushlab_console::CHANNELS, pushlab_demos::CHANNELS].map(str::to_owned).to_vec();
    config.same_origin_channels = vec![pushlab_console::CHANNELS.to_owned()];
    Ok(())
}
