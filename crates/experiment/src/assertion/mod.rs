//! Assertions about figures: `cpu(websocket) < cpu(long-polling)`, read here; crate `analysis` judges them from intervals.
//! Beside two sides that are compared there is growth along the axis: `latency(sse) grows evenly within 10 % under load`.
//!
//! ```
//! use pushlab_experiment::assertion::Assertion;
//!
//! let assertion = Assertion::parse("latency(sse) ≈ latency(websocket) within 20 % at 300")?;
//! assert_eq!(assertion.to_string(), "latency(sse) ≈ latency(websocket) within 20 % at 300");
//! # Ok::<(), pushlab_experiment::assertion::AssertionError>(())
//! ```

mod claim;
mod reading;

pub use claim::{Assertion, Claim, Figure, Relation, Side, Term};
pub use reading::AssertionError;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::Metric;
    use proptest::prelude::*;
    use pushlab_stats::Regime;

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
            "latency(long-polling) grows evenly within 10 % under stress",
            "cpu(sse) grows",
            "bytes_link(polling) / bytes_link(websocket) falls",
            "own(sse, 4g) / own(sse, local) > 2 × own(polling, 4g) / own(polling, local)",
            "cpu(sse at 30) / cpu(websocket at 30) > 1.5",
            "spread(memory_after, websocket) > 10 % under stress",
            "spread(memory_after at 300) < 0.5 × spread(memory_after in tangen-chat at 300)",
            "slope(latency_mean, sse in tangen-chat) > 5 × slope(response_mean, sse in tangen-broadcast) under stress",
            "slope(latency, sse) < 1 ms",
            "full(websocket) > full(sse)",
            "full(websocket in tangen-chat) > 300",
            "latency_mean(websocket in tangen-broadcast) < latency_mean(websocket at 300)",
            "memory_after(sse) > 98 MiB under stress in every run",
        ] {
            assert_eq!(Assertion::parse(text).unwrap().to_string(), text);
        }
        let short = Assertion::parse("p99(websocket)>50ms").unwrap();
        assert_eq!(short.claim, Claim::Compares(Relation::Greater, Side::Number(50.0)));
        let seconds = Assertion::parse("p99(sse) < 1.5 s").unwrap().claim;
        assert_eq!(seconds, Claim::Compares(Relation::Less, Side::Number(1500.0)));
        let ascii = Assertion::parse("cpu(sse) ~ 2 * cpu(websocket) within 10% at 50 clients").unwrap();
        assert!(matches!(ascii.claim, Claim::Compares(Relation::About(10.0), _)) && ascii.at == Some(50.0));
        assert_eq!(Assertion::parse("cpu(sse) grows evenly").unwrap().claim, Claim::GrowsEvenly(10.0));
        let place = Assertion::parse("full(sse) > 200 clients").unwrap().claim;
        assert_eq!(place, Claim::Compares(Relation::Greater, Side::Number(200.0)));
        let quotient = Assertion::parse("cpu(sse)/cpu(websocket)>2 in every run").unwrap();
        assert!(quotient.in_every_run && quotient.terms().count() == 2 && quotient.left.is_ratio());
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
        assert!(error("spread(speed, sse) < 5").starts_with("at character 8: "));
        assert!(error("spread(cpu sse) < 5").starts_with("at character 12: "));
        assert!(error("cpu(sse) / latency(sse) > 2").starts_with("at character 12: "));
        assert!(error("cpu(sse) / 2 × cpu(sse) > 2").starts_with("at character 12: "));
        assert!(error("cpu(sse) / ").starts_with("at its end: "));
        assert!(error("full(sse) > 5 at 300").starts_with("at character 15: "));
        assert!(error("cpu(sse at 5) grows").starts_with("at character 15: "));
        assert!(error("cpu(sse) < 5 in every week").starts_with("at character 23: "));
    }

    #[test]
    fn what_cannot_be_said_is_refused_with_its_reason() {
        for (text, why) in [
            ("spread(speed, sse) < 5", "\"speed\" is not known"),
            ("spread(cpu sse) < 5", "a comma must follow the metric"),
            ("cpu(sse) / latency(sse) > 2", "cpu is in % and latency in ms"),
            ("cpu(sse) / 2 × cpu(sse) > 2", "before the whole quotient"),
            ("cpu(sse) / spread(cpu, sse) > 2", "a quotient is of two metrics"),
            ("cpu(sse) / fast > 2", "behind / there must be a metric"),
            ("cpu(sse) / cpu(websocket) > 0", "a number above 0"),
            ("spread(cpu, sse) < -1", "a number above 0"),
            ("0 × cpu(sse) / cpu(websocket) > 1", "factor of a quotient"),
            ("cpu(sse) / cpu(websocket) > cpu(sse)", "cpu is a quotient and cpu in %"),
            ("spread(cpu, sse) > cpu(sse)", "cpu is a spread and cpu in %"),
            ("slope(cpu, sse) > slope(latency, sse)", "a slope in % and latency a slope in ms"),
            ("full(sse) > cpu(sse)", "a place on the axis and cpu in %"),
            ("full(sse at 300) > 300", "no place of their own"),
            ("full(sse) > 300 under stress", "where stress begins"),
            ("cpu(sse) grows at 300", "about the whole axis"),
            ("cpu(sse at 300) grows", "at one place neither grows"),
            ("full(sse) grows", "a figure of the whole axis"),
            ("cpu(sse) / cpu(websocket) grows evenly", "no straight line"),
            ("cpu(sse) falls evenly", "`evenly` belongs to `grows`"),
            ("cpu(sse) grows within 5 %", "may follow what is claimed"),
            ("spread(cpu, sse) < 5 in every run", "a spread is that of all"),
            ("cpu(sse) < 5 in each run", "it must be `in every run`"),
            ("cpu(sse in My Chat) < 5", "an experiment is named by"),
        ] {
            let error = Assertion::parse(text).unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
        assert!(["spread", "slope", "full"].into_iter().all(|name| Metric::find(name).is_none()));
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
        assert!(error("cpu(sse) < 5 under load at 300").contains("may follow what is claimed"));
        assert!(error("cpu(sse) < ").contains("no number"));
    }

    /// Words as series bear them, and stranger ones.
    fn word() -> impl Strategy<Value = String> {
        let strange = "[^,()<>≤≥≈~]{1,12}".prop_map(|word| word.trim().to_owned());
        let says_no_place = |word: &String| !word.split_whitespace().any(|part| part == "at" || part == "in");
        prop_oneof!["[a-z]{2,8}", "[0-9]{1,5} clients", strange]
            .prop_filter("no place", move |word| !word.is_empty() && says_no_place(word))
    }

    fn finite() -> impl Strategy<Value = f64> {
        prop_oneof![
            proptest::num::f64::NORMAL | proptest::num::f64::ZERO,
            (0..10_000_u32).prop_map(|n| f64::from(n) / 16.0)
        ]
    }

    fn above_zero() -> impl Strategy<Value = f64> {
        finite().prop_map(|number| if number == 0.0 { 1.0 } else { number.abs() })
    }

    fn any_metric() -> impl Strategy<Value = &'static str> {
        proptest::sample::select(Metric::names().collect::<Vec<_>>())
    }

    /// A term of this figure and metric that is no quotient.
    fn term(figure: Figure, name: &'static str) -> impl Strategy<Value = Term> {
        let name = if figure == Figure::Full { "cpu" } else { name };
        let metric = Metric::find(name).expect("a name of the table");
        let factor = prop_oneof![
            Just(1.0).boxed(),
            if figure == Figure::Spread { above_zero().boxed() } else { finite().boxed() }
        ];
        let words = proptest::collection::vec(word(), 0..4);
        let at = if figure.is_of_axis() { Just(None).boxed() } else { proptest::option::of(finite()).boxed() };
        (factor, words, proptest::option::of("[a-z0-9-]{1,12}"), at).prop_map(move |(factor, words, experiment, at)| {
            Term { factor, figure, metric, name: name.to_owned(), words, experiment, at, over: None }
        })
    }

    /// Metrics in the unit of another.
    fn alike(name: &'static str) -> impl Strategy<Value = &'static str> {
        let unit = |name| Metric::find(name).map(|metric| metric.unit);
        proptest::sample::select(Metric::names().filter(|other| unit(other) == unit(name)).collect::<Vec<_>>())
    }

    fn quotient() -> impl Strategy<Value = Term> {
        let two = any_metric().prop_flat_map(|name| (Just(name), alike(name)));
        two.prop_flat_map(|(left, right)| (term(Figure::Value, left), term(Figure::Value, right), above_zero()))
            .prop_map(|(left, right, factor)| {
                let over = Some(Box::new(Term { factor: 1.0, ..right }));
                Term { factor, over, ..left }
            })
    }

    /// Two sides of the same kind.
    fn two_sides() -> impl Strategy<Value = (Term, Term)> {
        let figures = [Figure::Value, Figure::Value, Figure::Spread, Figure::Slope, Figure::Full];
        let names = any_metric().prop_flat_map(|name| (Just(name), alike(name)));
        let plain = (names, proptest::sample::select(figures.to_vec()))
            .prop_flat_map(|((left, right), figure)| (term(figure, left), term(figure, right)));
        prop_oneof![plain, (quotient(), quotient())]
    }

    fn any_claim(left: &Term, other: Term) -> BoxedStrategy<Claim> {
        let relation = prop_oneof![Just(Relation::Less), Just(Relation::Greater), finite().prop_map(Relation::About)];
        let number = if left.is_ratio() { above_zero().boxed() } else { finite().boxed() };
        let right = prop_oneof![Just(Side::Term(other)), number.prop_map(Side::Number)];
        let compares = (relation, right).prop_map(|(relation, right)| Claim::Compares(relation, right)).boxed();
        let is_along = left.parts().all(|part| part.at.is_none() && !part.figure.is_of_axis());
        match (is_along, left.is_ratio()) {
            (false, _) => compares,
            (true, true) => prop_oneof![compares, Just(Claim::Grows), Just(Claim::Falls)].boxed(),
            (true, false) => prop_oneof![compares, Just(Claim::Grows), finite().prop_map(Claim::GrowsEvenly)].boxed(),
        }
    }

    fn any_assertion() -> impl Strategy<Value = Assertion> {
        let claimed = two_sides().prop_flat_map(|(left, right)| {
            let claim = any_claim(&left, right);
            (Just(left), claim)
        });
        let under = proptest::option::of(prop_oneof![Just(Regime::Load), Just(Regime::Stress)]);
        (claimed, proptest::option::of(finite()), under, any::<bool>()).prop_map(
            |((left, claim), at, under, in_every_run)| {
                let has_places = !left.figure.is_of_axis() && matches!(claim, Claim::Compares(..));
                Assertion {
                    at: at.filter(|_| has_places),
                    under: under.filter(|_| left.figure != Figure::Full),
                    in_every_run: in_every_run && left.figure != Figure::Spread,
                    left,
                    claim,
                }
            },
        )
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
            "grows",
            "evenly",
            "falls",
            "spread(",
            "slope(",
            "full(",
            "/",
            "in every run",
            " in a-chat",
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
