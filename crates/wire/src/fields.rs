//! The fields of a head, as HTTP/2 and HTTP/3 know them: names in lower case, and before them the pseudo-header fields,
//! whose names begin with a colon.

/// Names and values in one piece of memory, in their order.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct FieldList {
    bytes: Vec<u8>,
    /// Where each name ends, and its value.
    ends: Vec<(u32, u32)>,
}

/// What the standard adds to the length of each field when it counts the size of a list (RFC 9113, section 6.5.2).
const FIELD_BYTES: usize = 32;

impl FieldList {
    /// Bytes of memory it takes besides itself.
    pub fn kept_bytes(&self) -> usize {
        self.bytes.capacity() + self.ends.capacity() * size_of::<(u32, u32)>()
    }

    /// Adds a field. All names and values together are at most 4 GiB; the limit of a head is far below.
    pub fn push(&mut self, name: &[u8], value: &[u8]) {
        self.bytes.extend_from_slice(name);
        let name_end = self.bytes.len() as u32;
        self.bytes.extend_from_slice(value);
        self.ends.push((name_end, self.bytes.len() as u32));
    }

    /// [`Self::push`] of a name in any case, which becomes lower case (RFC 9113, section 8.2.1).
    pub fn push_in_lower_case(&mut self, name: &[u8], value: &[u8]) {
        let start = self.bytes.len();
        self.push(name, value);
        self.bytes[start..start + name.len()].make_ascii_lowercase();
    }

    /// Names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> + Clone {
        let starts = std::iter::once(0).chain(self.ends.iter().map(|&(_, end)| end as usize));
        starts.zip(&self.ends).map(|(start, &(name_end, end))| {
            (&self.bytes[start..name_end as usize], &self.bytes[name_end as usize..end as usize])
        })
    }

    /// The first value of that name.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.iter().find(|(other, _)| *other == name.as_bytes()).map(|(_, value)| value)
    }

    /// How many fields.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The size of the list as the standard counts it.
    pub fn size(&self) -> usize {
        self.bytes.len() + FIELD_BYTES * self.ends.len()
    }

    /// Lets go of all, and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }
}

/// Without the white space around it: SP and HTAB, and nothing else that Unicode calls so (RFC 9110, section 5.6.3).
pub fn trimmed(text: &str) -> &str {
    text.trim_matches([' ', '\t'])
}

/// [`trimmed`] of what may be no text.
pub fn trimmed_bytes(mut bytes: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = bytes {
        bytes = rest;
    }
    bytes
}

/// A number as protocols write it: decimal digits without a sign; `None` of anything else and of what is too large.
pub fn number(digits: &[u8]) -> Option<u64> {
    let digit = |byte: &u8| byte.is_ascii_digit().then(|| u64::from(byte - b'0'));
    let (first, rest) = digits.split_first()?;
    rest.iter().try_fold(digit(first)?, |number, byte| number.checked_mul(10)?.checked_add(digit(byte)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_spaces_and_tabs_are_white_space() {
        for (text, rest) in [
            ("", ""),
            (" \t ", ""),
            ("\ta b\t ", "a b"),
            ("\u{a0}a\u{a0}", "\u{a0}a\u{a0}"),
            ("\u{2003}", "\u{2003}"),
            ("\u{85}a", "\u{85}a"),
            ("\x0ba\x0c", "\x0ba\x0c"),
            ("\ra\n", "\ra\n"),
        ] {
            assert_eq!((trimmed(text), trimmed_bytes(text.as_bytes())), (rest, rest.as_bytes()), "{text:?}");
        }
    }

    #[test]
    fn numbers_are_digits() {
        for (text, value) in [("0", 0), ("007", 7), ("18446744073709551615", u64::MAX)] {
            assert_eq!(number(text.as_bytes()), Some(value));
        }
        for bad in ["", "+5", "-5", " 5", "5 ", "5,5", "0x5", "5e0", "\u{665}", "18446744073709551616"] {
            assert_eq!(number(bad.as_bytes()), None, "{bad:?}");
        }
    }

    #[test]
    fn fields_come_back_in_their_order() {
        let mut fields = FieldList::default();
        assert!(fields.is_empty());
        for (name, value) in [(":status", "200"), ("a", ""), ("b", "x"), ("b", "y")] {
            fields.push(name.as_bytes(), value.as_bytes());
        }
        let all: Vec<_> = fields.iter().collect();
        let expected: [(&[u8], &[u8]); 4] = [(b":status", b"200"), (b"a", b""), (b"b", b"x"), (b"b", b"y")];
        assert_eq!(all, expected);
        assert_eq!((fields.get("b"), fields.get("c")), (Some(&b"x"[..]), None));
        assert_eq!(fields.size(), 10 + 1 + 2 + 2 + 4 * 32);
        fields.clear();
        assert_eq!(fields, FieldList::default());
        fields.push(b"a", b"B");
        fields.push_in_lower_case(b"Set-Cookie", b"A=B");
        assert_eq!(fields.iter().nth(1), Some((&b"set-cookie"[..], &b"A=B"[..])));
    }
}
