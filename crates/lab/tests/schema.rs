//! The published schemas are those of the types. `UPDATE_SCHEMA=1 cargo test -p pushlab-lab --test schema` writes them.

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
