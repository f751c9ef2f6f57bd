//! A lab's clock, asked from another machine: directly, or through the broker where no datagram comes through.

use crate::address::{Access, Address};
use crate::connection::{BusError, Connection};
use pushlab_fleet::clock::{Answer, ClockAddress, ClockSocket};
use std::env;
use std::process::Command;
use std::time::Duration;

/// The variable by which the process of a run learns where to ask. Its arguments would tell everybody on the machine.
const VARIABLE: &str = "PUSHLAB_LAB_CLOCK";
/// Longest time for an answer that comes directly; of a clock that is further away too little would be known for a run.
const DIRECT_WITHIN: Duration = Duration::from_millis(20);
/// Most questions in a row that go through the broker before one is asked directly again: 6 s of them.
const DETOUR_MAX: u32 = 64;

/// Tells a process that is to host a run where to ask.
pub fn tell_clock(command: &mut Command, clock: ClockAddress) {
    command.env(VARIABLE, clock.to_string());
}

/// Where this process was told to ask.
pub fn told_clock() -> Option<ClockAddress> {
    env::var(VARIABLE).ok()?.parse().ok()
}

/// Asks the clock of a lab, for whoever steers his own after it: at the port of the lab, and through the broker for as long
/// as nothing comes from there. Each answer is a bound, whichever way it came.
///
/// # Errors
/// See [`BusError`].
pub fn clock_of(
    address: &Address,
    access: &Access,
    lab: &str,
    port: Option<ClockAddress>,
) -> Result<impl FnMut(Duration) -> Option<Answer> + Send + use<>, BusError> {
    let connection = Connection::open(address, access, "pushlab clock")?;
    let subject = address.names.clock(lab);
    let mut direct = port.and_then(|port| ClockSocket::open(port).ok());
    let mut detour = Detour::default();
    Ok(move |within: Duration| {
        if let Some(socket) = direct.as_mut().filter(|_| detour.is_over()) {
            let answer = socket.ask(within.min(DIRECT_WITHIN));
            detour.note(answer.is_some());
            return answer;
        }
        let answer = connection.ask(subject.clone(), Vec::new(), within)?;
        Some(Answer { read: serde_json::from_slice(&answer).ok()?, waited_ns: 0 })
    })
}

/// Which questions go through the broker: none until a direct one is left unanswered, then one, and twice as many after
/// each further one in a row. So a way that is closed takes seven of the first hundred questions, and one that opens again
/// is found.
#[derive(Debug, Default)]
struct Detour {
    questions: u32,
    left: u32,
}

impl Detour {
    /// Whether the next question is to be asked directly.
    fn is_over(&mut self) -> bool {
        let is_over = self.left == 0;
        self.left = self.left.saturating_sub(1);
        is_over
    }

    /// One was asked directly, and answered or not.
    fn note(&mut self, is_answered: bool) {
        self.questions = if is_answered { 0 } else { (2 * self.questions).clamp(1, DETOUR_MAX) };
        self.left = self.questions;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Which of so many questions are asked directly, where those from one on are answered.
    fn direct(questions: u32, answered_from: u32) -> Vec<u32> {
        let mut detour = Detour::default();
        let mut ask = |question: &u32| {
            let is_direct = detour.is_over();
            if is_direct {
                detour.note(*question >= answered_from);
            }
            is_direct
        };
        (1..=questions).filter(&mut ask).collect()
    }

    #[test]
    fn a_way_that_is_closed_takes_few_questions_and_one_that_opens_takes_all() {
        assert_eq!(direct(5, 0), [1, 2, 3, 4, 5]);
        assert_eq!(direct(300, 301), [1, 3, 6, 11, 20, 37, 70, 135, 200, 265]);
        assert_eq!(direct(14, 8), [1, 3, 6, 11, 12, 13, 14]);
        let mut lossy = Detour::default();
        lossy.note(false);
        assert!(!lossy.is_over() && lossy.is_over());
        lossy.note(true);
        assert!(lossy.is_over(), "one that was lost is forgotten once another is answered");
    }
}
