//! Nothing unfinished and no test switched off.

use super::Finding;
use crate::source::{line_of, words};
use crate::tree::Tree;

/// Anywhere. Written in two parts, so that this file does not find itself.
const WORDS: [&str; 3] = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];
/// In Rust.
const RUST: [&str; 4] =
    [concat!("todo", "!("), concat!("unimplemented", "!("), concat!("#[igno", "re]"), concat!("#[igno", "re =")];
/// In TypeScript and JavaScript.
const SCRIPT: [&str; 3] = [concat!(".sk", "ip("), concat!(".to", "do("), concat!(".on", "ly(")];

pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.below("") {
        let ending = path.rsplit_once('.').map_or("", |(_, ending)| ending);
        let more: &[&str] = match ending {
            "csv" | "lock" | "svg" => continue,
            "rs" => &RUST,
            "ts" | "tsx" | "js" | "mjs" => &SCRIPT,
            _ => &[],
        };
        if path.ends_with("package-lock.json") {
            continue;
        }
        for word in WORDS.iter().chain(more) {
            for at in words(text, word) {
                let what = format!("`{word}` is left over");
                findings.push(Finding::new(path, line_of(text, at), what, "finish it, or remove it"));
            }
        }
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
    fn finds_leftovers_where_they_are_some() {
        for word in WORDS {
            assert_eq!(found("docs/a.md", &format!("a {word}: b")), 1, "{word}");
        }
        for word in RUST {
            assert_eq!(found("a.rs", word), 1, "{word}");
        }
        for word in SCRIPT {
            assert_eq!(found("a.test.ts", &format!("test{word}'x')")), 1, "{word}");
            assert_eq!(found("a.rs", &format!("iterator{word}1)")), 0, "{word}");
        }
        assert_eq!(found("run.sh", "mktemp /tmp/aXXXXXX"), 0);
    }
}
