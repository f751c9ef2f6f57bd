//! What the subjects of a fleet are called on its broker.
//!
//! | subject | who publishes | what |
//! |---|---|---|
//! | `pushlab.FLEET.presence` | every worker and agent, once a second | what it is, and which lab has it |
//! | `pushlab.FLEET.call` | whoever wants to know who is there | nothing: they answer with their presence |
//! | `pushlab.FLEET.labs` | every lab, once a second | its own id |
//! | `pushlab.FLEET.worker.WORKER.LAB` | a lab | words to one worker or agent, in pieces |
//! | `pushlab.FLEET.lab.LAB.WORKER` | a worker or an agent | words to its lab, in pieces |
//! | `pushlab.FLEET.clock.LAB` | the process of a run | a question for the lab's clock, answered at once; most bypass the broker |

/// Longest name of a fleet.
const FLEET_CHARACTERS_MAX: usize = 64;

/// The names of one fleet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names(String);

impl Names {
    /// Of a fleet's name: letters, digits, `-` and `_`, at most 64. Others mean something to the broker.
    pub fn of(fleet: &str) -> Option<Self> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        let is_good = !fleet.is_empty() && fleet.len() <= FLEET_CHARACTERS_MAX && fleet.chars().all(is_plain);
        is_good.then(|| Self(format!("pushlab.{fleet}")))
    }

    /// Where workers say what they are.
    pub fn presence(&self) -> String {
        format!("{}.presence", self.0)
    }

    /// Where they are asked to.
    pub fn call(&self) -> String {
        format!("{}.call", self.0)
    }

    /// Where labs say that they live.
    pub fn labs(&self) -> String {
        format!("{}.labs", self.0)
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

/// Every sender, in the place of one.
pub const ANY: &str = "*";

/// Whose message it is: the last part of its subject.
pub fn sender_of(subject: &str) -> &str {
    subject.rsplit('.').next().unwrap_or(subject)
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
        assert_eq!(names.to_worker("w", ANY), "pushlab.two-racks_1.worker.w.*");
        assert_eq!(sender_of(&names.to_lab("l", "w")), "w");
    }
}
