//! A folder's name says what is inside; functions, files and crates stay readable.

use std::collections::{BTreeMap, BTreeSet};

use super::{Finding, Severity};
use crate::generate;
use crate::source::{body_after, code_only, line_of, words};
use crate::tree::Tree;

/// Longest file, in lines.
const MAX_FILE_LINES: usize = 800;
/// Longest file of a crate, in lines, tests not counted.
const MAX_CODE_LINES: usize = 500;
/// Largest crate, in lines, tests not counted.
const MAX_CRATE_LINES: usize = 6000;
/// Crates that may be larger.
const LARGER: [(&str, usize); 1] = [("load", 8000)];
/// Longest function without a warning, in lines.
const MAX_FUNCTION_LINES: usize = 70;

const FOR_TESTS: &str = "#[cfg(test)]";
const EMPTY_NAMES: [&str; 7] = ["util", "utils", "common", "misc", "helper", "helpers", "lib"];
const SOURCES: [&str; 11] = [".rs", ".ts", ".tsx", ".js", ".mjs", ".css", ".html", ".sh", ".py", ".go", ".php"];

pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let only_for_tests = only_for_tests(tree);
    let mut crates: BTreeMap<&str, usize> = BTreeMap::new();
    for (path, text) in tree.below("") {
        if let Some(name) = empty_name(path) {
            let what = format!("`{name}` does not say what is inside");
            findings.push(Finding::new(path, 1, what, "name it after what it does"));
        }
        let is_generated = generate::PATHS.contains(&path) || path.contains("/generated/");
        let lines = text.lines().count();
        if SOURCES.iter().any(|ending| path.ends_with(ending)) && !is_generated && lines > MAX_FILE_LINES {
            let what = format!("{lines} lines, more than {MAX_FILE_LINES}");
            findings.push(Finding::new(path, lines, what, "split it by what its parts do"));
        }
        if path.ends_with(".rs") {
            let code = code_only(text);
            let is_test = path.contains("/tests/") || path.ends_with("/tests.rs") || only_for_tests.contains(path);
            if let Some(name) = crate_of(path).filter(|_| !is_test && !is_generated) {
                let lines = code_lines(text, &code);
                *crates.entry(name).or_default() += lines;
                if lines > MAX_CODE_LINES {
                    findings.push(long_file(path, lines));
                }
            }
            long_functions(path, &code, &mut findings);
        }
    }
    findings.extend(crates.into_iter().filter_map(|(name, lines)| large_crate(name, lines)));
    findings
}

/// The crate of a file of its library or its programs.
fn crate_of(path: &str) -> Option<&str> {
    let (name, below) = path.strip_prefix("crates/")?.split_once('/')?;
    below.starts_with("src/").then_some(name)
}

/// Files of modules that are declared for tests: `#[cfg(test)] mod script;`.
fn only_for_tests(tree: &Tree) -> BTreeSet<String> {
    let mut files = BTreeSet::new();
    for (path, text) in tree.below("crates/").filter(|(path, text)| path.ends_with(".rs") && text.contains(FOR_TESTS)) {
        let stem = path.trim_end_matches(".rs");
        let below = ["/lib", "/main", "/mod"].iter().find_map(|root| stem.strip_suffix(root)).unwrap_or(stem);
        let code = code_only(text);
        for (seen_from, declared) in code.split(FOR_TESTS).skip(1).filter_map(|item| item.split_once("mod ")) {
            let is_declared = matches!(seen_from.trim(), "" | "pub" | "pub(crate)" | "pub(super)");
            if let Some((name, _)) = declared.split_once(';').filter(|(name, _)| is_declared && !name.contains('{')) {
                files.extend([format!("{below}/{name}.rs"), format!("{below}/{name}/mod.rs")]);
            }
        }
    }
    files
}

/// The part of `crates/*/src/…` or `web/*/src/…` that could be the name of anything.
fn empty_name(path: &str) -> Option<&str> {
    let mut parts = path.split('/');
    if !matches!(parts.next(), Some("crates" | "web")) || parts.nth(1) != Some("src") {
        return None;
    }
    parts.find(|part| match part.split_once('.') {
        Some((stem, _)) => stem != "lib" && EMPTY_NAMES.contains(&stem),
        None => EMPTY_NAMES.contains(part),
    })
}

/// Lines of a file without the tests at its end.
fn code_lines(text: &str, code: &str) -> usize {
    let end = tests_at_end(code).unwrap_or(code.len());
    text[..end].trim_end().lines().count()
}

fn long_file(path: &str, lines: usize) -> Finding {
    let what = format!("{lines} lines without its tests, more than {MAX_CODE_LINES}");
    Finding::new(path, lines, what, "move a part that has a name of its own to a module of its own")
}

fn large_crate(name: &str, lines: usize) -> Option<Finding> {
    let max = LARGER.iter().find(|(larger, _)| *larger == name).map_or(MAX_CRATE_LINES, |(_, max)| *max);
    let what = format!("the crate has {lines} lines without its tests, more than {max}");
    let manifest = format!("crates/{name}/Cargo.toml");
    (lines > max)
        .then(|| Finding::new(&manifest, 1, what, "move a part that has a name of its own to a crate of its own"))
}

/// Where `#[cfg(test)] mod tests { … }` starts, if nothing follows it.
fn tests_at_end(code: &str) -> Option<usize> {
    code.match_indices(FOR_TESTS).map(|(start, _)| start).find(|&start| {
        body_after(code, start).is_some_and(|body| {
            code[start..body.start].trim_end().ends_with("mod tests") && code[body.end..].trim().is_empty()
        })
    })
}

fn long_functions(path: &str, code: &str, findings: &mut Vec<Finding>) {
    for at in words(code, "fn") {
        let name =
            code[at + 2..].trim_start().split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
        let Some(body) = body_after(code, at).filter(|_| !name.is_empty()) else { continue };
        let line = line_of(code, at);
        let lines = line_of(code, body.end) - line + 1;
        if lines > MAX_FUNCTION_LINES {
            let what = format!("function `{name}` has {lines} lines, more than {MAX_FUNCTION_LINES}");
            let finding = Finding::new(path, line, what, "split it where a part deserves a name");
            findings.push(Finding { severity: Severity::Warning, ..finding });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<(usize, Severity)> {
        check(&Tree::of(&[(path, text)])).iter().map(|finding| (finding.line, finding.severity)).collect()
    }

    #[test]
    fn names_say_what_is_inside() {
        assert_eq!(found("crates/wire/src/util/a.rs", "").len(), 1);
        assert_eq!(found("web/console/src/lib/a.ts", "").len(), 1);
        assert_eq!(found("crates/wire/src/helpers.rs", "").len(), 1);
        assert!(found("crates/wire/src/lib.rs", "").is_empty());
        assert!(found("subjects/socketio/lib/a.js", "").is_empty());
    }

    #[test]
    fn long_files_fail_unless_generated() {
        let long = "//\n".repeat(MAX_FILE_LINES + 1);
        assert_eq!(found("web/console/src/a.ts", &long), [(801, Severity::Violation)]);
        assert!(found("web/console/src/generated/codes.ts", &long).is_empty());
        assert!(found("experiments/published/a.csv", &long).is_empty());
    }

    #[test]
    fn files_of_crates_are_shorter_but_for_their_tests() {
        let code = "//\n".repeat(MAX_CODE_LINES);
        let tests = "\n#[cfg(test)]\n#[allow(a)]\nmod tests {\n    #[cfg(test)]\n    fn a() {}\n}\n";
        for path in ["crates/server/src/core/a.rs", "crates/subjects/src/a.rs", "crates/log/src/lib.rs"] {
            assert!(found(path, &code).is_empty());
            assert_eq!(found(path, &format!("{code}//\n")), [(501, Severity::Violation)]);
            assert_eq!(found(path, &format!("{code}// no line feed"))[0].0, 501);
            assert!(found(path, &format!("{code}{tests}")).is_empty());
            assert_eq!(found(path, &format!("{code}//\n#[cfg(test)] mod tests {{}}")).len(), 1);
            // Not tests, or not at the end.
            assert_eq!(found(path, &format!("{code}#[cfg(test)]\nmod tests;\n")).len(), 1);
            assert_eq!(found(path, &format!("{code}mod tests {{}}\n")).len(), 1);
            assert_eq!(found(path, &format!("{code}{tests}fn b() {{}}\n")).len(), 1);
        }
        let more = "//\n".repeat(MAX_CODE_LINES + 1);
        for path in ["crates/server/tests/it/a.rs", "crates/server/src/engine/tests.rs", "fuzz/fuzz_targets/a.rs"] {
            assert!(found(path, &more).is_empty(), "{path}");
        }
    }

    #[test]
    fn a_crate_has_its_limit_too() {
        let file = "//\n".repeat(MAX_CODE_LINES);
        let found = |name: &str, files: usize, more: &[(&str, &str)]| -> Vec<String> {
            let paths = (0..files).map(|at| format!("crates/{name}/src/a{at}.rs"));
            let paths: Vec<String> =
                paths.chain(more.iter().map(|(path, _)| format!("crates/{name}/{path}"))).collect();
            let texts = std::iter::repeat_n(file.as_str(), files).chain(more.iter().map(|(_, text)| *text));
            let files: Vec<_> = paths.iter().map(String::as_str).zip(texts).collect();
            check(&Tree::of(&files)).iter().map(Finding::to_string).collect()
        };
        let tests = "//\n#[cfg(test)]\nmod tests {\n}\n";
        assert!(found("wire", 12, &[]).is_empty());
        let expected = "crates/wire/Cargo.toml:1: the crate has 6001 lines without its tests, more than 6000; move ";
        let large = found("wire", 12, &[("src/z.rs", tests)]);
        assert!(large.len() == 1 && large[0].starts_with(expected), "{large:?}");
        assert!(found("load", 16, &[]).is_empty());
        assert_eq!(found("load", 16, &[("src/bin/z.rs", tests)]).len(), 1);
        // None of it is the crate's code: tests, modules for tests alone, generated code.
        let (root, script) = ("#[cfg(test)]\npub(crate) mod script;", "//\n");
        let alone = [("tests/it/main.rs", script), ("src/a0/mod.rs", root), ("src/a0/script.rs", script)];
        assert!(found("wire", 11, &[&alone[..], &[("src/tests.rs", script)]].concat()).is_empty());
        assert_eq!(found("wire", 12, &alone).len(), 1, "the module that declares it is");
        let another = [("src/b.rs", "#[cfg(test)]\nuse a::B;\nmod c;"), ("src/b/c.rs", script)];
        assert!(found("wire", 12, &another)[0].contains(" 6004 lines"), "this one is for more than tests");
    }

    #[test]
    fn the_message_has_the_file_its_lines_and_what_to_do() {
        let more = "//\n".repeat(MAX_CODE_LINES + 1);
        let findings = check(&Tree::of(&[("crates/server/src/a.rs", &more)]));
        let expected = "crates/server/src/a.rs:501: 501 lines without its tests, more than 500; move ";
        assert!(findings[0].to_string().starts_with(expected), "{}", findings[0]);
    }

    #[test]
    fn long_functions_warn() {
        let body = "    x();\n".repeat(MAX_FUNCTION_LINES);
        let text = format!("\nfn f(a: [u8; 2]) {{\n{body}}}\nfn g();\nfn h() {{ }}\n");
        assert_eq!(found("crates/wire/src/a.rs", &text), [(2, Severity::Warning)]);
    }
}
