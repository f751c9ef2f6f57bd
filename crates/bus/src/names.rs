//! What the subjects of a fleet are called on its broker.
//!
//! | subject | who publishes | what |
//! |---|---|---|
//! | `pushlab.FLEET.presence.WORKER` | every worker and agent, once a second | what it is, and which lab has it |
//! | `pushlab.FLEET.call` | whoever wants to know who is there | nothing: they answer with their presence |
//! | `pushlab.FLEET.labs.LAB` | every lab, once a second | nothing: it lives |
//! | `pushlab.FLEET.worker.WORKER.LAB` | a lab | words to one worker or agent, in pieces |
//! | `pushlab.FLEET.lab.LAB.WORKER` | a worker or an agent | words to its lab, in pieces |
//! | `pushlab.FLEET.clock.LAB` | the process of a run | a question for the lab's clock, answered at once in `_INBOX.USER`; most bypass the broker |
//!
//! `WORKER` and `LAB` are ids of two parts: the name of the broker's user (`-` without one), and a unique number. So a
//! broker that gives each user its own [rights](Rights) lets nobody speak for another, or read what is for another.

/// Longest name of a fleet.
const FLEET_CHARACTERS_MAX: usize = 64;

/// The names of one fleet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names(String);

impl Names {
    /// Of a fleet's name: letters, digits, `-` and `_`, at most 64. Others mean something to the broker.
    pub fn of(fleet: &str) -> Option<Self> {
        (is_plain(fleet) && fleet.len() <= FLEET_CHARACTERS_MAX).then(|| Self(format!("pushlab.{fleet}")))
    }

    /// Where workers say what they are.
    pub fn presence(&self, worker: &str) -> String {
        format!("{}.presence.{worker}", self.0)
    }

    /// Where they are asked to.
    pub fn call(&self) -> String {
        format!("{}.call", self.0)
    }

    /// Where labs say that they live.
    pub fn labs(&self, lab: &str) -> String {
        format!("{}.labs.{lab}", self.0)
    }

    /// From a lab to a worker.
    pub fn to_worker(&self, worker: &str, lab: &str) -> String {
        format!("{}.worker.{worker}.{lab}", self.0)
    }

    /// From a worker to a lab.
    pub fn to_lab(&self, lab: &str, worker: &str) -> String {
        format!("{}.lab.{lab}.{worker}", self.0)
    }

    /// A lab's clock.
    pub fn clock(&self, lab: &str) -> String {
        format!("{}.clock.{lab}", self.0)
    }
}

/// Whether a text can be part of a subject without a special meaning to the broker.
pub fn is_plain(part: &str) -> bool {
    !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
}

/// Stands for any id.
pub const ANY: &str = "*.*";

/// The sender of a message: the id at the end of its subject.
pub fn sender_of(subject: &str) -> &str {
    subject.rmatch_indices('.').nth(1).map_or(subject, |(at, _)| &subject[at + 1..])
}

/// What one user of a broker may do, in all of its fleets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rights {
    /// Subjects to which it may publish.
    pub publish: Vec<String>,
    /// Subjects that it may read.
    pub subscribe: Vec<String>,
}

impl Rights {
    /// The rights of a user for labs.
    pub fn of_lab(user: &str) -> Self {
        let (all, own) = (Names("pushlab.*".to_owned()), format!("{user}.*"));
        Self {
            publish: vec![all.call(), all.labs(&own), all.to_worker(ANY, &own), format!("{INBOX}.>")],
            subscribe: vec![all.presence(ANY), all.to_lab(&own, ANY), all.clock(&own)],
        }
    }

    /// The rights of a user for workers and agents.
    pub fn of_worker(user: &str) -> Self {
        let (all, own) = (Names("pushlab.*".to_owned()), format!("{user}.*"));
        Self {
            publish: vec![all.presence(&own), all.to_lab(ANY, &own), all.clock(ANY)],
            subscribe: vec![all.call(), all.labs(ANY), all.to_worker(&own, ANY), format!("{}.>", inbox_of(user))],
        }
    }
}

/// What the subjects of all answers begin with.
pub const INBOX: &str = "_INBOX";

/// What the subjects of answers to a user begin with.
pub fn inbox_of(user: &str) -> String {
    format!("{INBOX}.{user}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fleets_name_means_nothing_to_the_broker() {
        for bad in ["", "a.b", "*", ">", "a b", &"x".repeat(65)] {
            assert_eq!(Names::of(bad), None, "{bad}");
        }
        let names = Names::of("two-racks_1").unwrap();
        assert_eq!(names.to_worker("u.w", ANY), "pushlab.two-racks_1.worker.u.w.*.*");
        assert_eq!(sender_of(&names.to_lab("v.l", "u.w")), "u.w");
        assert_eq!([sender_of("a"), sender_of("a.b")], ["a", "a.b"]);
    }

    #[test]
    fn the_document_has_the_rights() {
        let document = include_str!("../../../docs/fleet.md");
        for (user, Rights { publish, subscribe }) in
            [("lab", Rights::of_lab("lab")), ("worker", Rights::of_worker("worker"))]
        {
            for list in [publish, subscribe] {
                let list = format!("{list:?}");
                assert!(document.contains(list.trim_matches(['[', ']'])), "{user}: {list}");
            }
        }
    }
}
