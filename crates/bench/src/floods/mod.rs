//! Attacks: how long another client waits for its echoes while one goes on, and what the server's memory grows by.
//!
//! Each repeat has a fresh server, as for its users but with compression, and with the auction house or an access file
//! where that is what is attacked. First the other client is alone, then an attacker on the load's core says as much as
//! eight connections take for some seconds, and connects again whenever the server ends one. The goal of the 99th
//! percentile is twice what it was without the attack, or 10 ms more, whichever is larger.
//!
//! Others hoard: as many connections as fit, on each of which the server keeps as much as it may, with a total limit
//! that is soon reached. What their idle connections take beforehand does not count; what the kernel holds is a
//! separate figure.

pub mod attacker;
mod bystander;
pub mod hoarder;
mod kernel;
pub mod plan;

use crate::figure::{Figure, rounded};
use crate::processor::Cores;
use crate::scale::Scale;
use crate::secure::Certificate;
use crate::subject::{FanOut, Role, Serve, Subject};
use anyhow::{Context as _, ensure};
use bystander::Bystander;
use plan::{Plan, Report};
use pushlab_attacks::Flood;
use pushlab_stats::median;
use serde_json::json;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// Ends the name of a figure of memory.
const MEMORY: &str = "-memory";
/// Ends the name of a figure of the kernel's.
const KERNEL: &str = "-kernel";
/// The 99th percentile may become so much longer, ms, or twice as long.
const MORE_MS: f64 = 10.0;
/// The attack lasts so much longer than it is looked at.
const MARGIN: Duration = Duration::from_millis(100);
/// From where messages are compressed, bytes.
const COMPRESSION_FROM: usize = 256;
/// What a server may keep for all peers that hoard, bytes.
const HELD_BYTES: usize = 64 << 20;
/// Fewer repeats of a hoard are enough: memory is the same in each.
const REPEATS_PER_HOARD: u32 = 3;

/// What one repeat came to.
struct Outcome {
    quiet_ms: f64,
    flooded_ms: f64,
    /// By how much the largest memory in use has grown, MiB.
    growth_mib: f64,
    /// The same of what the kernel holds for its sockets at the end.
    kernel_mib: f64,
    /// Processor time of the server in a second.
    busy: f64,
    report: Report,
    seconds: f64,
}

/// Measures one attack, and gives those of its figures that are among `names`.
pub fn measure(name: &str, names: &[&'static str], scale: &Scale, cores: Cores) -> anyhow::Result<Vec<Figure>> {
    let flood = flood_of(name).parse::<Flood>().ok().with_context(|| format!("nothing measures {name}"))?;
    let repeats = match flood {
        Flood::Attack(_) => scale.repeats,
        Flood::Hoard(_) => scale.repeats.div_ceil(REPEATS_PER_HOARD),
    };
    let outcomes = (0..repeats).map(|_| endure(flood, scale, cores)).collect::<anyhow::Result<Vec<Outcome>>>()?;
    let all = |figure: &dyn Fn(&Outcome) -> f64| outcomes.iter().map(figure).collect::<Vec<_>>();
    let middle = |figure: &dyn Fn(&Outcome) -> f64| median(&all(figure)).map(rounded);
    let detail = json!({
        "headline": "99th percentile of another client's echoes during the attack, and growth of the largest memory \
                     in use; medians of the repeats",
        "quiet_p99_ms": middle(&|o| o.quiet_ms),
        "flooded_p99_ms": middle(&|o| o.flooded_ms),
        "growth_mib": middle(&|o| o.growth_mib),
        "kernel_mib": middle(&|o| o.kernel_mib),
        "server_busy": middle(&|o| o.busy),
        "connections_per_s": middle(&|o| o.report.connections as f64 / o.seconds),
        "attack_mib_per_s": middle(&|o| mib(o.report.bytes) / o.seconds),
    });
    let allowed = median(&all(&|o| (2.0 * o.quiet_ms).max(o.quiet_ms + MORE_MS))).context("there are no repeats")?;
    let mut figures = Vec::new();
    for &name in names.iter().filter(|other| flood_of(other) == flood_of(name)) {
        let figure = |of| Figure::of_repeats(name, &all(of), detail.clone());
        figures.push(if name.ends_with(MEMORY) {
            figure(&|o| o.growth_mib)?
        } else if name.ends_with(KERNEL) {
            figure(&|o| o.kernel_mib)?
        } else {
            figure(&|o| o.flooded_ms)?.with_goal(allowed)
        });
    }
    Ok(figures)
}

/// The flood that a figure is of.
fn flood_of(name: &str) -> &str {
    let flood = name.strip_prefix("floods/").unwrap_or(name);
    [MEMORY, KERNEL].iter().find_map(|end| flood.strip_suffix(end)).unwrap_or(flood)
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

fn endure(flood: Flood, scale: &Scale, cores: Cores) -> anyhow::Result<Outcome> {
    let plain = Serve { compression_from: Some(COMPRESSION_FROM), ..Serve::plain(cores.subject, FanOut::Auto) };
    let mut certificate = None;
    let serve = match flood {
        Flood::Attack(attack) => {
            Serve { has_auction: attack.is_on_auction(), has_access: attack.is_on_access(), ..plain }
        }
        Flood::Hoard(hoard) => {
            certificate = hoard.is_secure().then(Certificate::make).transpose()?;
            Serve { held_bytes: Some(HELD_BYTES), ..plain }
        }
    };
    let tls = certificate.as_ref().map(|certificate| certificate.folder().to_owned());
    let server = Subject::start(Role::Server(Serve { tls: tls.clone(), ..serve }))?;
    let address = server.address();
    let duration_ms = (scale.flood + MARGIN).as_millis() as u64;
    let plan = Plan { core: cores.load, address, flood, duration_ms, connections: scale.hoarders, tls };
    if matches!(flood, Flood::Attack(attack) if attack.is_kept()) {
        // What grows up to a limit is at that limit first.
        let mut attacker = Attacker::start(&plan)?;
        attacker.begin()?;
        attacker.report()?;
    }
    let mut bystander = Bystander::connect(address, certificate.as_ref())?;
    bystander.p99_ms(scale.warm_up)?;
    let quiet_ms = bystander.p99_ms(scale.quiet)?;
    let mut attacker = Attacker::start(&plan)?;
    let (before, kernel_before) = (server.largest_resident_bytes()?, kernel::held_bytes(address.port())?);
    let (begin, cpu_before) = (Instant::now(), server.cpu_ns()?);
    attacker.begin()?;
    let flooded_ms = bystander.p99_ms(scale.flood)?;
    let (wall, cpu_ns) = (begin.elapsed(), server.cpu_ns()? - cpu_before);
    let report = attacker.report()?;
    let seconds = begin.elapsed().as_secs_f64();
    let kernel = kernel::held_bytes(address.port())?.saturating_sub(kernel_before);
    let growth = server.largest_resident_bytes()?.saturating_sub(before);
    Ok(Outcome {
        quiet_ms,
        flooded_ms,
        growth_mib: mib(growth),
        kernel_mib: mib(kernel),
        busy: cpu_ns as f64 / wall.as_nanos() as f64,
        report,
        seconds,
    })
}

/// The process of an attacker; it is killed when dropped.
struct Attacker {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Attacker {
    /// Starts one and waits until it is ready.
    fn start(plan: &Plan) -> anyhow::Result<Self> {
        let mut child = Command::new(std::env::current_exe().context("cannot find this binary")?)
            .args(Role::Attacker(plan.clone()).arguments())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start an attacker")?;
        let stdin = child.stdin.take().context("an attacker has no standard input")?;
        let stdout = BufReader::new(child.stdout.take().context("an attacker has no standard output")?);
        let mut attacker = Self { child, stdin, stdout };
        attacker.line()?;
        Ok(attacker)
    }

    /// Has it attack.
    fn begin(&mut self) -> anyhow::Result<()> {
        Ok(self.stdin.write_all(b"\n")?)
    }

    /// Waits until it has done that.
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
