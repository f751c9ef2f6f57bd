//! A reader of pages for tests, here and of the crates that serve some: it panics at whatever is not strictly right,
//! and asks more than Prometheus does.

use std::collections::BTreeMap;

/// Labels and their values.
pub type Labels = BTreeMap<String, String>;

/// One metric and its samples.
#[derive(Debug)]
#[allow(dead_code, reason = "not every test looks at all of it")]
pub struct Family {
    pub kind: String,
    pub help: String,
    pub samples: Vec<(Labels, f64)>,
}

#[allow(dead_code, reason = "not every test looks at all of it")]
impl Family {
    /// The sample with exactly these labels.
    pub fn value(&self, labels: &[(&str, &str)]) -> Option<f64> {
        let wanted: Labels = labels.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        self.samples.iter().find(|(labels, _)| *labels == wanted).map(|(_, value)| *value)
    }
}

/// Reads a page: `HELP`, `TYPE` and samples of each family together, each family once.
#[track_caller]
pub fn parse(text: &str) -> BTreeMap<String, Family> {
    assert!(text.is_empty() || text.ends_with('\n'), "the last line is not ended");
    let mut families = BTreeMap::new();
    let mut lines = text.split_terminator('\n').peekable();
    while let Some(line) = lines.next() {
        let (name, help) =
            line.strip_prefix("# HELP ").and_then(|rest| rest.split_once(' ')).unwrap_or_else(|| panic!("{line:?}"));
        assert!(is_name(name), "{name:?}");
        let kind = lines.next().and_then(|line| line.strip_prefix(&format!("# TYPE {name} "))).expect(name);
        assert!(["counter", "gauge"].contains(&kind), "{name} is a {kind}");
        assert_eq!(name.ends_with("_total"), kind == "counter", "{name} is a {kind}");
        let mut family = Family { kind: kind.into(), help: unescape(help, false), samples: Vec::new() };
        while let Some(line) = lines.next_if(|line| !line.starts_with('#')) {
            let (labels, value) = sample(line.strip_prefix(name).unwrap_or_else(|| panic!("{line:?} under {name}")));
            assert!(family.samples.iter().all(|(known, _)| *known != labels), "twice: {line}");
            assert!(kind == "gauge" || value >= 0.0, "{line}");
            family.samples.push((labels, value));
        }
        assert!(families.insert(name.to_owned(), family).is_none(), "{name} comes twice");
    }
    families
}

fn sample(rest: &str) -> (Labels, f64) {
    let (labels, value) = match rest.strip_prefix('{') {
        Some(rest) => rest.rsplit_once("} ").expect(rest),
        None => ("", rest.strip_prefix(' ').expect(rest)),
    };
    let mut found = Labels::new();
    let mut left = labels;
    while !left.is_empty() {
        let (name, rest) = left.split_once("=\"").expect(left);
        assert!(is_name(name), "{name:?}");
        let end = end_of_quoted(rest);
        assert!(found.insert(name.into(), unescape(&rest[..end], true)).is_none(), "{name} twice: {labels}");
        left = &rest[end + 1..];
        if let Some(next) = left.strip_prefix(',') {
            assert!(!next.is_empty(), "{labels}");
            left = next;
        } else {
            assert!(left.is_empty(), "{labels}");
        }
    }
    let special = ["+Inf", "-Inf", "NaN"].contains(&value);
    assert!(special || value.bytes().all(|b| b.is_ascii_digit() || b".-".contains(&b)), "{value:?} is no number");
    (found, value.parse().expect(value))
}

fn end_of_quoted(text: &str) -> usize {
    let mut is_escaped = false;
    let end = text.bytes().position(|b| {
        let is_end = b == b'"' && !is_escaped;
        is_escaped = b == b'\\' && !is_escaped;
        is_end
    });
    end.expect(text)
}

fn unescape(text: &str, is_quoted: bool) -> String {
    let mut out = String::new();
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        out.push(match c {
            '\\' => match rest.next() {
                Some('\\') => '\\',
                Some('n') => '\n',
                Some('"') if is_quoted => '"',
                other => panic!("\\{other:?} in {text:?}"),
            },
            c => c,
        });
    }
    out
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
}
