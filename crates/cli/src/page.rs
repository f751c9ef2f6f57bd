//! The report as one HTML file: the console's bundle with the data inside.

use pushlab_lab::report::model::Report;

const PAGE: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../web/console/dist/report.html"));
const PLACEHOLDER: &str = "__PUSHLAB_REPORT__";

/// The page of a report.
pub fn html(report: &Report) -> anyhow::Result<String> {
    // A script element ends at the first `</script`, wherever it stands.
    let json = serde_json::to_string(report)?.replace('<', "\\u003c");
    // From the end: the bundle may name the placeholder to recognise a page without data.
    let at = PAGE
        .find(&format!(">{PLACEHOLDER}<"))
        .ok_or_else(|| anyhow::anyhow!("the report page lacks its placeholder; build again with `make build`"))?;
    let (before, after) = (&PAGE[..=at], &PAGE[at + 1 + PLACEHOLDER.len()..]);
    Ok([before, &json, after].concat())
}
