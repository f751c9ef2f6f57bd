//! What was cut comes whole, whatever the size of pieces; what is lost, repeated or changed gives no wrong message; no
//! bytes of a stranger panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pushlab_wire::pieces::{Cutter, PieceDecoder};

fuzz_target!(|data: &[u8]| {
    let [piece_bytes, harmed, byte, input @ ..] = data else { return };
    let mut stranger = PieceDecoder::default();
    for piece in input.chunks(usize::from(*piece_bytes) + 1) {
        // Whatever it says of them.
        let _ = stranger.take(piece);
        let _ = stranger.take(&[b"plb1", piece].concat());
    }
    let messages: Vec<&[u8]> = input.split(|&b| b == b'\n').collect();
    let mut cutter = Cutter::new(7);
    let cut = |message: &&[u8]| cutter.cut(message, 33 + usize::from(*piece_bytes)).expect("it is short");
    let mut pieces: Vec<Vec<u8>> = messages.iter().flat_map(cut).collect();
    let decode = |pieces: &[Vec<u8>]| {
        let mut decoder = PieceDecoder::default();
        let mut came = Vec::new();
        for piece in pieces {
            match decoder.take(piece) {
                Ok(message) => came.extend(message),
                Err(_) => break,
            }
        }
        came
    };
    assert_eq!(decode(&pieces), messages);
    let at = usize::from(*harmed) % pieces.len();
    match byte % 3 {
        0 => drop(pieces.remove(at)),
        1 => pieces.insert(at, pieces[at].clone()),
        _ => {
            let place = usize::from(*byte) % pieces[at].len();
            pieces[at][place] ^= 1;
        }
    }
    // One that is lost at the end is not missed by anybody yet.
    assert!(messages.starts_with(&decode(&pieces).iter().map(Vec::as_slice).collect::<Vec<_>>()));
});
