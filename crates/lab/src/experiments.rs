//! Experiments got by name or by path, with what their subjects offer.

use pushlab_experiment::presets::{self, SUITES};
use pushlab_experiment::{Experiment, ExperimentError, Written};
use pushlab_os::files;
use pushlab_subjects::named::offer;
use std::path::Path;

/// Why an experiment cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// Neither a preset nor a file.
    #[error("{name:?} is neither a preset ({known}) nor a file that can be read: {source}")]
    NotFound {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
        /// Why the file could not be read.
        source: std::io::Error,
    },
    /// It was found and is wrong.
    #[error(transparent)]
    Experiment(#[from] ExperimentError),
}

/// An experiment from its text, with a profile applied; `origin` names the file in errors.
///
/// # Errors
/// See [`ExperimentError`].
pub fn parse(text: &str, profile: Option<&str>, origin: &str) -> Result<Experiment, ExperimentError> {
    resolve(Written::read(text, profile, origin)?, origin)
}

/// An experiment that was read, once its subjects are known and it makes sense.
///
/// # Errors
/// [`ExperimentError::Value`].
pub fn resolve(written: Written, origin: &str) -> Result<Experiment, ExperimentError> {
    Experiment::resolve(written, &offer, origin)
}

/// A preset by name, or a TOML file by path.
pub fn load(name: &str, profile: Option<&str>) -> Result<Experiment, LoadError> {
    load_of(name, profile, &[])
}

/// The same with these subjects in place of its own, if there are any.
///
/// # Errors
/// As for [`load`].
pub fn load_of(name: &str, profile: Option<&str>, subjects: &[String]) -> Result<Experiment, LoadError> {
    let written = |text: &str| -> Result<Experiment, ExperimentError> {
        let is_own = |profile: &&str| *profile != FULL || Written::profiles(text).iter().any(|own| own == FULL);
        let mut written = Written::read(text, profile.filter(is_own), name)?;
        if !subjects.is_empty() {
            written.subjects = subjects.to_vec();
        }
        resolve(written, name)
    };
    if let Some(text) = presets::text(name) {
        return Ok(written(text)?);
    }
    let text = files::read_settings_text(Path::new(name)).map_err(|source| LoadError::NotFound {
        name: name.to_owned(),
        known: presets::known().join(", "),
        source,
    })?;
    Ok(written(&text)?)
}

/// What to say of old keys in a file; of a preset, or of what cannot be read, nothing.
pub fn deprecations(name: &str) -> Vec<String> {
    let text = if presets::text(name).is_some() { None } else { files::read_settings_text(Path::new(name)).ok() };
    text.map_or_else(Vec::new, |text| Written::deprecations(&text))
}

/// What stands for the whole of an experiment: a profile of this name where its file has one, else the file as it is.
pub const FULL: &str = "full";

/// The experiments of a suite, a preset or a file, and what to call their campaign.
pub fn load_all(name: &str, profile: Option<&str>) -> Result<(String, Vec<Experiment>), LoadError> {
    load_all_of(name, profile, &[])
}

/// The same with these subjects in place of their own, if there are any.
pub fn load_all_of(
    name: &str,
    profile: Option<&str>,
    subjects: &[String],
) -> Result<(String, Vec<Experiment>), LoadError> {
    if let Some(suite) = SUITES.iter().find(|suite| suite.name == name) {
        let own = profile.or(suite.profile);
        let experiments: Result<Vec<Experiment>, LoadError> =
            suite.presets.iter().map(|preset| load_of(preset, own, subjects)).collect();
        return Ok((campaign_name(name, profile), experiments?));
    }
    let experiment = load_of(name, profile, subjects)?;
    Ok((campaign_name(&experiment.name, profile), vec![experiment]))
}

fn campaign_name(name: &str, profile: Option<&str>) -> String {
    profile.map_or_else(|| name.to_owned(), |profile| format!("{name}-{profile}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::{CheckError, check_plans};
    use pushlab_analysis::warnings::WARM_UP_SEEN_MS;
    use pushlab_bus::Seats;
    use pushlab_experiment::cell::SlowPolicy;
    use pushlab_experiment::presets::PRESETS;
    use pushlab_subjects::manifest::Platform;
    use pushlab_subjects::named::Named;
    use pushlab_wire::transport::Transport;
    use pushlab_workload::scenario::Scenario;

    /// A server of Java is measured again where its latency fell over the whole phase; that must be seen.
    #[test]
    fn load_phases_of_java_servers_are_long_enough_to_show_a_warm_up() {
        let is_java = |name: &String| Named::parse(name).unwrap().platform() == Some(Platform::Java);
        let whole = PRESETS.iter().map(|(name, _)| load(name, None).unwrap());
        let with_java: Vec<Experiment> = whole
            .filter(|experiment| experiment.scenario != Scenario::Idle && experiment.subjects.iter().any(is_java))
            .collect();
        assert!(with_java.len() >= 4, "{}", with_java.len());
        for experiment in with_java {
            assert!(experiment.phases.load_ms >= WARM_UP_SEEN_MS, "{}", experiment.name);
        }
    }

    #[test]
    fn every_preset_is_whole_in_every_profile() {
        for &(name, text) in PRESETS {
            assert_eq!(load(name, None).unwrap().name, name);
            let profiles = Written::profiles(text);
            assert!(profiles.contains(&"quick".to_owned()), "{name} has no quick profile");
            for profile in profiles {
                has_something_due(load(name, Some(&profile)).unwrap(), &profile);
            }
            has_something_due(load(name, None).unwrap(), "");
        }
        for suite in SUITES {
            assert_eq!(load_all(suite.name, None).unwrap().1.len(), suite.presets.len());
        }
    }

    /// In each variant, with the least clients.
    fn has_something_due(mut experiment: Experiment, profile: &str) {
        experiment.subjects.truncate(1);
        let least = experiment.clients.iter().min().copied();
        experiment.clients = least.into_iter().collect();
        let seats = Seats { cores: 1, descriptors: 1 << 30 };
        if let Err(CheckError::Plan { cell, source }) = check_plans(&[experiment], seats, None) {
            panic!("{cell} {profile}: {source}");
        }
    }

    #[test]
    fn the_whole_form_is_asked_for_where_the_short_one_is_the_default() {
        let repeats = |profile| {
            let (name, experiments) = load_all("transports", profile).unwrap();
            (name, experiments[0].repeats)
        };
        let short = repeats(None);
        assert_eq!((short.0.as_str(), repeats(Some("quick")).1), ("transports", short.1));
        let (name, whole) = repeats(Some(FULL));
        assert!(name == "transports-full" && whole > short.1, "{name} {whole}");
        let same = |profile| load_all("tangen-chat", profile).unwrap().1.remove(0);
        assert_eq!(same(Some(FULL)), same(None));
        let whole = load_all("cometd-load", Some(FULL)).unwrap().1.remove(0);
        assert!(whole.clients.iter().max() > load("cometd-load", None).unwrap().clients.iter().max(), "its own");
    }

    fn experiment(changes: &str) -> Result<Experiment, String> {
        let text = format!(
            "name = \"t\"\ntitle = \"T\"\nclients = [2]\nrepeats = 2\n{changes}\n[phases]\nconnect_ms = 1\nwarm_up_ms = 0\n\
             idle_ms = 0\nload_ms = 1\ndrain_ms = 0\nafter_ms = 0\n"
        );
        parse(&text, None, "test").map_err(|error| error.to_string())
    }

    const IDLE: &str = "scenario = { kind = \"idle\" }";

    #[test]
    fn only_what_is_offered_is_planned() {
        let all = "transports = [\"websocket\", \"http-streaming\", \"polling\", \"websocket-polling\"]";
        let planned =
            experiment(&format!("subjects = [\"pushlab\", \"sockjs\", \"sockjs:htmlfile\"]\n{all}\n{IDLE}")).unwrap();
        let of = |subject: &str| -> Vec<Transport> {
            let cells = planned.cells();
            cells.iter().filter(|cell| cell.subject == subject).map(|cell| cell.transport).collect()
        };
        assert_eq!(of("pushlab").len(), 4);
        assert_eq!(of("sockjs"), [Transport::WebSocket, Transport::HttpStreaming]);
        assert_eq!(of("sockjs:htmlfile"), [Transport::HttpStreaming]);
        assert_eq!(planned.runs(), 14);
        let feed = "scenario = { kind = \"feed\", interval_us = 5000, payload_bytes = 64";
        for (scenario, subjects) in [
            (format!("{feed} }}"), vec!["pushlab", "node-bare"]),
            (format!("{feed}, by = \"publisher\" }}"), vec!["pushlab", "node-bare", "nchan"]),
            (
                "scenario = { kind = \"echo\", interval_ms = 50, payload_bytes = 64 }".to_owned(),
                vec!["pushlab", "node-bare"],
            ),
        ] {
            let subjects_asked = "subjects = [\"pushlab\", \"node-bare\", \"nchan\"]\ntransports = [\"websocket\"]";
            let planned = experiment(&format!("{subjects_asked}\n{scenario}")).unwrap().cells();
            let planned: Vec<&str> = planned.iter().map(|cell| cell.subject.as_str()).collect();
            assert_eq!(planned, subjects, "{scenario}");
        }
    }

    #[test]
    fn our_policies_are_not_those_of_others() {
        let base = format!("subjects = [\"pushlab\", \"node-bare\"]\ntransports = [\"websocket\"]\n{IDLE}");
        for (policies, ours, theirs) in [
            ("", 1, SlowPolicy::Close),
            ("policies = [\"drop-oldest\"]", 1, SlowPolicy::Own),
            ("policies = [\"close\", \"conflate\"]", 2, SlowPolicy::Own),
        ] {
            let cells = experiment(&format!("{policies}\n{base}")).unwrap().cells();
            assert_eq!(cells.len(), ours + 1, "{policies}");
            assert_eq!(cells[ours].policy, theirs, "{policies}");
        }
        assert!(experiment(&format!("policies = [\"own\"]\n{base}")).is_err());
    }

    #[test]
    fn what_only_our_server_can_do_is_refused_beside_others() {
        let base = format!("subjects = [\"pushlab\", \"node-bare\"]\ntransports = [\"websocket\"]\n{IDLE}");
        for (change, why) in [
            ("sockets = { nagle = true }", "sockets.nagle works"),
            ("sockets = { http_version = \"2\" }", "sockets.http_version works"),
            ("capacity_share = { of = \"x\", share = 1.5 }", "capacity_share.share must be above 0"),
        ] {
            let error = experiment(&format!("{change}\n{base}")).unwrap_err();
            assert!(error.contains(why), "{change}: {error}");
        }
        let streamed = IDLE.replace("\"idle\"", "\"echo\", interval_ms = 100, payload_bytes = 60, streamed = true");
        let error = experiment(&format!("transports = [\"polling\"]\n{streamed}")).unwrap_err();
        assert!(error.contains("add sse to transports"), "{error}");
        assert!(experiment(&format!("transports = [\"polling\", \"sse\"]\n{streamed}")).is_ok());
        let listing = "subjects = [\"go-bare\"]\ntransports = [\"polling\"]\npolling = { user_list = true }";
        assert!(
            experiment(&format!("{listing}\n{IDLE}")).unwrap_err().contains("polling.user_list: only our own server")
        );
        let listing = listing.replace("go-bare", "node-bare");
        assert!(experiment(&format!("{listing}\n{IDLE}")).is_ok());
        let external = "subjects = [\"a=bare+http://127.0.0.1:1/\"]\ntransports = [\"sse\"]\nnetworks = [\"4g\"]";
        assert!(experiment(&format!("{external}\n{IDLE}")).unwrap_err().contains("the lab does not start"));
        let nothing = "subjects = [\"mercure\"]\ntransports = [\"websocket\"]";
        assert!(experiment(&format!("{nothing}\n{IDLE}")).unwrap_err().contains("none of mercure offers"));
    }
}
