//! A folder's name says what is inside; files and functions stay readable.

use super::{Finding, Severity};
use crate::generate;
use crate::source::{body_after, code_only, line_of, words};
use crate::tree::Tree;

/// Longest file, in lines.
const MAX_FILE_LINES: usize = 800;
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
            long_functions(path, &code_only(text), &mut findings);
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
    fn long_functions_warn() {
        let body = "    x();\n".repeat(MAX_FUNCTION_LINES);
        let text = format!("\nfn f(a: [u8; 2]) {{\n{body}}}\nfn g();\nfn h() {{ }}\n");
        assert_eq!(found("crates/wire/src/a.rs", &text), [(2, Severity::Warning)]);
    }
}
