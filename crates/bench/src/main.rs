//! `pushlab-bench`: the performance ratios, measured in one run on one machine.
//!
//! A ratio compares our server with a *limit*: a raw-socket program without a protocol that writes the same bytes
//! with the same corking. Both are processes of their own on the first core; subscribers and publisher share the
//! second. What counts is CPU time per delivery, which neighbours disturb least; throughput stands beside it.
//!
//! `--against` compares with the server of another build instead, which takes the place of the limit.
//!
//! Other figures compare two servers of ours, over HTTP/1.1 and HTTP/2 or with and without compression, or say what
//! attacks cost another client.
//!
//! Standard output has one JSON line for each ratio, standard error the same as a table. A missed goal is a result,
//! not a failure.

mod audience;
mod baseline;
mod compression;
mod connect;
mod delivery;
mod fanout;
mod figure;
mod floods;
mod frames;
mod generator;
mod handover;
mod http2;
mod limit;
mod link;
mod memory;
mod pollers;
mod polls;
mod processor;
mod publisher;
mod rooms;
mod scale;
mod secure;
mod side;
mod subject;

use anyhow::{Context as _, bail};
use baseline::{AGAINST, Baseline, OTHER};
use clap::Parser;
use figure::{Figure, goals};
use processor::Cores;
use pushlab_engine::{Io, check_uring};
use pushlab_wire::transport::Transport;
use scale::Scale;
use std::path::PathBuf;
use subject::Role;

/// Measure the performance ratios of the server on this machine.
#[derive(Debug, Parser)]
#[command(args_conflicts_with_subcommands = true)]
struct Args {
    /// Shorter segments and fewer repeats: a first impression in under a minute.
    #[arg(long)]
    quick: bool,
    /// Five subscribers and a few publications: whether it works, not how fast.
    #[arg(long, hide = true, conflicts_with = "quick")]
    tiny: bool,
    /// Compare the limit of fan-out with itself: a test of the instrument, which must give 1.
    #[arg(long, hide = true)]
    null_test: bool,
    /// Compare with the server of another build, whose `pushlab-bench` is at PATH: our CPU time divided by that of the
    /// other, measured side by side, and the memory of both.
    #[arg(long, value_name = "PATH", conflicts_with = "null_test")]
    against: Option<PathBuf>,
    /// Measure only these, by name or beginning of a name: `fanout`, `fanout/sse`, `memory`, …
    #[arg(long, num_args = 1.., value_name = "NAME")]
    only: Vec<String>,
    /// Repeats of each ratio, each with fresh processes [default: 5, with --quick 2].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    repeats: Option<u32>,
    #[command(subcommand)]
    role: Option<Role>,
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    if let Some(role) = &args.role {
        return role.run();
    }
    let mut scale = match (args.quick, args.tiny) {
        (_, true) => Scale::tiny(),
        (true, _) => Scale::quick(),
        _ => Scale::full(),
    };
    if let Some(repeats) = args.repeats {
        scale.repeats = repeats;
    }
    scale.is_null_test = args.null_test;
    if let Some(path) = &args.against {
        let program = path.canonicalize().with_context(|| format!("--against {}", path.display()))?;
        scale.baseline = Baseline::Other(program);
    }
    let names = chosen(&args.only, &scale.baseline)?;
    if names.iter().any(|name| name.starts_with("link/")) {
        // Before any thread: an ordinary user gets a user namespace.
        pushlab_link::rights::become_able().context("the link needs network namespaces; --only can leave it out")?;
    }
    let cores = Cores::of_this_process().context("cannot choose two cores")?;
    cores.pin_to_load().context("cannot pin the subscribers to their core")?;
    let mut figures = Vec::new();
    for &name in &names {
        if figures.iter().any(|figure: &Figure| figure.name() == name) {
            continue;
        }
        eprintln!("measuring {name} …");
        let measured = match name.split_once('/') {
            Some(("rooms" | "peers", _)) => rooms::measure(name, &names, &scale, cores),
            Some(("floods", _)) => floods::measure(name, &names, &scale, cores),
            Some(("handover", _)) => handover::measure(&names, &scale, cores),
            _ => measure(name, &scale, cores).map(|figure| vec![figure]),
        };
        for figure in measured.with_context(|| format!("{name} could not be measured"))? {
            println!("{}", figure.to_json());
            figures.push(figure);
        }
    }
    eprint!("\n{}", figure::table(&figures));
    Ok(())
}

/// The names of the ratios that were asked for, all if none was.
fn chosen(only: &[String], baseline: &Baseline) -> anyhow::Result<Vec<&'static str>> {
    let known = || goals().map(|goal| goal.name).filter(|name| baseline.has(name));
    if let Some(strange) = only.iter().find(|asked| !known().any(|name| is_meant(asked, name))) {
        bail!("--only {strange}: known are {}", known().collect::<Vec<_>>().join(", "));
    }
    if only.is_empty()
        && matches!(baseline, Baseline::Limit)
        && let Err(error) = check_uring()
    {
        eprintln!("leaving out fanout-uring: {error}");
        return Ok(known().filter(|name| !name.starts_with("fanout-uring/")).collect());
    }
    Ok(known().filter(|name| only.is_empty() || only.iter().any(|asked| is_meant(asked, name))).collect())
}

/// Whether a name is asked for, by itself or its beginning. A number is not cut: `peers/100` is not the beginning of
/// `peers/1000`.
fn is_meant(asked: &str, name: &str) -> bool {
    let is_in_number = |rest: &str| asked.ends_with(is_digit) && rest.starts_with(is_digit);
    name.strip_prefix(asked).is_some_and(|rest| !is_in_number(rest))
}

fn is_digit(c: char) -> bool {
    c.is_ascii_digit()
}

fn measure(name: &'static str, scale: &Scale, cores: Cores) -> anyhow::Result<Figure> {
    let (what, of) = name.split_once('/').context("a ratio's name has two parts")?;
    let of = of.strip_suffix(AGAINST).unwrap_or(of);
    let (of, other) = match of.strip_suffix(OTHER) {
        Some(of) => (of, scale.baseline.program()),
        None => (of, None),
    };
    match (what, Transport::from_name(of)) {
        ("fanout", Some(transport)) => fanout::measure(name, transport, Io::Write, scale, cores),
        ("fanout-uring", Some(transport)) => fanout::measure(name, transport, Io::Uring, scale, cores),
        ("compression", _) => compression::measure(name, of, scale, cores),
        ("http2", _) => http2::measure(name, of, scale, cores),
        ("memory", None) => http2::measure_memory(name, scale, cores),
        ("memory", Some(transport)) => memory::measure(name, transport, other, scale, cores),
        ("generator", _) => {
            let frames = if of == "websocket" { 1 } else { 16 };
            match scale.baseline.program() {
                Some(other) => generator::measure_against(name, of, frames, other, scale, cores),
                None => generator::measure(name, frames, scale, cores),
            }
        }
        ("link", _) => link::measure(name, scale, cores),
        ("poll", None) => polls::measure(name, of == "immediate", scale, cores),
        _ => bail!("nothing measures {name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_build_is_measured_in_what_can_be_compared_with_it() {
        let only = |name: &str, baseline| chosen(&[name.to_owned()], baseline);
        let other = Baseline::Other(PathBuf::new());
        assert_eq!(only("fanout/sse", &Baseline::Limit).unwrap(), ["fanout/sse"]);
        assert_eq!(only("fanout/sse", &other).unwrap(), ["fanout/sse-against"]);
        assert_eq!(only("poll", &other).unwrap(), ["poll/replies-against", "poll/immediate-against"]);
        assert_eq!(only("memory/sse", &other).unwrap(), ["memory/sse", "memory/sse-other"]);
        assert_eq!(only("rooms", &other).unwrap(), ["rooms/1000-against", "rooms/19000-against"]);
        assert_eq!(chosen(&[], &other).unwrap().len(), 3 + 2 + 2 + 2 + 2 * 4);
        let error = only("peers", &other).unwrap_err().to_string();
        assert!(error.contains("fanout/sse-against") && !error.contains("link"), "{error}");
        assert!(only("fanout/sse-against", &Baseline::Limit).is_err());
    }

    #[test]
    fn the_beginning_of_a_name_ends_where_its_number_does() {
        let only = |name: &str| chosen(&[name.to_owned()], &Baseline::Limit).unwrap();
        assert_eq!(only("peers/100"), ["peers/100", "peers/100-p99"]);
        assert_eq!(only("peers/1000"), ["peers/1000", "peers/1000-p99"]);
        assert_eq!(only("peers").len(), 6);
        assert_eq!(only("link/r"), ["link/round-trip"]);
    }
}
