//! The published schemas are those of the types, the tables of docs/experiments.md and docs/studies are those of the
//! program, and the README's choices are those of docs/scorecard.md.
//! `UPDATE_SCHEMA=1 cargo test -p pushlab-lab --test generated` writes them.

mod studies;

use pushlab_experiment::presets;
use pushlab_lab::experiments;
use std::path::{Path, PathBuf};

/// A file or folder of the project.
fn place(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// A file of the project is as it should be, or is written so.
fn is_as(path: &str, wanted: &str) -> std::io::Result<()> {
    let path = place(path);
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        std::fs::write(&path, wanted)?;
    }
    assert!(std::fs::read_to_string(&path)? == wanted, "{} is out of date: run `make generate`", path.display());
    Ok(())
}

#[test]
fn the_published_schemas_are_up_to_date() {
    for (name, text) in pushlab_lab::schema::files() {
        is_as(&format!("schema/{name}"), &text).unwrap();
    }
}

#[test]
fn metrics_and_sizes_of_experiments_are_documented_as_they_are() {
    let text = include_str!("../../../../docs/experiments.md");
    let head = "| name | unit | better | what |\n|---|---|---|---|\n";
    let (before, rest) = text.split_once(head).unwrap();
    let (_, after) = rest.split_once("\n\n").unwrap();
    let mut wanted = format!("{before}{head}{}\n{after}", pushlab_experiment::metric::documented());
    // Of the table of experiments the first two columns are written by hand, the sizes are ours.
    for (name, _) in presets::PRESETS {
        let start = format!("| `{name}` | ");
        let row = text.lines().find(|row| row.starts_with(&start)).unwrap_or_else(|| panic!("{name} has no row"));
        let what = row.split(" | ").nth(1).unwrap();
        let size = |profile| experiments::load(name, profile).unwrap().size();
        wanted = wanted.replace(row, &format!("{start}{what} | {} | {} |", size(None), size(Some("quick"))));
    }
    is_as("docs/experiments.md", &wanted).unwrap();
}

/// docs/scorecard.md is a report as `pushlab report --format markdown` prints it.
#[test]
fn the_readme_answers_as_the_stored_scorecard_does() {
    let text = include_str!("../../../../README.md");
    let head = "| for | choose |\n|---|---|\n";
    let (before, rest) = text.split_once(head).unwrap();
    let (_, after) = rest.split_once("\n\n").unwrap();
    let stored = include_str!("../../../../docs/scorecard.md").split_once(head).unwrap().1;
    // Two sentences: the choice and its runner-up. What would change the choice is left to the scorecard.
    let row = |line: &str| {
        let sentences: Vec<&str> = line.trim_end_matches(" |").split_inclusive(". ").take(2).collect();
        format!("{} |\n", sentences.concat().trim_end())
    };
    let rows: String = stored.lines().take_while(|line| !line.is_empty()).map(row).collect();
    is_as("README.md", &format!("{before}{head}{rows}\n{after}")).unwrap();
}
