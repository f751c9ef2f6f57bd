//! Prometheus' text exposition format, version 0.0.4
//! (<https://prometheus.io/docs/instrumenting/exposition_formats/>).
//!
//! ```
//! use pushlab_wire::exposition::{Exposition, Kind};
//!
//! let mut page = Exposition::default();
//! page.family("pushlab_connections", Kind::Gauge, "Open connections.").sample(&[("transport", "sse")], 3.0);
//! let text = "# HELP pushlab_connections Open connections.\n# TYPE pushlab_connections gauge\n\
//!             pushlab_connections{transport=\"sse\"} 3\n";
//! assert_eq!(page.into_text(), text);
//! ```

use std::fmt::Write as _;

#[cfg(test)]
mod strict;

/// Content type of a page.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// How a metric behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Only grows, and begins at 0 with the process. Its name ends in `_total`.
    Counter,
    /// Goes up and down.
    Gauge,
}

/// A page being written: families of samples, each family once.
#[derive(Debug, Default)]
pub struct Exposition {
    text: String,
}

/// The family whose samples are being written.
#[derive(Debug)]
pub struct Family<'a> {
    text: &'a mut String,
    name: &'a str,
}

impl Exposition {
    /// Begins a family. `name` is `[a-z_]+`, with the unit in it; `help` may be any text.
    pub fn family<'a>(&'a mut self, name: &'a str, kind: Kind, help: &str) -> Family<'a> {
        debug_assert!(is_name(name), "{name:?} is no name of a metric");
        self.text.push_str("# HELP ");
        self.text.push_str(name);
        self.text.push(' ');
        escape(&mut self.text, help, false);
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
        };
        self.text.push_str("\n# TYPE ");
        self.text.push_str(name);
        self.text.push(' ');
        self.text.push_str(kind);
        self.text.push('\n');
        Family { text: &mut self.text, name }
    }

    /// The page.
    pub fn into_text(self) -> String {
        self.text
    }
}

impl Family<'_> {
    /// Adds a sample. Labels are `[a-z_]+`, their values any text; each set of labels comes once.
    pub fn sample(&mut self, labels: &[(&str, &str)], value: f64) -> &mut Self {
        self.text.push_str(self.name);
        for (at, (label, value)) in labels.iter().enumerate() {
            debug_assert!(is_name(label), "{label:?} is no name of a label");
            self.text.push(if at == 0 { '{' } else { ',' });
            self.text.push_str(label);
            self.text.push_str("=\"");
            escape(self.text, value, true);
            self.text.push('"');
        }
        if !labels.is_empty() {
            self.text.push('}');
        }
        if value.is_infinite() {
            self.text.push_str(if value > 0.0 { " +Inf\n" } else { " -Inf\n" });
        } else {
            writeln!(self.text, " {value}").expect("writing to a String cannot fail");
        }
        self
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
}

fn escape(out: &mut String, text: &str, is_quoted: bool) {
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '"' if is_quoted => out.push_str("\\\""),
            c => out.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_are_written_as_prometheus_reads_them() {
        let mut page = Exposition::default();
        let mut family = page.family("a", Kind::Gauge, "A.");
        for (at, value) in [0.0, -1.5, 1e21, 1e-9, f64::INFINITY, f64::NEG_INFINITY, f64::NAN].into_iter().enumerate() {
            family.sample(&[("at", &at.to_string())], value);
        }
        let text = page.into_text();
        let values: Vec<&str> = text.lines().skip(2).map(|line| line.split_once(' ').unwrap().1).collect();
        assert_eq!(values, ["0", "-1.5", "1000000000000000000000", "0.000000001", "+Inf", "-Inf", "NaN"]);
        strict::parse(&text);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(help in any::<String>(), label in any::<String>(), value in prop::num::f64::NORMAL) {
            let mut page = Exposition::default();
            page.family("a_total", Kind::Counter, &help).sample(&[], 7.0).sample(&[("x", &label), ("y", "")], value);
            page.family("b", Kind::Gauge, "None.");
            let families = strict::parse(&page.into_text());
            prop_assert_eq!(families.keys().map(String::as_str).collect::<Vec<_>>(), ["a_total", "b"]);
            let family = &families["a_total"];
            prop_assert_eq!((&*family.kind, &*family.help), ("counter", &*help));
            prop_assert_eq!(family.value(&[]), Some(7.0));
            prop_assert_eq!(family.value(&[("x", &label), ("y", "")]), Some(value));
        }
    }
}
