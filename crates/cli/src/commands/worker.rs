//! `pushlab worker`: hosts virtual clients for the lab.

use pushlab_wire::codes::ExitCode;
use std::io;

pub fn run() -> anyhow::Result<ExitCode> {
    let is_done = pushlab_fleet::worker::serve(io::stdin(), io::stdout().lock())?;
    Ok(if is_done { ExitCode::Ok } else { ExitCode::Failed })
}
