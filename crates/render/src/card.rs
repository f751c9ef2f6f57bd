//! The scorecard as rows of text: an option a line, a letter for each quantity, and below it what letters and signs mean.

use super::tables::{self, Rows};
use pushlab_report::{CardCell, CardRow, NarrowedCard, Scorecard};
use pushlab_stats::best::Conclusion;

/// What signs in the table mean.
const SIGNS: &str = "1 best; ≈ as good within the margin; 4.00 shown to be worse, here four times the best; 1.20? undecided, \
                     or too few blocks; < the load generator reached its limit first, so the server may do better; – not \
                     measured";

/// An option a line, a column for each quantity.
pub fn rows(card: &Scorecard) -> Rows {
    table(card, &card.rows, &[])
}

/// A title and rows of each card without the options that are too late.
pub fn narrowed(card: &Scorecard) -> Vec<(String, Rows)> {
    let label =
        |key: &String| card.options.iter().find(|option| option.key == *key).map(|option| option.label.as_str());
    let title = |one: &NarrowedCard| {
        let late: Vec<&str> = one.late.iter().filter_map(label).collect();
        let workloads: Vec<&str> = one.workloads.iter().map(|workload| workload.title()).collect();
        format!("For {}: without {}, too late for these", workloads.join(", "), late.join(", "))
    };
    card.narrowed.iter().map(|one| (title(one), table(card, &one.rows, &one.late))).collect()
}

/// The options that are not left out, by quantities that have the letters of the whole card.
fn table(card: &Scorecard, quantities: &[CardRow], left_out: &[String]) -> Rows {
    let place = |row: &CardRow| {
        card.rows.iter().position(|whole| (&whole.experiment, &whole.title) == (&row.experiment, &row.title))
    };
    let mut heads = vec![String::new()];
    heads.extend(quantities.iter().map(|row| place(row).map_or(String::new(), letter)));
    let mut rows = vec![heads];
    for (at, option) in card.options.iter().enumerate().filter(|(_, option)| !left_out.contains(&option.key)) {
        let mut row = vec![option.label.clone()];
        row.extend(quantities.iter().map(|quantity| match &quantity.cells[at] {
            Some(_) if quantity.works => "yes".to_owned(),
            Some(found) => cell(found),
            None if quantity.lacking.contains_key(&option.key) => quantity.lacking[&option.key].why.words().to_owned(),
            None if !quantity.failures.contains_key(&option.key) => "–".to_owned(),
            None if quantity.works => "no".to_owned(),
            None => "fails".to_owned(),
        }));
        rows.push(row);
    }
    rows
}

/// What the letters stand for, with the best value of each, and what the signs mean.
pub fn legend(card: &Scorecard) -> Vec<String> {
    let mut lines: Vec<String> = card.rows.iter().enumerate().map(|(at, row)| quantity(card, at, row)).collect();
    lines.push(SIGNS.to_owned());
    lines.extend(card.rows.iter().enumerate().flat_map(|(at, row)| without_figure(card, at, row)));
    lines
}

/// `A  CPU per delivery (100 messages/s to 200 clients): best 5.46 ±0.46 µs, websocket · http2; margin 10 %`.
fn quantity(card: &Scorecard, at: usize, row: &CardRow) -> String {
    let cells = row.cells.iter().zip(&card.options).filter_map(|(cell, option)| Some((cell.as_ref()?, option)));
    let best = cells.min_by(|(a, _), (b, _)| a.against.factor.total_cmp(&b.against.factor));
    if row.works {
        return format!("{}  {}: {}", letter(at), row.title, row.note);
    }
    let note = if row.note.is_empty() { String::new() } else { format!(" ({})", row.note) };
    let best = best.map_or(String::new(), |(cell, option)| {
        format!("best {} {}, {}; ", tables::figure(Some(cell.estimate)), row.unit, option.label)
    });
    format!("{}  {}{note}: {best}margin {} %", letter(at), row.title, row.margin_percent)
}

/// `G  sse, not reached: 20 of 1000 never came …`, a line for each option.
fn without_figure(card: &Scorecard, at: usize, row: &CardRow) -> Vec<String> {
    let told = card.options.iter().filter_map(|option| Some((option, row.lacking.get(&option.key)?)));
    told.map(|(option, lacking)| format!("{}  {}, {lacking}", letter(at), option.label)).collect()
}

fn cell(cell: &CardCell) -> String {
    let factor = match cell.against.factor {
        factor if factor >= 100.0 => format!("{factor:.0}"),
        factor if factor >= 10.0 => format!("{factor:.1}"),
        factor => format!("{factor:.2}"),
    };
    let shown = match cell.against.conclusion {
        Conclusion::Best => "1".to_owned(),
        Conclusion::Equivalent => "≈".to_owned(),
        Conclusion::Different => factor,
        Conclusion::Undecided | Conclusion::TooFew => format!("{factor}?"),
    };
    if cell.is_lower_bound { format!("<{shown}") } else { shown }
}

/// A, B … Z, then numbers.
fn letter(at: usize) -> String {
    let letter = u8::try_from(at).ok().filter(|at| *at < 26).map(|at| char::from(b'A' + at));
    letter.map_or_else(|| (at + 1).to_string(), String::from)
}
