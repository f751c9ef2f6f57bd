//! Any split of a body gives the same bytes, end and error; chunks come back and what follows them is left alone.
#![no_main]

mod split;

use libfuzzer_sys::fuzz_target;
use pushlab_wire::http::{BodyDecoder, BodyKind, CHUNK_END, HttpError, LAST_CHUNK, encode_chunk_head};
use split::{pieces, take_cuts};

/// Where a body ended.
#[derive(Debug, PartialEq)]
struct Outcome {
    body: Vec<u8>,
    consumed: usize,
    end: Result<bool, HttpError>,
}

fn decode(kind: BodyKind, pieces: Vec<&[u8]>) -> Outcome {
    let mut decoder = BodyDecoder::new(kind);
    let mut outcome = Outcome { body: Vec::new(), consumed: 0, end: Ok(decoder.is_done()) };
    for mut piece in pieces {
        while !piece.is_empty() && !decoder.is_done() {
            let step = match decoder.decode(piece) {
                Ok(step) => step,
                // How much a failed step had read depends on the split, and nobody uses it.
                Err(error) => return Outcome { consumed: 0, end: Err(error), ..outcome },
            };
            assert!(step.consumed > 0, "a decoder that is not done takes something");
            assert_eq!(step.is_done, decoder.is_done());
            outcome.body.extend_from_slice(step.data);
            outcome.consumed += step.consumed;
            piece = &piece[step.consumed..];
        }
    }
    outcome.end = Ok(decoder.is_done());
    outcome
}

fuzz_target!(|data: &[u8]| {
    let Some((&length, data)) = data.split_first() else { return };
    let Some((cuts, input)) = take_cuts(data) else { return };
    for kind in [BodyKind::Chunked, BodyKind::UntilClose, BodyKind::Length(u64::from(length))] {
        assert_eq!(decode(kind, pieces(input, &cuts)), decode(kind, vec![input]));
    }

    let mut encoded = Vec::new();
    for chunk in input.chunks(usize::from(length).max(1)) {
        encode_chunk_head(&mut encoded, chunk.len());
        encoded.extend_from_slice(chunk);
        encoded.extend_from_slice(CHUNK_END);
    }
    encoded.extend_from_slice(LAST_CHUNK);
    let consumed = encoded.len();
    encoded.extend_from_slice(input);
    let expected = Outcome { body: input.to_vec(), consumed, end: Ok(true) };
    assert_eq!(decode(BodyKind::Chunked, pieces(&encoded, &cuts)), expected);
});
