//! What the verdict says of a leaderboard.

use super::columns::bears_on;
use crate::report::wording::{digits, distance, show};
use pushlab_experiment::metric::Better;
use pushlab_report::{Estimate, Leaderboard, LeaderboardColumn, LeaderboardRow, Standing};

/// What the verdict tells of.
const TOLD_TRANSPORTS: [&str; 3] = ["websocket", "sse", "long-polling"];
const TOLD_ALWAYS: &str = "memory_per_client";

/// Who leads, who is next and where ours is, by transport.
pub fn sentences(board: &Leaderboard) -> Vec<String> {
    let told_first = |column: &&LeaderboardColumn| column.better != Better::Neither && column.metric != TOLD_ALWAYS;
    let first = board.columns.iter().find(told_first);
    let always = board.columns.iter().filter(|column| column.metric == TOLD_ALWAYS);
    let told: Vec<&LeaderboardColumn> = first.into_iter().chain(always).collect();
    let of = |transport| told.iter().filter_map(move |column| sentence(board, transport, column));
    TOLD_TRANSPORTS.into_iter().flat_map(of).collect()
}

fn sentence(board: &Leaderboard, transport: &str, column: &LeaderboardColumn) -> Option<String> {
    let at = board.columns.iter().position(|other| other.id == column.id)?;
    let own = board.rows.iter().filter(|row| row.transport == transport);
    let ranked = |standing: &Standing| standing.of_transport.is_some();
    let standing = |row: &LeaderboardRow| row.standings[at].filter(ranked);
    let mut places: Vec<(&LeaderboardRow, Standing)> = own.filter_map(|row| Some((row, standing(row)?))).collect();
    let value = |place: &(&LeaderboardRow, Standing)| place.1.figure.value;
    places.sort_by(|a, b| match column.better {
        Better::Higher => value(b).total_cmp(&value(a)),
        _ => value(a).total_cmp(&value(b)),
    });
    let ((leader, best), next) = (places.first()?, places.get(1)?);
    let mut text = format!(
        "{transport}, {}: {} leads with {}",
        lower_first(&column.title),
        leader.subject,
        show(&best.figure, &column.unit)
    );
    text.push_str(&format!("; {}", follower(next, 1, &best.figure, column)));
    // Ours is named wherever it stands.
    if let Some((at, ours)) = places.iter().enumerate().skip(2).find(|(_, (row, _))| row.is_ours) {
        text.push_str(&format!("; {}", follower(ours, at, &best.figure, column)));
    }
    let told = places.iter().enumerate().filter(|(at, (row, _))| *at < 2 || row.is_ours).map(|(_, (row, _))| row);
    let marks = |row: &LeaderboardRow| {
        row.warnings.iter().filter(|mark| bears_on(mark, &column.metric)).cloned().collect::<Vec<_>>()
    };
    let marked: Vec<String> = told
        .map(|row| (row, marks(row)))
        .filter(|(_, marks)| !marks.is_empty())
        .map(|(row, marks)| format!("{} ({})", row.subject, marks.join(", ")))
        .collect();
    if !marked.is_empty() {
        text.push_str(&format!("; with warnings: {}", marked.join(", ")));
    }
    if places.iter().all(|(_, standing)| standing.figure.runs < 2) {
        text.push_str("; with one run each this is no ranking");
    }
    text.push('.');
    Some(text)
}

/// `pushlab is second, 4 % behind (tie)`; a rank that is shared with others than the leader is that of all of them.
fn follower(
    (row, standing): &(&LeaderboardRow, Standing),
    at: usize,
    best: &Estimate,
    column: &LeaderboardColumn,
) -> String {
    let rank = standing.of_transport.map_or(1, |rank| rank.rank as usize);
    let is_tied = rank == 1;
    let place = ordinal(if is_tied { at + 1 } else { rank });
    let other = standing.figure.value;
    let gap = match column.better {
        _ if standing.figure.is_lower_bound() => format!(" with {}", show(&standing.figure, &column.unit)),
        _ if best.value <= 0.0 => format!(" with {} {}", digits(other), column.unit),
        Better::Higher => format!(", {} behind", share(1.0 - other / best.value)),
        _ if other / best.value < 2.0 => format!(" with {} more", share(other / best.value - 1.0)),
        _ => format!(" with {}", distance(best.value, other)),
    };
    format!("{} is {place}{gap}{}", row.subject, if is_tied { " (tie)" } else { "" })
}

fn share(part: f64) -> String {
    if part < 0.005 { "less than 1 %".to_owned() } else { format!("{:.0} %", part * 100.0) }
}

fn ordinal(place: usize) -> String {
    const WORDS: [&str; 10] =
        ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"];
    WORDS.get(place.wrapping_sub(1)).map_or_else(|| format!("number {place}"), |word| (*word).to_owned())
}

/// `Deliveries` within a sentence; an abbreviation keeps its capitals.
fn lower_first(title: &str) -> String {
    let mut letters = title.chars();
    match (letters.next(), letters.next()) {
        (Some(first), Some(second)) if second.is_lowercase() => {
            first.to_lowercase().chain(title.chars().skip(1)).collect()
        }
        _ => title.to_owned(),
    }
}
