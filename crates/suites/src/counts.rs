//! How many tests ran, read from what their runners print.

/// Tests that passed and failed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    pub passed: u64,
    pub failed: u64,
}

impl Counts {
    /// Adds up every summary line of a suite's output: from Rust's harness, Node.js, Vitest, and the plain
    /// `N passed, N failed`.
    pub fn read(output: &str) -> Self {
        let mut sum = Self::default();
        for line in output.lines() {
            let found = closing(line.trim());
            sum.passed += found.passed;
            sum.failed += found.failed;
        }
        sum
    }
}

fn closing(line: &str) -> Counts {
    let only_passed = |passed| Counts { passed, failed: 0 };
    if let Some(rest) = line.strip_prefix("test result: ") {
        return labelled(rest.split(". ").nth(1).unwrap_or(""), ';');
    }
    if let Some(number) = line.strip_prefix("ℹ pass ") {
        return number.parse().map_or_else(|_| Counts::default(), only_passed);
    }
    if let Some(number) = line.strip_prefix("ℹ fail ") {
        return Counts { passed: 0, failed: number.parse().unwrap_or(0) };
    }
    if let Some(rest) = line.strip_prefix("Tests  ") {
        return labelled(rest.split('(').next().unwrap_or(""), '|');
    }
    // With more words in it, the line is about something else.
    let is_plain = line.split(", ").all(|part| part.split(' ').count() == 2);
    if is_plain && line.contains(" passed, ") { labelled(line, ',') } else { Counts::default() }
}

/// Reads `12 passed; 1 failed`, in any order and with other counts in between.
fn labelled(line: &str, separator: char) -> Counts {
    let number = |label: &str| {
        let part = line.split(separator).map(str::trim).find_map(|part| part.strip_suffix(label)?.trim().parse().ok());
        part.unwrap_or(0)
    };
    Counts { passed: number("passed"), failed: number("failed") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_runner_is_understood() {
        for (line, passed, failed) in [
            ("test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 3 filtered out; finished in 0.10s", 12, 0),
            ("test result: FAILED. 7 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out", 7, 2),
            ("ℹ pass 95", 95, 0),
            ("ℹ fail 3", 0, 3),
            ("      Tests  1 failed | 343 passed (344)", 343, 1),
            ("      Tests  146 passed (146)", 146, 0),
            ("34 passed, 0 failed", 34, 0),
            ("3 passed, 1 failed, 2 skipped", 3, 1),
            ("a night was 3 passed, 4 failed", 0, 0),
            ("ℹ tests 98", 0, 0),
            ("test parse::numbers ... ok", 0, 0),
        ] {
            assert_eq!(Counts::read(line), Counts { passed, failed }, "{line}");
        }
    }

    #[test]
    fn several_are_added() {
        let output =
            "test result: ok. 2 passed; 0 failed\n…\ntest result: ok. 3 passed; 1 failed\nℹ pass 4\nℹ fail 0\n";
        assert_eq!(Counts::read(output), Counts { passed: 9, failed: 1 });
    }
}
