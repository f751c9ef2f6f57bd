//! For machines that collect tests: JUnit's XML, as GitHub, GitLab and Jenkins read it.
//!
//! A test suite for each experiment, with a test for each cell and each assertion. A cell whose runs failed is an error,
//! one of whose runs none counts is skipped; an assertion that is refuted is a failure, one that is undecided skipped.

use super::tables;
use pushlab_analysis::report::wording::place;
use pushlab_report::{
    Agreement, Alarm, Change, Comparison, ComparisonRow, Completeness, Expectation, ExperimentReport, Judged, Origin,
    Point, Report,
};
use std::fmt::Write as _;

/// The report as test suites.
pub fn text(report: &Report) -> String {
    let mut suites: Vec<Suite> = report.experiments.iter().map(Suite::of).collect();
    suites.extend(report.comparison.as_ref().map(Suite::of_changes));
    let all = || suites.iter().flat_map(|suite| &suite.cases);
    let mut out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n".to_owned();
    let head = attributes(&report.title, all(), &report.generated_at);
    let _ = writeln!(out, "<testsuites {head}>");
    for suite in &suites {
        let head = attributes(&suite.name, suite.cases.iter(), &report.generated_at);
        let _ = writeln!(out, "  <testsuite {head}>\n    <properties>");
        let seed = ("seed".to_owned(), report.repeat.seed.to_string());
        let facts = report.environment.iter().map(|fact| (fact.label.clone(), fact.value.clone()));
        for (name, value) in facts.chain([seed]).chain(suite.properties.clone()) {
            let _ = writeln!(out, "      <property name=\"{}\" value=\"{}\"/>", escaped(&name), escaped(&value));
        }
        out.push_str("    </properties>\n");
        suite.cases.iter().for_each(|case| case.write(&suite.name, &mut out));
        out.push_str("  </testsuite>\n");
    }
    out.push_str("</testsuites>\n");
    out
}

struct Suite {
    name: String,
    properties: Vec<(String, String)>,
    cases: Vec<Case>,
}

struct Case {
    name: String,
    took_ms: u64,
    end: End,
    /// What else there is to say of it.
    note: String,
}

/// How a test ended; with a message, and what is known beside it.
enum End {
    Passed,
    Skipped(String),
    Failed(String, String),
    Broken(String, String),
}

impl Suite {
    fn of(experiment: &ExperimentReport) -> Self {
        let measured = experiment.series.iter().filter(|series| series.origin == Origin::Measured);
        let mut cases: Vec<Case> = measured
            .flat_map(|series| series.points.iter().map(|point| (series.label.as_str(), point)))
            .map(|(label, point)| Case::of_cell(format!("{label} at {}", place(&experiment.axis, point.x)), point))
            .collect();
        let measured = |one: &&Judged| one.origin == Origin::Measured;
        let judged = experiment.expectations.iter().flat_map(|expectation| {
            expectation.judged.iter().filter(measured).map(move |judged| Case::of_judged(expectation, judged))
        });
        cases.extend(judged);
        cases.extend(experiment.alarms.iter().map(Case::of_alarm));
        if experiment.completeness == Completeness::Partial {
            let done = format!("{} of {} runs are done", experiment.runs_done, experiment.runs_planned);
            cases.push(Case::new("every planned run".to_owned(), End::Skipped(done)));
        }
        let networks = experiment.networks.join("; ");
        let properties = (!networks.is_empty()).then(|| ("network".to_owned(), networks));
        Self { name: experiment.name.clone(), properties: properties.into_iter().collect(), cases }
    }

    fn of_changes(comparison: &Comparison) -> Self {
        let missing = |cell: &String| {
            Case::new(
                cell.clone(),
                End::Failed("no run counts any more, or a quantile is not reached".to_owned(), cell.clone()),
            )
        };
        let lost = comparison.missing.iter().map(missing);
        let cases = lost.chain(comparison.rows.iter().map(Case::of_change)).collect();
        Self { name: tables::comparison_heading(comparison), properties: Vec::new(), cases }
    }
}

impl Case {
    fn new(name: String, end: End) -> Self {
        Self { name, took_ms: 0, end, note: String::new() }
    }

    fn of_cell(name: String, point: &Point) -> Self {
        let count = point.runs as usize + point.failures.len() + point.voids.len();
        let (mut end, mut note) = (End::Passed, String::new());
        if !point.failures.is_empty() {
            end = End::Broken(format!("{} of {count} runs failed", point.failures.len()), point.failures.join("\n"));
        } else if point.runs == 0 {
            end = End::Skipped(format!("no run counts: {}", point.voids.join("; ")));
        } else if !point.voids.is_empty() {
            note = format!("void: {}", point.voids.join("\n"));
        }
        Self { name, took_ms: point.took_ms, end, note }
    }

    fn of_judged(expectation: &Expectation, judged: &Judged) -> Self {
        let Judged { outcome, detail, figures, .. } = judged;
        let end = match outcome {
            Agreement::Confirmed => End::Passed,
            Agreement::Refuted => End::Failed(detail.clone(), figures.join("\n")),
            Agreement::Undecided => End::Skipped(detail.clone()),
        };
        Self::new(tables::asserted(expectation, judged), end)
    }

    fn of_alarm(alarm: &Alarm) -> Self {
        let Alarm { assertion, outcome, detail, figures } = alarm;
        let end = match outcome {
            Agreement::Confirmed => End::Failed(detail.clone(), figures.join("\n")),
            Agreement::Refuted => End::Passed,
            Agreement::Undecided => End::Skipped(detail.clone()),
        };
        Self::new(format!("--fail-if {assertion}"), end)
    }

    fn of_change(row: &ComparisonRow) -> Self {
        let [before, after] = [row.baseline, row.value].map(|figure| tables::figure(Some(figure)));
        let end = match row.change {
            Change::Better | Change::Different | Change::Equivalent => End::Passed,
            Change::Worse => End::Failed(
                format!("worse by {}", tables::percent(row.relative_percent)),
                format!("{before} before, {after} now"),
            ),
            Change::Undecided => End::Skipped(format!("undecided: {}", tables::change_interval(row))),
            Change::Unknown => End::Skipped("too few runs to tell".to_owned()),
        };
        Self::new(format!("{}: {} of {}", row.candidate, row.metric, row.cell), end)
    }

    fn write(&self, suite: &str, out: &mut String) {
        let (name, class) = (escaped(&self.name), escaped(suite));
        let _ = write!(out, "    <testcase classname=\"{class}\" name=\"{name}\" time=\"{}\"", seconds(self.took_ms));
        let told = |element: &str, message: &str, text: &str| {
            let (message, text) = (escaped(message), escaped(text));
            format!("<{element} message=\"{message}\" type=\"{element}\">{text}</{element}>")
        };
        let mut inner = match &self.end {
            End::Passed => String::new(),
            End::Skipped(message) => format!("<skipped message=\"{}\"/>", escaped(message)),
            End::Failed(message, text) => told("failure", message, text),
            End::Broken(message, text) => told("error", message, text),
        };
        if !self.note.is_empty() {
            let _ = write!(inner, "<system-out>{}</system-out>", escaped(&self.note));
        }
        out.push_str(&if inner.is_empty() { "/>\n".to_owned() } else { format!(">{inner}</testcase>\n") });
    }
}

/// Name, counts and time of what holds these tests.
fn attributes<'c>(name: &str, cases: impl Iterator<Item = &'c Case>, now: &str) -> String {
    let (mut tests, mut failures, mut errors, mut skipped, mut took_ms) = (0, 0, 0, 0, 0);
    for case in cases {
        tests += 1;
        took_ms += case.took_ms;
        match case.end {
            End::Passed => {}
            End::Skipped(..) => skipped += 1,
            End::Failed(..) => failures += 1,
            End::Broken(..) => errors += 1,
        }
    }
    format!(
        "name=\"{}\" tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\" skipped=\"{skipped}\" time=\"{}\" \
         timestamp=\"{}\"",
        escaped(name),
        seconds(took_ms),
        escaped(now)
    )
}

fn seconds(ms: u64) -> String {
    format!("{}.{:03}", ms / 1000, ms % 1000)
}

/// Text as XML takes it, in elements and in attributes. What no XML 1.0 document may hold (section 2.2) is replaced.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            // Attributes would have spaces in their place (section 3.3.3).
            '\n' | '\r' | '\t' => {
                let _ = write!(out, "&#{};", u32::from(c));
            }
            '\0'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => out.push(char::REPLACEMENT_CHARACTER),
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{NAME, compared, hostile, report};
    use roxmltree::{Document, Node};

    fn named<'d>(document: &'d Document<'_>, element: &str, name: &str) -> Node<'d, 'd> {
        let is_it = |node: &Node<'_, '_>| node.has_tag_name(element) && node.attribute("name") == Some(name);
        let found = document.descendants().find(is_it);
        found.unwrap_or_else(|| panic!("no {element} {name}: {}", document.input_text()))
    }

    /// The elements within a test, with their messages and texts.
    fn ends(document: &Document<'_>, name: &str) -> Vec<[String; 3]> {
        let texts = |node: Node<'_, '_>| {
            [node.tag_name().name(), node.attribute("message").unwrap_or(""), node.text().unwrap_or("")]
                .map(str::to_owned)
        };
        named(document, "testcase", name).children().filter(Node::is_element).map(texts).collect()
    }

    fn end(document: &Document<'_>, name: &str) -> [String; 3] {
        ends(document, name).pop().unwrap_or_default()
    }

    #[test]
    fn cells_and_assertions_are_tests() {
        let text = text(&report());
        let document = Document::parse(&text).unwrap();
        assert_eq!(ends(&document, "websocket at 2 clients").len(), 0);
        assert_eq!(named(&document, "testcase", "websocket at 2 clients").attribute("time"), Some("4.500"));
        let [element, _, note] = end(&document, "sse at 2 clients");
        assert_eq!((element.as_str(), note.as_str()), ("system-out", "void: repeat 3: long-turns: p99 30 ms"));
        let failed = ["error", "1 of 3 runs failed", "repeat 1: it died"];
        assert_eq!(end(&document, "polling at 2 clients"), failed);

        let [fast, slow, unknown] = ["< latency(sse), pushlab", "> latency(sse), pushlab", "< latency(polling)"];
        let expected = |rest: &str| format!("latency(websocket) {rest}");
        assert_eq!(ends(&document, &expected(fast)).len(), 0);
        let [element, message, figures] = end(&document, &expected(slow));
        assert_eq!((element.as_str(), message.as_str()), ("failure", "refuted at 2"));
        assert!(
            figures.starts_with("at 2: latency(websocket) = 1.02 ms (") && figures.contains("latency(sse) = 2.03 ms (")
        );
        let [element, message, _] = end(&document, &expected(unknown));
        assert_eq!((element.as_str(), message.as_str()), ("skipped", "polling has no latency_median"));

        let asked = |rest: &str| end(&document, &format!("--fail-if latency({rest} ms"));
        assert_eq!(asked("sse) > 1")[..2], ["failure", "confirmed at 2"]);
        assert_eq!(asked("sse) > 9"), [""; 3]);
        assert_eq!(asked("polling) > 1")[..2], ["skipped", "polling has no latency_median"]);

        let suite = named(&document, "testsuite", "drill");
        let counts = ["tests", "failures", "errors", "skipped", "time"].map(|name| suite.attribute(name).unwrap());
        assert_eq!(counts, ["9", "2", "1", "2", "13.500"]);
        let property = |name: &str| named(&document, "property", name).attribute("value");
        assert_eq!(["pushlab", "seed", "network"].map(property), ["1.2.3", "7", "loopback"].map(Some));
        assert!(property("kernel").is_some());
    }

    #[test]
    fn a_cell_without_a_run_that_counts_is_skipped() {
        let mut report = report();
        let point = &mut report.experiments[0].series[1].points[0];
        (point.runs, point.voids) = (0, vec!["repeat 1: too slow".to_owned(), "repeat 2: so was this".to_owned()]);
        let text = text(&report);
        let skipped = end(&Document::parse(&text).unwrap(), "sse at 2 clients");
        assert_eq!(skipped, ["skipped", "no run counts: repeat 1: too slow; repeat 2: so was this", ""]);
    }

    #[test]
    fn what_was_interrupted_does_not_pass() {
        let mut report = report();
        report.experiments[0].completeness = Completeness::Partial;
        let text = text(&report);
        let [element, message, _] = end(&Document::parse(&text).unwrap(), "every planned run");
        assert_eq!((element.as_str(), message.as_str()), ("skipped", "9 of 9 runs are done"));
    }

    #[test]
    fn what_got_worse_is_a_failure() {
        let text = text(&compared());
        let document = Document::parse(&text).unwrap();
        let [element, message, figures] = end(&document, "after: latency_median of drill · websocket · 2 clients");
        assert_eq!((element.as_str(), message.as_str()), ("failure", "worse by +200.0 %"));
        assert!(figures.starts_with("1.02 ±") && figures.ends_with(" now"), "{figures}");
        assert_eq!(ends(&document, "after: cpu of drill · websocket · 2 clients").len(), 0);
        let [element, ..] = end(&document, "after: drill · sse · 2 clients: it died");
        assert_eq!(element, "failure");
    }

    #[test]
    fn names_come_back_as_they_were() {
        let text = text(&hostile());
        let document = Document::parse(&text).unwrap();
        let name = NAME.replace('\u{1b}', "\u{fffd}");
        assert_eq!(document.root_element().attribute("name"), Some(name.as_str()));
        assert_eq!(named(&document, "property", &name).attribute("value"), Some(name.as_str()));
        assert_eq!(end(&document, "polling at 2 clients")[2], format!("repeat 1: {name}"));
    }
}
