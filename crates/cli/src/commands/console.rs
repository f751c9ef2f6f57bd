//! `pushlab console`: results, live figures and experiments in the browser.

use super::pages::{self, DemoArgs, SiteArgs, TlsArgs};
use super::results::StoreArgs;
use anyhow::Context as _;
use clap::Args;
use pushlab_console::{Console, Starting};
use pushlab_lab::{on_load_cores, this_program};
use pushlab_server::{Config, Server};
use pushlab_wire::codes::ExitCode;
use std::net::SocketAddr;
use std::sync::Arc;

/// Serve the console: results and reports, experiments from a form, live figures, demos.
#[derive(Debug, Args)]
#[command(
    after_help = "Experiments can be started if it listens on a loopback address; it then answers to no other names \
than those of --public-url, which need --run-for-anybody. Each runs in a process of its own; Ctrl-C ends the console \
and interrupts it, and the same experiment goes on later."
)]
pub struct ConsoleArgs {
    /// Where to listen; port 0 takes a free one.
    #[arg(long, default_value = "127.0.0.1:8080", value_name = "ADDRESS")]
    listen: SocketAddr,
    #[command(flatten)]
    store: StoreArgs,
    /// Let nobody start experiments.
    #[arg(long)]
    no_run: bool,
    /// Let everybody who reaches the address start experiments where it or --public-url is not a loopback address; they
    /// can then load any server from this machine.
    #[arg(long, conflicts_with = "no_run")]
    run_for_anybody: bool,
    #[command(flatten)]
    tls: TlsArgs,
    #[command(flatten)]
    site: SiteArgs,
    #[command(flatten)]
    demos: DemoArgs,
    /// Print the address as one line of JSON when ready.
    #[arg(long)]
    json: bool,
}

pub fn run(args: &ConsoleArgs) -> anyhow::Result<ExitCode> {
    args.tls.block_signals();
    let is_loopback = args.listen.ip().is_loopback();
    let is_own = is_loopback && args.site.is_loopback();
    let can_run = !args.no_run && (is_own || args.run_for_anybody);
    if can_run && !is_own {
        eprintln!("warning: whoever reaches {} can start experiments on this machine", args.listen);
    }
    let site = args.site.site(is_loopback);
    let starting = || -> anyhow::Result<Starting> {
        let program = this_program().context("cannot determine this program's own path")?;
        Ok(Starting { program, store: args.store.store.clone(), out: args.store.out.clone() })
    };
    let console = Arc::new(Console::new(pushlab_console::Config {
        store: args.store.store.clone(),
        starting: can_run.then(starting).transpose()?,
        stores_measurements: true,
        hides_results: false,
        demos: DemoArgs::names(),
        origins: site.origins.clone(),
    })?);
    let mut config = Config::new(args.listen);
    config.tls = args.tls.files();
    config.site = site;
    pages::give(&mut config, Arc::clone(&console), Some(&args.demos))?;
    let server = on_load_cores(|| Server::start(config))?;
    let address = server.address();
    if args.json {
        println!("{}", serde_json::json!({ "listening": address.to_string() }));
    } else {
        println!("console at {}://{address}/ (Ctrl-C stops)", args.tls.scheme());
    }
    args.tls.attend(&server);
    console.interrupt();
    server.stop();
    server.join()?;
    Ok(ExitCode::Ok)
}
