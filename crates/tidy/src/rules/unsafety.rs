//! `unsafe` stands where it is accounted for, and nowhere else.

use super::Finding;
use crate::source::{code_only, line_of, words};
use crate::tree::Tree;

/// Crates, and single files, that may be `unsafe`: docs/decisions/0023-os.md and 0026-io-uring.md have the reasons.
const ALLOWED: &[&str] = &["crates/os/", "crates/link/", "crates/server/src/engine/uring.rs"];

const FIX: &str = "use, or add to, the crate os";

pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.below("crates/").filter(|(path, _)| path.ends_with(".rs")) {
        if ALLOWED.iter().any(|allowed| path.starts_with(allowed)) || !text.contains("unsafe") {
            continue;
        }
        let code = code_only(text);
        let found = words(&code, "unsafe").chain(words(&code, "unsafe_code"));
        findings.extend(found.map(|at| Finding::new(path, line_of(&code, at), "`unsafe` is not allowed here", FIX)));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> usize {
        check(&Tree::of(&[(path, text)])).len()
    }

    #[test]
    fn finds_it_where_it_is_not_accounted_for() {
        let text = "fn a() { unsafe { b() } }";
        assert_eq!(found("crates/server/src/engine/mod.rs", text), 1);
        assert_eq!(found("crates/bench/src/a.rs", "#![allow(unsafe_code)]"), 1);
        assert_eq!(found("crates/os/src/a.rs", text) + found("crates/server/src/engine/uring.rs", text), 0);
        assert_eq!(found("crates/lab/src/a.rs", "// unsafe\nconst A: &str = \"unsafe\"; fn unsafe_looking() {}"), 0);
    }
}
