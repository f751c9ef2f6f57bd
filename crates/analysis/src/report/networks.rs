//! What lay between clients and subjects.

use super::results::ResultRuns;
use super::run_values::RunValues;
use pushlab_experiment::Experiment;
use pushlab_experiment::subject::name_of;
use std::collections::BTreeMap;

/// The networks of an experiment's runs in words, each once, in the order of the experiment's lists.
pub fn networks(name: &str, results: &[ResultRuns]) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for result in results {
        let own = result.header.experiments.iter().filter(|experiment| experiment.name == name);
        let words = own.flat_map(|experiment| of_result(experiment, result));
        words.for_each(|words| {
            if !all.contains(&words) {
                all.push(words)
            }
        });
    }
    all
}

fn of_result(experiment: &Experiment, result: &ResultRuns) -> Vec<String> {
    let place = |names: &[String], name: Option<&str>| {
        name.map(|name| names.iter().position(|known| name_of(known) == name).unwrap_or(names.len()))
    };
    // Networks, and those subjects that somebody else runs: by their places among the others.
    let mut used: BTreeMap<_, (Option<&str>, Option<&str>)> = BTreeMap::new();
    for cell in result.runs.iter().map(|run| &run.cell).filter(|cell| cell.experiment == experiment.name) {
        let network = cell.network.as_deref();
        let external = Some(cell.subject.as_str()).filter(|subject| experiment.is_external(subject));
        let order = (place(&experiment.networks, network), place(&experiment.subjects, external), network);
        used.insert(order, (network, external));
    }
    // Nobody here knows more of bare figures than came with them.
    let is_measured = result.header.machine.is_some();
    let words = |(network, external)| match (network, external) {
        (Some(network), _) if is_measured => Some(emulated(network, experiment, &result.runs)),
        (Some(network), _) => Some(network.to_owned()),
        (None, Some(subject)) => Some(format!("as it is ({subject})")),
        (None, None) if !result.header.fleet.is_empty() => Some("as it is (fleet)".to_owned()),
        (None, None) => is_measured.then(|| "loopback".to_owned()),
    };
    used.into_values().filter_map(words).collect()
}

/// As its runs recorded it. One that failed early has no record of it, and had what the experiment says.
fn emulated(network: &str, experiment: &Experiment, runs: &[RunValues]) -> String {
    let is_own =
        |run: &&RunValues| run.cell.experiment == experiment.name && run.cell.network.as_deref() == Some(network);
    let recorded = runs.iter().filter(is_own).find_map(|run| run.network.clone());
    match recorded.or_else(|| experiment.network(network).map(|profile| profile.to_string())) {
        Some(words) => format!("{network} ({words})"),
        None => network.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::presets;
    use pushlab_experiment::Offer;
    use pushlab_probe::machine::MachineFacts;
    use pushlab_wire::transport::Transport;

    fn runs(experiment: &Experiment) -> Vec<RunValues> {
        experiment.cells().into_iter().map(RunValues::planned).collect()
    }

    fn told(experiment: &Experiment, runs: Vec<RunValues>) -> Vec<String> {
        networks(&experiment.name, &[presets::result(vec![experiment.clone()], runs)])
    }

    #[test]
    fn what_was_used_is_told_and_nothing_else() {
        let mut experiment = presets::load("bigestans-chat", None).unwrap();
        experiment.networks.clear();
        assert_eq!(told(&experiment, runs(&experiment)), ["loopback"]);
        assert_eq!(told(&experiment, Vec::new()), [""; 0], "nothing was measured yet");
        experiment.networks = vec!["local".to_owned(), "4g".to_owned()];
        let four = "4g (round trip 57 ms, 13 Mbit/s down, 6 Mbit/s up)";
        let mut shuffled = runs(&experiment);
        shuffled.reverse();
        assert_eq!(told(&experiment, shuffled), ["local (nothing added)", four]);
        let only = runs(&experiment).into_iter().filter(|run| run.cell.network.as_deref() == Some("4g"));
        assert_eq!(told(&experiment, only.collect()), [four]);
    }

    #[test]
    fn to_other_machines_the_network_is_as_it_is() {
        let mut experiment = presets::load("bigestans-chat", None).unwrap();
        experiment.networks.clear();
        let mut result = presets::result(vec![experiment.clone()], runs(&experiment));
        result.header.fleet.push(("elsewhere".to_owned(), MachineFacts::default()));
        assert_eq!(networks(&experiment.name, &[result]), ["as it is (fleet)"]);
    }

    #[test]
    fn a_network_is_what_the_runs_recorded() {
        let mut experiment = presets::load("bigestans-chat", None).unwrap();
        experiment.networks = vec!["4g".to_owned()];
        let mut runs = runs(&experiment);
        runs[1].network = Some("round trip 9 ms".to_owned());
        assert_eq!(told(&experiment, runs), ["4g (round trip 9 ms)"]);
    }

    #[test]
    fn a_server_that_somebody_else_runs_is_reached_as_it_is() {
        let mut written = presets::load("bigestans-chat", None).unwrap().into_written();
        written.networks.clear();
        written.subjects = vec!["pushlab".to_owned(), "live=https://push.example.org".to_owned()];
        let find = |text: &str| {
            let transports = vec![Transport::WebSocket];
            let offer = Offer {
                compresses: transports.clone(),
                pages: Vec::new(),
                transports,
                echo: false,
                rooms: false,
                users: false,
                feed: false,
                newest: false,
                tls: false,
                echo_streams: false,
                resumes: Vec::new(),
                is_external: true,
            };
            Ok((text != "pushlab").then_some(offer))
        };
        let experiment = Experiment::believe(written, &find);
        assert_eq!(told(&experiment, runs(&experiment)), ["loopback", "as it is (live)"]);
    }

    #[test]
    fn of_bare_figures_it_is_not_known() {
        let mut experiment = presets::load("bigestans-chat", None).unwrap();
        experiment.networks = vec!["4g".to_owned()];
        let mut result = presets::result(vec![experiment.clone()], runs(&experiment));
        result.header.machine = None;
        assert_eq!(networks(&experiment.name, std::slice::from_ref(&result)), ["4g"]);
        result.runs.iter_mut().for_each(|run| run.cell.network = None);
        assert_eq!(networks(&experiment.name, &[result]), [""; 0]);
    }
}
