//! From blocks to fields (sections 3 and 6).

use super::tables::{DynamicTable, FIELD_BYTES};
use super::{HpackError, Outcome, huffman};
use pushlab_wire::fields::FieldList;

/// Size updates that a block may begin with (section 4.2).
const MAX_SIZE_UPDATES: usize = 2;

/// Bytes of an integer after its prefix: enough for 32 bits.
const MAX_INTEGER_BYTES: u32 = 5;

/// One direction of a connection, at the end that receives. Between blocks it holds the dynamic table and nothing
/// else, and no memory before the first field in it; with 4,096 bytes it holds 5.6 KiB at worst.
#[derive(Debug)]
pub struct Decoder {
    pub(super) table: DynamicTable,
    /// The limit that the peer has to keep to.
    max_table_bytes: u32,
    /// The next block must begin with an update to this or less.
    required_bytes: Option<u32>,
}

impl Decoder {
    /// With a dynamic table of at most `max_table_bytes`, as the standard counts them, from the first block on. Over
    /// HTTP/2 that is [`super::INITIAL_TABLE_BYTES`], whatever our first SETTINGS say: until the peer has acknowledged
    /// them, its encoder goes by the initial value.
    pub fn new(max_table_bytes: u32) -> Self {
        Self { table: DynamicTable::new(max_table_bytes), max_table_bytes, required_bytes: None }
    }

    /// Changes the limit, once the peer has acknowledged our SETTINGS_HEADER_TABLE_SIZE. Where more than that is in use,
    /// the next block must begin with an update (RFC 9113, section 4.3.1); where less is, encoders send none.
    pub fn set_max_table_bytes(&mut self, bytes: u32) {
        self.max_table_bytes = bytes;
        if bytes < self.table.max_bytes() {
            self.required_bytes = Some(self.required_bytes.map_or(bytes, |other| other.min(bytes)));
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

    /// Decodes one whole block and adds its fields to `into`, whose size, as the standard counts it and with what was
    /// in it before, does not pass `max_list_bytes`. Where it would, decoding goes on for the sake of the table.
    /// Meanwhile it takes up to 8/5 of the block's bytes and those of one name in the table, and then gives them back.
    pub fn decode(&mut self, block: &[u8], max_list_bytes: usize, into: &mut FieldList) -> Result<Outcome, HpackError> {
        let mut block = Block { rest: block };
        self.update_size(&mut block)?;
        let mut list = List { fields: into, max_bytes: max_list_bytes, is_cut: false };
        let (mut name_memory, mut value_memory) = (Vec::new(), Vec::new());
        while let Some(&first) = block.rest.first() {
            match first {
                0x80.. => {
                    let index = block.integer(7)?;
                    let (name, value) = self.field(index)?;
                    list.add(name, value);
                }
                0x40..0x80 => {
                    let name = match block.integer(6)? {
                        0 => block.string(&mut name_memory)?,
                        index => {
                            // Adding a field can evict the one whose name it takes (section 4.4).
                            name_memory.clear();
                            name_memory.extend_from_slice(self.field(index)?.0);
                            &name_memory
                        }
                    };
                    let value = block.string(&mut value_memory)?;
                    list.add(name, value);
                    self.table.add(name, value);
                }
                0x20..0x40 => return Err(HpackError::StraySizeUpdate),
                // Without indexing, or never indexed: to us the same.
                0..0x20 => {
                    let name = match block.integer(4)? {
                        0 => block.string(&mut name_memory)?,
                        index => self.field(index)?.0,
                    };
                    list.add(name, block.string(&mut value_memory)?);
                }
            }
        }
        Ok(Outcome { is_cut: list.is_cut })
    }

    fn field(&self, index: u32) -> Result<(&[u8], &[u8]), HpackError> {
        self.table.field(index).ok_or(HpackError::InvalidIndex(index))
    }

    /// Reads the size updates that a block begins with (sections 4.2 and 6.3).
    fn update_size(&mut self, block: &mut Block<'_>) -> Result<(), HpackError> {
        for _ in 0..MAX_SIZE_UPDATES {
            let Some(0x20..0x40) = block.rest.first() else { break };
            let bytes = block.integer(5)?;
            if bytes > self.max_table_bytes {
                return Err(HpackError::TableTooLarge { bytes, max: self.max_table_bytes });
            }
            if self.required_bytes.take().is_some_and(|required| bytes > required) {
                return Err(HpackError::MissingSizeUpdate);
            }
            self.table.set_max_bytes(bytes);
        }
        self.required_bytes.map_or(Ok(()), |_| Err(HpackError::MissingSizeUpdate))
    }
}

/// Where fields go, as long as they fit.
struct List<'a> {
    fields: &'a mut FieldList,
    max_bytes: usize,
    is_cut: bool,
}

impl List<'_> {
    fn add(&mut self, name: &[u8], value: &[u8]) {
        self.is_cut |= self.fields.size() + name.len() + value.len() + FIELD_BYTES > self.max_bytes;
        if !self.is_cut {
            self.fields.push(name, value);
        }
    }
}

/// What is left of a block.
struct Block<'a> {
    rest: &'a [u8],
}

impl<'a> Block<'a> {
    fn byte(&mut self) -> Result<u8, HpackError> {
        let (&byte, rest) = self.rest.split_first().ok_or(HpackError::Truncated)?;
        self.rest = rest;
        Ok(byte)
    }

    /// An integer whose first bits are the last `prefix` of the next byte (section 5.1).
    fn integer(&mut self, prefix: u32) -> Result<u32, HpackError> {
        let most = (1u32 << prefix) - 1;
        let first = u32::from(self.byte()?) & most;
        if first < most {
            return Ok(first);
        }
        let mut value = u64::from(first);
        for nth in 0..MAX_INTEGER_BYTES {
            let byte = self.byte()?;
            value += u64::from(byte & 0x7f) << (7 * nth);
            if byte & 0x80 == 0 {
                return u32::try_from(value).map_err(|_| HpackError::IntegerOverflow);
            }
        }
        Err(HpackError::IntegerOverflow)
    }

    /// A string (section 5.2), in the block or, if it was coded, in `memory`.
    fn string<'s>(&mut self, memory: &'s mut Vec<u8>) -> Result<&'s [u8], HpackError>
    where
        'a: 's,
    {
        let is_coded = self.rest.first().is_some_and(|byte| byte & 0x80 != 0);
        let length = self.integer(7)? as usize;
        let (string, rest) = self.rest.split_at_checked(length).ok_or(HpackError::Truncated)?;
        self.rest = rest;
        if !is_coded {
            return Ok(string);
        }
        memory.clear();
        huffman::decode(string, memory)?;
        Ok(memory)
    }
}

#[cfg(test)]
mod tests {
    use super::super::INITIAL_TABLE_BYTES;
    use super::*;

    const NO_LIMIT: usize = usize::MAX;

    fn decode(decoder: &mut Decoder, block: &[u8]) -> Result<Vec<String>, HpackError> {
        let mut list = FieldList::default();
        assert!(!decoder.decode(block, NO_LIMIT, &mut list)?.is_cut);
        Ok(list.iter().map(|(name, value)| format!("{}={}", name.escape_ascii(), value.escape_ascii())).collect())
    }

    #[test]
    fn integers_are_read_as_in_appendix_c_1() {
        for (bytes, prefix, value) in [(&[0xca][..], 5, 10), (&[0xff, 0x9a, 0x0a], 5, 1337), (&[0x2a], 8, 42)] {
            let mut block = Block { rest: bytes };
            assert_eq!((block.integer(prefix), block.rest), (Ok(value), &[][..]));
        }
    }

    #[test]
    fn integers_have_at_most_32_bits_and_five_bytes_more() {
        let integer = |bytes: &[u8]| Block { rest: bytes }.integer(5);
        assert_eq!(integer(&[0x1f, 0xe0, 0xff, 0xff, 0xff, 0x0f]), Ok(u32::MAX));
        assert_eq!(integer(&[0x1f, 0xe1, 0xff, 0xff, 0xff, 0x0f]), Err(HpackError::IntegerOverflow));
        assert_eq!(integer(&[0x1f, 0xff, 0xff, 0xff, 0xff, 0x7f]), Err(HpackError::IntegerOverflow));
        assert_eq!(integer(&[0x1f, 0x80, 0x80, 0x80, 0x80, 0x00]), Ok(31));
        assert_eq!(integer(&[0x1f, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00]), Err(HpackError::IntegerOverflow));
        assert_eq!(integer(&[0x1f, 0x80]), Err(HpackError::Truncated));
        assert_eq!(integer(&[]), Err(HpackError::Truncated));
    }

    #[test]
    fn every_violation_has_its_error() {
        let overflow = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        let cases: [(&[u8], HpackError); 19] = [
            (&[0x80], HpackError::InvalidIndex(0)),
            (&[0xbe], HpackError::InvalidIndex(62)),
            (&[0x7e, 0x00], HpackError::InvalidIndex(62)),
            (&[0x0f, 0x2f, 0x00], HpackError::InvalidIndex(62)),
            (&[0x1f, 0x2f, 0x00], HpackError::InvalidIndex(62)),
            (&overflow, HpackError::IntegerOverflow),
            (&[0xff], HpackError::Truncated),
            (&[0x40], HpackError::Truncated),
            (&[0x41], HpackError::Truncated),
            (&[0x40, 0x02, b'a'], HpackError::Truncated),
            (&[0x00, 0x01, b'a'], HpackError::Truncated),
            (&[0x00, 0x01, b'a', 0x7f, 0x80], HpackError::Truncated),
            (&[0x01, 0x7f, 0xff, 0xff, 0xff, 0xff, 0x0f, b'a'], HpackError::IntegerOverflow),
            (&[0x01, 0x81, 0x1e], HpackError::BadPadding),
            (&[0x01, 0x82, 0xf8, 0xff], HpackError::BadPadding),
            (&[0x01, 0x84, 0xff, 0xff, 0xff, 0xff], HpackError::EndOfString),
            (&[0x82, 0x20], HpackError::StraySizeUpdate),
            (&[0x20, 0x21, 0x20], HpackError::StraySizeUpdate),
            (&[0x3f, 0xe2, 0x1f], HpackError::TableTooLarge { bytes: 4097, max: 4096 }),
        ];
        for (block, error) in cases {
            assert_eq!(decode(&mut Decoder::new(INITIAL_TABLE_BYTES), block), Err(error), "{block:02x?}");
        }
    }

    #[test]
    fn two_size_updates_may_begin_a_block() {
        let mut decoder = Decoder::new(INITIAL_TABLE_BYTES);
        assert_eq!(decode(&mut decoder, b"\x40\x01a\x01b").as_deref(), Ok(&["a=b".to_string()][..]));
        assert_eq!(decoder.table_bytes(), 34);
        assert_eq!(decode(&mut decoder, &[0x20, 0x3f, 0xe1, 0x1f, 0x82]), Ok(vec![":method=GET".into()]));
        assert_eq!((decoder.table_bytes(), decoder.table.max_bytes()), (0, 4096));
        assert_eq!(decode(&mut decoder, &[]), Ok(vec![]));
    }

    #[test]
    fn a_reduced_limit_must_be_acknowledged_by_the_next_block() {
        let reduced = || {
            let mut decoder = Decoder::new(INITIAL_TABLE_BYTES);
            decoder.set_max_table_bytes(20);
            decoder.set_max_table_bytes(25);
            decoder
        };
        for block in [&[0x82][..], &[], &[0x20 | 21, 0x82]] {
            assert_eq!(decode(&mut reduced(), block), Err(HpackError::MissingSizeUpdate), "{block:02x?}");
        }
        for block in [&[0x20 | 20, 0x82][..], &[0x20, 0x82], &[0x20 | 20, 0x20 | 25, 0x82]] {
            let mut decoder = reduced();
            assert_eq!(decode(&mut decoder, block), Ok(vec![":method=GET".into()]), "{block:02x?}");
            assert!(decode(&mut decoder, &[0x82]).is_ok(), "once is enough");
        }
        let too_large = HpackError::TableTooLarge { bytes: 26, max: 25 };
        assert_eq!(decode(&mut reduced(), &[0x20 | 20, 0x20 | 26]), Err(too_large));
    }

    #[test]
    fn no_update_is_needed_where_less_is_in_use_or_more_is_allowed() {
        let mut decoder = Decoder::new(INITIAL_TABLE_BYTES);
        assert!(decode(&mut decoder, &[0x20 | 10]).is_ok());
        decoder.set_max_table_bytes(20);
        assert!(decode(&mut decoder, &[0x82]).is_ok());
        decoder.set_max_table_bytes(8192);
        assert!(decode(&mut decoder, &[0x82]).is_ok());
        assert_eq!(decoder.table.max_bytes(), 10, "a limit is not yet a size");
    }

    #[test]
    fn a_list_that_is_cut_leaves_the_table_right() {
        let mut decoder = Decoder::new(INITIAL_TABLE_BYTES);
        let mut list = FieldList::default();
        let block = b"\x40\x01a\x01b\x40\x01c\x03def\x40\x01g\x01h\x82";
        let outcome = decoder.decode(block, 34 + 35, &mut list);
        assert_eq!(outcome, Ok(Outcome { is_cut: true }));
        assert_eq!(list.iter().collect::<Vec<_>>(), [(&b"a"[..], &b"b"[..])], "nothing after what did not fit");
        assert_eq!(decode(&mut decoder, &[0xbe, 0xbf]), Ok(vec!["g=h".into(), "c=def".into()]));
        list.clear();
        assert_eq!(decoder.decode(&[0xbe, 0xbe], 68, &mut list), Ok(Outcome { is_cut: false }), "it just fits");
        assert_eq!(decoder.decode(&[0x84], 68 + 37, &mut list), Ok(Outcome { is_cut: true }), "what was there counts");
        assert_eq!(decoder.decode(&[0x80], 0, &mut list), Err(HpackError::InvalidIndex(0)), "errors are still found");
    }

    #[test]
    fn a_bomb_costs_no_more_than_the_list_may_hold() {
        let mut decoder = Decoder::new(INITIAL_TABLE_BYTES);
        let mut list = FieldList::default();
        // A value of 4,000 bytes, once said and then named a million times.
        let mut block = [&b"\x40\x01a\x7f\xa1\x1e"[..], &[b'x'; 4000]].concat();
        block.resize(block.len() + 1_000_000, 0xbe);
        assert_eq!(decoder.decode(&block, 16_384, &mut list), Ok(Outcome { is_cut: true }));
        assert_eq!((list.len(), list.size()), (4, 4 * 4033));
        assert_eq!(decoder.table_bytes(), 4033);
    }

    #[test]
    fn a_name_may_come_from_the_field_that_its_own_evicts() {
        let mut decoder = Decoder::new(40);
        assert_eq!(decode(&mut decoder, b"\x40\x03abc\x01d"), Ok(vec!["abc=d".into()]));
        assert_eq!(decode(&mut decoder, b"\x7e\x03efg"), Ok(vec!["abc=efg".into()]));
        assert_eq!(decode(&mut decoder, &[0xbe]), Ok(vec!["abc=efg".into()]));
        assert_eq!(decode(&mut decoder, b"\x7e\x09123456789"), Ok(vec!["abc=123456789".into()]));
        assert_eq!(decode(&mut decoder, &[0xbe]), Err(HpackError::InvalidIndex(62)), "it was too large");
    }
}
