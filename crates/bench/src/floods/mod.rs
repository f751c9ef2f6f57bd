//! Attacks: how long another client waits for its echoes while one goes on, and what the server's memory grows by.
//!
//! Each repeat has a fresh server, as for its users but with compression, and with the auction house or an access file
//! where that is what is attacked. First the other client is alone, then an attacker on the load's core says as much as eight connections take for some seconds, and connects again whenever
//! the server ends one. The goal of the 99th percentile is twice what it was without the attack, or 10 ms more,
//! whichever is larger.

mod asking;
pub mod attack;
pub mod attacker;
mod bystander;
pub mod tokens;

use crate::figure::{Figure, rounded};
use crate::processor::Cores;
use crate::scale::Scale;
use crate::subject::{FanOut, Role, Serve, Subject};
use anyhow::{Context as _, ensure};
use attack::Attack;
use attacker::{Plan, Report};
use bystander::Bystander;
use clap::ValueEnum as _;
use pushlab_stats::median;
use serde_json::json;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// Ends the name of a figure of memory.
const MEMORY: &str = "-memory";
/// The 99th percentile may become so much longer, ms, or twice as long.
const MORE_MS: f64 = 10.0;
/// The attack lasts so much longer than it is looked at.
const MARGIN: Duration = Duration::from_millis(100);
/// From where messages are compressed, bytes.
const COMPRESSION_FROM: usize = 256;

/// What one repeat came to.
struct Outcome {
    quiet_ms: f64,
    flooded_ms: f64,
    /// By how much the largest memory in use has grown, MiB.
    growth_mib: f64,
    /// Processor time of the server in a second.
    busy: f64,
    report: Report,
    seconds: f64,
}

/// Measures one attack, and gives those of its figures that are among `names`.
pub fn measure(name: &str, names: &[&'static str], scale: &Scale, cores: Cores) -> anyhow::Result<Vec<Figure>> {
    let group = name.strip_suffix(MEMORY).unwrap_or(name);
    let attack = group.strip_prefix("floods/").and_then(|attack| Attack::from_str(attack, false).ok());
    let attack = attack.with_context(|| format!("nothing measures {name}"))?;
    let repeat = |_| endure(attack, scale, cores);
    let outcomes = (0..scale.repeats).map(repeat).collect::<anyhow::Result<Vec<Outcome>>>()?;
    let all = |figure: &dyn Fn(&Outcome) -> f64| outcomes.iter().map(figure).collect::<Vec<_>>();
    let middle = |figure: &dyn Fn(&Outcome) -> f64| median(&all(figure)).map(rounded);
    let detail = json!({
        "headline": "99th percentile of another client's echoes during the attack, and growth of the largest memory \
                     in use; medians of the repeats",
        "quiet_p99_ms": middle(&|o| o.quiet_ms),
        "flooded_p99_ms": middle(&|o| o.flooded_ms),
        "growth_mib": middle(&|o| o.growth_mib),
        "server_busy": middle(&|o| o.busy),
        "connections_per_s": middle(&|o| o.report.connections as f64 / o.seconds),
        "attack_mib_per_s": middle(&|o| o.report.bytes as f64 / o.seconds / f64::from(1 << 20)),
    });
    let allowed = median(&all(&|o| (2.0 * o.quiet_ms).max(o.quiet_ms + MORE_MS))).context("there are no repeats")?;
    let mut figures = Vec::new();
    for &name in names.iter().filter(|other| other.strip_suffix(MEMORY).unwrap_or(other) == group) {
        figures.push(if name.ends_with(MEMORY) {
            Figure::of_repeats(name, &all(&|o| o.growth_mib), detail.clone())?
        } else {
            Figure::of_repeats(name, &all(&|o| o.flooded_ms), detail.clone())?.with_goal(allowed)
        });
    }
    Ok(figures)
}

fn endure(attack: Attack, scale: &Scale, cores: Cores) -> anyhow::Result<Outcome> {
    let server = Subject::start(Role::Server(Serve {
        compression_from: Some(COMPRESSION_FROM),
        has_auction: attack.is_on_auction(),
        has_access: attack.is_on_access(),
        ..Serve::plain(cores.subject, FanOut::Auto)
    }))?;
    let duration_ms = (scale.flood + MARGIN).as_millis() as u64;
    let plan = Plan { core: cores.load, address: server.address(), attack, duration_ms };
    if attack.is_kept() {
        // What grows up to a limit is at that limit first.
        Attacker::start(plan)?.report()?;
    }
    let mut bystander = Bystander::connect(server.address())?;
    bystander.p99_ms(scale.warm_up)?;
    let quiet_ms = bystander.p99_ms(scale.quiet)?;
    let before_bytes = server.largest_resident_bytes()?;
    let mut attacker = Attacker::start(plan)?;
    let (begin, cpu_before) = (Instant::now(), server.cpu_ns()?);
    let flooded_ms = bystander.p99_ms(scale.flood)?;
    let (wall, cpu_ns) = (begin.elapsed(), server.cpu_ns()? - cpu_before);
    let report = attacker.report()?;
    let growth = server.largest_resident_bytes()?.saturating_sub(before_bytes);
    Ok(Outcome {
        quiet_ms,
        flooded_ms,
        growth_mib: growth as f64 / f64::from(1 << 20),
        busy: cpu_ns as f64 / wall.as_nanos() as f64,
        report,
        seconds: duration_ms as f64 / 1e3,
    })
}

/// The process of an attacker; it is killed when dropped.
struct Attacker {
    child: Child,
    stdout: BufReader<ChildStdout>,
}

impl Attacker {
    /// Starts one and waits until it attacks.
    fn start(plan: Plan) -> anyhow::Result<Self> {
        let mut child = Command::new(std::env::current_exe().context("cannot find this binary")?)
            .args(Role::Attacker(plan).arguments())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start an attacker")?;
        let stdout = BufReader::new(child.stdout.take().context("an attacker has no standard output")?);
        let mut attacker = Self { child, stdout };
        attacker.line()?;
        Ok(attacker)
    }

    /// Waits for its end.
    fn report(&mut self) -> anyhow::Result<Report> {
        let report: Report = serde_json::from_str(&self.line()?).context("a report is not understood")?;
        ensure!(report.bytes > 0, "the attacker said nothing");
        Ok(report)
    }

    fn line(&mut self) -> anyhow::Result<String> {
        let mut line = String::new();
        ensure!(self.stdout.read_line(&mut line)? > 0, "an attacker has ended by itself");
        Ok(line)
    }
}

impl Drop for Attacker {
    fn drop(&mut self) {
        // It may have ended by itself, as it should.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
