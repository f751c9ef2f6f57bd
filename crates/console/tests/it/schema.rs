//! The published schema is that of the types. `UPDATE_SCHEMA=1 cargo test -p pushlab-console --test it schema` writes it.

use std::path::Path;

#[test]
fn the_published_schema_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schema/console.schema.json");
    let mut text = serde_json::to_string_pretty(&pushlab_console::interface::schema()).unwrap();
    text.push('\n');
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let published = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(published == text, "schema/console.schema.json is not that of the types: run `make generate`");
}
