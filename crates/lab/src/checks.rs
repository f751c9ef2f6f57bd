//! What cannot be carried out here, found out before anything runs.

use crate::fit::{Unfit, check_cell};
use crate::pinning::{Pinning, PinningError};
use pushlab_bus::Seats;
use pushlab_experiment::{Experiment, Proxy, Written};
use pushlab_fleet::browser;
use pushlab_link::rights;
use pushlab_os::limits;
use pushlab_probe::machine::{Check, Room};
use pushlab_report::LeftOut;
use pushlab_subjects::install::Cache;
use pushlab_subjects::named::Named;
use pushlab_subjects::proxy::find_nginx;
use pushlab_workload::plan::ClientsIn;
use pushlab_workload::plan_checks::BadPlan;
use std::time::{Duration, Instant};

/// Why an experiment cannot be carried out on this machine.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// A cell that the load cannot run.
    #[error("{cell}: {source}")]
    Plan {
        /// Which.
        cell: String,
        /// Why.
        source: Box<BadPlan>,
    },
    /// A cell for whose clients this machine has no room.
    #[error("{cell}: {}: {}. {} Try: {}", .check.name, .check.found, .check.why, .check.fix)]
    Room {
        /// Which.
        cell: String,
        /// What is missing.
        check: Box<Check>,
    },
    /// No subject is left.
    #[error("nothing can be measured: {}", .0.iter().map(|out| out.reason.as_str()).collect::<Vec<_>>().join("; "))]
    NothingLeft(Vec<LeftOut>),
    /// Cores that the subjects cannot have.
    #[error(transparent)]
    Pinning(#[from] PinningError),
    /// A subject that is not known any more, or that has no client for a browser's pages where these are asked for.
    #[error("{0}")]
    Subject(String),
}

/// Takes out the subjects that are not installed or that this machine cannot run, the variants whose browser is not, and
/// experiments over networks or through proxies where there are none.
///
/// # Errors
/// [`CheckError::NothingLeft`].
pub fn leave_out_missing(experiments: &mut Vec<Experiment>, cache: &Cache) -> Result<Vec<LeftOut>, CheckError> {
    let mut left_out: Vec<LeftOut> = Vec::new();
    if experiments.iter().any(|experiment| !experiment.networks.is_empty())
        && let Err(why) = rights::check()
    {
        let over_networks = experiments.extract_if(.., |experiment| !experiment.networks.is_empty());
        let out = |experiment: Experiment| LeftOut { subject: experiment.name.clone(), reason: why.to_string() };
        left_out.extend(over_networks.map(out));
    }
    if find_nginx().is_none() {
        let through_nginx = experiments.extract_if(.., |experiment| experiment.through == Some(Proxy::Nginx));
        let reason = "nginx is not installed; it is the package nginx-light on Debian";
        left_out.extend(through_nginx.map(|one| LeftOut { subject: one.name.clone(), reason: reason.to_owned() }));
    }
    for experiment in experiments.iter_mut() {
        let experiment: &mut Written = experiment;
        let cores = experiment.subject_cores as usize;
        experiment.subjects.retain(|text| {
            let obstacle = Named::parse(text).ok().and_then(|named| named.obstacle(cache, cores));
            let out = obstacle.map(|why| LeftOut { subject: text.clone(), reason: why });
            let is_kept = out.is_none();
            left_out.extend(out.filter(|out| !left_out.contains(out)));
            is_kept
        });
        let mut missing = |clients_in: ClientsIn, what: String| {
            let out = browser::check_installed(clients_in.kind).err();
            let out = out.map(|why| LeftOut { subject: what, reason: why.to_string() });
            let is_missing = out.is_some();
            left_out.extend(out.filter(|out| !left_out.contains(out)));
            is_missing
        };
        let (name, own) = (&experiment.name, experiment.clients_in);
        let had_variants = !experiment.variants.is_empty();
        experiment
            .variants
            .retain(|variant| !missing(variant.clients_in.unwrap_or(own), format!("{name}, variant {}", variant.name)));
        // Without any of its variants an experiment would be another one.
        let is_empty = if had_variants { experiment.variants.is_empty() } else { missing(own, name.clone()) };
        if is_empty {
            experiment.subjects.clear();
        }
    }
    experiments.retain(|experiment| !experiment.cells().is_empty());
    if experiments.is_empty() { Err(CheckError::NothingLeft(left_out)) } else { Ok(left_out) }
}

/// Refuses what could not be carried out on this machine, as far as that can be found out `within` so long: a campaign
/// looks at all of it before it begins.
///
/// # Errors
/// See [`CheckError`].
pub fn check_experiments(experiments: &[Experiment], within: Duration) -> Result<(), CheckError> {
    let begun = Instant::now();
    let cores = u32::try_from(Pinning::for_experiments(experiments)?.load.len()).unwrap_or(u32::MAX);
    check_each(experiments, Seats { cores, descriptors: limits::descriptors().soft }, Some(Room::read()))
        .take_while(|found| found.is_err() || begun.elapsed() < within)
        .collect()
}

/// Refuses what workers could not run with what they have, before anything runs; `room` is the machine's, where they are on
/// this one.
///
/// # Errors
/// See [`CheckError`].
pub fn check_plans(experiments: &[Experiment], seats: Seats, room: Option<Room>) -> Result<(), CheckError> {
    check_each(experiments, seats, room).collect()
}

/// What is to be said of each cell, found out as it is asked for.
fn check_each(
    experiments: &[Experiment],
    seats: Seats,
    room: Option<Room>,
) -> impl Iterator<Item = Result<(), CheckError>> {
    let cells = experiments.iter().flat_map(|experiment| experiment.cells().into_iter().map(move |c| (experiment, c)));
    cells.map(move |(experiment, own)| {
        let cell = own.label();
        check_cell(&experiment.at(&own), own, seats, room.as_ref()).map_err(|unfit| match unfit {
            Unfit::Subject(why) => CheckError::Subject(why),
            Unfit::Plan(source) => CheckError::Plan { cell, source },
            Unfit::Room(check) => CheckError::Room { cell, check: Box::new(check) },
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments;
    use pushlab_experiment::presets;

    /// Looking at each cell may take longer than a page waits: what was not reached in time is left to the campaign.
    #[test]
    fn looking_an_experiment_over_ends_in_time() {
        let clients = |list: &str| {
            let text = presets::text("tangen-chat").unwrap();
            let start = text.find("\nclients = ").unwrap() + 1;
            let end = start + text[start..].find('\n').unwrap();
            let text = [&text[..start], "clients = ", list, &text[end..]].concat();
            vec![experiments::parse(&text, None, "test").unwrap()]
        };
        // A million need more descriptors than there are.
        let (good_first, bad_first) = (clients("[2, 1000000]"), clients("[1000000, 2]"));
        let long = Duration::from_secs(3600);
        for (experiments, within, is_good) in [
            (&good_first, long, false),
            (&good_first, Duration::ZERO, true),
            (&bad_first, long, false),
            (&bad_first, Duration::ZERO, false),
        ] {
            assert_eq!(check_experiments(experiments, within).is_ok(), is_good, "{within:?}");
        }
    }
}
