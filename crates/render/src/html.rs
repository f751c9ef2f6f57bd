//! For people: the page, one file with the data inside.

use super::json;
use pushlab_report::Report;

const PLACEHOLDER: &str = "__PUSHLAB_REPORT__";

/// A page without a place for the report.
#[derive(Debug, thiserror::Error)]
#[error("the report page lacks its placeholder; build again with `make build`")]
pub struct NoPlaceholder;

/// The page of a report. `page` is the bundle that draws it.
///
/// # Errors
/// [`NoPlaceholder`].
pub fn text(report: &Report, page: &str) -> Result<String, NoPlaceholder> {
    // A script element ends at the first `</script`, wherever it stands.
    let json = json::text(report).replace('<', "\\u003c");
    // From the end: the bundle may name the placeholder to recognise a page without data.
    let at = page.find(&format!(">{PLACEHOLDER}<")).ok_or(NoPlaceholder)?;
    let (before, after) = (&page[..=at], &page[at + 1 + PLACEHOLDER.len()..]);
    Ok([before, &json, after].concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::hostile;

    #[test]
    fn no_name_ends_the_data() {
        let page = "<p>__PUSHLAB_REPORT__ </p><script>__PUSHLAB_REPORT__</script><b>";
        let html = text(&hostile(), page).unwrap();
        let data = html.strip_prefix("<p>__PUSHLAB_REPORT__ </p><script>").unwrap();
        let data = data.strip_suffix("</script><b>").unwrap();
        assert!(!data.contains('<') && data.contains("\\u003cb>"), "{data}");
        let read: Report = serde_json::from_str(data).unwrap();
        assert_eq!(read.title, hostile().title);
    }

    #[test]
    fn a_page_without_a_place_for_it_is_refused() {
        assert!(text(&hostile(), "<script></script>").unwrap_err().to_string().contains("make build"));
    }
}
