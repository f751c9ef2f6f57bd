//! What an assertion says, and how it is written.

use crate::metric::Metric;
use pushlab_stats::Regime;
use std::fmt;

/// A figure and what is claimed of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Assertion {
    /// What it is about; always a metric.
    pub left: Term,
    /// What is claimed.
    pub claim: Claim,
    /// The one place on the axis that it is about; all of them without.
    pub at: Option<f64>,
    /// The regime that it is about; both without.
    pub under: Option<Regime>,
    /// Whether it is about each run instead of their mean.
    pub in_every_run: bool,
}

/// What is claimed of a figure.
#[derive(Debug, Clone, PartialEq)]
pub enum Claim {
    /// How it relates to another side.
    Compares(Relation, Side),
    /// It is larger at each place on the axis than at the one before.
    Grows,
    /// It is smaller at each place on the axis than at the one before.
    Falls,
    /// It grows along a straight line, from which no place is further off than so many per cent of the whole growth.
    GrowsEvenly(f64),
}

/// One side.
#[derive(Debug, Clone, PartialEq)]
pub enum Side {
    /// A metric of a series.
    Term(Term),
    /// A number in the metric's unit.
    Number(f64),
}

/// A figure of a series, times a factor, or the quotient of two.
#[derive(Debug, Clone, PartialEq)]
pub struct Term {
    /// Multiplies the figure.
    pub factor: f64,
    /// What is taken of the metric.
    pub figure: Figure,
    /// The metric.
    pub metric: &'static Metric,
    /// The metric as it was written.
    pub(super) name: String,
    /// Words that the series must bear: transport, subject, variant, policy, network.
    pub words: Vec<String>,
    /// The experiment that the series is of, where it is another than the assertion's own.
    pub experiment: Option<String>,
    /// The place on the axis where this side is taken, where it has one of its own.
    pub at: Option<f64>,
    /// What it is divided by; itself no quotient, and without a factor.
    pub over: Option<Box<Term>>,
}

/// What is taken of a metric of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Figure {
    /// The metric, at each place on the axis.
    Value,
    /// How much it differs from run to run, at each place: standard deviation over mean, per cent.
    Spread,
    /// By how much it grows for one more on the axis: the slope of a straight line.
    Slope,
    /// The first place on the axis where the server's CPU is at its maximum; the metric is the CPU.
    Full,
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

impl Figure {
    /// Whether it is one figure of the whole axis.
    pub fn is_of_axis(self) -> bool {
        matches!(self, Self::Slope | Self::Full)
    }
}

impl Term {
    /// The unit of what it is; a slope has that of its metric, for one more on the axis.
    pub fn unit(&self) -> &'static str {
        match (&self.over, self.figure) {
            (None, Figure::Value | Figure::Slope) => self.metric.unit,
            (None, Figure::Spread) => "%",
            (Some(_), _) | (None, Figure::Full) => "",
        }
    }

    /// Whether it is a number of times, which is judged by its logarithm: a quotient or a spread.
    pub fn is_ratio(&self) -> bool {
        self.over.is_some() || self.figure == Figure::Spread
    }

    /// What it can be compared with: the same.
    pub(super) fn kind(&self) -> String {
        match (&self.over, self.figure) {
            (Some(_), _) => "a quotient".to_owned(),
            (None, Figure::Value) if self.metric.unit.is_empty() => "a number".to_owned(),
            (None, Figure::Value) => format!("in {}", self.metric.unit),
            (None, Figure::Spread) => "a spread".to_owned(),
            (None, Figure::Slope) => format!("a slope in {}", self.metric.unit),
            (None, Figure::Full) => "a place on the axis".to_owned(),
        }
    }

    /// Itself and what it is divided by: each a figure of one series.
    pub(super) fn parts(&self) -> impl Iterator<Item = &Term> {
        std::iter::once(self).chain(self.over.as_deref())
    }
}

impl Assertion {
    /// The figures of series on either side.
    pub fn terms(&self) -> impl Iterator<Item = &Term> {
        let right = match &self.claim {
            Claim::Compares(_, Side::Term(term)) => Some(term),
            _ => None,
        };
        std::iter::once(&self.left).chain(right).flat_map(Term::parts)
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.factor != 1.0 {
            write!(f, "{} × ", self.factor)?;
        }
        let words = Some(self.words.join(", ")).filter(|words| !words.is_empty());
        let experiment = self.experiment.as_ref().map(|name| format!("in {name}"));
        let place = self.at.map(|at| format!("at {at}"));
        let inside = words.iter().chain(&experiment).chain(&place).map(String::as_str).collect::<Vec<_>>().join(" ");
        let comma = if words.is_some() { "," } else { "" };
        let space = if inside.is_empty() { "" } else { " " };
        match self.figure {
            Figure::Value => write!(f, "{}({inside})", self.name)?,
            Figure::Full => write!(f, "full({inside})")?,
            Figure::Spread => write!(f, "spread({}{comma}{space}{inside})", self.name)?,
            Figure::Slope => write!(f, "slope({}{comma}{space}{inside})", self.name)?,
        }
        self.over.as_ref().map_or(Ok(()), |over| write!(f, " / {over}"))
    }
}

impl fmt::Display for Assertion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.claim {
            Claim::Compares(relation, right) => written(&self.left, *relation, right, f)?,
            Claim::Grows => write!(f, "{} grows", self.left)?,
            Claim::Falls => write!(f, "{} falls", self.left)?,
            Claim::GrowsEvenly(percent) => write!(f, "{} grows evenly within {percent} %", self.left)?,
        }
        if let Some(at) = self.at {
            write!(f, " at {at}")?;
        }
        match self.under {
            Some(Regime::Load) => write!(f, " under load")?,
            Some(Regime::Stress) => write!(f, " under stress")?,
            None => {}
        }
        if self.in_every_run { write!(f, " in every run") } else { Ok(()) }
    }
}

fn written(left: &Term, relation: Relation, right: &Side, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let sign = match relation {
        Relation::Less => "<",
        Relation::Greater => ">",
        Relation::About(_) => "≈",
    };
    write!(f, "{left} {sign} ")?;
    match right {
        Side::Term(term) => write!(f, "{term}")?,
        Side::Number(number) if left.unit().is_empty() => write!(f, "{number}")?,
        Side::Number(number) => write!(f, "{number} {}", left.unit())?,
    }
    match relation {
        Relation::About(percent) => write!(f, " within {percent} %"),
        Relation::Less | Relation::Greater => Ok(()),
    }
}
