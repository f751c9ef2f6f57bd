//! Each decoder is fuzzed, and each fuzz target is built.

use super::Finding;
use crate::source::{code_only, line_of, words};
use crate::tree::Tree;

const SOURCES: [&str; 4] = ["crates/wire/src/", "crates/http2/src/", "crates/dialects/src/", "crates/handover/src/"];
const TARGETS: &str = "fuzz/fuzz_targets/";
const MANIFEST: &str = "fuzz/Cargo.toml";

pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let sources = SOURCES.iter().flat_map(|source| tree.below(source).map(move |file| (source, file)));
    for (source, (path, text)) in sources.filter(|(_, (path, _))| path.ends_with(".rs")) {
        let code = code_only(text);
        let module = module_of(&path[source.len()..]);
        for at in words(&code, "pub struct") {
            let name = code[at + "pub struct".len()..].trim_start();
            let name = name.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
            if !(name.ends_with("Decoder") || name.ends_with("Parser")) {
                continue;
            }
            let names = |text: &str, word: &str| words(text, word).next().is_some();
            if !tree.below(TARGETS).any(|(_, target)| names(target, module) && names(target, name)) {
                let what = format!("no fuzz target names `{module}` and `{name}`");
                findings.push(Finding::new(
                    path,
                    line_of(&code, at),
                    what,
                    format!("write {TARGETS}{module}.rs, see fuzz/README.md"),
                ));
            }
        }
    }
    let manifest = tree.text(MANIFEST).unwrap_or_default();
    // What lies deeper is shared by targets.
    for (path, _) in tree.below(TARGETS).filter(|(path, _)| !path[TARGETS.len()..].contains('/')) {
        let relative = path.trim_start_matches("fuzz/");
        if !manifest.contains(&format!("\"{relative}\"")) {
            findings.push(Finding::new(
                path,
                1,
                format!("is not a [[bin]] of {MANIFEST}"),
                "add it, see fuzz/README.md",
            ));
        }
    }
    findings
}

/// The module that users of a file's items name: the first part of its path below the crate's `src`.
fn module_of(path: &str) -> &str {
    path.split('/').next().unwrap_or(path).trim_end_matches(".rs")
}

#[cfg(test)]
mod tests {
    use super::*;

    const DECODER: (&str, &str) =
        ("crates/wire/src/websocket/mod.rs", "/// A.\npub struct Decoder<'a> {}\nstruct InnerParser;");

    #[test]
    fn a_decoder_needs_a_target_that_names_it() {
        let other = ("fuzz/fuzz_targets/lines.rs", "use pushlab_wire::lines::Decoder;");
        let its = ("fuzz/fuzz_targets/websocket.rs", "use pushlab_wire::websocket::Decoder;");
        let manifest = ("fuzz/Cargo.toml", "path = \"fuzz_targets/lines.rs\"\npath = \"fuzz_targets/websocket.rs\"");
        assert_eq!(check(&Tree::of(&[DECODER, other, manifest])).len(), 1);
        assert!(check(&Tree::of(&[DECODER, its, manifest])).is_empty());
        assert_eq!(check(&Tree::of(&[DECODER, its])).len(), 1);
    }

    #[test]
    fn a_decoder_of_a_dialect_needs_one_too() {
        let parser = ("crates/dialects/src/socketio.rs", "pub struct PacketParser;");
        let target = ("fuzz/fuzz_targets/dialects.rs", "use pushlab_dialects::socketio::PacketParser;");
        let manifest = ("fuzz/Cargo.toml", "path = \"fuzz_targets/dialects.rs\"");
        assert_eq!(check(&Tree::of(&[parser, manifest])).len(), 1);
        assert!(check(&Tree::of(&[parser, target, manifest])).is_empty());
    }

    #[test]
    fn a_folder_is_one_module() {
        assert_eq!(module_of("websocket/frame.rs"), "websocket");
        assert_eq!(module_of("socketio.rs"), "socketio");
    }
}
