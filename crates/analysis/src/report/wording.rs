//! Figures and names as sentences have them.

use pushlab_experiment::cell::{Axis, Sweep};
use pushlab_report::Estimate;

/// A figure with its interval and unit; a lower bound is called so.
pub fn show(figure: &Estimate, unit: &str) -> String {
    let sign = if figure.is_lower_bound() { "at least " } else { "" };
    if figure.runs < 2 {
        return format!("{sign}{} {unit}", digits(figure.value));
    }
    format!("{sign}{} {unit}, {} to {}", digits(figure.value), digits(figure.low), digits(figure.high))
}

/// Three significant digits.
pub fn digits(value: f64) -> String {
    let magnitude = if value == 0.0 { 0 } else { value.abs().log10().floor() as i32 };
    let decimals = (2 - magnitude).clamp(0, 6) as usize;
    format!("{value:.decimals$}")
}

/// How far another value is from the best one.
pub fn distance(best: f64, other: f64) -> String {
    match other / best {
        factor if !factor.is_finite() => "more than nothing".to_owned(),
        factor if factor >= 2.0 => format!("{factor:.1} times that"),
        factor if factor >= 1.0 => format!("{:.0} % more", (factor - 1.0) * 100.0),
        factor => format!("{:.0} % less", (1.0 - factor) * 100.0),
    }
}

/// A place on an axis: `300 clients`.
pub fn place(axis: &Axis, x: f64) -> String {
    let sweep = Sweep::ALL.into_iter().find(|sweep| sweep.axis().name == axis.name);
    sweep.map_or_else(|| x.to_string(), |sweep| sweep.place(x as u32))
}

/// Names as a sentence has them: `a, b and c`.
pub fn join(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [rest @ .., last] => format!("{} and {last}", rest.join(", ")),
    }
}

/// Three significant digits of what is at least so much: rounded down.
pub fn least(value: f64) -> String {
    let magnitude = if value == 0.0 { 0 } else { value.abs().log10().floor() as i32 };
    let unit = 10f64.powi((2 - magnitude).clamp(0, 6));
    // What is a hair below a digit only because it is binary has that digit.
    digits((value * unit * (1.0 + f64::EPSILON)).floor() / unit)
}

/// A title within a sentence: `bytes per delivery (173 B)`, `CPU per delivery`.
pub fn in_sentence(title: &str) -> String {
    let title = match title.split_once(", ") {
        Some((head, rest)) => format!("{head} ({rest})"),
        None => title.to_owned(),
    };
    let mut letters = title.chars();
    match (letters.next(), letters.next()) {
        (Some(first), Some(second)) if second.is_lowercase() => {
            first.to_lowercase().chain(title.chars().skip(1)).collect()
        }
        _ => title,
    }
}

/// The same at the beginning of one.
pub fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits() {
        assert_eq!([0.0, 0.01234, 1.5, 12.34, 1234.5].map(digits), ["0.00", "0.0123", "1.50", "12.3", "1234"]);
    }

    #[test]
    fn names_are_joined_as_people_do() {
        assert_eq!(join(&["a", "b", "c"]), "a, b and c");
        assert_eq!(["Bytes, 2 KiB", "CPU", "p99"].map(in_sentence), ["bytes (2 KiB)", "CPU", "p99"]);
        assert_eq!([1.4289, 154.6, 2.4, 1234.5, 0.0].map(least), ["1.42", "154", "2.40", "1234", "0.00"]);
        assert_eq!([capital("long polling"), capital("")], ["Long polling", ""]);
    }
}
