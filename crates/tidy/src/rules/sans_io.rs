//! The sans-IO crates own no clock, socket, thread, file, process or global.

use super::{Finding, layers};
use crate::source::{code_only, line_of, without_tests, words};
use crate::tree::Tree;

const CRATES: [&str; 13] = [
    "access",
    "wire",
    "http2",
    "dialects",
    "log",
    "session",
    "stats",
    "workload",
    "experiment",
    "record",
    "report",
    "analysis",
    "render",
];
const INPUT_OUTPUT_CRATES: [&str; 7] = ["libc", "mio", "polling", "rustix", "socket2", "tokio", "nix"];

const FORBIDDEN: &[(&str, &str)] = &[
    ("std::net", "a socket"),
    ("std::os", "the operating system"),
    ("std::thread", "a thread"),
    ("std::fs", "a file"),
    ("std::process", "a process"),
    ("std::env", "the environment"),
    ("time::Instant", "a clock"),
    ("time::SystemTime", "a clock"),
    ("mio::", "a socket"),
    ("libc::", "the operating system"),
    ("static mut", "a global"),
    ("thread_local!", "a global"),
];
/// The same, inside `use std::{…}`.
const IMPORTS: &[&str] = &["net", "os", "thread", "fs", "process", "env", "Instant", "SystemTime"];
/// A `static` of such a type is a global even if it is not `mut`.
const CELLS: &[&str] = &["Atomic", "Mutex", "RwLock", "OnceLock", "LazyLock", "Cell"];

const FIX: &str = "take it as an argument (`now`, bytes) and let the caller own it";

pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for name in CRATES {
        let folder = format!("crates/{name}/");
        for (path, text) in tree.below(&format!("{folder}src/")).filter(|(path, _)| path.ends_with(".rs")) {
            if !path.ends_with("/tests.rs") {
                source(path, &without_tests(&code_only(text)), &mut findings);
            }
        }
        let Some(manifest) = tree.text(&format!("{folder}Cargo.toml")) else { continue };
        let used = manifest.parse().map(|table| layers::dependencies(&table)).unwrap_or_default();
        for input_output in used.iter().filter(|name| INPUT_OUTPUT_CRATES.contains(&name.as_str())) {
            let what = format!("sans-IO crate `{name}` depends on `{input_output}`");
            findings.push(Finding::new(&format!("{folder}Cargo.toml"), 1, what, FIX));
        }
        let lints = format!("{folder}clippy.toml");
        if !tree.text(&lints).is_some_and(|text| text.contains("disallowed-methods")) {
            let what = "no `disallowed-methods` keeps clocks out of this sans-IO crate";
            findings.push(Finding::new(&lints, 1, what, "copy crates/wire/clippy.toml"));
        }
    }
    findings
}

fn source(path: &str, code: &str, findings: &mut Vec<Finding>) {
    let mut report = |at: usize, what: &str, why: &str| {
        findings.push(Finding::new(path, line_of(code, at), format!("`{what}` gives a sans-IO crate {why}"), FIX));
    };
    for (needle, why) in FORBIDDEN {
        words(code, needle).for_each(|at| report(at, needle, why));
    }
    for at in words(code, "use std::{") {
        let import = code[at..].split(';').next().unwrap_or_default();
        for name in IMPORTS.iter().filter(|name| words(import, name).next().is_some()) {
            report(at, name, "input or output");
        }
    }
    for at in words(code, "static").filter(|&at| !code[..at].ends_with('\'')) {
        let kind = code[at..].split(['=', ';', '{']).next().unwrap_or_default();
        if kind.contains(':') && CELLS.iter().any(|cell| kind.contains(cell)) {
            report(at, kind.trim(), "a global");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<usize> {
        let files = [
            ("crates/wire/src/a.rs", text),
            ("crates/wire/clippy.toml", "disallowed-methods"),
            ("crates/dialects/clippy.toml", "disallowed-methods"),
            ("crates/stats/clippy.toml", "disallowed-methods"),
        ];
        check(&Tree::of(&files)).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn finds_input_and_output_in_code() {
        assert_eq!(found("\nuse std::net::TcpStream;"), [2]);
        assert_eq!(found("use std::{fmt, time::{Duration, SystemTime}};"), [1]);
        assert_eq!(found("use std::{fmt,\n thread};"), [1]);
        assert_eq!(found("fn a() {\n\n std::fs::read(x); }"), [3]);
        assert_eq!(found("static COUNT: AtomicU64 = AtomicU64::new(0);"), [1]);
    }

    #[test]
    fn leaves_comments_strings_tests_and_constants_alone() {
        assert!(found("// std::net\nconst A: &str = \"std::fs\";\nuse std::time::Duration;").is_empty());
        assert!(found("#[cfg(test)]\nmod tests { use std::time::Instant; }").is_empty());
        assert!(found("static T: [u8; 2] = [0; 2]; fn f(x: &'static str) -> Option<Mutex> {}").is_empty());
    }

    #[test]
    fn looks_at_the_manifest_and_the_lint() {
        let files = [("crates/wire/Cargo.toml", "[dependencies]\nmio = \"1\""), ("crates/stats/Cargo.toml", "")];
        assert_eq!(check(&Tree::of(&files)).len(), 3);
    }
}
