//! Single seconds of a load, as a study gives them.

use super::run_values::RunValues;
use pushlab_report::PublishedSeconds;

/// Gives each run that the text names its seconds. A line is `experiment,subject,transport,repeat,metric,seconds`, where
/// seconds are numbers with spaces between them.
pub fn add(text: &str, runs: &mut [RunValues]) {
    for line in text.lines().skip(1) {
        let cells = <[&str; 6]>::try_from(line.split(',').collect::<Vec<_>>());
        let Ok([experiment, subject, transport, repeat, metric, seconds]) = cells else { continue };
        let is_of = |run: &&mut RunValues| {
            let cell = &run.cell;
            (cell.experiment.as_str(), cell.subject.as_str(), cell.transport.name()) == (experiment, subject, transport)
                && run.repeat.to_string() == repeat
        };
        let seconds: Vec<f64> = seconds.split(' ').filter_map(|second| second.parse().ok()).collect();
        for run in runs.iter_mut().filter(is_of) {
            run.published_seconds.insert(metric.to_owned(), seconds.clone());
        }
    }
}

/// The means of several runs; `None` where no run has any.
pub fn mean(runs: &[&RunValues]) -> Option<PublishedSeconds> {
    let of = |metric: &str| {
        let all: Vec<&Vec<f64>> = runs.iter().filter_map(|run| run.published_seconds.get(metric)).collect();
        let in_second =
            |second: usize| all.iter().filter_map(move |own| own.get(second)).copied().collect::<Vec<f64>>();
        let is_enough = |values: &Vec<f64>| !values.is_empty() && 2 * values.len() >= all.len();
        let seconds = (0..).map(in_second).take_while(is_enough);
        seconds.map(|values| values.iter().sum::<f64>() / values.len() as f64).collect::<Vec<f64>>()
    };
    let seconds = PublishedSeconds {
        published: of("published"),
        server_received: of("server_received"),
        server_sent: of("server_sent"),
        latency_own_mean: of("latency_own_mean"),
    };
    (seconds != PublishedSeconds::default()).then_some(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::presets;
    use pushlab_experiment::studies;

    const HEADING: &str = "experiment,subject,transport,repeat,metric,seconds";

    fn runs(repeats: u32) -> Vec<RunValues> {
        let experiment = presets::load("johannessen-load", None).unwrap();
        let is_wanted = |cell: &pushlab_experiment::cell::Cell| {
            (cell.subject.as_str(), cell.transport.name()) == ("socketio", "websocket")
        };
        let cell = experiment.cells().into_iter().find(is_wanted).unwrap();
        (1..=repeats).map(|repeat| RunValues { repeat, ..RunValues::planned(cell.clone()) }).collect()
    }

    #[test]
    fn a_second_is_the_mean_of_the_runs_that_have_it_if_half_do() {
        let mut runs = runs(3);
        let lines = [
            HEADING,
            "johannessen-load,socketio,websocket,1,published,2 4 6",
            "johannessen-load,socketio,websocket,2,published,4 6",
            "johannessen-load,socketio,websocket,3,published,6",
            "johannessen-load,socketio,sse,1,published,100",
            "johannessen-idle,socketio,websocket,1,published,100",
        ];
        add(&lines.join("\n"), &mut runs);
        let seconds = mean(&runs.iter().collect::<Vec<_>>()).unwrap();
        assert_eq!(seconds, PublishedSeconds { published: vec![4.0, 5.0], ..PublishedSeconds::default() });
        assert_eq!(mean(&[]), None);
    }

    #[test]
    fn every_line_of_the_file_is_read() {
        let text = studies::find("johannessen-2014").unwrap().seconds.unwrap();
        assert_eq!(text.lines().next(), Some(HEADING));
        let mut runs = runs(10);
        add(text, &mut runs);
        for run in &runs {
            let lengths: Vec<usize> = run.published_seconds.values().map(Vec::len).collect();
            assert_eq!(lengths.len(), 4);
            assert!(lengths.iter().all(|length| *length >= 15), "{lengths:?}");
        }
        let numbers =
            |line: &str| line.split(',').nth(5).unwrap().split(' ').all(|second| second.parse::<f64>().is_ok());
        assert!(text.lines().skip(1).all(numbers));
    }
}
