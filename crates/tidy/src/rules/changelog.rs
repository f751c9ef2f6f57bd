//! The changelog speaks of the version that is being built.

use toml::{Table, Value};

use super::Finding;
use crate::tree::Tree;

const CHANGELOG: &str = "CHANGELOG.md";

pub fn check(tree: &Tree) -> Vec<Finding> {
    let manifest: Option<Table> = tree.text("Cargo.toml").and_then(|text| text.parse().ok());
    let version = manifest.as_ref().and_then(|manifest| manifest.get("workspace")?.get("package")?.get("version"));
    let Some(version) = version.and_then(Value::as_str) else {
        return vec![Finding::new("Cargo.toml", 1, "no workspace.package.version", "add it")];
    };
    let names = |line: &str| {
        let title = line.strip_prefix("## ")?.split_whitespace().next()?;
        let title = title.trim_matches(['[', ']']);
        (title == version || title.eq_ignore_ascii_case("unreleased")).then_some(())
    };
    if tree.text(CHANGELOG).is_some_and(|text| text.lines().any(|line| names(line).is_some())) {
        return Vec::new();
    }
    let what = format!("no section for {version} and none that is unreleased");
    vec![Finding::new(CHANGELOG, 1, what, "add `## Unreleased` with what changes for users")]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_current_or_the_next_version_has_a_section() {
        let manifest = ("Cargo.toml", "[workspace.package]\nversion = \"0.1.0\"");
        for (text, count) in [("# C\n## Unreleased\n", 0), ("## [0.1.0] - 2030-01-01\n", 0), ("## 0.0.9\n", 1), ("", 1)]
        {
            assert_eq!(check(&Tree::of(&[manifest, (CHANGELOG, text)])).len(), count, "{text}");
        }
        assert_eq!(check(&Tree::of(&[manifest])).len(), 1);
    }
}
