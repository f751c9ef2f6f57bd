//! Statements about figures: `cpu(websocket) < cpu(long-polling)`, read here; crate `analysis` judges them from intervals.
//!
//! ```
//! use pushlab_experiment::statement::Statement;
//!
//! let statement = Statement::parse("latency(sse) ≈ latency(websocket) within 20 % at 300")?;
//! assert_eq!(statement.to_string(), "latency(sse) ≈ latency(websocket) within 20 % at 300");
//! # Ok::<(), pushlab_experiment::statement::StatementError>(())
//! ```

use crate::metric::Metric;
use pushlab_stats::Regime;
use std::fmt;

/// Shares that `≈` allows when nothing is said.
const WITHIN_DEFAULT: f64 = 0.2;

/// Two sides and how they relate.
#[derive(Debug, Clone, PartialEq)]
pub struct Statement {
    /// Left of the relation; always a metric.
    pub left: Term,
    /// The relation.
    pub relation: Relation,
    /// Right of it.
    pub right: Side,
    /// The one place on the axis that it is about; all of them without.
    pub at: Option<f64>,
    /// The regime that it is about; both without.
    pub under: Option<Regime>,
}

/// One side.
#[derive(Debug, Clone, PartialEq)]
pub enum Side {
    /// A metric of a series.
    Term(Term),
    /// A number in the metric's unit.
    Number(f64),
}

/// A metric of a series, times a factor.
#[derive(Debug, Clone, PartialEq)]
pub struct Term {
    /// Multiplies the figure.
    pub factor: f64,
    /// The metric.
    pub metric: &'static Metric,
    /// The metric as it was written.
    name: String,
    /// Words that the series must bear: transport, subject, variant, policy, network.
    pub words: Vec<String>,
}

/// How two sides relate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Relation {
    /// The left one is smaller.
    Less,
    /// The left one is larger.
    Greater,
    /// They differ by at most this share of the right one.
    About(f64),
}

impl PartialEq for Metric {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// What is wrong with a statement.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}; a statement is like `cpu(websocket) < 0.5 × cpu(long-polling) at 300` or `p99(sse) < 50 ms`")]
pub struct StatementError {
    what: String,
}

fn wrong<T>(what: impl Into<String>) -> Result<T, StatementError> {
    Err(StatementError { what: what.into() })
}

impl Statement {
    /// The metrics of series on either side.
    pub fn terms(&self) -> impl Iterator<Item = &Term> {
        let right = match &self.right {
            Side::Term(term) => Some(term),
            Side::Number(_) => None,
        };
        std::iter::once(&self.left).chain(right)
    }

    /// Reads a statement.
    ///
    /// # Errors
    /// Says what was expected where.
    pub fn parse(text: &str) -> Result<Self, StatementError> {
        let Some((at, sign)) = text.char_indices().find(|(_, c)| "<>≤≥≈~".contains(*c)) else {
            return wrong("it has no <, > or ≈");
        };
        let rest = text[at + sign.len_utf8()..].trim_start_matches('=');
        let Side::Term(left) = side(&text[..at])? else { return wrong("its left side is no metric") };
        let (rest, under) = match rest.rsplit_once(" under ") {
            Some((rest, word)) => (rest, Some(regime(word.trim())?)),
            None => (rest, None),
        };
        let (rest, at) = match rest.rsplit_once(" at ") {
            Some((rest, place)) => (rest, Some(number(place.trim().trim_end_matches(|c: char| !c.is_ascii_digit()))?)),
            None => (rest, None),
        };
        let (rest, within) = match rest.rsplit_once(" within ") {
            Some((rest, share)) => (rest, Some(number(share.trim().trim_end_matches('%').trim_end())? / 100.0)),
            None => (rest, None),
        };
        let relation = match (sign, within) {
            ('<' | '≤', None) => Relation::Less,
            ('>' | '≥', None) => Relation::Greater,
            ('≈' | '~', within) => Relation::About(within.unwrap_or(WITHIN_DEFAULT)),
            _ => return wrong("`within` belongs to ≈"),
        };
        let mut right = side(rest)?;
        if matches!(right, Side::Number(_)) {
            right = Side::Number(in_unit(rest, left.metric.unit)?);
        }
        match &right {
            Side::Term(right) if right.metric.unit != left.metric.unit => wrong(format!(
                "{} is in {} and {} in {}: they cannot be compared",
                left.name, left.metric.unit, right.name, right.metric.unit
            )),
            _ => Ok(Self { left, relation, right, at, under }),
        }
    }
}

fn side(text: &str) -> Result<Side, StatementError> {
    let text = text.trim();
    let Some((before, inside)) = text.split_once('(') else {
        let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit() && c != '.');
        return Ok(Side::Number(number(digits.trim())?));
    };
    let Some(inside) = inside.trim_end().strip_suffix(')') else { return wrong(format!("{text:?} lacks its )")) };
    let (factor, name) = match before.rsplit_once(['×', '*']) {
        Some((factor, name)) => (number(factor.trim())?, name.trim()),
        None => (1.0, before.trim()),
    };
    let Some(metric) = Metric::find(name) else {
        let known: Vec<&str> = Metric::names().collect();
        return wrong(format!("metric {name:?} is not known; known are {}", known.join(", ")));
    };
    let words = inside.split(',').map(|word| word.trim().to_owned()).filter(|word| !word.is_empty()).collect();
    Ok(Side::Term(Term { factor, metric, name: name.to_owned(), words }))
}

/// A number with the unit that stands behind it, in the metric's unit: times and sizes are converted.
fn in_unit(text: &str, unit: &str) -> Result<f64, StatementError> {
    let text = text.trim();
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit() && c != '.');
    let value = number(digits.trim())?;
    let given = text[digits.len()..].trim();
    let factor = match (given, unit) {
        ("", _) => 1.0,
        (given, unit) if given == unit => 1.0,
        ("s", "ms") | ("ms", "µs") | ("kB", "B") | ("MB/s", "kB/s") => 1e3,
        ("µs" | "us", "ms") => 1e-3,
        ("us", "µs") => 1.0,
        ("GiB", "MiB") => 1024.0,
        ("KiB", "MiB") => 1.0 / 1024.0,
        _ => return wrong(format!("{given:?} is no unit of the metric, which is in {unit:?}")),
    };
    Ok(value * factor)
}

fn number(text: &str) -> Result<f64, StatementError> {
    match text.parse() {
        Ok(number) if f64::is_finite(number) => Ok(number),
        _ => wrong(format!("{text:?} is no number")),
    }
}

fn regime(word: &str) -> Result<Regime, StatementError> {
    match word {
        "load" => Ok(Regime::Load),
        "stress" => Ok(Regime::Stress),
        _ => wrong(format!("under {word:?}: it is load or stress")),
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.factor != 1.0 {
            write!(f, "{} × ", self.factor)?;
        }
        write!(f, "{}({})", self.name, self.words.join(", "))
    }
}

impl fmt::Display for Statement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = match self.relation {
            Relation::Less => "<",
            Relation::Greater => ">",
            Relation::About(_) => "≈",
        };
        write!(f, "{} {sign} ", self.left)?;
        match &self.right {
            Side::Term(term) => write!(f, "{term}")?,
            Side::Number(number) if self.left.metric.unit.is_empty() => write!(f, "{number}")?,
            Side::Number(number) => write!(f, "{number} {}", self.left.metric.unit)?,
        }
        if let Relation::About(share) = self.relation {
            write!(f, " within {} %", share * 100.0)?;
        }
        if let Some(at) = self.at {
            write!(f, " at {at}")?;
        }
        match self.under {
            Some(Regime::Load) => write!(f, " under load"),
            Some(Regime::Stress) => write!(f, " under stress"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_what_is_read() {
        for text in [
            "cpu(websocket) < cpu(long-polling)",
            "latency(sse) ≈ latency(websocket) within 20 %",
            "memory(long-polling) > 1.5 × memory(websocket) at 300",
            "p99(websocket, echo) > 50 ms",
            "response(sse) < response(long-polling) under load",
            "response(sse) ≈ response(websocket) within 5 % at 50 under stress",
        ] {
            assert_eq!(Statement::parse(text).unwrap().to_string(), text);
        }
        let short = Statement::parse("p99(websocket)>50ms").unwrap();
        assert_eq!((short.relation, short.right), (Relation::Greater, Side::Number(50.0)));
        assert_eq!(Statement::parse("p99(sse) < 1.5 s").unwrap().right, Side::Number(1500.0));
        let ascii = Statement::parse("cpu(sse) ~ 2 * cpu(websocket) within 10% at 50 clients").unwrap();
        assert_eq!((ascii.relation, ascii.at), (Relation::About(0.1), Some(50.0)));
    }

    #[test]
    fn mistakes_are_named() {
        let error = |text: &str| Statement::parse(text).unwrap_err().to_string();
        assert!(error("cpu(websocket)").contains("no <, > or ≈"));
        assert!(error("speed(websocket) < 5").contains("\"speed\" is not known"));
        assert!(error("cpu(websocket < 5").contains("lacks its )"));
        assert!(error("5 < cpu(websocket)").contains("left side is no metric"));
        assert!(error("cpu(websocket) < fast").contains("no number"));
        assert!(error("cpu(sse) < cpu(websocket) within 5 %").contains("`within` belongs to ≈"));
        assert!(error("cpu(sse) < latency(sse)").contains("cannot be compared"));
        assert!(error("p99(sse) < 5 parsecs").contains("no unit of the metric"));
        assert!(error("cpu(sse) < 5 under water").contains("load or stress"));
    }
}
