//! The table of codes in `schema/codes.toml`.

use serde::Deserialize;

/// Where the table is.
pub const TABLE: &str = "schema/codes.toml";

/// Every code, in the table's order.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    pub error: Vec<Code>,
    pub close: Vec<Code>,
    pub exit: Vec<Code>,
}

/// One row.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Code {
    pub name: String,
    /// A close or exit code's number; an error's HTTP status.
    #[serde(alias = "http_status")]
    pub number: u16,
    pub retry: bool,
    #[serde(default)]
    pub subscriber: Subscriber,
    pub meaning: String,
    pub action: String,
}

/// What a subscriber does that is refused with a code of `retry = false`.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Subscriber {
    /// Stops: the same would be refused again.
    #[default]
    Stops,
    /// Tries the next transport, and stops if there is none.
    OtherTransport,
    /// Tries again: the code says nothing against the subscription.
    GoesOn,
}

impl Table {
    /// Reads and checks the table.
    pub fn parse(text: &str) -> Result<Self, String> {
        let table: Self = toml::from_str(text).map_err(|error| format!("{TABLE}: {error}"))?;
        check("error", &table.error, 400..=599)?;
        check("close", &table.close, 1000..=4999)?;
        check("exit", &table.exit, 0..=100)?;
        for codes in [&table.close, &table.exit] {
            for (i, code) in codes.iter().enumerate() {
                if codes[..i].iter().any(|other| other.number >= code.number) {
                    return Err(format!(
                        "{TABLE}: {} {} is out of order or given twice; sort by number",
                        code.name, code.number
                    ));
                }
            }
        }
        Ok(table)
    }
}

impl Code {
    /// `bad-request` as a Rust variant: `BadRequest`.
    pub fn variant(&self) -> String {
        let capital = |word: &str| word[..1].to_uppercase() + &word[1..];
        self.name.split('-').map(capital).collect()
    }
}

fn check(kind: &str, codes: &[Code], range: std::ops::RangeInclusive<u16>) -> Result<(), String> {
    let wrong = |code: &Code, what: &str| Err(format!("{TABLE}: {kind} `{}` {what}", code.name));
    for (i, code) in codes.iter().enumerate() {
        let word = |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase());
        if !code.name.split('-').all(word) {
            return wrong(code, "is not kebab-case; use a-z and single hyphens");
        }
        if codes[..i].iter().any(|other| other.name == code.name) {
            return wrong(code, "is given twice; remove one");
        }
        if !range.contains(&code.number) {
            return wrong(code, &format!("has a number outside {range:?}"));
        }
        if code.retry && code.subscriber != Subscriber::Stops {
            return wrong(code, "may be retried, so a subscriber goes on anyway; remove `subscriber`");
        }
        if code.meaning.trim().is_empty() || code.action.trim().is_empty() {
            return wrong(code, "says not what it means or what to do; fill both");
        }
    }
    Ok(())
}

#[cfg(test)]
pub mod tests {
    use super::*;

    pub const SMALL: &str = r#"
[[error]]
name = "bad-request"
http_status = 400
retry = false
meaning = "No \"HTTP\"."
action = "Correct it | now."
[[close]]
name = "normal"
number = 1000
retry = false
meaning = "Done."
action = "Nothing."
[[exit]]
name = "ok"
number = 0
retry = false
meaning = "Done."
action = "Nothing."
"#;

    #[test]
    fn reads_a_table() {
        let table = Table::parse(SMALL).expect("a good table");
        assert_eq!(table.error[0].variant(), "BadRequest");
    }

    #[test]
    fn refuses_bad_names_numbers_and_twins() {
        for (from, to, what) in [
            ("bad-request", "badRequest", "kebab-case"),
            ("= 400", "= 200", "outside"),
            ("\"Done.\"", "\"\"", "says not"),
            ("number", "numbr", "unknown field"),
            ("retry = false", "retry = true\nsubscriber = \"goes-on\"", "goes on anyway"),
            ("retry = false", "retry = false\nsubscriber = \"naps\"", "unknown variant"),
        ] {
            let error = Table::parse(&SMALL.replace(from, to)).expect_err(what);
            assert!(error.contains(what), "{error}");
        }
        let exit = &SMALL[SMALL.find("[[exit]]").expect("there")..];
        assert!(Table::parse(&format!("{SMALL}{exit}")).is_err());
    }
}
