//! Experiments before they run: those that come with the program, and whether one that was written can be carried out.

use crate::interface::{ExperimentCheck, ExperimentRequest, Preset, PresetText};
use pushlab_application::requests::{Answer, Refusal, body, json};
use pushlab_application::{Request, Response};
use pushlab_experiment::presets::PRESETS;
use pushlab_experiment::{Experiment, Written};
use pushlab_lab::{check_experiments, experiments, leave_out_missing};
use pushlab_server::Origin;
use pushlab_subjects::install::Cache;
use pushlab_subjects::named::{Named, Server};
use pushlab_wire::codes::ErrorCode;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;
use std::time::Duration;

/// What errors call the text of a form.
const ORIGIN: &str = "the experiment";
/// Most points of a form's experiment, 1,000, whether its subjects offer them or not: looking one over takes time for
/// each, with a copy of the whole text, 64 KiB at most.
pub const MAX_CELLS: usize = 1_000;
/// Time for looking whether each of them can be run. Rooms for thousands of clients are drawn for it, and what of it takes
/// longer the campaign finds before it begins.
const CHECK_WITHIN: Duration = Duration::from_secs(2);
/// Options of our server that a form may set: limits of what it keeps and waits for. Others open files, listen and
/// connect elsewhere.
const SERVER_OPTIONS: [&str; 9] = [
    "--history-messages",
    "--history-bytes",
    "--history-total-bytes",
    "--history-age",
    "--queue-messages",
    "--queue-bytes",
    "--poll-wait",
    "--heartbeat",
    "--write-timeout",
];

static LIST: LazyLock<Vec<Preset>> = LazyLock::new(|| PRESETS.iter().filter_map(preset).collect());

/// Variables of the environment that presets give to subjects, with their values, in any of their profiles.
static ENVIRONMENT: LazyLock<BTreeSet<(String, String)>> =
    LazyLock::new(|| in_presets(|experiment| environment(experiment).collect()));

/// Lists of options that presets give to our server, in any of their profiles.
static OPTIONS: LazyLock<BTreeSet<Vec<String>>> =
    LazyLock::new(|| in_presets(|experiment| server_options(experiment).cloned().collect()));

/// What presets have, in any of their profiles.
fn in_presets<T: Ord>(of: impl Fn(&Experiment) -> Vec<T>) -> BTreeSet<T> {
    let read = |(name, text): &(&str, &str)| {
        let profiles = Written::profiles(text).into_iter().map(Some).chain([None]);
        let experiments = profiles.filter_map(|profile| experiments::parse(text, profile.as_deref(), name).ok());
        experiments.flat_map(|experiment| of(&experiment)).collect::<Vec<_>>()
    };
    PRESETS.iter().flat_map(read).collect()
}

fn preset((name, text): &(&'static str, &'static str)) -> Option<Preset> {
    // A test of the lab reads every preset in every profile.
    let experiment = experiments::parse(text, None, name).ok()?;
    Some(Preset {
        name: (*name).to_owned(),
        profiles: Written::profiles(text),
        runs: u32::try_from(experiment.runs()).unwrap_or(u32::MAX),
        estimated_s: estimated_s(&experiment),
        title: experiment.title.clone(),
        about: experiment.description.clone(),
    })
}

fn estimated_s(experiment: &Experiment) -> u64 {
    experiment.whole_ms() / 1000
}

/// `GET /api/presets`.
pub fn list() -> Response {
    json(&*LIST)
}

/// `GET /api/presets/NAME`.
pub fn text(name: &str) -> Answer {
    let found = PRESETS.iter().find(|(preset, _)| *preset == name);
    let missing =
        || Refusal::new(ErrorCode::NotFound, format!("no preset is called {name:?}; /api/presets lists them"));
    let (_, text) = found.ok_or_else(missing)?;
    Ok(json(&PresetText { toml: (*text).to_owned() }))
}

/// `POST /api/experiments/check`. What this machine could carry out is looked at only where experiments can be started:
/// there, `targets` are the running servers that may be measured.
pub fn examine(request: &Request, targets: Option<&[Origin]>) -> Answer {
    let asked: ExperimentRequest = body(request)?;
    Ok(json(&match read(&asked) {
        Err(problem) => problem_alone(problem),
        Ok(experiment) => match targets {
            Some(targets) => examined(experiment, targets),
            None => summary(&experiment.name, std::slice::from_ref(&experiment), typed_only(&experiment, &[])),
        },
    }))
}

/// What an experiment of a form would be here, and why it would be none.
pub fn looked_over(asked: &ExperimentRequest, targets: &[Origin]) -> ExperimentCheck {
    read(asked).map_or_else(problem_alone, |experiment| examined(experiment, targets))
}

/// Reads it, unless it is larger than a form's may be.
fn read(asked: &ExperimentRequest) -> Result<Experiment, String> {
    let written = Written::read(&asked.toml, asked.profile.as_deref(), ORIGIN).map_err(|e| e.to_string())?;
    let cells = written.cells_max();
    if cells > MAX_CELLS {
        return Err(format!(
            "{ORIGIN} has {cells} combinations, and here at most {MAX_CELLS} are taken; `pushlab run FILE` takes more"
        ));
    }
    experiments::resolve(written, ORIGIN).map_err(|error| error.to_string())
}

fn examined(experiment: Experiment, targets: &[Origin]) -> ExperimentCheck {
    let (name, mut problems) = (experiment.name.clone(), typed_only(&experiment, targets));
    let mut experiments = vec![experiment];
    if !problems.is_empty() {
        // Looking further would connect to servers that nobody named.
        return summary(&name, &experiments, problems);
    }
    let left_out = match leave_out_missing(&mut experiments, &Cache::of_user()) {
        Ok(left_out) => left_out.into_iter().map(|out| format!("{}: {}", out.subject, out.reason)).collect(),
        Err(error) => {
            problems.push(error.to_string());
            Vec::new()
        }
    };
    problems.extend(check_experiments(&experiments, CHECK_WITHIN).err().map(|error| error.to_string()));
    ExperimentCheck { left_out, ..summary(&name, &experiments, problems) }
}

fn summary(name: &str, experiments: &[Experiment], problems: Vec<String>) -> ExperimentCheck {
    ExperimentCheck {
        name: name.to_owned(),
        runs: experiments.iter().map(|e| u32::try_from(e.runs()).unwrap_or(u32::MAX)).sum(),
        estimated_s: experiments.iter().map(estimated_s).sum(),
        problems,
        left_out: Vec::new(),
    }
}

fn problem_alone(problem: String) -> ExperimentCheck {
    ExperimentCheck { problems: vec![problem], ..ExperimentCheck::default() }
}

/// What only somebody may ask for who could start programs anyway: whoever reaches the port of a console on this
/// machine need not be the user whose console it is.
fn typed_only(experiment: &Experiment, targets: &[Origin]) -> Vec<String> {
    let is_program =
        |text: &&String| Named::parse(text).is_ok_and(|named| matches!(named.server, Server::Ours(Some(_))));
    let programs =
        experiment.subjects.iter().filter(is_program).map(|text| format!("subject {text:?} names a program"));
    let is_strange = |text: &&String| match Named::parse(text).map(|named| named.server) {
        Ok(Server::External(server)) => server.origin().parse().map_or(true, |origin| !targets.contains(&origin)),
        _ => false,
    };
    let strange = experiment
        .subjects
        .iter()
        .filter(is_strange)
        .map(|text| format!("subject {text:?} is a running server that no --allow-target of this console names"));
    let is_unknown = |variable: &(String, String)| !ENVIRONMENT.contains(variable);
    let variables = environment(experiment).filter(is_unknown);
    let variables = variables.map(|(name, _)| format!("environment names the variable {name:?}"));
    let options =
        server_options(experiment).filter(|all| !OPTIONS.contains(*all)).filter_map(|all| foreign_option(all));
    let options = options
        .map(|word| format!("server_options has {word:?}, but {} and a value may be set", SERVER_OPTIONS.join(", ")));
    let refused =
        programs.chain(strange).chain(variables).map(|what| format!("{what}, which only `pushlab run FILE` takes"));
    refused.chain(options.map(|what| format!("{what}; `pushlab run FILE` takes any"))).collect()
}

/// The first word of a server's options that is not one that a form may set, with a value that is a number or a time.
fn foreign_option(options: &[String]) -> Option<&str> {
    let is_value = |value: &str| !value.is_empty() && value.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'.');
    let mut words = options.iter().map(String::as_str);
    while let Some(word) = words.next() {
        let (name, value) =
            word.split_once('=').map_or_else(|| (word, words.next()), |(name, value)| (name, Some(value)));
        if !SERVER_OPTIONS.contains(&name) || !value.is_some_and(is_value) {
            return Some(word);
        }
    }
    None
}

fn server_options(experiment: &Experiment) -> impl Iterator<Item = &Vec<String>> {
    let variants = experiment.variants.iter().filter_map(|variant| variant.server_options.as_ref());
    std::iter::once(&experiment.server_options).chain(variants)
}

fn environment(experiment: &Experiment) -> impl Iterator<Item = (String, String)> {
    let variants = experiment.variants.iter().filter_map(|variant| variant.environment.as_ref());
    let all: Vec<&BTreeMap<String, String>> = std::iter::once(&experiment.environment).chain(variants).collect();
    all.into_iter().flat_map(|variables| variables.clone())
}
