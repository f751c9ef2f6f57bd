//! `pushlab console`: results, live figures and experiments in the browser.

use super::pages::{self, DemoArgs, SiteArgs, TlsArgs};
use super::results::StoreArgs;
use crate::units;
use anyhow::Context as _;
use clap::Args;
use pushlab_application::guarded::Guarded;
use pushlab_application::secret::Secret;
use pushlab_console::{Console, Files, Starting};
use pushlab_lab::{on_load_cores, this_program};
use pushlab_server::{Config, Origin, Pass, Server};
use pushlab_wire::codes::ExitCode;
use std::net::SocketAddr;
use std::sync::Arc;

/// Serve the console: results and reports, experiments from a form, live figures, demos.
#[derive(Debug, Args)]
#[command(
    after_help = "It prints an address with a token: whoever opens it can start experiments, which load servers from \
this machine; nobody else sees anything. Each experiment runs in a process of its own; Ctrl-C ends the console and \
interrupts the experiment, which goes on when it is started again."
)]
pub struct ConsoleArgs {
    /// Where to listen; port 0 takes a free one.
    #[arg(long, value_parser = units::address, default_value = "127.0.0.1:8080", value_name = "ADDRESS")]
    listen: SocketAddr,
    #[command(flatten)]
    store: StoreArgs,
    /// Let nobody start experiments.
    #[arg(long)]
    no_run: bool,
    /// The token, 32 hexadecimal digits, if it is to stay the same from one start to the next; a new one by default.
    #[arg(long, value_name = "TOKEN", env = "PUSHLAB_CONSOLE_TOKEN", hide_env_values = true, value_parser = token)]
    token: Option<Secret>,
    /// Let experiments from the form measure this running server: http://127.0.0.1:3000. Several may be named; without
    /// any, experiments measure only servers that Pushlab itself starts.
    #[arg(long = "allow-target", value_name = "URL", value_delimiter = ',', conflicts_with = "no_run")]
    targets: Vec<Origin>,
    #[command(flatten)]
    tls: TlsArgs,
    #[command(flatten)]
    site: SiteArgs,
    #[command(flatten)]
    demos: DemoArgs,
    /// Print the address and the token as one line of JSON when ready.
    #[arg(long)]
    json: bool,
}

pub fn run(args: &ConsoleArgs) -> anyhow::Result<ExitCode> {
    args.tls.block_signals(false);
    let is_loopback = args.listen.ip().is_loopback();
    if !is_loopback && args.tls.files().is_none() {
        eprintln!(
            "warning: others can reach {}, and whoever sees the traffic sees the token: use --tls-certificate and --tls-key",
            args.listen
        );
    }
    let secret = args.token.map_or_else(Secret::new, Ok).context("cannot make a token")?.to_string();
    let pass = Pass::new(secret.clone());
    let site = args.site.site(is_loopback);
    let starting = || -> anyhow::Result<Starting> {
        let program = this_program().context("cannot determine this program's own path")?;
        Ok(Starting {
            program,
            store: args.store.store.clone(),
            out: args.store.out.clone(),
            targets: args.targets.clone(),
        })
    };
    let console = Arc::new(Console::new(pushlab_console::Config {
        store: args.store.store.clone(),
        starting: (!args.no_run).then(starting).transpose()?,
        stores_measurements: true,
        hides_results: false,
        demos: DemoArgs::names(),
        origins: site.origins.clone(),
    })?);
    let mut config = Config::new(args.listen);
    config.tls = args.tls.files();
    let files = Arc::new(Files::new(site.origins.clone()));
    config.site = site;
    config.trusted_proxies = args.site.proxies();
    pages::give(&mut config, Arc::clone(&console), Some(&args.demos))?;
    config.application = config.application.map(|pages| Arc::new(Guarded::new(files, pages, pass.clone())) as Arc<_>);
    config.pass = Some(pass);
    let server = on_load_cores(|| Server::start(config))?;
    let address = server.address();
    if args.json {
        println!("{}", serde_json::json!({ "listening": address.to_string(), "token": secret }));
    } else {
        // Browsers send no server what follows the #.
        println!("console at {}://{address}/#token={secret} (Ctrl-C stops)", args.tls.scheme());
    }
    args.tls.attend(&server, None);
    console.interrupt();
    server.stop();
    server.join()?;
    Ok(ExitCode::Ok)
}

fn token(text: &str) -> Result<Secret, &'static str> {
    Secret::parse(text).ok_or("a token is 32 hexadecimal digits in lower case, such as `openssl rand -hex 16` prints")
}
