//! Assertions about figures: `cpu(websocket) < cpu(long-polling)`, read here; crate `analysis` judges them from intervals.
//!
//! ```
//! use pushlab_experiment::assertion::Assertion;
//!
//! let assertion = Assertion::parse("latency(sse) ≈ latency(websocket) within 20 % at 300")?;
//! assert_eq!(assertion.to_string(), "latency(sse) ≈ latency(websocket) within 20 % at 300");
//! # Ok::<(), pushlab_experiment::assertion::AssertionError>(())
//! ```

use crate::metric::Metric;
use pushlab_stats::Regime;
use std::fmt;
use winnow::Parser;
use winnow::ascii::float;
use winnow::combinator::{cut_err, eof, opt, peek, preceded, separated, terminated};
use winnow::error::{AddContext, ErrMode, FromExternalError, ModalResult, ParserError};
use winnow::stream::Stream;
use winnow::token::{one_of, take_while};

/// Percent that `≈` allows when nothing is said.
const WITHIN_DEFAULT: f64 = 20.0;

/// Two sides and how they relate.
#[derive(Debug, Clone, PartialEq)]
pub struct Assertion {
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
    /// The place on the axis where this side is taken, where it has one of its own.
    pub at: Option<f64>,
}

/// How two sides relate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Relation {
    /// The left one is smaller.
    Less,
    /// The left one is larger.
    Greater,
    /// They differ by at most this many percent of the right one.
    About(f64),
}

impl PartialEq for Metric {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// What is wrong with an assertion.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{place}: {what}; an assertion is like `cpu(websocket) < 0.5 × cpu(long-polling) at 300` or `p99(sse) < 50 ms`"
)]
pub struct AssertionError {
    place: String,
    what: String,
}

impl Assertion {
    /// The metrics of series on either side.
    pub fn terms(&self) -> impl Iterator<Item = &Term> {
        let right = match &self.right {
            Side::Term(term) => Some(term),
            Side::Number(_) => None,
        };
        std::iter::once(&self.left).chain(right)
    }

    /// Reads an assertion.
    ///
    /// # Errors
    /// Says what was expected where.
    pub fn parse(text: &str) -> Result<Self, AssertionError> {
        assertion.parse(text).map_err(|error| {
            let rest = text[error.offset()..].trim_start();
            let place = match &text[..text.len() - rest.len()] {
                _ if rest.is_empty() => "at its end".to_owned(),
                before => format!("at character {}", before.chars().count() + 1),
            };
            AssertionError { place, what: error.into_inner().0 }
        })
    }
}

/// Reads [`Assertion`]s, by the grammar in `docs/experiments.md`.
type Read<T> = ModalResult<T, Problem>;

/// Why no rule fits; empty where another alternative may.
#[derive(Debug, Default)]
struct Problem(String);

impl ParserError<&str> for Problem {
    type Inner = Self;

    fn from_input(_: &&str) -> Self {
        Self::default()
    }

    fn into_inner(self) -> Result<Self, Self> {
        Ok(self)
    }
}

impl<'t> AddContext<&'t str> for Problem {
    fn add_context(self, _: &&'t str, _: &<&'t str as Stream>::Checkpoint, what: &'static str) -> Self {
        if self.0.is_empty() { Self(what.to_owned()) } else { self }
    }
}

impl FromExternalError<&str, String> for Problem {
    fn from_external_error(_: &&str, what: String) -> Self {
        Self(what)
    }
}

fn wrong<T>(what: impl Into<String>) -> Read<T> {
    Err(ErrMode::Cut(Problem(what.into())))
}

fn assertion(input: &mut &str) -> Read<Assertion> {
    space(input)?;
    let left = cut_err(term).context("its left side must be a metric, such as cpu(websocket)").parse_next(input)?;
    space(input)?;
    let signs = one_of(['<', '>', '≤', '≥', '≈', '~']);
    let sign = cut_err(terminated(signs, take_while(0.., '='))).context("it has no <, > or ≈").parse_next(input)?;
    space(input)?;
    let right = right(&left, input)?;
    let before_within = input.checkpoint();
    let percent = opt(preceded(keyword("within"), cut_err(terminated(number, opt((space, '%')))))).parse_next(input)?;
    let relation = match (sign, percent) {
        ('<' | '≤', None) => Relation::Less,
        ('>' | '≥', None) => Relation::Greater,
        ('≈' | '~', percent) => Relation::About(percent.unwrap_or(WITHIN_DEFAULT)),
        _ => {
            input.reset(&before_within);
            return wrong("`within` belongs to ≈");
        }
    };
    // What is on the axis may be named behind the place.
    let at = opt(preceded(keyword("at"), cut_err(terminated(number, opt(unit))))).parse_next(input)?;
    let under = opt(preceded(keyword("under"), cut_err(regime))).parse_next(input)?;
    let end = "only `within`, `at` and `under`, in this order, may follow the right side";
    cut_err(preceded(space, eof)).context(end).parse_next(input)?;
    Ok(Assertion { left, relation, right, at, under })
}

fn space(input: &mut &str) -> Read<()> {
    take_while(0.., char::is_whitespace).void().parse_next(input)
}

fn keyword<'t>(word: &'static str) -> impl Parser<&'t str, &'t str, ErrMode<Problem>> {
    preceded(space, take_while(1.., char::is_alphabetic).verify(move |found: &str| found == word))
}

/// `[factor "×"] metric "(" words ")"`
fn term(input: &mut &str) -> Read<Term> {
    let factor = opt(terminated(number, (space, one_of(['×', '*']), space))).parse_next(input)?;
    let name = || take_while(1.., |c: char| !c.is_whitespace() && !"()<>≤≥≈~×*".contains(c));
    // From its parenthesis on it can be nothing else.
    peek((name(), space, '(')).parse_next(input)?;
    let known = |name: &str| match Metric::find(name) {
        Some(metric) => Ok((metric, name.to_owned())),
        None => {
            Err(format!("metric {name:?} is not known; known are {}", Metric::names().collect::<Vec<_>>().join(", ")))
        }
    };
    let (metric, name) = cut_err(name().try_map(known)).parse_next(input)?;
    let word = take_while(0.., |c: char| !",()<>≤≥≈~".contains(c)).map(str::trim);
    let words: Vec<&str> = preceded((space, '('), separated(0.., word, ',')).parse_next(input)?;
    cut_err(')').context("the list of words has no closing )").parse_next(input)?;
    let mut words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
    let at = own_place(&mut words).or_else(wrong)?;
    let words = words.into_iter().map(str::to_owned).collect();
    Ok(Term { factor: factor.unwrap_or(1.0), metric, name, words, at })
}

/// Takes `at 300` from the end of the last word, if it is there.
fn own_place(words: &mut Vec<&str>) -> Result<Option<f64>, String> {
    let Some(last) = words.last_mut() else { return Ok(None) };
    let (word, place) = match last.rsplit_once(" at ") {
        Some((word, place)) => (word.trim_end(), place),
        None => match last.strip_prefix("at ") {
            Some(place) => ("", place),
            None => return Ok(None),
        },
    };
    let at: f64 = place.trim().parse().map_err(|_| format!("at {place:?}: a place on the axis is a number"))?;
    *last = word;
    if word.is_empty() {
        words.pop();
    }
    Ok(Some(at).filter(|at| at.is_finite()))
}

/// A term with the unit of the left one, or a number in its unit or one of the same kind.
fn right(left: &Term, input: &mut &str) -> Read<Side> {
    let start = input.checkpoint();
    let Some(term) = opt(term).parse_next(input)? else {
        let value = cut_err(number).parse_next(input)?;
        let factor = cut_err(unit.try_map(|given| factor(given, left.metric.unit)));
        let factor = opt(preceded(peek(unit), factor)).parse_next(input)?;
        return Ok(Side::Number(value * factor.unwrap_or(1.0)));
    };
    if term.metric.unit == left.metric.unit {
        return Ok(Side::Term(term));
    }
    input.reset(&start);
    wrong(format!(
        "{} is in {} and {} in {}: they cannot be compared",
        left.name, left.metric.unit, term.name, term.metric.unit
    ))
}

fn number(input: &mut &str) -> Read<f64> {
    space(input)?;
    let (start, text) = (input.checkpoint(), *input);
    float.verify(|number: &f64| number.is_finite()).parse_next(input).map_err(|error: ErrMode<Problem>| {
        input.reset(&start);
        let what = text.split_whitespace().next().map(|word| format!("{word:?} is no number"));
        error.map(|_| Problem(what.unwrap_or_else(|| "there is no number".to_owned())))
    })
}

/// Text right behind a number, or after spaces, that begins none of the clauses.
fn unit<'t>(input: &mut &'t str) -> Read<&'t str> {
    let word = take_while(1.., |c: char| !c.is_whitespace());
    preceded(space, word.verify(|word: &str| !["within", "at", "under"].contains(&word))).parse_next(input)
}

fn regime(input: &mut &str) -> Read<Regime> {
    space(input)?;
    let regime = |word: &str| match word {
        "load" => Ok(Regime::Load),
        "stress" => Ok(Regime::Stress),
        _ => Err(format!("under {word:?}: it must be load or stress")),
    };
    take_while(0.., |c: char| !c.is_whitespace()).try_map(regime).parse_next(input)
}

/// What a number in the one unit is multiplied by to be in the other.
fn factor(given: &str, unit: &str) -> Result<f64, String> {
    match (given, unit) {
        (given, unit) if given == unit => Ok(1.0),
        ("s", "ms") | ("ms", "µs") | ("kB", "B") | ("MB/s", "kB/s") => Ok(1e3),
        ("µs" | "us", "ms") => Ok(1e-3),
        ("us", "µs") => Ok(1.0),
        ("GiB", "MiB") => Ok(1024.0),
        ("KiB", "MiB") => Ok(1.0 / 1024.0),
        _ => Err(format!("{given:?} is not a unit for this metric, which is in {unit:?}")),
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.factor != 1.0 {
            write!(f, "{} × ", self.factor)?;
        }
        write!(f, "{}({}", self.name, self.words.join(", "))?;
        match self.at {
            Some(at) if self.words.is_empty() => write!(f, "at {at})"),
            Some(at) => write!(f, " at {at})"),
            None => write!(f, ")"),
        }
    }
}

impl fmt::Display for Assertion {
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
        if let Relation::About(percent) = self.relation {
            write!(f, " within {percent} %")?;
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
    use proptest::prelude::*;

    #[test]
    fn what_is_written_is_what_is_read() {
        for text in [
            "cpu(websocket) < cpu(long-polling)",
            "latency(sse) ≈ latency(websocket) within 20 %",
            "memory(long-polling) > 1.5 × memory(websocket) at 300",
            "p99(websocket, echo) > 50 ms",
            "response(sse) < response(long-polling) under load",
            "response(sse at 350) > 10 × response(sse at 300)",
            "memory(at 4500) < 2 × memory(at 1000)",
            "response(sse) ≈ response(websocket) within 5 % at 50 under stress",
        ] {
            assert_eq!(Assertion::parse(text).unwrap().to_string(), text);
        }
        let short = Assertion::parse("p99(websocket)>50ms").unwrap();
        assert_eq!((short.relation, short.right), (Relation::Greater, Side::Number(50.0)));
        assert_eq!(Assertion::parse("p99(sse) < 1.5 s").unwrap().right, Side::Number(1500.0));
        let ascii = Assertion::parse("cpu(sse) ~ 2 * cpu(websocket) within 10% at 50 clients").unwrap();
        assert_eq!((ascii.relation, ascii.at), (Relation::About(10.0), Some(50.0)));
    }

    #[test]
    fn mistakes_have_their_place() {
        let error = |text: &str| Assertion::parse(text).unwrap_err().to_string();
        assert!(error("cpu(websocket)").starts_with("at its end: "));
        assert!(error("speed(websocket) < 5").starts_with("at character 1: "));
        assert!(error("cpu(websocket < 5").starts_with("at character 15: "));
        assert!(error("cpu(sse) ≥ 2 × speed(sse)").starts_with("at character 16: "));
        assert!(error("cpu(sse) < cpu(websocket) within 5 %").starts_with("at character 27: "));
        assert!(error("cpu(sse at noon) < 5").contains("at \"noon\": a place on the axis is a number"));
        assert!(error("p99(sse) < 5  parsecs").starts_with("at character 15: "));
    }

    #[test]
    fn mistakes_are_named() {
        let error = |text: &str| Assertion::parse(text).unwrap_err().to_string();
        assert!(error("cpu(websocket)").contains("no <, > or ≈"));
        assert!(error("speed(websocket) < 5").contains("\"speed\" is not known"));
        assert!(error("cpu(websocket < 5").contains("has no closing )"));
        assert!(error("5 < cpu(websocket)").contains("left side must be a metric"));
        assert!(error("cpu(websocket) < fast").contains("no number"));
        assert!(error("cpu(sse) < cpu(websocket) within 5 %").contains("`within` belongs to ≈"));
        assert!(error("cpu(sse) < latency(sse)").contains("cannot be compared"));
        assert!(error("p99(sse) < 5 parsecs").contains("is not a unit for this metric"));
        assert!(error("cpu(sse) < 5 under water").contains("load or stress"));
        assert!(error("cpu(sse) < 5 under load at 300").contains("may follow the right side"));
        assert!(error("cpu(sse) < ").contains("no number"));
    }

    /// Words as series bear them, and stranger ones.
    fn word() -> impl Strategy<Value = String> {
        let strange = "[^,()<>≤≥≈~]{1,12}".prop_map(|word| word.trim().to_owned());
        prop_oneof![
            "[a-z]{2,8}",
            "[0-9]{1,5} clients",
            strange.prop_filter("no place", |word| !word.is_empty() && !word.contains("at "))
        ]
    }

    fn finite() -> impl Strategy<Value = f64> {
        prop_oneof![
            proptest::num::f64::NORMAL | proptest::num::f64::ZERO,
            (0..10_000_u32).prop_map(|n| f64::from(n) / 16.0)
        ]
    }

    fn term(metrics: Vec<&'static str>) -> impl Strategy<Value = Term> {
        let factor = prop_oneof![Just(1.0), finite()];
        let words = proptest::collection::vec(word(), 0..4);
        (proptest::sample::select(metrics), factor, words, proptest::option::of(finite())).prop_map(
            |(name, factor, words, at)| {
                let metric = Metric::find(name).expect("a name of the table");
                Term { factor, metric, name: name.to_owned(), words, at }
            },
        )
    }

    fn any_assertion() -> impl Strategy<Value = Assertion> {
        let left = term(Metric::names().collect());
        let both = left.prop_flat_map(|left| {
            let unit = left.metric.unit;
            let alike = Metric::names().filter(|name| Metric::find(name).is_some_and(|metric| metric.unit == unit));
            let right = prop_oneof![term(alike.collect()).prop_map(Side::Term), finite().prop_map(Side::Number)];
            (Just(left), right)
        });
        let relation = prop_oneof![Just(Relation::Less), Just(Relation::Greater), finite().prop_map(Relation::About)];
        let under = proptest::option::of(prop_oneof![Just(Regime::Load), Just(Regime::Stress)]);
        (both, relation, proptest::option::of(finite()), under)
            .prop_map(|((left, right), relation, at, under)| Assertion { left, relation, right, at, under })
    }

    /// Texts that get far into the grammar.
    fn nearly_an_assertion() -> impl Strategy<Value = String> {
        let parts = [
            "cpu",
            "p99",
            "(",
            ")",
            "websocket",
            ",",
            "<",
            ">",
            "≥",
            "≈",
            "~",
            "=",
            "×",
            "*",
            "0.5",
            "1e3",
            "-",
            "inf",
            "ms",
            "%",
            "within",
            "at",
            "under",
            "load",
            " at 7",
            " ",
            "  ",
            "\u{a0}",
            "é",
            "\n",
        ];
        proptest::collection::vec(proptest::sample::select(parts.to_vec()), 0..24).prop_map(|parts| parts.concat())
    }

    proptest! {
        #[test]
        fn reading_undoes_writing(assertion in any_assertion()) {
            prop_assert_eq!(Assertion::parse(&assertion.to_string()), Ok(assertion));
        }

        #[test]
        fn no_text_panics(text in prop_oneof![any::<String>(), nearly_an_assertion()]) {
            match Assertion::parse(&text) {
                Ok(assertion) => prop_assert_eq!(Assertion::parse(&assertion.to_string()), Ok(assertion)),
                Err(error) => prop_assert!(!error.what.is_empty(), "{error}"),
            }
        }
    }
}
