//! `pushlab subjects facts`: how friendly servers are, counted and measured.

use crate::signals;
use crate::units::mebibytes;
use pushlab_experiment::frameworks::{self, Published};
use pushlab_lab::this_program;
use pushlab_os::folder::TemporaryFolder;
use pushlab_subjects::catalogue::{Entry, catalogue};
use pushlab_subjects::facts::bundle::ClientSize;
use pushlab_subjects::facts::cuts::{AfterCut, BetweenPolls, Outcome};
use pushlab_subjects::facts::{Fact, Facts, FactsOptions, OWN, Whose, measure, stored, stored_ours};
use pushlab_subjects::install::Cache;
use pushlab_wire::codes::ExitCode;
use serde::Serialize;
use std::fmt::Write as _;

/// Measures what is not known yet, or everything `again`, of the servers of these names, of all if none is named; then
/// prints it. What is not installed is left out.
pub fn run(names: &[String], again: bool, json: bool) -> anyhow::Result<ExitCode> {
    signals::block();
    let logs = TemporaryFolder::make("pushlab-facts")?;
    let options = FactsOptions { program: this_program()?, logs: logs.path().to_owned() };
    let cache = Cache::of_user();
    let mut code = ExitCode::Ok;
    let mut all = Vec::new();
    for entry in wanted(names)? {
        let installed = match entry.map(|entry| cache.find(entry)).transpose() {
            Ok(installed) => installed,
            Err(error) => {
                eprintln!("left out: {error}");
                // Of all, those that this machine has.
                if !names.is_empty() {
                    code = ExitCode::Failed;
                }
                continue;
            }
        };
        let (whose, known) = match (entry, &installed) {
            (Some(entry), Some(installed)) => (Whose::Foreign(entry, installed), stored(&cache, entry)),
            _ => (Whose::Ours, stored_ours(&cache, &options.program)),
        };
        let facts = match known.filter(|_| !again) {
            Some(facts) => facts,
            None => {
                let name = entry.map_or(OWN, |entry| &entry.manifest.name);
                measure(&cache, whose, &options, &mut |what| eprintln!("{name}: {what}"), &mut signals::has_come)?
            }
        };
        all.push(facts);
    }
    logs.keep_unless_empty();
    if json {
        let told = |facts| Told { facts, johannessen_2014: frameworks::find(&facts.name) };
        println!("{}", serde_json::to_string_pretty(&all.iter().map(told).collect::<Vec<_>>())?);
    } else {
        print!("{}{}", text(&all), published(&all));
    }
    Ok(code)
}

/// The facts of one server, and what a study said of it.
#[derive(Serialize)]
struct Told<'a> {
    #[serde(flatten)]
    facts: &'a Facts,
    #[serde(skip_serializing_if = "Option::is_none")]
    johannessen_2014: Option<Published>,
}

/// Ours is `None`, and comes first.
fn wanted(names: &[String]) -> anyhow::Result<Vec<Option<&'static Entry>>> {
    let catalogue = catalogue()?;
    if names.is_empty() {
        return Ok(std::iter::once(None).chain(catalogue.entries().iter().map(Some)).collect());
    }
    let find = |name: &String| Ok(if name == OWN { None } else { Some(catalogue.find(name)?) });
    names.iter().map(find).collect()
}

const HEADINGS: [&str; 10] = [
    "subject",
    "server lines",
    "client lines",
    "client size (gzip)",
    "packages",
    "installed",
    "cold start",
    "endpoint",
    "after 5 s cut off",
    "between polls",
];

/// A row for each endpoint; what is one figure of the subject stands in its first.
fn text(all: &[Facts]) -> String {
    let mut rows = vec![HEADINGS.map(str::to_owned)];
    for facts in all {
        let number = |fact: &Fact<u32>| fact.known().map_or("–".to_owned(), u32::to_string);
        let mut own = [
            facts.name.clone(),
            number(&facts.server_lines),
            number(&facts.client_lines),
            facts.client_size.known().map_or("–".to_owned(), size),
            number(&facts.packages),
            facts.installed_bytes.known().map_or("–".to_owned(), |bytes| mebibytes(*bytes)),
            facts.cold_start_ms().map_or("–".to_owned(), |ms| format!("{ms:.0} ms")),
        ];
        for endpoint in &facts.endpoints {
            let [name, lines, client, size, packages, installed, start] = std::mem::take(&mut own);
            let cut = endpoint.after_cut.known().map_or("–".to_owned(), after_cut);
            let polls = endpoint.between_polls.as_ref().map(|fact| fact.known().map_or("–".to_owned(), between_polls));
            let polls = polls.unwrap_or_default();
            rows.push([name, lines, client, size, packages, installed, start, endpoint.name.clone(), cut, polls]);
        }
    }
    let mut out = aligned(&rows, |column| column == 0 || column > 6);
    for facts in all {
        for (what, why) in facts.unknown() {
            let _ = writeln!(out, "{}, {what}: {why}", facts.name);
        }
    }
    out
}

/// What the study of 2014 says of those that it judged; empty where there are none.
fn published(all: &[Facts]) -> String {
    let known: Vec<Published> = all.iter().filter_map(|facts| frameworks::find(&facts.name)).collect();
    if known.is_empty() {
        return String::new();
    }
    let headings = frameworks::CRITERIA.map(|name| name.replace('_', " "));
    let mut rows = vec![["subject".to_owned()].into_iter().chain(headings).chain(["client size".to_owned()]).collect()];
    for one in &known {
        let number =
            |number: Option<u32>, unit: &str| number.map_or("–".to_owned(), |number| format!("{number}{unit}"));
        let scores = frameworks::CRITERIA.map(|name| number(one.scores.get(name).copied(), ""));
        let size = number(one.client_bytes, " B");
        rows.push([one.framework.to_owned()].into_iter().chain(scores).chain([size]).collect::<Vec<_>>());
    }
    let table = aligned(&rows, |column| column == 0);
    format!(
        "\nVersions of 2014, by Johannessen 2014: his scores, from 1 (worst) to 10, and what a page loaded\n{table}"
    )
}

/// Rows in columns.
fn aligned<R: AsRef<[String]>>(rows: &[R], is_left: impl Fn(usize) -> bool) -> String {
    let columns = rows.first().map_or(0, |row| row.as_ref().len());
    let width = |column: usize| rows.iter().map(|row| row.as_ref()[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut out = String::new();
    for row in rows {
        let cells =
            row.as_ref().iter().zip(&widths).enumerate().map(|(column, (cell, &width))| match is_left(column) {
                true => format!("{cell:<width$}"),
                false => format!("{cell:>width$}"),
            });
        let _ = writeln!(out, "{}", cells.collect::<Vec<_>>().join("  ").trim_end());
    }
    out
}

fn size(size: &ClientSize) -> String {
    match size.minified_bytes {
        0 => "none".to_owned(),
        minified => format!("{minified} B ({})", size.gzipped_bytes),
    }
}

fn after_cut(found: &AfterCut) -> String {
    let AfterCut { lost, expected, .. } = found;
    let again = if found.duplicated > 0 { format!(", {} twice", found.duplicated) } else { String::new() };
    match found.outcome {
        Outcome::Resumed => format!("resumed{again}"),
        Outcome::GapTold => format!("gap told: lost {lost} of {expected}{again}"),
        Outcome::Lost => format!("lost {lost} of {expected}{again}"),
        Outcome::Gone => format!("never came back: lost {lost} of {expected}"),
    }
}

fn between_polls(found: &BetweenPolls) -> String {
    match found.lost {
        0 => "nothing lost".to_owned(),
        lost => format!("lost {lost} of {}", found.expected),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pushlab_subjects::facts::EndpointFacts;
    use pushlab_wire::transport::Transport;

    #[test]
    fn a_row_for_each_way_and_a_reason_for_what_is_missing() {
        let cut = |outcome, lost| AfterCut { outcome, lost, expected: 3200, duplicated: 0, gaps: 0 };
        let endpoint = |name: &str, after_cut, between_polls| EndpointFacts {
            name: name.to_owned(),
            transport: Transport::Polling,
            after_cut,
            between_polls,
        };
        let polls = BetweenPolls { lost: 4, expected: 9, interval_ms: 20, poll_interval_ms: Some(500) };
        let facts = Facts {
            name: "name".to_owned(),
            version: "1".to_owned(),
            server_lines: Fact::Known(7),
            client_lines: Fact::Unknown("nobody wrote one".to_owned()),
            client_size: Fact::Known(ClientSize { minified_bytes: 2048, gzipped_bytes: 900 }),
            packages: Fact::Known(1),
            installed_bytes: Fact::Known(3 << 20),
            starts_ms: Fact::Known(vec![2.0, 41.6, 50.0]),
            endpoints: vec![
                endpoint("one", Fact::Known(cut(Outcome::Resumed, 0)), None),
                endpoint("two", Fact::Known(cut(Outcome::Lost, 12)), Some(Fact::Known(polls))),
                endpoint("three", Fact::Unknown("it died".to_owned()), None),
            ],
        };
        let text = text(&[facts]);
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split("  ").map(str::trim).collect()).collect();
        let cells = |line: usize| lines[line].iter().filter(|cell| !cell.is_empty()).copied().collect::<Vec<_>>();
        let first = ["name", "7", "–", "2048 B (900)", "1", "3.0 MiB", "42 ms", "one", "resumed"];
        assert_eq!(cells(1), first, "{text}");
        assert_eq!(cells(2), ["two", "lost 12 of 3200", "lost 4 of 9"]);
        assert_eq!(cells(3), ["three", "–"]);
        assert!(text.contains("name, client lines: nobody wrote one\n"), "{text}");
        assert!(text.ends_with("name, three after a cut: it died\n"), "{text}");
    }

    #[test]
    fn scores_stand_below_those_that_the_study_judged() {
        let facts = |name: &str| Facts {
            name: name.to_owned(),
            version: "1".to_owned(),
            server_lines: Fact::Known(7),
            client_lines: Fact::Known(3),
            client_size: Fact::Known(ClientSize { minified_bytes: 0, gzipped_bytes: 0 }),
            packages: Fact::Known(1),
            installed_bytes: Fact::Known(1),
            starts_ms: Fact::Known(vec![2.0]),
            endpoints: Vec::new(),
        };
        assert_eq!(published(&[facts("faye")]), "");
        let text = published(&[facts("faye"), facts("sockjs"), facts("socketio")]);
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[3], ["sockjs", "–", "–", "–", "–", "–", "5", "9", "10", "10", "–"], "{text}");
        assert_eq!(lines[4], ["socketio", "7", "10", "9", "10", "8", "10", "10", "10", "10", "32384", "B"], "{text}");
        let told = Told { facts: &facts("sockjs"), johannessen_2014: frameworks::find("sockjs") };
        let json = serde_json::to_value(told).unwrap();
        assert_eq!((&json["name"], &json["johannessen_2014"]["scores"]["latency"]), (&"sockjs".into(), &5.into()));
    }

    #[test]
    fn ours_is_one_of_all() {
        assert!(wanted(&[]).unwrap()[0].is_none());
        assert!(wanted(&[OWN.to_owned()]).unwrap()[0].is_none());
        assert!(wanted(&["no-such".to_owned()]).is_err());
    }
}
