//! What to choose, in sentences that follow from the card.

use crate::report::card::choice::{Choice, Standing, gain, is_open, late_ms, with_figures};
use crate::report::card::practical::{self, Practical};
use crate::report::wording::{capital, digits, in_sentence, join, least};
use pushlab_experiment::Workload;
use pushlab_report::{Advice, CardRow, Scorecard};
use pushlab_wire::transport::Transport;

/// For each kind of application on whose choice some row bears: what to choose, what comes next and why, and what would
/// change it. No sentence names more than two options.
pub fn advice(card: &Scorecard) -> Vec<Advice> {
    Workload::ALL.into_iter().filter_map(|workload| for_workload(card, workload)).collect()
}

fn for_workload(card: &Scorecard, workload: Workload) -> Option<Advice> {
    let rows: Vec<&CardRow> = card.rows.iter().filter(|row| row.bears_on(workload)).collect();
    let quantities = Quantities { among: card.quantities(workload), rows };
    let is_condition = |row: &&CardRow| row.works && row.workloads.contains(&workload);
    let conditions: Vec<&CardRow> = card.rows.iter().filter(is_condition).collect();
    let (chosen, mut sentences) = match quantities.rows.as_slice() {
        [] => by_conditions(card, &conditions)?,
        _ => by_quantities(card, &quantities)?,
    };
    sentences.extend(conditions.iter().filter_map(|row| condition(card, row, &quantities, chosen.first().copied())));
    let choices = chosen.iter().map(|option| card.options[*option].key.clone()).collect();
    Some(Advice { workload, choices, text: sentences.join(" ") })
}

/// The quantities that bear on a choice.
struct Quantities<'a> {
    /// With all options.
    rows: Vec<&'a CardRow>,
    /// Without those that are too late.
    among: Vec<&'a CardRow>,
}

impl Quantities<'_> {
    /// The choice among these, of which those that come too late count only where all do; whether it is late.
    fn choose(&self, card: &Scorecard, options: Vec<usize>) -> Option<(Choice<'_>, bool)> {
        let (late, timely): (Vec<usize>, Vec<usize>) =
            options.into_iter().partition(|option| late_ms(&self.rows, *option).is_some());
        match timely.is_empty() {
            true => Some((Choice::among(card, &self.rows, &late)?, true)),
            false => Some((Choice::among(card, &self.among, &timely)?, false)),
        }
    }
}

/// The choice and its runner-up, and what there is to say of them.
type Answer = (Vec<usize>, Vec<String>);

fn by_quantities(card: &Scorecard, quantities: &Quantities<'_>) -> Option<Answer> {
    let (candidates, incomplete) = with_figures(card, &quantities.rows);
    let late: Vec<usize> =
        candidates.iter().copied().filter(|option| late_ms(&quantities.rows, *option).is_some()).collect();
    let (choice, is_late) = quantities.choose(card, candidates)?;
    let best = choice.best.option;
    let mut sentences = vec![recommended(card, &choice.best)];
    if let Some(next) = &choice.runner_up {
        sentences.push(runner_up(card, &choice, next));
        sentences.extend(instead_if(card, best, next.option));
    }
    if !is_late {
        sentences.extend(if_late(card, &quantities.rows, best, &late));
    }
    if !incomplete.is_empty() {
        let labels: Vec<String> = incomplete.iter().map(|option| name(card, *option)).collect();
        let who = match labels.as_slice() {
            [] | [_] | [_, _] => join(&labels.iter().map(String::as_str).collect::<Vec<_>>()),
            several => format!("{} options", several.len()),
        };
        sentences.push(format!("Not compared, because a measurement failed or is missing: {who}."));
    }
    Some(([Some(best), choice.runner_up.map(|next| next.option)].into_iter().flatten().collect(), sentences))
}

/// Where nothing but conditions count: what fails in none of them.
fn by_conditions(card: &Scorecard, conditions: &[&CardRow]) -> Option<Answer> {
    let works = |option: &usize| {
        let key = &card.options[*option].key;
        let is_known = conditions.iter().any(|row| row.cells[*option].is_some());
        is_known && conditions.iter().all(|row| !row.failures.contains_key(key))
    };
    let mut working: Vec<usize> = (0..card.options.len()).filter(works).collect();
    working.sort_by(|a, b| practical::order(card, *a, *b));
    working.truncate(2);
    let sentence = match working.as_slice() {
        [] => "Every option that was tried fails somewhere.".to_owned(),
        [one] => format!("{}. It is the only one that works wherever it was tried.", capital(&name(card, *one))),
        [one, next, ..] => {
            let (one, next) = (capital(&name(card, *one)), name(card, *next));
            format!("{one}. It works wherever it was tried, and so does {next}.")
        }
    };
    (!conditions.is_empty()).then_some((working, vec![sentence]))
}

fn recommended(card: &Scorecard, best: &Standing<'_>) -> String {
    let label = capital(&name(card, best.option));
    match best.worst() {
        Some((row, against)) if best.loss() > 1.0 => format!(
            "{label}, as a compromise: every option seems behind in something; this one seems least so, {}× in {}.",
            digits(against.factor),
            in_sentence(&row.title)
        ),
        _ => format!("{label}."),
    }
}

/// What comes next, and what separates it from the best.
fn runner_up(card: &Scorecard, choice: &Choice<'_>, next: &Standing<'_>) -> String {
    let (label, first) = (name(card, next.option), name(card, choice.best.option));
    let rows: Vec<&CardRow> = next.cells.iter().map(|(row, _)| *row).collect();
    let Some(broken_by) = &choice.tie_broken_by else {
        return match gain(&rows, next.option, choice.best.option) {
            Some((row, by)) => {
                format!("The runner-up is {label}, at least {}× worse in {}.", least(by), in_sentence(&row.title))
            }
            None => format!("The runner-up is {label}, {}.", seems_behind(choice, next)),
        };
    };
    let open = next.cells.iter().zip(&choice.best.cells).find(|((_, own), (_, best))| is_open(*own) || is_open(*best));
    let good = match open {
        _ if next.is_shown_good() && choice.best.is_shown_good() => {
            "is just as good in everything that counts".to_owned()
        }
        Some(((row, _), _)) => format!("seems just as good, though {} is undecided", in_sentence(&row.title)),
        None => "seems as good, within the margins".to_owned(),
    };
    let reason = match broken_by {
        Practical::Works(where_) if !where_.is_empty() => {
            let titles: Vec<String> = where_.iter().map(|title| in_sentence(title)).collect();
            let titles: Vec<&str> = titles.iter().map(String::as_str).collect();
            format!("{first} is preferred because it works where the other fails: {}", join(&titles))
        }
        Practical::Works(_) => format!("{first} is preferred because it was seen to work in more places"),
        Practical::Parts => format!("{first} is preferred because it has fewer moving parts"),
        Practical::Bytes => format!("{first} is preferred because it seems to take fewer bytes"),
        Practical::Nothing => "either will do".to_owned(),
    };
    format!("{} {good}; {reason}.", capital(&label))
}

/// `which seems 1.30 × behind in CPU per delivery, though that is undecided`.
fn seems_behind(choice: &Choice<'_>, next: &Standing<'_>) -> String {
    let factors = next.cells.iter().zip(&choice.best.cells);
    let factors = factors.map(|((row, own), (_, best))| (row, own.factor / best.factor));
    let Some((row, factor)) = factors.max_by(|a, b| a.1.total_cmp(&b.1)) else { return String::new() };
    format!("which seems {}× worse in {}, though that is undecided", digits(factor), in_sentence(&row.title))
}

/// What it costs to take a message from a client.
const PUBLICATION: &str = "cpu_per_publication";

/// When to choose the runner-up: where a quantity counts in which it is better.
fn instead_if(card: &Scorecard, best: usize, next: usize) -> Option<String> {
    let rows: Vec<&CardRow> = card.rows.iter().collect();
    let (row, by) = gain(&rows, best, next)?;
    let (label, title, by) = (name(card, next), in_sentence(&row.title), least(by));
    let when = messages_for_one_sent(card, best, next).filter(|_| row.metric == PUBLICATION);
    let when =
        when.map(|messages| format!("clients send more than about one message for every {messages} they receive"));
    Some(match when.or_else(|| (!row.when.is_empty()).then(|| row.when.clone())) {
        Some(when) => format!("Choose {label} instead if {when}: it is at least {by}× better in {title}."),
        None => format!("Choose {label} instead if {title} matters most: it is at least {by}× better there."),
    })
}

/// How many messages a client receives for each that it sends when what sending costs more with the best makes up for the
/// margin of what a delivery costs.
fn messages_for_one_sent(card: &Scorecard, best: usize, next: usize) -> Option<u64> {
    let row = |metric: &str| card.rows.iter().find(|row| row.metric == metric);
    let cost = |row: &CardRow, option: usize| Some(row.cells[option].as_ref()?.estimate.value);
    let (delivery, publication) = (row("cpu_per_delivery")?, row(PUBLICATION)?);
    let more = cost(publication, best)? - cost(publication, next)?;
    let messages = more / (cost(delivery, best)? * delivery.margin_percent / 100.0);
    (messages >= 2.0).then_some(messages as u64)
}

/// What comes too late, of that the one which would be better by most.
fn if_late(card: &Scorecard, rows: &[&CardRow], best: usize, late: &[usize]) -> Option<String> {
    let gained = late.iter().filter_map(|option| Some((*option, gain(rows, best, *option)?, late_ms(rows, *option)?)));
    let (option, (row, by), ms) = gained.max_by(|a, b| a.1.1.total_cmp(&b.1.1))?;
    let (label, ms, by) = (capital(&name(card, option)), least(ms), least(by));
    Some(format!(
        "{label} is at least {by}× better in {}, but delivers at least {ms} ms later than the fastest.",
        in_sentence(&row.title)
    ))
}

/// What a condition does to the choice: `Through a buffering proxy: long polling instead.`
fn condition(card: &Scorecard, row: &CardRow, quantities: &Quantities<'_>, best: Option<usize>) -> Option<String> {
    if best.is_some_and(|best| row.cells[best].is_some()) {
        return None;
    }
    let fails = |option: usize| row.failures.contains_key(&card.options[option].key);
    let untried = best.filter(|best| !fails(*best)).map(|best| format!("{} was not tried", name(card, best)));
    let said = match (instead(card, row, quantities), untried) {
        (None, None) => "nothing that was compared is known to work".to_owned(),
        (None, Some(untried)) => untried,
        (Some((other, late)), Some(untried)) => format!("{other}{late}; {untried}"),
        (Some((other, late)), None) if best.is_some() => format!("{other} instead{late}"),
        (Some((other, late)), None) => format!("{other}{late}"),
    };
    Some(format!("{}: {said}.", row.title))
}

/// The choice among all that works here, and what is said if it is too late; `None` where nothing works.
fn instead(card: &Scorecard, row: &CardRow, quantities: &Quantities<'_>) -> Option<(String, &'static str)> {
    let works = |option: &usize| row.cells[*option].is_some();
    if quantities.rows.is_empty() {
        let working = (0..card.options.len()).filter(works);
        return Some((name(card, working.min_by(|a, b| practical::order(card, *a, *b))?), ""));
    }
    let (candidates, _) = with_figures(card, &quantities.rows);
    let (choice, is_late) = quantities.choose(card, candidates.into_iter().filter(works).collect())?;
    Some((name(card, choice.best.option), if is_late { ", although it delivers late" } else { "" }))
}

/// `long polling`, `SSE over HTTP/2`, `WebSocket (gws)`.
fn name(card: &Scorecard, option: usize) -> String {
    let option = &card.options[option];
    let Some(transport) = Transport::from_name(&option.transport) else { return option.label.clone() };
    let own = |part: &&str| *part != transport.name();
    let (mut over, mut others) = (String::new(), Vec::new());
    for part in option.label.split(" · ").filter(own) {
        match part {
            "http1" => over = " over HTTP/1.1".to_owned(),
            "http2" => over = " over HTTP/2".to_owned(),
            other => others.push(other),
        }
    }
    let others = if others.is_empty() { String::new() } else { format!(" ({})", others.join(", ")) };
    format!("{}{over}{others}", transport.title())
}

/// How much of the card is decided, and what is not; `None` where nothing is compared.
pub fn decided(card: &Scorecard) -> Option<String> {
    let compared = || card.rows.iter().filter(|row| !row.works);
    let contrasts: usize = compared().map(|row| row.cells.iter().flatten().count().saturating_sub(1)).sum();
    if contrasts == 0 {
        return None;
    }
    // Where several may be the best, the one that seems to be is what the others are compared with.
    let open = |row: &CardRow| {
        let cells = row.cells.iter().flatten();
        cells.filter(|cell| is_open(cell.against) && cell.against.factor > 1.0).count()
    };
    let undecided: Vec<(&str, usize)> =
        compared().map(|row| (row.title.as_str(), open(row))).filter(|(_, open)| *open > 0).collect();
    let count: usize = undecided.iter().map(|(_, open)| open).sum();
    if count == 0 {
        return Some(format!("All {contrasts} comparisons with the best of a row are decided."));
    }
    let listed: Vec<String> = undecided.iter().map(|(row, open)| format!("{row} ({open})")).collect();
    let listed = listed.join(", ");
    Some(format!("{count} of {contrasts} comparisons with the best of a row are undecided: {listed}."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pushlab_experiment::metric::Better;
    use pushlab_report::{CardCell, CardOption, Estimate};
    use pushlab_stats::best::{Against, Conclusion};

    /// A row of cells in the order of the options, each a factor and what was shown: `1e` as good, `4d` shown to be behind
    /// (by a factor from 0.9 times that up), `1.2u` undecided, `2t` too few blocks, `-` not measured, `x` failed.
    fn row(title: &str, metric: &str, best: f64, options: &[CardOption], cells: &str) -> CardRow {
        let cells: Vec<&str> = cells.split(' ').collect();
        assert_eq!(cells.len(), options.len(), "{title}");
        let failed = options.iter().zip(&cells).filter(|(_, cell)| **cell == "x");
        CardRow {
            title: title.to_owned(),
            note: String::new(),
            when: String::new(),
            metric: metric.to_owned(),
            unit: if metric.starts_with("latency") { "ms" } else { "µs" }.to_owned(),
            better: Better::Lower,
            experiment: String::new(),
            margin_percent: 10.0,
            workloads: vec![Workload::Chat],
            works: metric == "delivered_share",
            failures: failed.map(|(option, _)| (option.key.clone(), "answered 426".to_owned())).collect(),
            lacking: Default::default(),
            cells: cells.iter().map(|text| cell(text, best)).collect(),
        }
    }

    fn cell(text: &str, best: f64) -> Option<CardCell> {
        let factor: f64 = text.get(..text.len() - 1)?.parse().ok()?;
        let (low, high, conclusion) = match &text[text.len() - 1..] {
            "b" => (1.0, factor * 1.05, Conclusion::Best),
            "e" => (1.0, factor * 1.05, Conclusion::Equivalent),
            "d" => (factor * 0.9, factor * 1.1, Conclusion::Different),
            "u" => (1.0, factor * 1.3, Conclusion::Undecided),
            _ => (factor, factor, Conclusion::TooFew),
        };
        let value = best * factor;
        let estimate = Estimate { value, low: value * 0.9, high: value * 1.1, runs: 4, bound: None };
        let against = Against { factor, low, high, conclusion, machines: None };
        Some(CardCell { estimate, is_lower_bound: false, against })
    }

    /// What is said of options `sse · http2` (variant `http2`) and the like.
    fn advised(labels: &[&str], rows: &[(&str, &str, f64, &str)]) -> Advice {
        advised_of(labels, rows, |_| {})
    }

    /// The same after some change to the rows.
    fn advised_of(labels: &[&str], rows: &[(&str, &str, f64, &str)], change: impl Fn(&mut [CardRow])) -> Advice {
        let option = |label: &&str| CardOption {
            key: (*label).to_owned(),
            label: (*label).to_owned(),
            subject: "pushlab".to_owned(),
            transport: label.split(" · ").next().unwrap_or_default().to_owned(),
            variant: label.split_once(" · ").map_or("", |(_, variant)| variant).to_owned(),
        };
        let options: Vec<CardOption> = labels.iter().map(option).collect();
        let row_of =
            |(title, metric, best, cells): &(&str, &str, f64, &str)| row(title, metric, *best, &options, cells);
        let mut rows: Vec<CardRow> = rows.iter().map(row_of).collect();
        change(&mut rows);
        let card = Scorecard { options, rows, narrowed: Vec::new(), advice: Vec::new(), notes: Vec::new() };
        let mut all = advice(&card);
        assert_eq!(all.len(), 1, "of the one workload that there is");
        all.remove(0)
    }

    const CPU: &str = "cpu_per_delivery";
    const LATENCY: &str = "latency_median";
    const SHARE: &str = "delivered_share";

    #[test]
    fn the_best_is_named_with_what_comes_next_and_by_how_much_it_is_behind() {
        let found = advised(&["ws", "es", "poll"], &[("CPU", CPU, 1.0, "1e 2d 4d"), ("Bytes", CPU, 1.0, "1e 1e 9d")]);
        assert_eq!(found.choices, ["ws", "es"]);
        assert_eq!(found.text, "Ws. The runner-up is es, at least 1.71× worse in CPU.");
    }

    #[test]
    fn a_tie_is_said_to_be_one_and_broken_by_what_works_in_more_places_then_by_parts_then_by_bytes() {
        let works = ("Through nginx", SHARE, 100.0, "x 1e 1e");
        let found = advised(&["websocket", "http-streaming", "sse"], &[("CPU", CPU, 1.0, "1e 1.02e 1.05e"), works]);
        assert_eq!(found.choices, ["sse", "http-streaming"]);
        let tie = "SSE. HTTP streaming is just as good in everything that counts; SSE is preferred because it has fewer moving parts.";
        assert_eq!(found.text, tie);
        let found = advised(&["websocket", "http-streaming"], &[("CPU", CPU, 1.0, "1e 1.05e"), works_of(2, &works)]);
        assert_eq!(
            found.text,
            "HTTP streaming. WebSocket is just as good in everything that counts; HTTP streaming is preferred because it works \
             where the other fails: through nginx."
        );
        let rows = [("CPU", CPU, 1.0, "1e 1.05e"), ("Bytes per delivery", "bytes_link", 100.0, "1.09e 1e")];
        let found = advised(&["websocket", "http-streaming"], &rows);
        assert!(
            found.text.ends_with("; HTTP streaming is preferred because it seems to take fewer bytes."),
            "{}",
            found.text
        );
        let found = advised(&["sse · http2", "sse"], &rows[..1]);
        assert!(found.text.starts_with("SSE. SSE over HTTP/2 is just as good"), "{}", found.text);
        let found = advised(&["a", "b"], &rows[..1]);
        assert!(found.text.ends_with("; either will do."), "{}", found.text);
    }

    /// The first options of a row.
    fn works_of<'a>(
        options: usize,
        (title, metric, best, cells): &(&'a str, &'a str, f64, &'a str),
    ) -> (&'a str, &'a str, f64, &'a str) {
        (title, metric, *best, &cells[..cells.match_indices(' ').nth(options - 1).map_or(cells.len(), |(at, _)| at)])
    }

    #[test]
    fn of_those_tied_one_with_another_advantage_comes_next_and_it_is_said_when_that_decides() {
        let rows = [
            ("CPU per delivery", CPU, 1.0, "1e 1e 1.02e"),
            ("Bytes per client message", "bytes_per_publication", 1.0, "5d 5d 1b"),
        ];
        let options = ["sse", "http-streaming", "websocket"];
        let found = advised_of(&options, &rows, |rows| rows[1].workloads.clear());
        assert_eq!(found.choices, ["sse", "websocket"]);
        let ends = |text: &str, end: &str| assert!(text.ends_with(end), "{text}");
        ends(
            &found.text,
            " Choose WebSocket instead if bytes per client message matters most: it is at least 4.28× better there.",
        );
        let when = |rows: &mut [CardRow]| {
            rows[1].workloads.clear();
            rows[1].when = "clients send often".to_owned();
        };
        let found = advised_of(&options, &rows, when);
        ends(
            &found.text,
            " Choose WebSocket instead if clients send often: it is at least 4.28× better in bytes per client message.",
        );
        // A message sent costs 4 µs more, and one delivered 1 µs, of which a tenth does not matter.
        let rows = [rows[0], ("CPU per client message", "cpu_per_publication", 1.0, "5d 5d 1b")];
        let found = advised_of(&options, &rows, |rows| rows[1].workloads.clear());
        ends(
            &found.text,
            " Choose WebSocket instead if clients send more than about one message for every 40 they receive: it is at least 4.28× better in \
             CPU per client message.",
        );
    }

    #[test]
    fn what_is_undecided_is_no_proven_tie_and_no_proven_distance() {
        let text = advised(&["ws", "es"], &[("CPU", CPU, 1.0, "1u 1.09u")]).text;
        assert_eq!(text, "Ws. Es seems just as good, though CPU is undecided; either will do.");
        let text =
            advised(&["ws", "es", "poll"], &[("CPU", CPU, 1.0, "1u 1.2u 5d"), ("Memory", CPU, 1.0, "1e 1t 1e")]).text;
        assert_eq!(text, "Ws. The runner-up is es, which seems 1.20× worse in CPU, though that is undecided.");
    }

    #[test]
    fn a_compromise_is_least_behind_where_it_is_worst() {
        let rows = [("CPU", CPU, 1.0, "1e 3d 3.1d 8d"), ("Memory", CPU, 1.0, "6d 1e 1e 1e")];
        let found = advised(&["a", "b", "c", "d"], &rows);
        assert_eq!(found.choices, ["b", "c"]);
        assert_eq!(
            found.text,
            "B, as a compromise: every option seems behind in something; this one seems least so, 3.00× in CPU. C seems as good, within \
             the margins; either will do."
        );
    }

    /// Else a poll at an interval would win by asking rarely.
    #[test]
    fn what_comes_late_is_no_choice_however_cheap_and_the_others_are_compared_without_it() {
        let rows = [("CPU", CPU, 1.0, "5d 5.2d 20d 1e"), ("Latency", LATENCY, 0.8, "1e 1.02e 1e 320d")];
        let found = advised(&["ws", "es", "long", "poll"], &rows);
        assert_eq!(found.choices, ["ws", "es"]);
        assert!(
            found.text.ends_with(
                " Poll is at least 4.28× better in CPU, but delivers at least 229 ms later than the fastest."
            ),
            "{}",
            found.text
        );
        // What is late and better in nothing is not told.
        let rows = [("CPU", CPU, 1.0, "1e 1e 20d 1e"), ("Latency", LATENCY, 0.8, "1e 1.02e 1e 320d")];
        let text = advised(&["ws", "es", "long", "poll"], &rows).text;
        assert!(!text.contains("Poll"), "{text}");
    }

    #[test]
    fn a_small_delay_is_weighed_and_not_late() {
        // Nine times as long, and still within a hundredth of a second.
        let rows = [("CPU", CPU, 1.0, "20d 1e"), ("Latency", LATENCY, 1.0, "1e 9d")];
        assert!(advised(&["ws", "poll"], &rows).text.starts_with("Poll, as a compromise"));
        // What was not shown to be late is not late either.
        let rows = [("CPU", CPU, 1.0, "400d 1e"), ("Latency", LATENCY, 1.0, "1t 300t")];
        assert_eq!(advised(&["ws", "poll"], &rows).choices, ["poll", "ws"]);
    }

    #[test]
    fn where_all_with_figures_are_late_they_are_compared_all_the_same() {
        let rows = [("CPU", CPU, 1.0, "- 3d 1e"), ("Latency", LATENCY, 1.0, "1e 300d 310d")];
        let found = advised(&["ws", "a", "b"], &rows);
        assert_eq!(found.choices, ["b", "a"]);
        assert!(
            found.text.ends_with(" Not compared, because a measurement failed or is missing: ws."),
            "{}",
            found.text
        );
    }

    #[test]
    fn a_proxy_is_a_condition_and_no_filter() {
        let rows = [
            ("CPU", CPU, 1.0, "1e 2d 3d"),
            ("Through nginx", SHARE, 100.0, "x 1e 1e"),
            ("Through one that cuts", SHARE, 100.0, "1e x x"),
            ("Twelve tabs", SHARE, 100.0, "- x 1e"),
            ("By pigeon", SHARE, 100.0, "- - -"),
        ];
        let found = advised(&["ws", "es", "long"], &rows);
        assert_eq!(found.choices, ["ws", "es"]);
        let said = " Through nginx: es instead. Twelve tabs: long; ws was not tried. By pigeon: ws was not tried.";
        assert!(found.text.ends_with(said), "{}", found.text);
    }

    #[test]
    fn where_only_what_is_late_gets_through_it_is_said_to_be_late() {
        let rows = [("Latency", LATENCY, 1.0, "1e 300d"), ("Through it", SHARE, 100.0, "x 1e")];
        let text = advised(&["ws", "poll"], &rows).text;
        assert!(text.ends_with(" Through it: poll instead, although it delivers late."), "{text}");
        let rows = [("CPU", CPU, 1.0, "1e 1e"), ("Through it", SHARE, 100.0, "x x")];
        let text = advised(&["ws", "poll"], &rows).text;
        assert!(text.ends_with(" Through it: nothing that was compared is known to work."), "{text}");
    }

    #[test]
    fn without_quantities_what_works_everywhere_is_the_answer() {
        let rows = [("Here", SHARE, 100.0, "x 1e 1e"), ("There", SHARE, 100.0, "1e 1e -")];
        let found = advised(&["a", "b", "c"], &rows);
        assert_eq!(found.text, "B. It works wherever it was tried, and so does c.");
        let rows = [("Here", SHARE, 100.0, "x 1e"), ("There", SHARE, 100.0, "1e x")];
        let found = advised(&["a", "b"], &rows);
        assert_eq!(found.text, "Every option that was tried fails somewhere. Here: b. There: a.");
        assert!(found.choices.is_empty());
        let found = advised(&["a", "b"], &rows[..1]);
        assert_eq!(found.text, "B. It is the only one that works wherever it was tried.");
    }

    #[test]
    fn what_fails_where_it_was_to_be_measured_is_no_choice() {
        let rows = [("CPU", CPU, 1.0, "1e 1e 2d 1e"), ("Memory", CPU, 1.0, "x 1e 1e x")];
        let found = advised(&["a", "b", "c", "d"], &rows);
        assert_eq!(found.choices, ["b", "c"]);
        assert!(
            found.text.ends_with(" Not compared, because a measurement failed or is missing: a and d."),
            "{}",
            found.text
        );
        let rows = [("CPU", CPU, 1.0, "1e 1e x x"), ("Memory", CPU, 1.0, "x 1e x x")];
        let text = advised(&["a", "b", "c", "d"], &rows).text;
        assert!(text.ends_with(" is missing: 3 options."), "{text}");
    }

    #[test]
    fn no_sentence_names_more_than_two_options() {
        let options = ["websocket", "sse", "http-streaming", "long-polling", "polling", "websocket-polling"];
        let rows = [
            ("CPU", CPU, 1.0, "5d 5.1d 5.2d 20d 1e 1.1e"),
            ("Memory", CPU, 1.0, "1e 1e 1e 1e 1e x"),
            ("Latency", LATENCY, 0.8, "1e 1.02e 1e 1.5d 320d 321d"),
            ("Through nginx", SHARE, 100.0, "x 1e 1e 1e 1e x"),
            ("Through one that buffers", SHARE, 100.0, "x x x 1e 1e x"),
        ];
        let text = advised(&options, &rows).text;
        let mut titles = Transport::ALL.map(Transport::title).to_vec();
        titles.sort_by_key(|title| std::cmp::Reverse(title.len()));
        let marked = titles.iter().fold(text.clone(), |text, title| {
            let text = text.replace(title, "@");
            text.replace(&capital(title), "@")
        });
        assert!(text.contains("Not compared") && text.contains("instead."), "{text}");
        assert!(marked.split(". ").all(|sentence| sentence.matches('@').count() <= 2), "{text}");
    }
}
