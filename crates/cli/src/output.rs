//! What is printed. Titles, notes and what servers say are other people's text: on a terminal it must not move the
//! cursor, hide anything or turn anything around.

use std::borrow::Cow;

/// The text with a replacement character for each control character but line breaks and tabs, and for each character that
/// changes the direction of others.
pub fn plain(text: &str) -> Cow<'_, str> {
    let is_active = |c: char| {
        let turns = matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        turns || c.is_control() && !matches!(c, '\n' | '\t')
    };
    if !text.contains(is_active) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(
        text.replace("\r\n", "\n")
            .chars()
            .map(|c| if is_active(c) { char::REPLACEMENT_CHARACTER } else { c })
            .collect(),
    )
}

macro_rules! print {
    ($($words:tt)*) => { ::std::print!("{}", $crate::output::plain(&format!($($words)*))) };
}

macro_rules! println {
    ($($words:tt)*) => { ::std::println!("{}", $crate::output::plain(&format!($($words)*))) };
}

macro_rules! eprintln {
    ($($words:tt)*) => { ::std::eprintln!("{}", $crate::output::plain(&format!($($words)*))) };
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn what_a_terminal_would_obey_is_replaced() {
        for (text, printed) in [
            ("a plain · text\n\twith lines", "a plain · text\n\twith lines"),
            ("\u{1b}[2Jgone", "\u{fffd}[2Jgone"),
            ("a\rb\r\nc", "a\u{fffd}b\nc"),
            ("\u{9b}31m\u{7f}\0\u{8}", "\u{fffd}31m\u{fffd}\u{fffd}\u{fffd}"),
            ("abc\u{202e}fed\u{2066}", "abc\u{fffd}fed\u{fffd}"),
            ("ساعة عربية", "ساعة عربية"),
        ] {
            assert_eq!(plain(text), printed, "{text:?}");
        }
    }
}
