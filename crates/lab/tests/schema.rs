//! The published schemas are those of the types, and the documented metrics those of the table.
//! `UPDATE_SCHEMA=1 cargo test -p pushlab-lab --test schema` writes them.

use std::path::Path;

#[test]
fn the_published_schemas_are_up_to_date() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schema");
    for (name, text) in pushlab_lab::schema::files() {
        let path = folder.join(name);
        if std::env::var_os("UPDATE_SCHEMA").is_some() {
            std::fs::write(&path, &text).unwrap();
        }
        let published = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(published == text, "schema/{name} is not that of the types: run `make generate`");
    }
}

#[test]
fn every_metric_is_documented_as_it_is() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/experiments.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once("| name | unit | better | what |\n|---|---|---|---|\n").unwrap();
    let (rows, after) = rest.split_once("\n\n").unwrap();
    let documented = pushlab_lab::metric::documented();
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        let head = "| name | unit | better | what |\n|---|---|---|---|\n";
        std::fs::write(&path, format!("{before}{head}{documented}\n{after}")).unwrap();
        return;
    }
    assert!(format!("{rows}\n") == documented, "the metrics in docs/experiments.md are not ours: run `make generate`");
}
