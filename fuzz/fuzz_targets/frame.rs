//! Whatever a process of ours might say at a handover, read in pieces, gives the frames of the whole; what was read comes
//! back through our own encoding.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pushlab_handover::frame::{BadFrame, Frame, FrameDecoder};
use pushlab_wire::cursor::Epoch;

fn decoder() -> FrameDecoder {
    FrameDecoder::of(Epoch::from_number(7))
}

fn decode(bytes: &[u8], step: usize) -> (Vec<Frame>, Option<BadFrame>) {
    let (mut decoder, mut buffer, mut frames) = (decoder(), Vec::new(), Vec::new());
    for piece in bytes.chunks(step) {
        buffer.extend_from_slice(piece);
        loop {
            match decoder.decode(&buffer) {
                Ok(Some((frame, size))) => {
                    buffer.drain(..size);
                    frames.push(frame);
                }
                Ok(None) => break,
                Err(error) => return (frames, Some(error)),
            }
        }
    }
    (frames, None)
}

fuzz_target!(|data: &[u8]| {
    let Some((step, bytes)) = data.split_first() else { return };
    let (frames, error) = decode(bytes, bytes.len().max(1));
    let (again, same) = decode(bytes, usize::from(*step).max(1));
    assert_eq!(format!("{frames:?} {error:?}"), format!("{again:?} {same:?}"));
    let mut encoded = Vec::new();
    frames.iter().for_each(|frame| frame.encode(&mut encoded));
    let (back, error) = decode(&encoded, usize::MAX);
    assert_eq!((format!("{back:?}"), error), (format!("{frames:?}"), None));
});
