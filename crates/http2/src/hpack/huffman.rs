//! The Huffman code of strings (section 5.2 and appendix B).
//!
//! The code is canonical: sorted by length and then by symbol, the codes count upwards. So the lengths say everything,
//! and the tables below are computed from them by the compiler.

use super::HpackError;

/// The bytes and EOS.
const SYMBOLS: usize = 257;

const END_OF_STRING: u16 = 256;

const MAX_BITS: usize = 30;

/// The bits of each symbol's code.
#[rustfmt::skip]
const BITS: [u8; SYMBOLS] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
    28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5,
    6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
    21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
    30,
];

/// The codes of one length.
#[derive(Clone, Copy)]
struct Length {
    /// The first code, and the one after the last, with their bits at the top of 32.
    first: u32,
    end: u64,
    /// Where the first code's symbol stands in [`Code::sorted`].
    offset: u16,
}

struct Code {
    /// Each symbol's code, its bits at the bottom.
    codes: [u32; SYMBOLS],
    /// The symbols in the order of their codes.
    sorted: [u16; SYMBOLS],
    lengths: [Length; MAX_BITS + 1],
    /// What the next eight bits begin with: the symbol and the bits of its code, no bits where it is a longer one.
    by_byte: [(u8, u8); 256],
}

static CODE: Code = code();

const fn code() -> Code {
    let none = Length { first: 0, end: 0, offset: 0 };
    let mut code =
        Code { codes: [0; SYMBOLS], sorted: [0; SYMBOLS], lengths: [none; MAX_BITS + 1], by_byte: [(0, 0); 256] };
    let (mut next, mut placed, mut bits) = (0u32, 0, 1);
    while bits <= MAX_BITS {
        next <<= 1;
        let shift = 32 - bits;
        code.lengths[bits].first = next << shift;
        code.lengths[bits].offset = placed as u16;
        let mut symbol = 0;
        while symbol < SYMBOLS {
            if BITS[symbol] as usize == bits {
                code.codes[symbol] = next;
                code.sorted[placed] = symbol as u16;
                next += 1;
                placed += 1;
            }
            symbol += 1;
        }
        code.lengths[bits].end = (next as u64) << shift;
        bits += 1;
    }
    assert!(placed == SYMBOLS && next == 1 << MAX_BITS, "the code is complete");
    let mut byte = 0;
    while byte < 256 {
        let mut symbol = 0;
        while symbol < 256 {
            let bits = BITS[symbol] as u32;
            if bits <= 8 && byte as u32 >> (8 - bits) == code.codes[symbol] {
                code.by_byte[byte] = (symbol as u8, bits as u8);
            }
            symbol += 1;
        }
        byte += 1;
    }
    code
}

/// The symbol that 32 bits begin with, and the bits of its code.
fn symbol(window: u32) -> (u16, u32) {
    let (symbol, bits) = CODE.by_byte[(window >> 24) as usize];
    if bits != 0 {
        return (u16::from(symbol), u32::from(bits));
    }
    let mut bits = 9;
    while u64::from(window) >= CODE.lengths[bits].end {
        bits += 1;
    }
    let length = &CODE.lengths[bits];
    let nth = (window - length.first) >> (32 - bits);
    (CODE.sorted[usize::from(length.offset) + nth as usize], bits as u32)
}

/// Appends what `coded` stands for: at most 8 bytes for 5 of it.
pub(super) fn decode(coded: &[u8], out: &mut Vec<u8>) -> Result<(), HpackError> {
    out.reserve_exact(coded.len() * 8 / 5);
    let mut input = coded.iter();
    // The bits held stand at the top, zeros below.
    let (mut held, mut held_bits) = (0u64, 0u32);
    loop {
        while held_bits < 56
            && let Some(&byte) = input.next()
        {
            held |= u64::from(byte) << (56 - held_bits);
            held_bits += 8;
        }
        // Beyond the end are ones, so that good padding looks like the beginning of EOS.
        let window = ((held | u64::MAX.checked_shr(held_bits).unwrap_or(0)) >> 32) as u32;
        let (symbol, bits) = symbol(window);
        if bits > held_bits {
            let is_all_ones = window == u32::MAX;
            return if held_bits <= 7 && is_all_ones { Ok(()) } else { Err(HpackError::BadPadding) };
        }
        if symbol == END_OF_STRING {
            return Err(HpackError::EndOfString);
        }
        out.push(symbol as u8);
        held <<= bits;
        held_bits -= bits;
    }
}

/// The bytes that [`encode`] makes of `plain`.
pub(super) fn encoded_bytes(plain: &[u8]) -> usize {
    plain.iter().map(|&byte| usize::from(BITS[usize::from(byte)])).sum::<usize>().div_ceil(8)
}

/// Appends `plain` in the code, padded to whole bytes.
pub(super) fn encode(plain: &[u8], out: &mut Vec<u8>) {
    // The bits held stand at the bottom, fewer than 32 of them between two symbols.
    let (mut held, mut held_bits) = (0u64, 0u32);
    for &byte in plain {
        let bits = u32::from(BITS[usize::from(byte)]);
        held = held << bits | u64::from(CODE.codes[usize::from(byte)]);
        held_bits += bits;
        if held_bits >= 32 {
            held_bits -= 32;
            out.extend_from_slice(&((held >> held_bits) as u32).to_be_bytes());
        }
    }
    while held_bits >= 8 {
        held_bits -= 8;
        out.push((held >> held_bits) as u8);
    }
    if held_bits > 0 {
        out.push((held << (8 - held_bits)) as u8 | 0xff >> held_bits);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decoded(coded: &[u8]) -> Result<Vec<u8>, HpackError> {
        let mut out = Vec::new();
        decode(coded, &mut out).map(|()| out)
    }

    #[test]
    fn codes_are_those_of_appendix_b() {
        let rows = [
            (0, 0x1ff8, 13),
            (10, 0x3fff_fffc, 30),
            (u16::from(b'/'), 0x18, 6),
            (u16::from(b'a'), 0x3, 5),
            (u16::from(b'z'), 0x7b, 7),
            (u16::from(b'X'), 0xfc, 8),
            (u16::from(b'|'), 0x7fc, 11),
            (128, 0xfffe6, 20),
            (208, 0x7fff2, 19),
            (249, 0xfff_fffe, 28),
            (255, 0x3ff_ffee, 26),
            (END_OF_STRING, 0x3fff_ffff, 30),
        ];
        for (symbol, code, bits) in rows {
            let at = usize::from(symbol);
            assert_eq!((CODE.codes[at], BITS[at]), (code, bits), "{symbol}");
        }
    }

    #[test]
    fn every_symbol_is_found_by_its_code() {
        for (at, (&code, bits)) in CODE.codes.iter().zip(BITS.map(u32::from)).enumerate() {
            let lowest = code << (32 - bits);
            let highest = lowest | u32::MAX.checked_shr(bits).unwrap_or(0);
            assert_eq!(symbol(lowest), (at as u16, bits));
            assert_eq!(symbol(highest), (at as u16, bits));
        }
    }

    #[test]
    fn padding_is_at_most_seven_ones() {
        assert_eq!(decoded(b""), Ok(vec![]));
        // Eight codes of five bits leave nothing to pad.
        assert_eq!(decoded(&[0x18, 0xc6, 0x31, 0x8c, 0x63]), Ok(b"aaaaaaaa".to_vec()));
        assert_eq!(decoded(&[0x1f]), Ok(b"a".to_vec()));
        assert_eq!(decoded(&[0xf8, 0xff]), Err(HpackError::BadPadding), "eight ones");
        assert_eq!(decoded(&[0x1e]), Err(HpackError::BadPadding), "a zero at the end");
        assert_eq!(decoded(&[0x1b]), Err(HpackError::BadPadding), "a zero at the beginning");
        assert_eq!(decoded(&[0xff]), Err(HpackError::BadPadding), "nothing but padding");
        assert_eq!(decoded(&[0xff, 0xff, 0xff]), Err(HpackError::BadPadding), "24 ones");
        assert_eq!(decoded(&[0xff, 0xc0]), Err(HpackError::BadPadding), "a longer code, not finished");
    }

    #[test]
    fn an_end_of_string_is_refused() {
        assert_eq!(decoded(&[0xff; 4]), Err(HpackError::EndOfString));
        // Behind an `a`, and behind eight bytes.
        assert_eq!(decoded(&[0x1f, 0xff, 0xff, 0xff, 0xff]), Err(HpackError::EndOfString));
        let late = [&[0x18, 0xc6, 0x31, 0x8c, 0x63, 0x18, 0xc6, 0x31, 0x8c, 0x63][..], &[0xff; 4]].concat();
        assert_eq!(decoded(&late), Err(HpackError::EndOfString));
    }

    proptest! {
        #[test]
        fn strings_come_back(plain in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut coded = Vec::new();
            encode(&plain, &mut coded);
            prop_assert_eq!(coded.len(), encoded_bytes(&plain));
            prop_assert_eq!(decoded(&coded), Ok(plain));
        }

        #[test]
        fn a_string_has_one_code_only(coded in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Ok(plain) = decoded(&coded) {
                let mut again = Vec::new();
                encode(&plain, &mut again);
                prop_assert_eq!(again, coded);
            }
        }
    }
}
