//! `pushlab worker`: hosts virtual clients for the lab.

use anyhow::Context as _;
use pushlab_wire::codes::ExitCode;
use std::io;

/// Set by tests of fleets, of which all machines are one: how far this process's clock is to be from the machine's, ns,
/// and how much it is to gain, millionths: `5000000,50`.
const FALSE_CLOCK: &str = "PUSHLAB_FALSE_CLOCK";

pub fn run() -> anyhow::Result<ExitCode> {
    if let Ok(text) = std::env::var(FALSE_CLOCK) {
        let numbers = text.split_once(',').and_then(|(ns, ppm)| Some((ns.parse().ok()?, ppm.parse::<f64>().ok()?)));
        let (offset_ns, ppm) = numbers.with_context(|| format!("{FALSE_CLOCK} is {text:?}, not NS,PPM"))?;
        pushlab_os::clock::falsify(offset_ns, ppm / 1e6);
    }
    let is_done = pushlab_fleet::worker::serve(io::stdin(), io::stdout().lock())?;
    Ok(if is_done { ExitCode::Ok } else { ExitCode::Failed })
}
