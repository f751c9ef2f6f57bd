//! Any split of a gzip body gives the same bytes or the same error, never more at a time than there is room, and what is
//! compressed comes back as soon as it is flushed. Codings are known or named.
#![no_main]

mod split;

use flate2::Compression;
use flate2::write::GzEncoder;
use libfuzzer_sys::fuzz_target;
use pushlab_wire::gzip::{ContentCoding, GzipDecoder, GzipError};
use split::{pieces, take_cuts};
use std::io::Write as _;

/// Most that is made of one input.
const MAX: usize = 1 << 20;

fn decode(pieces: Vec<&[u8]>, room: usize) -> Result<(Vec<u8>, bool), GzipError> {
    let (mut decoder, mut room, mut out) = (GzipDecoder::default(), vec![0; room], Vec::new());
    for piece in pieces {
        decoder.decode(piece, &mut room, |made| {
            assert!(!made.is_empty());
            out.extend_from_slice(made);
            if out.len() > MAX { Err(GzipError::Truncated) } else { Ok(()) }
        })?;
    }
    if out.len() <= MAX {
        assert_eq!(decoder.bytes_made(), out.len() as u64);
    }
    Ok((out, decoder.is_whole()))
}

fuzz_target!(|data: &[u8]| {
    let Some((&room, data)) = data.split_first() else { return };
    let Some((cuts, input)) = take_cuts(data) else { return };
    let room = usize::from(room) + 1;
    assert_eq!(decode(pieces(input, &cuts), room), decode(vec![input], 5_000));
    // Behind a header that is right, so that the fuzzer need not find one.
    let behind = [&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff], input].concat();
    assert_eq!(decode(pieces(&behind, &cuts), room), decode(vec![&behind], 5_000));

    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(input).expect("into memory");
    encoder.flush().expect("into memory");
    let flushed = encoder.get_ref().clone();
    assert_eq!(decode(pieces(&flushed, &cuts), room), Ok((input.to_vec(), false)));
    let whole = encoder.finish().expect("into memory");
    assert_eq!(decode(pieces(&whole, &cuts), room), Ok((input.to_vec(), true)));

    if let Ok(text) = std::str::from_utf8(input)
        && let Err(unknown) = ContentCoding::of(text.split('\n'))
    {
        assert!(text.contains(&unknown.0));
    }
});
