//! Memory of an idle connection: the slope of the server's own memory over the number of connections.
//!
//! Tables grow by doubling, but memory that was reserved and never touched does not count, and the counts are evenly
//! spaced, so doublings show as scatter and not as slope. The detail has the worst single count too. What the kernel
//! holds for a socket is not part of it.

use crate::audience::Audience;
use crate::connect;
use crate::figure::{Figure, rounded};
use crate::frames::{server_counter, subscription};
use crate::processor::Cores;
use crate::scale::Scale;
use crate::subject::{FanOut, Subject};
use anyhow::{Context as _, ensure};
use pushlab_server::Io;
use pushlab_stats::distribution::student_t_quantile;
use pushlab_stats::mean;
use pushlab_wire::transport::Transport;
use serde_json::json;
use std::path::Path;
use std::time::Duration;

/// Time for the server to finish its turn.
pub const SETTLE: Duration = Duration::from_millis(200);

/// Measures one transport, with a fresh server of ours or of another build.
pub fn measure(
    name: &'static str,
    transport: Transport,
    other: Option<&Path>,
    scale: &Scale,
    cores: Cores,
) -> anyhow::Result<Figure> {
    let server = Subject::start_server(other, cores.subject, FanOut::Write)?;
    let address = server.address();
    // A held poll says nothing, so the server is asked how many it holds.
    let is_admitted = |count: usize| Ok(server_counter(address, "/held_polls")? >= count as u64);
    let is_admitted: Option<&dyn Fn(usize) -> anyhow::Result<bool>> =
        if transport == Transport::LongPolling { Some(&is_admitted) } else { None };
    // What the first connection brings to life is not what a connection costs.
    server_counter(address, "/open")?;
    server.ensure_io(Io::Write)?;
    let base = server.anonymous_bytes()?;
    let mut audience = Audience::new()?;
    let request = subscription(transport);
    let family = 10 + u8::try_from(transport.index())?;
    let mut points = Vec::new();
    for &count in &scale.connections {
        audience.grow(count, |index| connect::open(address, family, index, &request), is_admitted)?;
        std::thread::sleep(SETTLE);
        points.push((count as f64, server.anonymous_bytes()? as f64 / 1024.0));
    }
    let open = server_counter(address, &format!("/connections/{}", transport.name()))?;
    let expected = audience.len() as u64;
    ensure!(open == expected, "the server has {open} such connections instead of {expected}");
    let (slope, half) = slope(&points)?;
    let base = base as f64 / 1024.0;
    let detail = json!({
        "headline": "least-squares slope of anonymous memory over idle connections",
        "base_kib": rounded(base),
        "worst_count_kib": points.iter().map(|(n, kib)| (kib - base) / n).reduce(f64::max).map(rounded),
        "counts": points.iter().map(|(n, kib)| json!([n, rounded(*kib)])).collect::<Vec<_>>(),
    });
    Ok(Figure::with_interval(name, slope, half, 1, detail))
}

/// The least-squares slope and half of its 95 % interval.
pub fn slope(points: &[(f64, f64)]) -> anyhow::Result<(f64, f64)> {
    ensure!(points.len() > 2, "a slope with an interval needs three counts");
    let xs: Vec<f64> = points.iter().map(|p| p.0).collect();
    let ys: Vec<f64> = points.iter().map(|p| p.1).collect();
    let (x, y) = (mean(&xs).context("no counts")?, mean(&ys).context("no counts")?);
    let spread: f64 = xs.iter().map(|v| (v - x).powi(2)).sum();
    let slope = points.iter().map(|p| (p.0 - x) * (p.1 - y)).sum::<f64>() / spread;
    let residual: f64 = points.iter().map(|p| (p.1 - y - slope * (p.0 - x)).powi(2)).sum();
    let freedom = points.len() as f64 - 2.0;
    let error = (residual / freedom / spread).sqrt();
    Ok((slope, student_t_quantile(0.025, freedom) * error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_its_slope() {
        let (value, half) = slope(&[(1.0, 5.0), (2.0, 7.0), (4.0, 11.0)]).unwrap();
        assert!((value - 2.0).abs() < 1e-12 && half < 1e-6);
        // Residuals -0.1, 0.8, -1.3, 0.6: the error is √(2.7 / 2 / 5), and t with 2 degrees of freedom is 4.303.
        let (value, half) = slope(&[(1.0, 1.0), (2.0, 3.0), (3.0, 2.0), (4.0, 5.0)]).unwrap();
        assert!((value - 1.1).abs() < 1e-12 && (half - 2.236).abs() < 0.001, "{value} {half}");
    }
}
