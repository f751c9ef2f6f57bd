//! `pushlab backend`: study 1's back end, for any server that takes a feed.

use crate::failure::usage;
use crate::signals;
use crate::units;
use anyhow::Context as _;
use clap::Args;
use pushlab_fleet::backend::{Announcement, BackEnd};
use pushlab_wire::codes::ExitCode;
use pushlab_workload::payload::Form;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

/// How often the main thread looks after signals and reports.
const WATCH: Duration = Duration::from_millis(250);

/// Publish on a schedule to every server that connects.
#[derive(Debug, Args)]
#[command(after_help = "A server connects to ws://ADDRESS/ (pushlab serve --feed ws://127.0.0.1:9000/). \
It is told [\"info\",{…}], then [\"getReady\"] and the messages, as many as info says. \
The feed begins when somebody connected to ws://ADDRESS/control says [\"go\"].")]
pub struct BackendArgs {
    /// Where to listen; port 0 takes a free one.
    #[arg(long, value_parser = units::address, default_value = "127.0.0.1:9000", value_name = "ADDRESS")]
    listen: SocketAddr,
    /// Time between two messages.
    #[arg(long, default_value = "5ms", value_parser = humantime::parse_duration, value_name = "DURATION")]
    interval: Duration,
    /// Messages of a feed.
    #[arg(long, default_value_t = 5000, value_name = "N")]
    count: u64,
    /// Size of a message's JSON text, bytes.
    #[arg(long, default_value_t = 173, value_name = "BYTES")]
    payload: u32,
    /// Print the address, and what became of each feed, as lines of JSON.
    #[arg(long)]
    json: bool,
}

pub fn run(args: &BackendArgs) -> anyhow::Result<ExitCode> {
    signals::block();
    let listener = TcpListener::bind(args.listen)
        .with_context(|| format!("cannot listen on {}; choose another address with --listen", args.listen))?;
    let interval_us = u64::try_from(args.interval.as_micros()).map_err(|_| usage("--interval is too long"))?;
    let announcement = Announcement { interval_us, count: args.count, form: Form::fixed(args.payload) };
    let back_end = BackEnd::start(listener, announcement)?;
    let address = back_end.address();
    if args.json {
        println!("{}", serde_json::json!({ "listening": address.to_string() }));
    } else {
        println!("listening on ws://{address}/ (Ctrl-C stops; [\"go\"] on ws://{address}/control begins a feed)");
    }
    while !signals::wait(WATCH) {
        let Some(report) = back_end.wait_for_report(Duration::ZERO) else { continue };
        let late = report.lateness.quantile_ms(0.99);
        if args.json {
            println!(
                "{}",
                serde_json::json!({ "scheduled": report.scheduled, "published": report.published, "unsent": report.unsent, "lateness_p99_ms": late })
            );
        } else {
            let late = late.map_or("–".to_owned(), |ms| format!("{ms:.2} ms"));
            println!(
                "feed done: {} of {} messages sent, 99 % of them at most {late} late",
                report.published, report.scheduled
            );
        }
    }
    back_end.stop()?;
    Ok(ExitCode::Ok)
}
