//! Experiments before they run: those that come with the program, and whether one that was written can be carried out.

use crate::interface::{ExperimentCheck, ExperimentRequest, Preset, PresetText};
use pushlab_lab::experiment::Experiment;
use pushlab_lab::presets::PRESETS;
use pushlab_lab::subjects::install::Cache;
use pushlab_lab::subjects::named::{Named, Server};
use pushlab_lab::{check_experiments, leave_out_missing};
use pushlab_server::application::Request;
use pushlab_server::requests::{Answer, Refusal, body, check, json};
use pushlab_wire::codes::ErrorCode;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

/// What errors call the text of a form.
const ORIGIN: &str = "the experiment";

static LIST: LazyLock<Vec<Preset>> = LazyLock::new(|| PRESETS.iter().filter_map(preset).collect());

/// Variables of the environment that presets give to subjects.
static ENVIRONMENT: LazyLock<BTreeSet<(String, String)>> = LazyLock::new(|| {
    let presets = PRESETS.iter().filter_map(|(name, text)| Experiment::parse(text, None, name).ok());
    presets.flat_map(|preset| environment(&preset).collect::<Vec<_>>()).collect()
});

fn preset((name, text): &(&'static str, &'static str)) -> Option<Preset> {
    // A test of the lab reads every preset in every profile.
    let experiment = Experiment::parse(text, None, name).ok()?;
    Some(Preset {
        name: (*name).to_owned(),
        profiles: Experiment::profiles(text),
        runs: u32::try_from(experiment.runs()).unwrap_or(u32::MAX),
        estimated_s: estimated_s(&experiment),
        title: experiment.title,
        about: experiment.description,
    })
}

fn estimated_s(experiment: &Experiment) -> u64 {
    experiment.whole_run_ms().saturating_mul(experiment.runs() as u64) / 1000
}

/// `GET /api/presets`.
pub fn list(request: &Request) -> Answer {
    check(request, &["GET"])?;
    Ok(json(&*LIST))
}

/// `GET /api/presets/NAME`.
pub fn text(request: &Request, name: &str) -> Answer {
    check(request, &["GET"])?;
    let found = PRESETS.iter().find(|(preset, _)| *preset == name);
    let missing =
        || Refusal::new(ErrorCode::NotFound, format!("no preset is called {name:?}; /api/presets lists them"));
    let (_, text) = found.ok_or_else(missing)?;
    Ok(json(&PresetText { toml: (*text).to_owned() }))
}

/// `POST /api/experiments/check`.
pub fn examine(request: &Request) -> Answer {
    check(request, &["POST"])?;
    Ok(json(&examined(&body(request)?)))
}

/// What an experiment would be, and why it would be none.
pub fn examined(asked: &ExperimentRequest) -> ExperimentCheck {
    let parsed = Experiment::parse(&asked.toml, asked.profile.as_deref(), ORIGIN);
    let mut experiments = match parsed {
        Ok(experiment) => vec![experiment],
        Err(error) => return ExperimentCheck { problems: vec![error.to_string()], ..ExperimentCheck::default() },
    };
    let (name, mut problems) = (experiments[0].name.clone(), typed_only(&experiments[0]));
    let left_out = match leave_out_missing(&mut experiments, &Cache::of_user()) {
        Ok(left_out) => left_out.into_iter().map(|out| format!("{}: {}", out.subject, out.reason)).collect(),
        Err(error) => {
            problems.push(error.to_string());
            Vec::new()
        }
    };
    problems.extend(check_experiments(&experiments).err().map(|error| error.to_string()));
    ExperimentCheck {
        name,
        runs: experiments.iter().map(|e| u32::try_from(e.runs()).unwrap_or(u32::MAX)).sum(),
        estimated_s: experiments.iter().map(estimated_s).sum(),
        problems,
        left_out,
    }
}

/// What only somebody may ask for who could start programs anyway: whoever reaches the port of a console on this
/// machine need not be the user whose console it is.
fn typed_only(experiment: &Experiment) -> Vec<String> {
    let is_program =
        |text: &&String| Named::parse(text).is_ok_and(|named| matches!(named.server, Server::Ours(Some(_))));
    let programs =
        experiment.subjects.iter().filter(is_program).map(|text| format!("subject {text:?} names a program"));
    let is_unknown = |variable: &(String, String)| !ENVIRONMENT.contains(variable);
    let variables = environment(experiment).filter(is_unknown);
    let variables = variables.map(|(name, _)| format!("environment names the variable {name:?}"));
    programs.chain(variables).map(|what| format!("{what}, which only `pushlab run FILE` takes")).collect()
}

fn environment(experiment: &Experiment) -> impl Iterator<Item = (String, String)> {
    let variants = experiment.variants.iter().filter_map(|variant| variant.environment.as_ref());
    let all: Vec<&BTreeMap<String, String>> = std::iter::once(&experiment.environment).chain(variants).collect();
    all.into_iter().flat_map(|variables| variables.clone())
}
