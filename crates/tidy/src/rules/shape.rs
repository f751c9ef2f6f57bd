//! A folder's name says what is inside; files and functions stay readable.

use super::{Finding, Severity};
use crate::generate;
use crate::source::{body_after, code_only, line_of, words};
use crate::tree::Tree;

/// Longest file, in lines.
const MAX_FILE_LINES: usize = 800;
/// Crates whose files are shorter, tests not counted.
const SHORT: [&str; 4] = ["crates/load/", "crates/log/", "crates/server/", "crates/session/"];
/// Longest file of theirs, in lines.
const MAX_CODE_LINES: usize = 500;
/// Longest function without a warning, in lines.
const MAX_FUNCTION_LINES: usize = 70;

const EMPTY_NAMES: [&str; 7] = ["util", "utils", "common", "misc", "helper", "helpers", "lib"];
const SOURCES: [&str; 11] = [".rs", ".ts", ".tsx", ".js", ".mjs", ".css", ".html", ".sh", ".py", ".go", ".php"];

pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
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
            let is_test = path.contains("/tests/") || path.ends_with("/tests.rs");
            if SHORT.iter().any(|folder| path.starts_with(folder)) && !is_test && !is_generated {
                long_code(path, text, &code, &mut findings);
            }
            long_functions(path, &code, &mut findings);
        }
    }
    findings
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

fn long_code(path: &str, text: &str, code: &str, findings: &mut Vec<Finding>) {
    let end = tests_at_end(code).unwrap_or(code.len());
    let lines = text[..end].trim_end().lines().count();
    if lines > MAX_CODE_LINES {
        let what = format!("{lines} lines without its tests, more than {MAX_CODE_LINES}");
        findings.push(Finding::new(path, lines, what, "move a part that has a name of its own to a module of its own"));
    }
}

/// Where `#[cfg(test)] mod tests { … }` starts, if nothing follows it.
fn tests_at_end(code: &str) -> Option<usize> {
    code.match_indices("#[cfg(test)]").map(|(start, _)| start).find(|&start| {
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
        assert_eq!(found("crates/wire/src/a.rs", &long), [(801, Severity::Violation)]);
        assert!(found("web/console/src/generated/codes.ts", &long).is_empty());
        assert!(found("experiments/published/a.csv", &long).is_empty());
    }

    #[test]
    fn files_of_some_crates_are_shorter_but_for_their_tests() {
        let code = "//\n".repeat(MAX_CODE_LINES);
        let tests = "\n#[cfg(test)]\n#[allow(a)]\nmod tests {\n    #[cfg(test)]\n    fn a() {}\n}\n";
        for path in ["crates/server/src/core/a.rs", "crates/session/src/a.rs", "crates/log/src/lib.rs"] {
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
        for path in ["crates/server/tests/it/a.rs", "crates/server/src/engine/tests.rs", "crates/lab/src/a.rs"] {
            assert!(found(path, &more).is_empty(), "{path}");
        }
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
