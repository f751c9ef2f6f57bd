//! What to choose, in sentences that follow from the card.

use crate::report::card::choice::{Choice, Standing, gain, is_open, late_ms, with_figures};
use crate::report::wording::{digits, either, join};
use pushlab_experiment::Workload;
use pushlab_report::{Advice, CardRow, Scorecard};
use pushlab_stats::best::Conclusion;
use std::collections::{BTreeMap, BTreeSet};

/// Options that a sentence names for one row.
const COSTS_MAX: usize = 3;

/// For each kind of application on whose choice some row bears: what to choose, and what it costs to choose otherwise.
/// Quantities decide; what works through a proxy is a condition, which is told.
pub fn advice(card: &Scorecard) -> Vec<Advice> {
    Workload::ALL.into_iter().filter_map(|workload| for_workload(card, workload)).collect()
}

fn for_workload(card: &Scorecard, workload: Workload) -> Option<Advice> {
    let rows: Vec<&CardRow> = card.rows.iter().filter(|row| row.bears_on(workload)).collect();
    let quantities = Quantities { among: card.quantities(workload), rows };
    let is_condition = |row: &&CardRow| row.works && row.workloads.contains(&workload);
    let conditions: Vec<&CardRow> = card.rows.iter().filter(is_condition).collect();
    let (chosen, answer, mut sentences) = match quantities.rows.as_slice() {
        [] => by_conditions(card, &conditions)?,
        _ => by_quantities(card, &quantities)?,
    };
    sentences.extend(conditions.iter().map(|row| condition(card, row, &quantities, &chosen)));
    let texts = [format!("For {}: {answer}.", workload.title())].into_iter().chain(sentences);
    let text = texts.collect::<Vec<_>>().join(" ");
    let choices = chosen.iter().map(|option| card.options[*option].key.clone()).collect();
    Some(Advice { workload, choices, answer, text })
}

/// The quantities that bear on a choice.
struct Quantities<'a> {
    /// With all options.
    rows: Vec<&'a CardRow>,
    /// Without those that are too late.
    among: Vec<&'a CardRow>,
}

/// Options, the answer in a few words, and what else there is to say.
type Answer = (Vec<usize>, String, Vec<String>);

fn by_quantities(card: &Scorecard, Quantities { rows, among }: &Quantities<'_>) -> Option<Answer> {
    let (candidates, incomplete) = with_figures(card, rows);
    let timely = candidates.iter().copied().filter(|option| late_ms(rows, *option).is_none());
    let timely: Vec<usize> = timely.collect();
    let choice = Choice::among(among, if timely.is_empty() { &candidates } else { &timely });
    let chosen: Vec<usize> = choice.chosen().map(|one| one.option).collect();
    if chosen.is_empty() {
        return None;
    }
    let mut sentences = Vec::new();
    let costs = costs(card, &choice.behind);
    if !costs.is_empty() {
        sentences.push(format!("The others are behind by at least this much: {costs}."));
    }
    let late: Vec<usize> = candidates.into_iter().filter(|option| !timely.contains(option)).collect();
    if !timely.is_empty() && !late.is_empty() {
        sentences.push(format!("Too late: {}.", too_late(card, rows, &chosen, &late)));
    }
    sentences.extend(rows.iter().filter_map(|row| failing(card, row)));
    let is_unmeasured = |option: &usize| rows.iter().all(|row| !row.failures.contains_key(&card.options[*option].key));
    let unmeasured: Vec<usize> = incomplete.into_iter().filter(is_unmeasured).collect();
    if !unmeasured.is_empty() {
        sentences
            .push(format!("Not compared, since some quantities were not measured: {}.", all_of(card, &unmeasured)));
    }
    Some((chosen, answer(card, &choice), sentences))
}

/// Where nothing but conditions count: what fails in none of them.
fn by_conditions(card: &Scorecard, conditions: &[&CardRow]) -> Option<Answer> {
    let works = |option: &usize| {
        let key = &card.options[*option].key;
        let is_known = conditions.iter().any(|row| row.cells[*option].is_some());
        is_known && conditions.iter().all(|row| !row.failures.contains_key(key))
    };
    let working: Vec<usize> = (0..card.options.len()).filter(works).collect();
    let answer = match working.as_slice() {
        [] => "nothing works everywhere".to_owned(),
        [one] => format!("{}, the only one that works wherever it was tried", card.options[*one].label),
        several => format!("{}, which work wherever they were tried", any_of(card, several)),
    };
    (!conditions.is_empty()).then_some((working, answer, Vec::new()))
}

fn answer(card: &Scorecard, choice: &Choice<'_>) -> String {
    let (firm, open) = (options(&choice.firm), options(&choice.open));
    let undecided = || undecided(&choice.open);
    if let Some(best) = &choice.compromise {
        return compromise(card, choice, best);
    }
    match (firm.as_slice(), open.as_slice()) {
        ([], [one]) => {
            let label = &card.options[*one].label;
            format!("{label}, the only one not shown to be behind by more than a margin (undecided: {})", undecided())
        }
        ([], _) => {
            let labels = any_of(card, &open);
            format!("{labels}; none of these was shown to be behind by more than a margin (undecided: {})", undecided())
        }
        (_, open) => {
            let maybe = match open {
                [] => String::new(),
                open => format!("; perhaps also {} (undecided: {})", any_of(card, open), undecided()),
            };
            format!("{}, best or equivalent in every quantity that counts{maybe}", any_of(card, &firm))
        }
    }
}

/// The rows in which it is not known whether these are behind, and how far behind they can be.
fn undecided(open: &[Standing<'_>]) -> String {
    // None where too few blocks set no limit.
    let mut limits: BTreeMap<&str, Option<f64>> = BTreeMap::new();
    for (row, against) in open.iter().flat_map(Standing::open) {
        let own = (against.conclusion != Conclusion::TooFew).then_some(against.high);
        let limit = limits.entry(&row.title).or_insert(own);
        *limit = limit.zip(own).map(|(limit, own)| limit.max(own));
    }
    let told = limits.into_iter().map(|(row, limit)| match limit {
        Some(limit) => format!("{row}, at most {} × the best", digits(limit)),
        None => row.to_owned(),
    });
    told.collect::<Vec<_>>().join("; ")
}

fn compromise(card: &Scorecard, choice: &Choice<'_>, best: &Standing<'_>) -> String {
    let label = &card.options[best.option].label;
    let behind = best.worst().map_or(String::new(), |(row, against)| {
        let factor = digits(against.factor);
        format!(
            " and {label} is furthest behind in {}, at {factor} × the best, less than the others at their worst",
            row.title
        )
    });
    let near = match choice.near.as_slice() {
        [] => String::new(),
        near => format!("; perhaps {} instead, not shown to be a worse compromise", any_of(card, &options(near))),
    };
    format!("{label}, a compromise: every option is behind in something,{behind}{near}")
}

fn options(of: &[Standing<'_>]) -> Vec<usize> {
    of.iter().map(|one| one.option).collect()
}

/// What it costs at least to choose these, by the row in which each is at its worst: `long-polling 4.0 × and polling 1.5 ×
/// (CPU per delivery)`.
fn costs(card: &Scorecard, others: &[Standing<'_>]) -> String {
    let mut by_row: Vec<(&str, Vec<(&str, f64)>)> = Vec::new();
    for (one, (row, against)) in others.iter().filter_map(|one| Some((one, one.shown()?))) {
        let cost = (card.options[one.option].label.as_str(), against.low);
        match by_row.iter_mut().find(|(title, _)| *title == row.title) {
            Some((_, costs)) => costs.push(cost),
            None => by_row.push((&row.title, vec![cost])),
        }
    }
    by_row.iter_mut().for_each(|(_, costs)| costs.sort_by(|a, b| a.1.total_cmp(&b.1)));
    let told = |(title, costs): &(&str, Vec<(&str, f64)>)| {
        let named = costs.iter().take(COSTS_MAX).map(|(label, low)| format!("{label} {} ×", digits(*low)));
        let unnamed = &costs[costs.len().min(COSTS_MAX)..];
        let more = unnamed.last().map(|(_, low)| format!("{} more, up to {} ×", unnamed.len(), digits(*low)));
        let parts: Vec<String> = named.chain(more).collect();
        format!("{} ({title})", join(&parts.iter().map(String::as_str).collect::<Vec<_>>()))
    };
    by_row.iter().map(told).collect::<Vec<_>>().join("; ")
}

/// What comes late, and in what it would be better: `polling (at least 240 ms later, though at least 4.6 × better in CPU per
/// delivery)`.
fn too_late(card: &Scorecard, rows: &[&CardRow], chosen: &[usize], late: &[usize]) -> String {
    // By the row in which they are better: who, how late and by what factor all of them at least.
    let mut groups: Vec<(Option<&str>, Vec<usize>, f64, f64)> = Vec::new();
    for (option, ms) in late.iter().filter_map(|option| Some((*option, late_ms(rows, *option)?))) {
        let (row, factor) = gain(rows, chosen, option).map_or((None, 1.0), |(row, by)| (Some(row.title.as_str()), by));
        match groups.iter_mut().find(|(title, ..)| *title == row) {
            Some((_, who, ms_least, factor_least)) => {
                who.push(option);
                (*ms_least, *factor_least) = (ms_least.min(ms), factor_least.min(factor));
            }
            None => groups.push((row, vec![option], ms, factor)),
        }
    }
    let told = |(row, who, ms, factor): &(Option<&str>, Vec<usize>, f64, f64)| {
        let but = row.map_or(String::new(), |row| format!(", though at least {} × better in {row}", digits(*factor)));
        format!("{} (at least {} ms later{but})", all_of(card, who), digits(*ms))
    };
    groups.iter().map(told).collect::<Vec<_>>().join("; ")
}

/// What failed where a quantity was to be measured.
fn failing(card: &Scorecard, row: &CardRow) -> Option<String> {
    let failing = not_working(card, row);
    (!failing.is_empty()).then(|| format!("Failed in {}: {}.", row.title, all_of(card, &failing)))
}

fn not_working(card: &Scorecard, row: &CardRow) -> Vec<usize> {
    (0..card.options.len()).filter(|option| row.failures.contains_key(&card.options[*option].key)).collect()
}

/// What a condition does to those that were chosen: `Through a buffering proxy: long-polling instead.`
fn condition(card: &Scorecard, row: &CardRow, quantities: &Quantities<'_>, chosen: &[usize]) -> String {
    let works = |option: &usize| row.cells[*option].is_some();
    let fails = |option: &usize| row.failures.contains_key(&card.options[*option].key);
    let of_chosen = |which: &dyn Fn(&usize) -> bool| chosen.iter().copied().filter(which).collect::<Vec<_>>();
    let (working, failing) = (of_chosen(&works), of_chosen(&fails));
    let unknown = of_chosen(&|option| !works(option) && !fails(option));
    let said = match (working.as_slice(), failing.as_slice()) {
        ([], []) if chosen.is_empty() => {
            instead(card, row, quantities).map_or_else(|| "nothing works".to_owned(), |(others, _)| others)
        }
        ([], []) => "not measured".to_owned(),
        ([], _) => match instead(card, row, quantities) {
            Some((others, though)) => format!("{others} instead{though}"),
            None => "nothing works".to_owned(),
        },
        (_, []) if unknown.is_empty() => "works".to_owned(),
        (working, []) => any_of(card, working),
        (working, failing) => format!("{}, not {}", any_of(card, working), any_of(card, failing)),
    };
    let unknown = if unknown.is_empty() || unknown.len() == chosen.len() {
        String::new()
    } else {
        format!(" ({} not measured)", all_of(card, &unknown))
    };
    format!("{}: {said}{unknown}.", row.title)
}

/// The choice among all that works here, and what is to be said against it; `None` where nothing works.
fn instead(
    card: &Scorecard,
    row: &CardRow,
    Quantities { rows, among }: &Quantities<'_>,
) -> Option<(String, &'static str)> {
    let works = |option: &usize| row.cells[*option].is_some();
    if rows.is_empty() {
        let working: Vec<usize> = (0..card.options.len()).filter(works).collect();
        return (!working.is_empty()).then(|| (any_of(card, &working), ""));
    }
    let (candidates, _) = with_figures(card, rows);
    let working: Vec<usize> = candidates.into_iter().filter(works).collect();
    let (late, timely): (Vec<usize>, Vec<usize>) =
        working.into_iter().partition(|option| late_ms(rows, *option).is_some());
    let is_late = timely.is_empty();
    let choice = if is_late { Choice::among(rows, &late) } else { Choice::among(among, &timely) };
    let chosen: Vec<usize> = choice.chosen().map(|one| one.option).collect();
    let though = match chosen.len() {
        _ if !is_late => "",
        1 => ", although it is too late",
        _ => ", although they are too late",
    };
    (!chosen.is_empty()).then(|| (any_of(card, &chosen), though))
}

/// `a, b or c`.
fn any_of(card: &Scorecard, options: &[usize]) -> String {
    named(card, options, either)
}

/// `a, b and c`.
fn all_of(card: &Scorecard, options: &[usize]) -> String {
    named(card, options, join)
}

/// The labels of options; what is there with a variant and without it is named once.
fn named(card: &Scorecard, options: &[usize], join: impl Fn(&[&str]) -> String) -> String {
    let labels: Vec<&str> = options.iter().map(|option| card.options[*option].label.as_str()).collect();
    let mut variants: Vec<&str> = options.iter().map(|option| card.options[*option].variant.as_str()).collect();
    variants.retain(|variant| !variant.is_empty() && labels.iter().any(|label| is_with(label, variant)));
    variants.dedup();
    if let [variant, rest @ ..] = variants.as_slice()
        && rest.iter().all(|other| other == variant)
    {
        let (with, without): (Vec<&str>, Vec<&str>) = labels.iter().partition(|label| is_with(label, variant));
        let bases: BTreeSet<String> = without.iter().map(|label| format!("{label} · {variant}")).collect();
        if bases == with.iter().map(|label| (*label).to_owned()).collect() {
            let each = if without.len() > 1 { "each " } else { "" };
            return format!("{} ({each}with or without {variant})", join(&without));
        }
    }
    join(&labels)
}

fn is_with(label: &str, variant: &str) -> bool {
    label.strip_suffix(variant).is_some_and(|rest| rest.ends_with(" · "))
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
    use pushlab_stats::best::Against;

    /// A row of cells in the order of the options, each a factor and what was shown: `1e` as good, `4d` shown to be behind
    /// (by a factor from 0.9 times that up), `1.2u` undecided, `2t` too few blocks, `-` not measured, `x` failed.
    fn row(title: &str, metric: &str, best: f64, options: &[CardOption], cells: &str) -> CardRow {
        let cells: Vec<&str> = cells.split(' ').collect();
        assert_eq!(cells.len(), options.len(), "{title}");
        let failed = options.iter().zip(&cells).filter(|(_, cell)| **cell == "x");
        CardRow {
            title: title.to_owned(),
            note: String::new(),
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

    /// What is said of options `a · h2` (variant `h2`) and the like.
    fn advised(labels: &[&str], rows: &[(&str, &str, f64, &str)]) -> Advice {
        let variant = |label: &str| label.split_once(" · ").map_or("", |(_, variant)| variant).to_owned();
        let option = |label: &&str| CardOption {
            key: (*label).to_owned(),
            label: (*label).to_owned(),
            subject: "pushlab".to_owned(),
            transport: String::new(),
            variant: variant(label),
        };
        let options: Vec<CardOption> = labels.iter().map(option).collect();
        let rows = rows.iter().map(|(title, metric, best, cells)| row(title, metric, *best, &options, cells)).collect();
        let card = Scorecard { options, rows, narrowed: Vec::new(), advice: Vec::new(), notes: Vec::new() };
        let mut all = advice(&card);
        assert_eq!(all.len(), 1, "of the one workload that there is");
        all.remove(0)
    }

    const CPU: &str = "cpu_per_delivery";
    const LATENCY: &str = "latency_median";
    const SHARE: &str = "delivered_share";

    #[test]
    fn the_best_of_all_is_named_with_what_the_others_cost() {
        let found = advised(&["ws", "sse", "poll"], &[("CPU", CPU, 1.0, "1e 2d 4d"), ("Bytes", CPU, 1.0, "1e 1e 9d")]);
        assert_eq!(found.choices, ["ws"]);
        assert_eq!(
            found.text,
            "For chat: ws, best or equivalent in every quantity that counts. The others are behind by at least this \
             much: sse 1.80 × (CPU); poll 8.10 × (Bytes)."
        );
    }

    #[test]
    fn of_many_that_are_behind_the_rest_is_counted() {
        let found = advised(&["a", "b", "c", "d", "e", "f"], &[("CPU", CPU, 1.0, "1e 6d 5d 4d 3d 2d")]);
        assert!(
            found.text.ends_with(": f 1.80 ×, e 2.70 ×, d 3.60 × and 2 more, up to 5.40 × (CPU)."),
            "{}",
            found.text
        );
    }

    #[test]
    fn equals_are_one_choice_and_what_is_undecided_perhaps_one() {
        let found = advised(&["ws", "ws · h2", "sse"], &[("CPU", CPU, 1.0, "1e 1.02e 1.2u")]);
        assert_eq!(found.choices, ["ws", "ws · h2", "sse"]);
        assert_eq!(
            found.text,
            "For chat: ws (with or without h2), best or equivalent in every quantity that counts; perhaps also sse \
             (undecided: CPU, at most 1.56 × the best)."
        );
    }

    #[test]
    fn where_nothing_was_decided_all_are_named_and_the_rows() {
        let found = advised(
            &["ws", "sse", "ws · h2", "sse · h2", "poll"],
            &[("CPU", CPU, 1.0, "1u 1.1u 1.2u 1.3u 5d"), ("Memory", CPU, 1.0, "1e 1e 1e 1.2t 1e")],
        );
        assert_eq!(
            found.answer,
            "ws or sse (each with or without h2); none of these was shown to be behind by more than a margin \
             (undecided: CPU, at most 1.69 × the best; Memory)"
        );
        assert!(found.text.ends_with(" The others are behind by at least this much: poll 4.50 × (CPU)."), "{found:?}");
    }

    #[test]
    fn one_that_alone_is_behind_in_nothing_is_the_choice_although_undecided() {
        let found = advised(&["ws", "sse"], &[("CPU", CPU, 1.0, "1u 1.2u"), ("Memory", CPU, 1.0, "1e 2d")]);
        assert_eq!(
            found.answer,
            "ws, the only one not shown to be behind by more than a margin (undecided: CPU, at most 1.30 × the best)"
        );
    }

    #[test]
    fn a_compromise_is_least_behind_where_it_is_worst_and_names_what_may_be_as_good() {
        let rows = [("CPU", CPU, 1.0, "1e 3d 3.1d 8d"), ("Memory", CPU, 1.0, "6d 1e 1e 1e")];
        let found = advised(&["a", "b", "c", "d"], &rows);
        assert_eq!(found.choices, ["b"]);
        assert_eq!(
            found.text,
            "For chat: b, a compromise: every option is behind in something, and b is furthest behind in CPU, at 3.00 × the \
             best, less than the others at their worst; perhaps c instead, not shown to be a worse compromise. The others \
             are behind by at least this much: a 5.40 × (Memory); d 7.20 × (CPU)."
        );
    }

    /// Else a poll at an interval would win by asking rarely.
    #[test]
    fn what_comes_late_is_no_choice_however_cheap_and_the_others_are_compared_without_it() {
        let rows = [("CPU", CPU, 1.0, "5d 5.2d 20d 1e"), ("Latency", LATENCY, 0.8, "1e 1.02e 1e 320d")];
        let found = advised(&["ws", "sse", "long", "poll"], &rows);
        assert_eq!(found.choices, ["ws", "sse"]);
        assert_eq!(
            found.text,
            "For chat: ws or sse; none of these was shown to be behind by more than a margin (undecided: CPU, at most 1.27 × the best). The others are \
             behind by at least this much: long 3.27 × (CPU). Too late: poll (at least 230 ms later, though at least 4.29 × better in CPU)."
        );
    }

    #[test]
    fn what_is_late_and_cheap_in_the_same_is_told_together_by_what_holds_for_all() {
        let rows = [("CPU", CPU, 1.0, "5d 1e 1.05e"), ("Latency", LATENCY, 1.0, "1e 310d 300d")];
        let text = advised(&["ws", "poll", "ws-poll"], &rows).text;
        let expected = " Too late: poll and ws-poll (at least 269 ms later, though at least 4.08 × better in CPU).";
        assert!(text.ends_with(expected), "{text}");
        let rows = [("CPU", CPU, 1.0, "1e 5d 1.05e"), ("Latency", LATENCY, 1.0, "1e 310d 300d")];
        let text = advised(&["ws", "poll", "ws-poll"], &rows).text;
        assert!(text.ends_with(" Too late: poll and ws-poll (at least 269 ms later)."), "{text}");
    }

    #[test]
    fn a_small_delay_is_weighed_and_not_late() {
        // Nine times as long, and still within a hundredth of a second.
        let rows = [("CPU", CPU, 1.0, "20d 1e"), ("Latency", LATENCY, 1.0, "1e 9d")];
        let found = advised(&["ws", "poll"], &rows);
        assert!(found.answer.starts_with("poll, a compromise"), "{}", found.answer);
        // What was not shown to be late is not late either.
        let rows = [("CPU", CPU, 1.0, "20d 1e"), ("Latency", LATENCY, 1.0, "1t 300t")];
        assert_eq!(advised(&["ws", "poll"], &rows).choices, ["poll"]);
    }

    #[test]
    fn where_all_with_figures_are_late_they_are_compared_all_the_same() {
        let rows = [("CPU", CPU, 1.0, "- 3d 1e"), ("Latency", LATENCY, 1.0, "1e 300d 310d")];
        let found = advised(&["ws", "a", "b"], &rows);
        assert_eq!(found.choices, ["b"]);
        assert!(found.text.ends_with(" Not compared, since some quantities were not measured: ws."), "{}", found.text);
    }

    #[test]
    fn a_proxy_is_a_condition_and_no_filter() {
        let rows = [
            ("CPU", CPU, 1.0, "1e 1e 2d 3d"),
            ("Through nginx", SHARE, 100.0, "x 1e 1e 1e"),
            ("Through one that buffers", SHARE, 100.0, "x x 1e 1e"),
            ("Through one that cuts", SHARE, 100.0, "1e 1e x x"),
            ("Twelve tabs", SHARE, 100.0, "1e - x x"),
        ];
        let found = advised(&["ws", "sse", "long", "poll"], &rows);
        assert_eq!(found.choices, ["ws", "sse"]);
        assert!(
            found.text.ends_with(
                " Through nginx: sse, not ws. Through one that buffers: long instead. Through one that cuts: works. Twelve \
                 tabs: ws (sse not measured)."
            ),
            "{}",
            found.text
        );
    }

    #[test]
    fn where_only_what_is_late_gets_through_it_is_said_to_be_late() {
        let rows = [("Latency", LATENCY, 1.0, "1e 300d"), ("Through it", SHARE, 100.0, "x 1e")];
        let text = advised(&["ws", "poll"], &rows).text;
        assert!(text.ends_with(" Through it: poll instead, although it is too late."), "{text}");
        let rows = [("Latency", LATENCY, 1.0, "1e 300d 301d"), ("Through it", SHARE, 100.0, "x 1e 1e")];
        let text = advised(&["ws", "poll", "ws-poll"], &rows).text;
        assert!(text.ends_with(" Through it: poll or ws-poll instead, although they are too late."), "{text}");
        let rows = [("CPU", CPU, 1.0, "1e 1e"), ("Through it", SHARE, 100.0, "x x")];
        let text = advised(&["ws", "poll"], &rows).text;
        assert!(text.ends_with(" Through it: nothing works."), "{text}");
    }

    #[test]
    fn without_quantities_what_works_everywhere_is_the_answer() {
        let rows = [("Here", SHARE, 100.0, "x 1e 1e"), ("There", SHARE, 100.0, "1e 1e -")];
        let found = advised(&["a", "b", "c"], &rows);
        assert_eq!(
            found.text,
            "For chat: b or c, which work wherever they were tried. Here: works. There: b (c not measured)."
        );
        let rows = [("Here", SHARE, 100.0, "x 1e"), ("There", SHARE, 100.0, "1e x")];
        let found = advised(&["a", "b"], &rows);
        assert_eq!(found.text, "For chat: nothing works everywhere. Here: b. There: a.");
        assert!(found.choices.is_empty());
        let found = advised(&["a", "b"], &rows[..1]);
        assert_eq!(found.answer, "b, the only one that works wherever it was tried");
    }

    #[test]
    fn what_fails_where_it_was_to_be_measured_is_no_choice() {
        let found = advised(&["a", "b"], &[("CPU", CPU, 1.0, "1e 1e"), ("Memory", CPU, 1.0, "x 1e")]);
        assert_eq!(found.text, "For chat: b, best or equivalent in every quantity that counts. Failed in Memory: a.");
    }
}
