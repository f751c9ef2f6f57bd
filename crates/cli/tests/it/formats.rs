//! One report in every form that the command line prints.

use crate::campaign::Place;
use crate::transfer::Table;
use std::path::Path;

/// A small reference result.
fn stored(place: &Place) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../runs/cometd-idle-full.csv");
    place.prints(&["import", file.to_str().unwrap()]);
}

#[test]
fn a_stored_result_is_printed_in_every_form() {
    let place = Place::new("formats");
    stored(&place);
    let text = place.prints(&["report"]);
    assert!(text.contains("\nVerdict\n") && text.contains("\nReport: results/"), "{text}");
    assert!(place.prints(&["report", "--format", "text"]).starts_with(text.split("\nVerdict").next().unwrap()));
    assert_eq!(
        place.json(&["report", "--json"])["experiments"],
        place.json(&["report", "--format", "json"])["experiments"]
    );

    let markdown = place.prints(&["report", "--format", "markdown"]);
    let heading = text.lines().find(|line| line.contains(" · ")).unwrap();
    assert!(markdown.contains(&format!("\n### {heading}\n")), "{markdown}");
    let columns = text.lines().find(|line| line.starts_with("  transport ")).unwrap();
    let columns: Vec<&str> = columns.split("  ").map(str::trim).filter(|word| !word.is_empty()).collect();
    let row = format!("\n| {} |  |\n", columns.join(" | "));
    assert!(markdown.contains(&row), "{row}{markdown}");

    let junit = place.prints(&["report", "--format", "junit"]);
    let count = |what: &str| junit.matches(what).count();
    let tests: usize = junit.split("tests=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap();
    assert!(tests > 4 && count("<testcase ") == tests, "{junit}");
    assert!(count("<skipped ") > 0, "two runs leave some assertions undecided: {junit}");
    for form in ["markdown", "junit"] {
        let shown = place.prints(&["show", "cometd-idle-full", "--format", form]);
        assert_eq!(shown.lines().next(), place.prints(&["report", "--format", form]).lines().next());
    }
    let (code, error) = place.fails(&["report", "--json", "--format", "junit"]);
    assert!(code == 2 && error.contains("cannot be used with"), "{error}");
}

/// JUnit's XML but for the second in which it was written.
fn undated(junit: &str) -> String {
    let mut parts = junit.split(" timestamp=\"");
    let first = parts.next().unwrap().to_owned();
    parts.fold(first, |text, part| text + part.split_once('"').unwrap().1)
}

/// A job wants several forms of one report, and its answer in a file that other steps write to, too.
#[test]
fn a_report_is_written_in_other_forms_beside_the_page() {
    let place = Place::new("formats-files");
    stored(&place);
    let summary = place.path("summary.md");
    std::fs::write(&summary, "# What others say\n\n").unwrap();
    let asked = ["report", "--report", "markdown", "--report", "junit", "--summary", "summary.md"];
    let said = place.prints(&asked);
    let page = said.lines().find_map(|line| line.strip_prefix("Report: ")).unwrap();
    let folder = place.path(page).parent().unwrap().to_owned();
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    assert_eq!(undated(&read("report.xml")), undated(&place.prints(&["report", "--format", "junit"])));
    let titled = |text: &str| text.lines().next().unwrap().to_owned();
    assert_eq!(titled(&read("report.md")), titled(&place.prints(&["report", "--format", "markdown"])));
    let told = std::fs::read_to_string(&summary).unwrap();
    assert!(told.starts_with("# What others say\n\n## ") && told.lines().count() < 20, "{told}");
    let verdict = said.split("\nVerdict\n  ").nth(1).unwrap().lines().next().unwrap();
    assert!(told.contains(verdict.split(['(', '*']).next().unwrap()), "{verdict}: {told}");
    place.prints(&asked);
    assert_eq!(std::fs::read_to_string(&summary).unwrap().matches("# What others say").count(), 1, "it is added to");
    let (code, error) = place.fails(&["report", "--summary", "no/such/folder/summary.md"]);
    assert!(code == 6 && error.contains("cannot write --summary no/such/folder/summary.md"), "{error}");
}

/// A folder of reports may be shared, as by jobs that end at the same time.
#[test]
fn programs_that_write_one_report_at_the_same_time_all_do() {
    let place = Place::new("formats-together");
    stored(&place);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..8).map(|_| scope.spawn(|| place.prints(&["report", "--report", "junit"]))).collect();
        for writer in writers {
            let said = writer.join().unwrap();
            let page = said.lines().find_map(|line| line.strip_prefix("Report: ")).unwrap();
            let text = std::fs::read_to_string(place.path(page)).unwrap();
            assert!(text.ends_with("</html>\n"), "{}", &text[text.len().saturating_sub(80)..]);
        }
    });
}

#[test]
fn what_got_worse_is_a_failed_test() {
    let place = Place::new("formats-compare");
    for (name, ms) in [("before", 10.0), ("after", 20.0)] {
        let values: Vec<f64> = (0..7).map(|i| ms + 0.1 * f64::from(i)).collect();
        Table::new("drill").runs("sse", "latency_median", "ms", &values).import(&place, name);
    }
    let junit = place.prints(&["compare", "before", "after", "--format", "junit"]);
    assert!(junit.contains("<testsuite name=\"after against before\" tests=\"1\" failures=\"1\""), "{junit}");
    let markdown = place.prints(&["compare", "before", "after", "--format", "markdown"]);
    assert!(markdown.contains("### after against before\n") && markdown.contains(" | worse |\n"), "{markdown}");
}

#[test]
fn names_of_somebody_elses_file_break_no_form() {
    let place = Place::new("formats-hostile");
    let name = "\"a|<b>&\"\"c\"\" **d**\"";
    Table::new(name).runs("sse", "latency_median", "ms", &[1.0, 2.0]).import(&place, "hostile");
    let json = place.json(&["report", "--json"]);
    assert_eq!(json["experiments"][0]["name"], "a|<b>&\"c\" **d**");
    let markdown = place.prints(&["report", "--format", "markdown"]);
    assert!(markdown.contains("### a\\|\\<b\\>\\&\"c\" \\*\\*d\\*\\*"), "{markdown}");
    let junit = place.prints(&["report", "--format", "junit"]);
    assert!(junit.contains("<testsuite name=\"a|&lt;b&gt;&amp;&quot;c&quot; **d**\""), "{junit}");
    let text = place.prints(&["report"]);
    assert!(text.contains("\na|<b>&\"c\" **d** · "), "{text}");
}
