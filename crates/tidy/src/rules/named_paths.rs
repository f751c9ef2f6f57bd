//! Every path that a document names exists.

use super::Finding;
use crate::tree::Tree;

/// A code span that starts with one of these is a path from the root.
const FOLDERS: [&str; 12] = [
    ".ci",
    "crates",
    "docs",
    "experiments",
    "fuzz",
    "houses",
    "monitoring",
    "runs",
    "schema",
    "subjects",
    "tests",
    "web",
];

pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (document, text) in tree.below("").filter(|(path, _)| path.ends_with(".md")) {
        for (line, prose) in prose_lines(text) {
            let spans = prose.split('`').skip(1).step_by(2).filter_map(span_path).map(str::to_owned);
            let links = link_targets(prose).map(|target| resolve(document, target));
            for path in spans.chain(links) {
                let here = resolve(document, &path);
                if !(tree.exists(&path) || tree.exists(&here) || tree.is_ignored(&path)) {
                    let what = format!("names `{path}`, which does not exist");
                    findings.push(Finding::new(document, line, what, "correct the path or remove it"));
                }
            }
        }
    }
    findings
}

/// Lines outside fenced blocks, numbered from 1.
fn prose_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().enumerate().filter_map(move |(at, line)| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        (!fenced && !fence).then_some((at + 1, line))
    })
}

/// The path a code span names, up to the first wildcard or placeholder; `None` if it is no path.
fn span_path(span: &str) -> Option<&str> {
    if span.contains([' ', '$']) {
        return None;
    }
    let is_document =
        !span.contains('/') && span.ends_with(".md") && span.starts_with(|c: char| c.is_ascii_uppercase());
    let is_path = span.split_once('/').is_some_and(|(folder, _)| FOLDERS.contains(&folder));
    if !is_document && !is_path {
        return None;
    }
    let fixed = span.split(['*', '{', '<', '…', ':', '#']).next().unwrap_or(span);
    let whole = if fixed.len() == span.len() || span[fixed.len()..].starts_with([':', '#']) {
        fixed
    } else {
        fixed.rsplit_once('/').map_or(fixed, |(folder, _)| folder)
    };
    Some(whole.trim_end_matches('/'))
}

fn link_targets(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| {
        let target = rest.split([')', ' ', '#']).next()?;
        (!target.is_empty() && !target.contains(':')).then_some(target)
    })
}

/// A path relative to a document, from the root.
fn resolve(document: &str, target: &str) -> String {
    let mut parts: Vec<&str> = document.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            name => parts.push(name),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> usize {
        check(&Tree::of(&[("docs/a.md", text), ("docs/b.md", ""), ("crates/wire/src/lib.rs", ""), ("README.md", "")]))
            .len()
    }

    #[test]
    fn accepts_paths_that_exist_and_text_that_is_no_path() {
        assert_eq!(found("`crates/wire`, `crates/*/src`, `crates/{wire,stats}/`, `crates/wire/src/lib.rs:12`"), 0);
        assert_eq!(found("[b](b.md#x) [r](../README.md) [w](https://example.org/x) [s](#here) `README.md`"), 0);
        assert_eq!(found("`text/event-stream` `/ws?channel=a` `make x` `tests/run --all`\n```\n`docs/no.md`\n```"), 0);
    }

    #[test]
    fn finds_paths_that_do_not_exist() {
        assert_eq!(found("`crates/wired`"), 1);
        assert_eq!(found("see `docs/no.md` and [it](no.md)"), 2);
        assert_eq!(found("`crates/no/*` `ABSENT.md`"), 2);
    }
}
