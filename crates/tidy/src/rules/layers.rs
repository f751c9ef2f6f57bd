//! Dependencies point downwards only, and to the system by one way.

use toml::{Table, Value};

use super::Finding;
use crate::tree::Tree;

/// Each crate and its layer. A crate may use crates of lower layers, in tests too: what needs two crates of one
/// layer together is tested from a layer above.
const LAYERS: &[(&str, u8)] = &[
    ("wire", 0),
    ("stats", 0),
    ("os", 0),
    ("access", 1),
    ("dialects", 1),
    ("log", 1),
    ("http2", 1),
    ("tls", 1),
    ("probe", 1),
    ("link", 1),
    ("store", 1),
    ("session", 2),
    ("handover", 2),
    ("workload", 2),
    ("engine", 1),
    ("application", 3),
    ("server", 4),
    ("load", 3),
    ("experiment", 3),
    ("demos", 5),
    ("fleet", 5),
    ("record", 4),
    ("report", 4),
    ("analysis", 5),
    ("attacks", 6),
    ("subjects", 6),
    ("render", 6),
    ("bus", 7),
    ("watch", 8),
    ("lab", 9),
    ("console", 10),
    ("cli", 11),
    ("bench", 11),
    // These two judge the others and therefore use none of them, but for the system's calls.
    ("tidy", 0),
    ("suites", 1),
];

/// Libraries of the system's calls, and the crates that may use them: docs/decisions/0023-os.md and
/// 0026-io-uring.md.
const SYSTEM: &[(&str, &[&str])] =
    &[("io-uring", &["engine"]), ("libc", &["os", "link"]), ("nix", &[]), ("rustix", &["os"])];

const THIS: &str = "crates/tidy/src/rules/layers.rs";

pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.below("crates/") {
        let Some(name) = path.strip_prefix("crates/").and_then(|rest| rest.strip_suffix("/Cargo.toml")) else {
            continue;
        };
        let Some(layer) = layer_of(name) else {
            findings.push(Finding::new(
                path,
                1,
                format!("crate `{name}` has no layer"),
                format!("add it to the table in {THIS}"),
            ));
            continue;
        };
        let manifest: Table = match text.parse() {
            Ok(manifest) => manifest,
            Err(error) => {
                let what = format!("is not TOML: {}", error.to_string().replace('\n', " "));
                findings.push(Finding::new(path, 1, what, "correct it"));
                continue;
            }
        };
        for used in dependencies(&manifest) {
            let line = text.lines().position(|line| line.contains(&used)).map_or(1, |at| at + 1);
            if SYSTEM.iter().any(|(library, users)| *library == used && !users.contains(&name)) {
                let what = format!("`{name}` depends on `{used}`");
                findings.push(Finding::new(path, line, what, "use, or add to, the crate os"));
            }
            let Some(other) = used.strip_prefix("pushlab-") else { continue };
            if layer_of(other).is_none_or(|lower| lower >= layer) {
                let what = format!("`{name}` depends on `{other}`, which is not below it");
                findings.push(Finding::new(
                    path,
                    line,
                    what,
                    "move the shared part to a lower crate, or the user to a higher one",
                ));
            }
        }
    }
    findings
}

fn layer_of(name: &str) -> Option<u8> {
    LAYERS.iter().find(|(other, _)| *other == name).map(|(_, layer)| *layer)
}

/// Package names of the normal, dev and build dependencies, on any platform.
pub fn dependencies(manifest: &Table) -> Vec<String> {
    let mut names = Vec::new();
    for section in ["dependencies", "dev-dependencies", "build-dependencies"] {
        if let Some(Value::Table(entries)) = manifest.get(section) {
            names.extend(entries.iter().map(|(key, value)| {
                let package = value.get("package").and_then(Value::as_str);
                package.unwrap_or(key).to_owned()
            }));
        }
    }
    if let Some(Value::Table(targets)) = manifest.get("target") {
        names.extend(targets.values().filter_map(Value::as_table).flat_map(dependencies));
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(name: &str, manifest: &str) -> Vec<usize> {
        let path = format!("crates/{name}/Cargo.toml");
        check(&Tree::of(&[(&path, manifest)])).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn downwards_is_allowed() {
        assert!(lines("lab", "[dependencies]\npushlab-load.workspace = true\nserde = \"1\"").is_empty());
        assert!(lines("load", "[dev-dependencies]\npushlab-wire.workspace = true").is_empty());
        assert!(lines("load", "[dependencies]\npushlab-dialects.workspace = true").is_empty());
    }

    #[test]
    fn upwards_and_sideways_are_not() {
        assert_eq!(lines("wire", "[dependencies]\npushlab-load.workspace = true"), [2]);
        assert_eq!(lines("load", "[dev-dependencies]\npushlab-server.workspace = true"), [2]);
        assert_eq!(lines("dialects", "[dependencies]\npushlab-link.workspace = true"), [2]);
        assert_eq!(lines("stats", "[target.'cfg(unix)'.dependencies]\nx = { package = \"pushlab-wire\" }"), [2]);
        assert_eq!(lines("tidy", "[dependencies]\npushlab-wire.workspace = true"), [2]);
    }

    #[test]
    fn the_system_is_reached_through_os() {
        assert!(lines("os", "[dependencies]\nlibc = \"0.2\"\nrustix = \"1\"").is_empty());
        assert_eq!(lines("link", "[dependencies]\nlibc = \"0.2\"\nrustix = \"1\""), [3]);
        assert_eq!(lines("lab", "[dev-dependencies]\nlibc.workspace = true"), [2]);
        assert_eq!(lines("bench", "[dependencies]\nio-uring = \"0.7\""), [2]);
        assert_eq!(lines("wire", "[dependencies]\npushlab-os.workspace = true"), [2]);
    }

    #[test]
    fn every_crate_has_a_layer() {
        assert_eq!(lines("extra", ""), [1]);
    }
}
