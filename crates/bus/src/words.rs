//! What labs and workers say to each other, as JSON texts.
//!
//! Whoever has joined, a worker or an agent, runs a child for each run, and passes on, unread, the lines that this child and
//! the lab exchange: with a worker's, its coordinator ([`pushlab_workload::messages`]); with an agent's, whoever watches the
//! server.

use pushlab_fleet::clock::ClockAddress;
use pushlab_probe::machine::MachineFacts;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// How often a worker says what it is, and a lab that it lives.
pub const BEAT: Duration = Duration::from_secs(1);
/// Who has said nothing for so long is taken for dead, by both sides: a failure is told within 10 s.
pub const SILENCE_MAX: Duration = Duration::from_secs(5);

/// Longest text of somebody who has joined that is kept, characters: 256 B of memory at most.
const TEXT_CHARS_MAX: usize = 64;

/// Who has joined.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Presence {
    /// Its own, made when it joined: see [`names`](crate::names).
    pub id: String,
    /// What people call it.
    pub name: String,
    /// Of this program.
    pub version: String,
    /// What its machine is.
    pub machine: MachineFacts,
    /// Which boot of which machine: those on the same one share its clock and its cores.
    pub boot: String,
    /// What it can do.
    pub role: Role,
    /// The lab that has it; `None` while it is free.
    pub lab: Option<String>,
    /// Whether this is the last of it.
    pub leaves: bool,
}

/// What whoever has joined can do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Host clients.
    Worker {
        /// Physical cores that its loops may use.
        cores: u32,
        /// Descriptors that one of its loops may hold.
        descriptors: u64,
        /// Where others reach it.
        address: IpAddr,
    },
    /// Watch a server beside it.
    Agent {
        /// Where clients reach servers beside it.
        addresses: Vec<IpAddr>,
    },
}

impl Presence {
    /// The same with texts that fit on a line: who joins decides what they say.
    pub(crate) fn on_a_line(mut self) -> Self {
        let machine = &mut self.machine;
        let known = [&mut machine.kernel, &mut machine.distribution, &mut machine.cpu_model, &mut machine.product];
        let texts = known.into_iter().flatten();
        for text in texts.chain([&mut self.name, &mut self.version, &mut machine.architecture]) {
            let plain = |c: char| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c };
            *text = text.chars().take(TEXT_CHARS_MAX).map(plain).collect();
        }
        self
    }

    /// Whether it is an agent that watches servers at this address, asked by somebody on that machine, which a loopback
    /// address is of.
    pub fn watches(&self, address: IpAddr, asked_on: &str) -> bool {
        match &self.role {
            Role::Worker { .. } => false,
            Role::Agent { .. } if address.is_loopback() => self.boot == asked_on,
            Role::Agent { addresses } => addresses.contains(&address),
        }
    }
}

/// What a lab tells a worker or an agent.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FromLab {
    /// Be this lab's alone, until it lets go or falls silent.
    Reserve,
    /// Open a listener for a back end.
    Listen {
        /// For which run.
        run: u64,
    },
    /// Start the process of a run.
    Start {
        /// Which run.
        run: u64,
        /// Which boot of which machine the lab's clock is that of.
        boot: String,
        /// Where this clock can be asked without the broker.
        clock: Option<ClockAddress>,
    },
    /// Give it a line.
    Line {
        /// Which run's.
        run: u64,
        /// The line.
        line: Box<RawValue>,
    },
    /// End it, and forget the run.
    End {
        /// Which run.
        run: u64,
    },
    /// Be free again.
    Release,
}

/// What a worker or an agent tells a lab.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ToLab {
    /// It is this lab's now.
    Reserved,
    /// It is another's.
    Taken,
    /// The listener is there.
    Listening {
        /// For which run.
        run: u64,
        /// Where.
        address: SocketAddr,
        /// The descriptor by which the run's process inherits it.
        descriptor: i32,
    },
    /// There is none.
    NotListening {
        /// For which run.
        run: u64,
        /// Why.
        why: String,
    },
    /// The process has said a line.
    Line {
        /// Which run's.
        run: u64,
        /// The line.
        line: Box<RawValue>,
    },
    /// The process has ended; nothing follows of this run.
    Ended {
        /// Which run's.
        run: u64,
        /// How, and what it wrote to its standard error; what was not to be expected of it.
        how: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_watches_its_own_addresses_and_loopback_ones_of_its_machine() {
        let [own, loopback]: [IpAddr; 2] = [[10, 0, 0, 5].into(), [127, 0, 0, 1].into()];
        let presence = |role| Presence {
            id: "1".to_owned(),
            name: "beside".to_owned(),
            version: String::new(),
            machine: MachineFacts::default(),
            boot: "here".to_owned(),
            role,
            lab: None,
            leaves: false,
        };
        let agent = presence(Role::Agent { addresses: vec![own] });
        assert!(agent.watches(own, "there") && agent.watches(loopback, "here"));
        assert!(!agent.watches(loopback, "there") && !agent.watches([10, 0, 0, 6].into(), "here"));
        assert!(!presence(Role::Worker { cores: 1, descriptors: 1, address: own }).watches(own, "here"));
    }

    #[test]
    fn what_somebody_says_of_themselves_fits_on_a_line() {
        let name = "a\nworker-2             free\u{1b}[2J".to_owned() + &"x".repeat(1_000);
        let machine = MachineFacts { cpu_model: Some("fast\r\n".to_owned()), ..MachineFacts::default() };
        let role = Role::Agent { addresses: Vec::new() };
        let (id, boot) = ("1".to_owned(), "here".to_owned());
        let (version, lab, leaves) = ("1\t2".to_owned(), None, false);
        let said = Presence { id, name, version, machine, boot, role, lab, leaves }.on_a_line();
        assert_eq!(said.name.chars().count(), TEXT_CHARS_MAX);
        assert!(said.name.starts_with("a\u{fffd}worker-2             free\u{fffd}[2Jxx"), "{}", said.name);
        assert_eq!(
            (said.version.as_str(), said.machine.cpu_model.as_deref()),
            ("1\u{fffd}2", Some("fast\u{fffd}\u{fffd}"))
        );
    }

    #[test]
    fn a_line_travels_as_it_is() {
        let line = r#"{"message":"state","t_ns":1}"#;
        let said = ToLab::Line { run: 7, line: RawValue::from_string(line.to_owned()).unwrap() };
        let text = serde_json::to_string(&said).unwrap();
        assert_eq!(text, format!(r#"{{"line":{{"run":7,"line":{line}}}}}"#));
        let Ok(ToLab::Line { run: 7, line: same }) = serde_json::from_str(&text) else { panic!("{text}") };
        assert_eq!(same.get(), line);
    }
}
