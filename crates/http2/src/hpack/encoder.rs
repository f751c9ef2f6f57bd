//! From fields to blocks (section 6), and what is worth a place in the table.

use super::tables::{DynamicTable, FIELD_BYTES, static_field, static_name};
use super::{INITIAL_TABLE_BYTES, huffman};

/// Our own limit of an encoder's dynamic table, in bytes as the standard counts them: 5.6 KiB of memory at worst,
/// however much the peer allows.
pub const MAX_TABLE_BYTES: u32 = 4096;

/// Shorter cookies might be guessed (section 7.1.3).
const GUESSABLE_COOKIE_BYTES: usize = 20;

/// One direction of a connection, at the end that sends. Holds no memory before the first field in its table.
#[derive(Debug)]
pub struct Encoder {
    pub(super) table: DynamicTable,
    /// What the peer allows.
    peer_max_bytes: u32,
    /// The smallest limit since the last block, which the next one begins with; the last limit is the table's.
    smallest_bytes: Option<u32>,
}

impl Default for Encoder {
    fn default() -> Self {
        Self::new()
    }
}

impl Encoder {
    /// With the table that HTTP/2 begins with.
    pub fn new() -> Self {
        Self {
            table: DynamicTable::new(INITIAL_TABLE_BYTES.min(MAX_TABLE_BYTES)),
            peer_max_bytes: INITIAL_TABLE_BYTES,
            smallest_bytes: None,
        }
    }

    /// Takes the peer's SETTINGS_HEADER_TABLE_SIZE, each as it comes and before it is acknowledged: the next block
    /// announces it (section 4.2). [`MAX_TABLE_BYTES`] is the most that is used.
    pub fn set_max_table_bytes(&mut self, bytes: u32) {
        let is_reduced = bytes < self.peer_max_bytes;
        self.peer_max_bytes = bytes;
        let used = bytes.min(MAX_TABLE_BYTES);
        // RFC 9113, section 4.3.1, wants an update after every reduction, also of what we did not use.
        if is_reduced || used != self.table.max_bytes() {
            self.smallest_bytes = Some(self.smallest_bytes.map_or(used, |other| other.min(used)));
            self.table.set_max_bytes(used);
        }
    }

    /// Bytes of memory it takes besides itself.
    pub fn kept_bytes(&self) -> usize {
        self.table.kept_bytes()
    }

    /// The size of the dynamic table in bytes, as the standard counts it (section 4.1).
    pub fn table_bytes(&self) -> u32 {
        self.table.size()
    }

    /// Appends one whole block. It must reach the peer, before any that is encoded later.
    pub fn encode<'a>(&mut self, fields: impl IntoIterator<Item = (&'a [u8], &'a [u8])>, out: &mut Vec<u8>) {
        if let Some(smallest) = self.smallest_bytes.take() {
            let last = self.table.max_bytes();
            if smallest < last {
                push_integer(0x20, 5, smallest as usize, out);
            }
            push_integer(0x20, 5, last as usize, out);
        }
        for (name, value) in fields {
            self.encode_field(name, value, out);
        }
    }

    fn encode_field(&mut self, name: &[u8], value: &[u8], out: &mut Vec<u8>) {
        let static_name = static_name(name);
        let indexing = Indexing::of(static_name, name, value, self.table.max_bytes());
        let mut name_index = static_name;
        if indexing != Indexing::Never {
            if let Some(index) = static_name.and_then(|first| static_field(first, value)) {
                return push_integer(0x80, 7, index as usize, out);
            }
            // What is not indexed is looked for only where its name may be there.
            if indexing == Indexing::Incremental || static_name.is_none() {
                let found = self.table.find(name, value);
                if let Some(index) = found.field {
                    return push_integer(0x80, 7, index as usize, out);
                }
                name_index = name_index.or(found.name);
            }
        }
        let (pattern, prefix) = match indexing {
            Indexing::Incremental => (0x40, 6),
            Indexing::Without => (0x00, 4),
            Indexing::Never => (0x10, 4),
        };
        push_integer(pattern, prefix, name_index.unwrap_or(0) as usize, out);
        if name_index.is_none() {
            push_string(name, out);
        }
        push_string(value, out);
        if indexing == Indexing::Incremental {
            self.table.add(name, value);
        }
    }
}

/// What becomes of a field that no table has (section 6.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Indexing {
    /// It enters the table: it is likely to come again.
    Incremental,
    /// It does not.
    Without,
    /// Nor may it enter the table of any other that forwards it, lest it be guessed (section 7.1.3).
    Never,
}

impl Indexing {
    /// `static_name` is the name's first index in the static table, which has all names that are treated apart.
    fn of(static_name: Option<u32>, name: &[u8], value: &[u8], max_table_bytes: u32) -> Self {
        // More than three quarters of the table would evict too much.
        let is_large = 4 * (name.len() + value.len() + FIELD_BYTES) > 3 * max_table_bytes as usize;
        match static_name.unwrap_or(0) {
            // authorization, proxy-authorization, set-cookie
            23 | 49 | 55 => Self::Never,
            // cookie
            32 if value.len() < GUESSABLE_COOKIE_BYTES => Self::Never,
            // :path, content-length, date, etag
            4 | 28 | 33 | 34 => Self::Without,
            // if-none-match, last-modified, location, range
            41 | 44 | 46 | 50 => Self::Without,
            _ if is_large => Self::Without,
            _ => Self::Incremental,
        }
    }
}

/// An integer behind the bits of `pattern`, of which the last `prefix` are free (section 5.1).
fn push_integer(pattern: u8, prefix: u32, value: usize, out: &mut Vec<u8>) {
    let most = (1 << prefix) - 1;
    if value < most {
        return out.push(pattern | value as u8);
    }
    out.push(pattern | most as u8);
    let mut rest = value - most;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// A string, in Huffman's code where that is shorter (section 5.2).
fn push_string(string: &[u8], out: &mut Vec<u8>) {
    let coded_bytes = huffman::encoded_bytes(string);
    if coded_bytes < string.len() {
        push_integer(0x80, 7, coded_bytes, out);
        huffman::encode(string, out);
    } else {
        push_integer(0x00, 7, string.len(), out);
        out.extend_from_slice(string);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encode(encoder: &mut Encoder, fields: &[(&str, &str)]) -> Vec<u8> {
        let mut out = Vec::new();
        encoder.encode(fields.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())), &mut out);
        out
    }

    #[test]
    fn integers_are_written_as_in_appendix_c_1() {
        for (prefix, value, bytes) in [(5, 10, &[10][..]), (5, 1337, &[0x1f, 0x9a, 0x0a]), (8, 42, &[0x2a])] {
            let mut out = Vec::new();
            push_integer(0, prefix, value, &mut out);
            assert_eq!(out, bytes);
        }
    }

    #[test]
    fn what_is_likely_to_come_again_enters_the_table() {
        let fields = [(":status", "200"), ("content-type", "text/event-stream"), ("x-instance", "a")];
        let mut encoder = Encoder::new();
        assert!(encode(&mut encoder, &fields).len() > 20);
        assert_eq!(encode(&mut encoder, &fields), [0x88, 0xbf, 0xbe]);
        assert_eq!(encode(&mut encoder, &[("x-instance", "&")]), [0x7e, 0x01, b'&'], "only its name is known");
        assert_eq!(encode(&mut encoder, &[(":status", "201")])[0], 0x48);
    }

    #[test]
    fn what_is_not_likely_to_come_again_does_not_enter_the_table() {
        let mut encoder = Encoder::new();
        let names = [(":path", 4), ("content-length", 28), ("date", 33), ("etag", 34), ("last-modified", 44)];
        let more = [("if-none-match", 41), ("location", 46), ("range", 50)];
        for (name, index) in names.into_iter().chain(more) {
            let block = encode(&mut encoder, &[(name, "&")]);
            let mut expected = Vec::new();
            push_integer(0x00, 4, index, &mut expected);
            expected.extend([1, b'&']);
            assert_eq!((block, encoder.table_bytes()), (expected, 0), "{name}");
        }
        assert_eq!(encode(&mut encoder, &[(":path", "/index.html")]), [0x85], "the static table has it whole");
    }

    #[test]
    fn what_would_take_more_than_three_quarters_of_the_table_does_not_enter_it() {
        let mut encoder = Encoder::new();
        let value = "x".repeat(3072 - 32 - 1);
        assert_eq!(encode(&mut encoder, &[("a", &format!("{value}x"))])[0], 0x00);
        assert_eq!(encoder.table_bytes(), 0);
        assert_eq!(encode(&mut encoder, &[("a", &value)])[0], 0x40);
        assert_eq!(encoder.table_bytes(), 3072);
        encoder.set_max_table_bytes(0);
        assert_eq!(encode(&mut encoder, &[("a", "")]), [0x20, 0x00, 0x01, b'a', 0x00]);
    }

    #[test]
    fn secrets_are_never_indexed() {
        let mut encoder = Encoder::new();
        let cookie = "0123456789abcdefghi";
        let secrets = [("authorization", ""), ("proxy-authorization", "&"), ("set-cookie", "&"), ("cookie", cookie)];
        for secret in secrets {
            assert_eq!((encode(&mut encoder, &[secret])[0], encoder.table_bytes()), (0x1f, 0), "{}", secret.0);
        }
        let longer = format!("{cookie}j");
        assert_eq!(encode(&mut encoder, &[("cookie", &longer)])[0], 0x60);
        assert_eq!(encode(&mut encoder, &[("cookie", &longer)]), [0xbe]);
    }

    #[test]
    fn strings_are_coded_where_that_is_shorter() {
        let string = |string: &str| {
            let mut out = Vec::new();
            push_string(string.as_bytes(), &mut out);
            out
        };
        assert_eq!(string(""), [0x00]);
        assert_eq!(string("a"), [0x01, b'a'], "as long as its code");
        assert_eq!(string("aa"), [0x02, b'a', b'a'], "as long as its code");
        assert_eq!(string("aaa"), [0x82, 0x18, 0xc7]);
        assert_eq!(string("\u{1}"), [0x01, 0x01]);
    }

    #[test]
    fn a_block_begins_with_the_smallest_limit_and_the_last() {
        let mut encoder = Encoder::new();
        encoder.set_max_table_bytes(4096);
        assert!(encode(&mut encoder, &[]).is_empty(), "nothing has changed");
        encoder.set_max_table_bytes(65_536);
        assert!(encode(&mut encoder, &[]).is_empty(), "our own limit stands");
        encoder.set_max_table_bytes(5000);
        assert_eq!(encode(&mut encoder, &[]), [0x3f, 0xe1, 0x1f], "a reduction, though of what was not used");
        assert_ne!(encode(&mut encoder, &[("a", "b")]), [0xbe]);
        encoder.set_max_table_bytes(20);
        encoder.set_max_table_bytes(10);
        encoder.set_max_table_bytes(15);
        assert_eq!(encoder.table_bytes(), 0);
        assert_eq!(encode(&mut encoder, &[(":status", "200")]), [0x20 | 10, 0x20 | 15, 0x88]);
        assert_eq!(encode(&mut encoder, &[(":status", "200")]), [0x88], "once is enough");
        encoder.set_max_table_bytes(100);
        assert_eq!(encode(&mut encoder, &[]), [0x3f, 69], "a limit that was raised");
    }
}
