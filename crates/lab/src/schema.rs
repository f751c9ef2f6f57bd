//! The JSON schemas that are published in `schema/`.

use pushlab_experiment::Written;
use pushlab_report::Report;
use pushlab_subjects::manifest::Manifest;
use serde_json::{Value, json};

/// Schema of an access file.
pub fn access() -> Value {
    schemars::schema_for!(pushlab_access::Written).to_value()
}

/// Schema of an experiment file: an experiment, and profiles that may replace any part of it.
pub fn experiment() -> Value {
    let mut schema = schemars::schema_for!(Written).to_value();
    let mut partial = schema["properties"].clone();
    if let Some(properties) = partial.as_object_mut() {
        // Nested tables are merged, so a profile need not repeat their required fields.
        for name in ["scenario", "phases"] {
            properties.insert(name.to_owned(), json!({ "type": "object" }));
        }
    }
    schema["properties"]["profile"] = json!({
        "description": "Named variants; the values of the chosen one replace those of the file.",
        "type": "object",
        "additionalProperties": { "type": "object", "properties": partial, "additionalProperties": false }
    });
    schema
}

/// Schema of a report.
pub fn report() -> Value {
    schemars::schema_for!(Report).to_value()
}

/// Schema of a subject's manifest.
pub fn subject() -> Value {
    schemars::schema_for!(Manifest).to_value()
}

/// File names in `schema/` and their contents.
pub fn files() -> [(&'static str, String); 4] {
    let text = |value: &Value| {
        let mut text = serde_json::to_string_pretty(value).expect("a JSON value always serialises");
        text.push('\n');
        text
    };
    [
        ("access.schema.json", text(&access())),
        ("experiment.schema.json", text(&experiment())),
        ("report.schema.json", text(&report())),
        ("subject.schema.json", text(&subject())),
    ]
}
