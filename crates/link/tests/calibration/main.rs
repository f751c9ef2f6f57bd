//! What was put into a network comes out of it: delay, rate, loss, packets, rights, and nothing that is left behind.
//!
//! One test after another, in a process that has no threads between them: tests that fork need that, and so does an
//! ordinary user, who gets a user namespace first. Arguments choose tests by a part of their name, or with `--exact` by all of it.

// Clippy does not take a binary without the usual harness for a test.
#![allow(clippy::unwrap_used)]

mod acks;
mod delay;
mod host;
mod loss;
mod packets;
mod rate;
mod traffic;

use std::panic::catch_unwind;
use std::process::ExitCode;

use pushlab_link::rights::{become_able, check};
use pushlab_os::process::set_niceness;

const TESTS: [(&str, fn()); 17] = [
    ("an_ordinary_user_has_a_network", host::an_ordinary_user_has_a_network),
    ("a_closed_device_is_reported_before_anything_is_tried", host::a_closed_device_is_reported),
    ("a_process_with_threads_is_told_to_begin_earlier", host::a_process_with_threads_is_told),
    ("nothing_remains_of_a_process_that_was_killed", host::nothing_remains_of_a_killed_process),
    ("namespaces_have_their_own_settings", host::namespaces_have_their_own_settings),
    ("a_network_that_ended_leaves_nothing", host::a_network_that_ended_leaves_nothing),
    ("commands_start_inside", host::commands_start_inside),
    ("an_idle_network_is_silent", packets::an_idle_network_is_silent),
    ("packets_are_whole_and_counted", packets::packets_are_whole_and_counted),
    ("clients_come_from_any_address_of_theirs", packets::clients_come_from_any_address_of_theirs),
    ("a_full_disk_does_not_stop_the_link", packets::a_full_disk_does_not_stop_the_link),
    ("every_packet_of_a_flood_is_accounted_for", packets::every_packet_of_a_flood_is_accounted_for),
    ("each_profile_has_its_delay", delay::each_profile_has_its_delay),
    ("jitter_has_its_distribution", delay::jitter_has_its_distribution),
    ("acknowledgements_come_as_late_as_set", acks::acknowledgements_come_as_late_as_set),
    ("each_profile_has_its_rate", rate::each_profile_has_its_rate),
    ("losses_are_those_of_model_and_seed", loss::losses_are_those_of_model_and_seed),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.iter().any(|argument| argument == "--list") {
        // As the usual harness has it.
        TESTS.iter().for_each(|(name, _)| println!("{name}: test"));
        return ExitCode::SUCCESS;
    }
    if arguments.iter().any(|argument| argument == "--skip") {
        eprintln!("these tests are chosen by name only, not by --skip");
        return ExitCode::FAILURE;
    }
    let is_exact = arguments.iter().any(|argument| argument == "--exact");
    let asked: Vec<&String> = arguments.iter().filter(|argument| !argument.starts_with('-')).collect();
    let is_asked = |name: &str, part: &str| if is_exact { name == part } else { name.contains(part) };
    // Before what else runs here, where that is allowed: it is the link that is measured.
    let _ = set_niceness(std::process::id(), -20);
    if let Err(error) = become_able().and_then(|_| check()) {
        eprintln!("these tests need network namespaces: {error}");
        return ExitCode::FAILURE;
    }
    let (mut passed, mut failed) = (0, Vec::new());
    for (name, test) in TESTS {
        if !asked.is_empty() && !asked.iter().any(|part| is_asked(name, part)) {
            continue;
        }
        let has_passed = catch_unwind(test).is_ok();
        println!("test {name} ... {}", if has_passed { "ok" } else { "FAILED" });
        if has_passed { passed += 1 } else { failed.push(name) }
    }
    // This too as the usual harness has it: pushlab-suites reads it.
    if !failed.is_empty() {
        println!("\nfailures:\n    {}\n", failed.join("\n    "));
    }
    println!(
        "test result: {}. {passed} passed; {} failed",
        if failed.is_empty() { "ok" } else { "FAILED" },
        failed.len()
    );
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
