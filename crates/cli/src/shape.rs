//! `--shape`: how the load's intensity changes, as people type it.

use pushlab_experiment::Experiment;
use pushlab_workload::scenario::Shape;
use std::str::FromStr;
use std::time::Duration;

/// A shape as typed.
#[derive(Debug, Clone, PartialEq)]
pub enum ShapeOption {
    /// The rate over the load phase.
    Rate(Shape),
    /// The same rate for so many minutes.
    Soak(u32),
}

const FORMS: &str = "it is steady, poisson, ramp:FROM..TO, spike:FACTOR@WHEN+LENGTH, step:FACTOR,FACTOR,… or soak:LENGTH, for \
                     example ramp:0.1..2, spike:5@10s+2s, step:0.5,1,2, soak:1h";

impl FromStr for ShapeOption {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no shape; {FORMS}");
        let is_factor = |factor: &f64| factor.is_finite() && *factor >= 0.0;
        let factor = |text: &str| text.trim().parse().ok().filter(is_factor).ok_or_else(wrong);
        let time = |text: &str| humantime::parse_duration(text.trim()).map_err(|_| wrong());
        let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
        Ok(match kind {
            "steady" if rest.is_empty() => Self::Rate(Shape::Steady),
            "poisson" if rest.is_empty() => Self::Rate(Shape::Poisson),
            "ramp" => {
                let (from, to) = rest.split_once("..").ok_or_else(wrong)?;
                Self::Rate(Shape::Ramp { from: factor(from)?, to: factor(to)? })
            }
            "spike" => {
                let (peak, span) = rest.split_once('@').ok_or_else(wrong)?;
                let (at, length) = span.split_once('+').ok_or_else(wrong)?;
                let ms = |text| Ok::<u64, String>(time(text)?.as_millis() as u64);
                Self::Rate(Shape::Spike { factor: factor(peak)?, at_ms: ms(at)?, length_ms: ms(length)? })
            }
            "step" => Self::Rate(Shape::Step { factors: rest.split(',').map(factor).collect::<Result<_, _>>()? }),
            "soak" => Self::Soak(minutes(time(rest)?).ok_or_else(|| {
                format!("{text:?}: a soak lasts whole minutes, at least 1m; for a shorter load use --load")
            })?),
            _ => return Err(wrong()),
        })
    }
}

impl ShapeOption {
    /// Gives an experiment this shape.
    pub fn apply(&self, experiment: &mut Experiment) {
        match self {
            Self::Rate(shape) => {
                experiment.shape = shape.clone();
                experiment.soak_minutes = None;
                experiment.variants.iter_mut().for_each(|variant| variant.shape = None);
            }
            Self::Soak(minutes) => experiment.soak_minutes = Some(*minutes),
        }
    }
}

fn minutes(length: Duration) -> Option<u32> {
    let minutes = u32::try_from(length.as_secs() / 60).ok().filter(|minutes| *minutes > 0)?;
    (length == Duration::from_secs(60) * minutes).then_some(minutes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_read() {
        let shape = |text: &str| text.parse::<ShapeOption>().unwrap();
        assert_eq!(shape("steady"), ShapeOption::Rate(Shape::Steady));
        assert_eq!(shape("poisson"), ShapeOption::Rate(Shape::Poisson));
        assert_eq!(shape("ramp:0.1..2"), ShapeOption::Rate(Shape::Ramp { from: 0.1, to: 2.0 }));
        let spike = Shape::Spike { factor: 5.0, at_ms: 10_000, length_ms: 500 };
        assert_eq!(shape("spike:5@10s+500ms"), ShapeOption::Rate(spike));
        assert_eq!(shape("step:0.5,1,2"), ShapeOption::Rate(Shape::Step { factors: vec![0.5, 1.0, 2.0] }));
        assert_eq!(shape("soak:1h"), ShapeOption::Soak(60));
        for bad in
            ["", "ramp", "ramp:1", "spike:5", "spike:5@x+1s", "step:", "soak:long", "wave:1", "ramp:nan..2", "step:-1"]
        {
            assert!(bad.parse::<ShapeOption>().unwrap_err().contains("ramp:0.1..2"), "{bad}");
        }
        for bad in ["soak:0s", "soak:61s"] {
            assert!(bad.parse::<ShapeOption>().unwrap_err().contains("whole minutes"), "{bad}");
        }
    }
}
