//! What published studies found: an inventory of each, made from its text before any of it was judged.

use crate::expect::Expect;
use serde::Deserialize;

/// All that one study says of transports, servers and clients and that could be checked.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Inventory {
    /// The study's id.
    pub study: String,
    /// What [`Finding::line`] counts in.
    pub text: String,
    /// In the order of the study.
    #[serde(rename = "finding")]
    pub findings: Vec<Finding>,
}

/// One thing that a study says, in our words.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Finding {
    /// Short, stable, unique in its study.
    pub id: String,
    /// Section, table, figure or page.
    pub place: String,
    /// Line of the study's plain text.
    pub line: u32,
    /// What it is in the study.
    pub by: By,
    /// What is said.
    pub claim: String,
    /// How strongly, where the study says that: `about 4 times`, `slightly`.
    pub strength: Option<String>,
    /// Where it applies: server, load or stress, network, number of clients.
    pub on: Option<String>,
    /// The experiment that judges it, or could.
    pub experiment: Option<String>,
    /// The assertion that is as strong as the claim.
    pub that: Option<String>,
    /// Only loads as long as the study's judge it: it is about what a backlog does, which grows while a load lasts.
    #[serde(default)]
    pub full_length: bool,
    /// Why there is none.
    pub unjudged: Option<String>,
    /// What the study's own data say where they disagree; slips and misprints.
    pub note: Option<String>,
}

/// What something is in the study that says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum By {
    /// A result of its own measurements.
    Finding,
    /// What it expected beforehand.
    Hypothesis,
    /// What it offers as a possible cause.
    Suspicion,
    /// What it advises.
    Recommendation,
    /// What it reports of others.
    Related,
}

impl By {
    /// As the first word of what is said.
    pub fn heading(self) -> &'static str {
        match self {
            Self::Finding => "Found",
            Self::Hypothesis => "Expected",
            Self::Suspicion => "Suspected",
            Self::Recommendation => "Advised",
            Self::Related => "Reported from others",
        }
    }

    /// In words, with their article.
    pub fn words(self) -> &'static str {
        match self {
            Self::Finding => "a finding",
            Self::Hypothesis => "a hypothesis",
            Self::Suspicion => "a suspicion",
            Self::Recommendation => "a recommendation",
            Self::Related => "reported from others",
        }
    }
}

impl Finding {
    /// What an experiment that judges it expects.
    pub fn expect(&self) -> Option<Expect> {
        let source = format!("{}, {}", self.place, self.by.words());
        Some(Expect { that: self.that.clone()?, finding: self.claim.clone(), source })
    }
}

#[cfg(test)]
mod tests {
    use crate::assertion::Assertion;
    use crate::presets;
    use crate::studies::STUDIES;
    use std::collections::BTreeSet;

    #[test]
    fn every_finding_is_judged_or_says_why_not() {
        for study in STUDIES {
            let inventory = study.inventory();
            assert_eq!(inventory.study, study.id);
            let ids: BTreeSet<&str> = inventory.findings.iter().map(|finding| finding.id.as_str()).collect();
            assert_eq!(ids.len(), inventory.findings.len(), "{}: an id stands twice", study.id);
            for finding in &inventory.findings {
                let id = format!("{}, {}", study.id, finding.id);
                assert!(finding.that.is_some() != finding.unjudged.is_some(), "{id}: either `that` or `unjudged`");
                if let Some(that) = &finding.that {
                    Assertion::parse(that).unwrap_or_else(|error| panic!("{id}: {error}"));
                    assert!(finding.experiment.is_some(), "{id}: no experiment judges it");
                }
                if let Some(name) = &finding.experiment {
                    let text = presets::text(name).unwrap_or_else(|| panic!("{id}: no preset {name}"));
                    crate::Written::read(text, None, name).unwrap();
                }
            }
        }
    }

    #[test]
    fn no_finding_is_in_an_experiment_but_not_in_the_inventory() {
        for (name, text) in presets::PRESETS {
            let table: toml::Table = text.parse().unwrap();
            if table.contains_key("study") {
                let own = table.get("expect").and_then(toml::Value::as_array).map_or(0, Vec::len);
                assert_eq!(own, 0, "{name}: what a study found stands in experiments/findings");
            }
        }
    }

    #[test]
    fn an_experiment_expects_the_findings_that_it_judges_once() {
        let text = presets::text("tangen-chat").unwrap();
        let written = crate::Written::read(text, None, "tangen-chat").unwrap();
        assert!(written.expect.len() > 5 && written.expect.iter().all(|expect| !expect.source.is_empty()));
        let stored = toml::to_string(&written).unwrap();
        assert_eq!(crate::Written::read(&stored, None, "stored").unwrap(), written);
    }
}
