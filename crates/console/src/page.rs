//! The report as one HTML file: the page's bundle with the data inside.

use pushlab_analysis::report::model::Report;

const PAGE: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../web/console/dist/report.html"));
const PLACEHOLDER: &str = "__PUSHLAB_REPORT__";

/// Why there is no page of a report, which is a fault of ours.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// The report cannot be written as JSON.
    #[error("the report cannot be written: {0}")]
    Report(#[from] serde_json::Error),
    /// The bundle has no place for it.
    #[error("the report page lacks its placeholder; build again with `make build`")]
    Placeholder,
}

/// The page of a report.
///
/// # Errors
/// See [`PageError`].
pub fn html(report: &Report) -> Result<String, PageError> {
    // A script element ends at the first `</script`, wherever it stands.
    let json = serde_json::to_string(report)?.replace('<', "\\u003c");
    // From the end: the bundle may name the placeholder to recognise a page without data.
    let at = PAGE.find(&format!(">{PLACEHOLDER}<")).ok_or(PageError::Placeholder)?;
    let (before, after) = (&PAGE[..=at], &PAGE[at + 1 + PLACEHOLDER.len()..]);
    Ok([before, &json, after].concat())
}
