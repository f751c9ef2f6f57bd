//! Reads assertions, by the grammar in `docs/experiments.md`.

use super::claim::{Assertion, Claim, Figure, Relation, Side, Term};
use crate::metric::Metric;
use pushlab_stats::Regime;
use winnow::Parser;
use winnow::ascii::float;
use winnow::combinator::{alt, cut_err, eof, opt, peek, preceded, separated, terminated};
use winnow::error::{AddContext, ErrMode, FromExternalError, ModalResult, ParserError};
use winnow::stream::Stream;
use winnow::token::{one_of, take_while};

/// Percent that `≈` allows when nothing is said.
const WITHIN_DEFAULT: f64 = 20.0;
/// Percent of the whole growth that `grows evenly` allows when nothing is said. A parabola that begins flat is off by 17,
/// x^1.5 by 11.
const EVENLY_DEFAULT: f64 = 10.0;

/// What is wrong with an assertion.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{place}: {what}; an assertion is like `cpu(websocket) < 0.5 × cpu(long-polling) at 300` or `p99(sse) < 50 ms`"
)]
pub struct AssertionError {
    place: String,
    pub(super) what: String,
}

impl Assertion {
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

/// What a rule gives.
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
    let left = cut_err(side).context("its left side must be a metric, such as cpu(websocket)").parse_next(input)?;
    let claim = claim(&left, input)?;
    // What is on the axis may be named behind the place.
    let place = opt(preceded(keyword("at"), cut_err(terminated(number, opt(unit)))));
    let is_along_axis = left.figure.is_of_axis() || !matches!(claim, Claim::Compares(..));
    let at = refused_if(is_along_axis, "`at` cannot stand here: this is about the whole axis", place, input)?;
    let regime = opt(preceded(keyword("under"), cut_err(regime)));
    let is_full = left.figure == Figure::Full;
    let under = refused_if(is_full, "`under` cannot stand here: full says itself where stress begins", regime, input)?;
    let words =
        (keyword("in"), cut_err(keyword("every")), cut_err(keyword("run"))).context("it must be `in every run`");
    let is_spread = left.figure == Figure::Spread;
    let every_run =
        refused_if(is_spread, "`in every run` cannot stand here: a spread is that of all", opt(words), input)?;
    let end = "only `within`, `at`, `under` and `in every run`, in this order, may follow what is claimed";
    cut_err(preceded(space, eof)).context(end).parse_next(input)?;
    Ok(Assertion { left, claim, at, under, in_every_run: every_run.is_some() })
}

/// A clause that may be absent, and must be where `is_refused`.
fn refused_if<'t, T>(
    is_refused: bool,
    why: &str,
    mut clause: impl Parser<&'t str, Option<T>, ErrMode<Problem>>,
    input: &mut &'t str,
) -> Read<Option<T>> {
    let start = input.checkpoint();
    let found = clause.parse_next(input)?;
    if is_refused && found.is_some() {
        input.reset(&start);
        return wrong(why);
    }
    Ok(found)
}

/// `relation right [within]`, `"grows" ["evenly" [within]]` or `"falls"`.
fn claim(left: &Term, input: &mut &str) -> Read<Claim> {
    let start = input.checkpoint();
    let grows = opt(alt((keyword("grows"), keyword("falls")))).parse_next(input)?;
    let Some(word) = grows else {
        let (relation, right) = comparison(left, input)?;
        return Ok(Claim::Compares(relation, right));
    };
    let evenly = opt(keyword("evenly")).parse_next(input)?;
    let claim = match (word, evenly) {
        ("falls", None) => Claim::Falls,
        (_, None) => Claim::Grows,
        ("grows", Some(_)) => Claim::GrowsEvenly(within(input)?.unwrap_or(EVENLY_DEFAULT)),
        (_, Some(_)) => return wrong("`evenly` belongs to `grows`"),
    };
    let what = match claim {
        _ if left.parts().any(|part| part.at.is_some()) => {
            "what is at one place neither grows nor falls along the axis"
        }
        _ if left.figure.is_of_axis() => "a figure of the whole axis neither grows nor falls along it",
        Claim::GrowsEvenly(_) if left.is_ratio() => "a quotient or a spread has no straight line to follow",
        claim => return Ok(claim),
    };
    input.reset(&start);
    wrong(what)
}

/// `relation right [within]`
fn comparison(left: &Term, input: &mut &str) -> Read<(Relation, Side)> {
    space(input)?;
    let signs = one_of(['<', '>', '≤', '≥', '≈', '~']);
    let none = "it has no <, > or ≈, and neither grows nor falls";
    let sign = cut_err(terminated(signs, take_while(0.., '='))).context(none).parse_next(input)?;
    space(input)?;
    let right = right(left, input)?;
    let before_within = input.checkpoint();
    let relation = match (sign, within(input)?) {
        ('<' | '≤', None) => Relation::Less,
        ('>' | '≥', None) => Relation::Greater,
        ('≈' | '~', percent) => Relation::About(percent.unwrap_or(WITHIN_DEFAULT)),
        _ => {
            input.reset(&before_within);
            return wrong("`within` belongs to ≈ and to `grows evenly`");
        }
    };
    Ok((relation, right))
}

fn within(input: &mut &str) -> Read<Option<f64>> {
    opt(preceded(keyword("within"), cut_err(terminated(number, opt((space, '%')))))).parse_next(input)
}

fn space(input: &mut &str) -> Read<()> {
    take_while(0.., char::is_whitespace).void().parse_next(input)
}

fn keyword<'t>(word: &'static str) -> impl Parser<&'t str, &'t str, ErrMode<Problem>> {
    preceded(space, take_while(1.., char::is_alphabetic).verify(move |found: &str| found == word))
}

/// `term [ "/" term ]`
fn side(input: &mut &str) -> Read<Term> {
    let start = input.checkpoint();
    let mut whole = term(input)?;
    if opt((space, '/', space)).parse_next(input)?.is_some() {
        let before = input.checkpoint();
        let over =
            cut_err(term).context("behind / there must be a metric, such as cpu(websocket)").parse_next(input)?;
        let what = match (whole.figure, over.figure) {
            (Figure::Value, Figure::Value) if over.factor != 1.0 => {
                "a factor stands before the whole quotient".to_owned()
            }
            (Figure::Value, Figure::Value) if whole.kind() == over.kind() => String::new(),
            (Figure::Value, Figure::Value) => not_alike(&whole, &over),
            _ => "a quotient is of two metrics, not of spreads, slopes or places".to_owned(),
        };
        if !what.is_empty() {
            input.reset(&before);
            return wrong(what);
        }
        whole.over = Some(Box::new(over));
    }
    if whole.is_ratio() && whole.factor <= 0.0 {
        input.reset(&start);
        return wrong("the factor of a quotient or a spread must be above 0");
    }
    Ok(whole)
}

fn not_alike(left: &Term, right: &Term) -> String {
    format!("{} is {} and {} {}: they cannot be compared", left.name, left.kind(), right.name, right.kind())
}

fn name<'t>(input: &mut &'t str) -> Read<&'t str> {
    take_while(1.., |c: char| !c.is_whitespace() && !",()<>≤≥≈~×*/".contains(c)).parse_next(input)
}

fn metric(input: &mut &str) -> Read<(&'static Metric, String)> {
    let known = |name: &str| match Metric::find(name) {
        Some(metric) => Ok((metric, name.to_owned())),
        None => {
            Err(format!("metric {name:?} is not known; known are {}", Metric::names().collect::<Vec<_>>().join(", ")))
        }
    };
    name.try_map(known).parse_next(input)
}

/// Up to the words: `metric "("`, `"full" "("` or `("spread" | "slope") "(" metric [","]`.
fn head(input: &mut &str) -> Read<(Figure, &'static Metric, String)> {
    let figure = match peek(name).parse_next(input)? {
        "spread" => Figure::Spread,
        "slope" => Figure::Slope,
        "full" => Figure::Full,
        _ => {
            let (metric, name) = metric(input)?;
            (space, '(').void().parse_next(input)?;
            return Ok((Figure::Value, metric, name));
        }
    };
    (name, space, '(', space).void().parse_next(input)?;
    if figure == Figure::Full {
        let cpu = Metric::find("cpu").expect("a test finds it in the table");
        return Ok((figure, cpu, cpu.name.to_owned()));
    }
    let (metric, name) =
        cut_err(metric).context("first there must be a metric, such as spread(cpu, websocket)").parse_next(input)?;
    let comma = alt((','.void(), peek(')').void(), peek("at ").void(), peek("in ").void()));
    cut_err(preceded(space, comma)).context("a comma must follow the metric").parse_next(input)?;
    Ok((figure, metric, name))
}

/// `[factor "×"] figure "(" words ["in" experiment] ["at" number] ")"`
fn term(input: &mut &str) -> Read<Term> {
    let start = input.checkpoint();
    let factor = opt(terminated(number, (space, one_of(['×', '*']), space))).parse_next(input)?;
    // From its parenthesis on it can be nothing else.
    peek((name, space, '(')).parse_next(input)?;
    let (figure, metric, name) = cut_err(head).parse_next(input)?;
    let word = take_while(0.., |c: char| !",()<>≤≥≈~".contains(c)).map(str::trim);
    let words: Vec<&str> = separated(0.., word, ',').parse_next(input)?;
    cut_err(')').context("the list of words has no closing )").parse_next(input)?;
    let mut words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
    let at = own_place(&mut words).or_else(wrong)?;
    let experiment = own_experiment(&mut words).or_else(wrong)?;
    let says_more = |word: &&str| ["at", "in"].into_iter().any(|key| taken_off(&mut vec![*word], key).is_some());
    if let Some(word) = words.iter().copied().find(|word| says_more(word)) {
        return wrong(format!("{word:?}: `in` and `at` stand once each, in this order, behind all words"));
    }
    if figure.is_of_axis() && at.is_some() {
        input.reset(&start);
        return wrong("slope and full are of the whole axis and have no place of their own");
    }
    let words = words.into_iter().map(str::to_owned).collect();
    Ok(Term { factor: factor.unwrap_or(1.0), figure, metric, name, words, experiment, at, over: None })
}

/// Takes `300` of `at 300` from the end of the last word, if it is there.
fn taken_off<'t>(words: &mut Vec<&'t str>, key: &str) -> Option<&'t str> {
    let last = words.last_mut()?;
    let (word, value) = match last.rsplit_once(format!(" {key} ").as_str()) {
        Some((word, value)) => (word.trim_end(), value),
        None => ("", last.strip_prefix(key)?.strip_prefix(' ')?),
    };
    *last = word;
    if word.is_empty() {
        words.pop();
    }
    Some(value.trim())
}

fn own_place(words: &mut Vec<&str>) -> Result<Option<f64>, String> {
    let Some(place) = taken_off(words, "at") else { return Ok(None) };
    let at: f64 = place.parse().map_err(|_| format!("at {place:?}: a place on the axis is a number"))?;
    Ok(Some(at).filter(|at| at.is_finite()))
}

fn own_experiment(words: &mut Vec<&str>) -> Result<Option<String>, String> {
    let Some(name) = taken_off(words, "in") else { return Ok(None) };
    let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if name.is_empty() || !name.chars().all(is_name) {
        return Err(format!("in {name:?}: an experiment is named by lower-case letters, digits and hyphens"));
    }
    Ok(Some(name.to_owned()))
}

/// A side of the left one's kind, or a number in its unit or one of the same kind.
fn right(left: &Term, input: &mut &str) -> Read<Side> {
    let start = input.checkpoint();
    let Some(term) = opt(side).parse_next(input)? else {
        let value = cut_err(number).parse_next(input)?;
        if left.is_ratio() && value <= 0.0 {
            input.reset(&start);
            return wrong("a quotient or a spread is compared with a number above 0");
        }
        if left.figure == Figure::Full {
            opt(unit).parse_next(input)?;
            return Ok(Side::Number(value));
        }
        let factor = cut_err(unit.try_map(|given| factor(given, left.unit())));
        let factor = opt(preceded(peek(unit), factor)).parse_next(input)?;
        return Ok(Side::Number(value * factor.unwrap_or(1.0)));
    };
    if term.kind() == left.kind() {
        return Ok(Side::Term(term));
    }
    input.reset(&start);
    wrong(not_alike(left, &term))
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
    preceded(space, word.verify(|word: &str| !["within", "at", "under", "in"].contains(&word))).parse_next(input)
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
