//! The encoding of a series' columns, which the front page of the crate describes.

use crate::model::Values;

const VERSION: u8 = 1;
const NUMBERS: u8 = 1;
const GAPS: u8 = 2;
const VARINT_BYTES_MAX: usize = 10;

/// Encodes columns of equal length.
pub(crate) fn encode<'a>(columns: impl IntoIterator<Item = &'a Values>, rows: usize) -> Vec<u8> {
    let mut data = vec![VERSION];
    put_varint(&mut data, rows as u64);
    for column in columns {
        match column {
            Values::Integers(values) => {
                put_presence(&mut data, 0, values);
                let mut last = 0_i64;
                for value in values.iter().flatten() {
                    let step = value.wrapping_sub(last);
                    put_varint(&mut data, ((step << 1) ^ (step >> 63)) as u64);
                    last = *value;
                }
            }
            Values::Numbers(values) => {
                put_presence(&mut data, NUMBERS, values);
                let mut last = 0_u64;
                for value in values.iter().flatten() {
                    put_varint(&mut data, (value.to_bits() ^ last).reverse_bits());
                    last = value.to_bits();
                }
            }
        }
    }
    data
}

/// Decodes `columns` columns. `Err` says what is wrong with the bytes.
pub(crate) fn decode(data: &[u8], columns: usize) -> Result<Vec<Values>, &'static str> {
    let mut input = Input { rest: data };
    if input.byte()? != VERSION {
        return Err("its version is unknown");
    }
    let rows = usize::try_from(input.varint()?).map_err(|_| CUT)?;
    // A row takes a bit of each column at the least, so that this bounds what a damaged length can allocate.
    if rows > input.rest.len().saturating_mul(8) && columns > 0 {
        return Err(CUT);
    }
    let decoded = (0..columns).map(|_| input.column(rows)).collect::<Result<_, _>>()?;
    if input.rest.is_empty() { Ok(decoded) } else { Err("it goes on after its end") }
}

const CUT: &str = "it is cut short";

struct Input<'a> {
    rest: &'a [u8],
}

impl Input<'_> {
    fn byte(&mut self) -> Result<u8, &'static str> {
        let (byte, rest) = self.rest.split_first().ok_or(CUT)?;
        self.rest = rest;
        Ok(*byte)
    }

    fn varint(&mut self) -> Result<u64, &'static str> {
        let mut value = 0_u64;
        for index in 0..VARINT_BYTES_MAX {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if index == VARINT_BYTES_MAX - 1 && bits > 1 {
                break;
            }
            value |= bits << (7 * index);
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err("a number in it is too long")
    }

    fn column(&mut self, rows: usize) -> Result<Values, &'static str> {
        let kind = self.byte()?;
        if kind & !(NUMBERS | GAPS) != 0 {
            return Err("a column in it is of an unknown kind");
        }
        let presence = if kind & GAPS == 0 {
            None
        } else {
            let (bits, rest) = self.rest.split_at_checked(rows.div_ceil(8)).ok_or(CUT)?;
            self.rest = rest;
            Some(bits)
        };
        let is_there = |row: usize| presence.is_none_or(|bits| bits[row / 8] & (1 << (row % 8)) != 0);
        if kind & NUMBERS == 0 {
            let mut last = 0_i64;
            let mut next = |input: &mut Self| {
                let step = input.varint()?;
                last = last.wrapping_add((step >> 1) as i64 ^ -((step & 1) as i64));
                Ok::<_, &'static str>(last)
            };
            let values = (0..rows).map(|row| is_there(row).then(|| next(self)).transpose());
            Ok(Values::Integers(values.collect::<Result<_, _>>()?))
        } else {
            let mut last = 0_u64;
            let mut next = |input: &mut Self| {
                last ^= input.varint()?.reverse_bits();
                Ok::<_, &'static str>(f64::from_bits(last))
            };
            let values = (0..rows).map(|row| is_there(row).then(|| next(self)).transpose());
            Ok(Values::Numbers(values.collect::<Result<_, _>>()?))
        }
    }
}

fn put_presence<T>(data: &mut Vec<u8>, kind: u8, values: &[Option<T>]) {
    if values.iter().all(Option::is_some) {
        data.push(kind);
        return;
    }
    data.push(kind | GAPS);
    for eight in values.chunks(8) {
        data.push(eight.iter().enumerate().fold(0, |bits, (at, value)| bits | u8::from(value.is_some()) << at));
    }
}

fn put_varint(data: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        data.push(value as u8 | 0x80);
        value >>= 7;
    }
    data.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn columns() -> impl Strategy<Value = Vec<Values>> {
        (0_usize..40).prop_flat_map(|rows| {
            let integers = prop::collection::vec(any::<Option<i64>>(), rows).prop_map(Values::Integers);
            let small = prop::collection::vec((0_i64..900).prop_map(Some), rows).prop_map(Values::Integers);
            let number = prop::option::of(prop::num::f64::NORMAL | prop::num::f64::ZERO | prop::num::f64::SUBNORMAL);
            let numbers = prop::collection::vec(number, rows).prop_map(Values::Numbers);
            prop::collection::vec(prop_oneof![integers, small, numbers], 1..6)
        })
    }

    proptest! {
        #[test]
        fn decoding_undoes_encoding(columns in columns()) {
            let data = encode(&columns, columns[0].len());
            prop_assert_eq!(decode(&data, columns.len()), Ok(columns.clone()));
            for cut in 0..data.len() {
                prop_assert!(decode(&data[..cut], columns.len()).is_err(), "cut at {}", cut);
            }
        }

        #[test]
        fn damaged_bytes_do_not_panic(mut data in prop::collection::vec(any::<u8>(), 0..64), columns in 0_usize..5) {
            let _ = decode(&data, columns);
            data.insert(0, VERSION);
            let _ = decode(&data, columns);
        }
    }

    #[test]
    fn the_ends_of_integers_are_kept() {
        let column = Values::Integers(vec![Some(i64::MAX), Some(i64::MIN), None, Some(0), Some(i64::MAX)]);
        assert_eq!(decode(&encode([&column], 5), 1), Ok(vec![column]));
    }

    #[test]
    fn a_length_that_cannot_be_is_refused_before_it_is_allocated() {
        let mut data = vec![VERSION];
        put_varint(&mut data, u64::MAX >> 4);
        data.push(GAPS);
        assert_eq!(decode(&data, 1), Err(CUT));
    }

    #[test]
    fn a_steady_counter_takes_few_bytes() {
        let cpu = Values::Integers((0..600).map(|i| Some(i * 20_000_000 + i * i % 977 * 1_000)).collect());
        let memory = Values::Integers(vec![Some(84_381_696); 600]);
        let bytes = encode([&cpu, &memory], 600).len();
        assert!(bytes < 600 * 4 + 600 + 20, "{bytes} bytes");
    }
}
