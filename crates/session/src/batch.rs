//! Publications that leave together.

use crate::framing::Framing;
use pushlab_log::Publication;
use std::sync::Arc;

/// Publications of one turn in one framing: their bytes, and where each ends.
#[derive(Default)]
pub struct Batch {
    /// All of them.
    pub bytes: Vec<u8>,
    ends: Vec<usize>,
    /// The one publication that it holds, by offset, and its framing.
    single: Option<(u64, Framing)>,
}

/// What of a batch was written to a subscriber.
#[derive(Debug, PartialEq, Eq)]
pub struct Progress<'b> {
    /// Deliveries of which something was written.
    pub deliveries: u64,
    /// The rest of the last of these, which must follow before anything else.
    pub begun: &'b [u8],
    /// The first publication of which nothing was written.
    pub next: usize,
}

impl Batch {
    /// Encodes publications in place of what it held. Where members are many and groups small, most of a turn's batches
    /// are the same single publication: that one stays as it is.
    pub fn fill(&mut self, publications: &[Arc<Publication>], framing: Framing) {
        let single = match publications {
            [publication] => Some((publication.offset, framing)),
            _ => None,
        };
        if single.is_some() && single == self.single {
            return;
        }
        self.clear();
        self.single = single;
        for publication in publications {
            framing.message(&mut self.bytes, publication);
            self.ends.push(self.bytes.len());
        }
    }

    /// Lets go of what it held.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.single = None;
    }

    /// Where a publication begins.
    pub fn start_of(&self, index: usize) -> usize {
        if index == 0 { 0 } else { self.ends[index - 1] }
    }

    /// Where each from this one on ends.
    pub fn ends_from(&self, index: usize) -> &[usize] {
        &self.ends[index..]
    }

    /// What was written, if `n` bytes from the beginning of publication `first` on were.
    pub fn progress(&self, first: usize, n: usize) -> Progress<'_> {
        let to = self.start_of(first) + n;
        let mut next = self.ends.partition_point(|&end| end <= to).max(first);
        let mut begun: &[u8] = &[];
        if n > 0 && to > self.start_of(next) {
            begun = &self.bytes[to..self.ends[next]];
            next += 1;
        }
        Progress { deliveries: (next - first) as u64, begun, next }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::publications;

    #[test]
    fn a_batch_holds_what_it_was_filled_with_last() {
        let all = publications(3);
        let (lines, frames) =
            (Framing::Lines { is_chunked: false, is_compressed: false }, Framing::WebSocket { is_compressed: false });
        let mut batch = Batch::default();
        let spans = [(0..1, lines), (0..1, lines), (0..1, frames), (0..2, frames), (0..1, frames), (1..2, frames)];
        for (span, framing) in spans {
            batch.fill(&all[span.clone()], framing);
            let mut fresh = Batch::default();
            fresh.fill(&all[span.clone()], framing);
            assert_eq!((&batch.bytes, &batch.ends), (&fresh.bytes, &fresh.ends), "{span:?} {framing:?}");
        }
        batch.clear();
        batch.bytes.push(b'x');
        batch.fill(&all[1..2], frames);
        assert_ne!(batch.bytes[0], b'x');
    }

    /// However many bytes of a batch are written: what is begun is finished, what is not is queued, nothing twice.
    #[test]
    fn a_batch_goes_on_where_it_was_left() {
        let all = publications(4);
        let mut batch = Batch::default();
        batch.fill(&all, Framing::Lines { is_chunked: false, is_compressed: false });
        for first in 0..all.len() {
            for n in 0..=batch.bytes.len() - batch.start_of(first) {
                let Progress { deliveries, begun, next } = batch.progress(first, n);
                let to = batch.start_of(first) + n;
                assert_eq!(to + begun.len(), if n == 0 { to } else { batch.start_of(next) }, "{first} {n}");
                assert_eq!((deliveries, n == 0), ((next - first) as u64, next == first));
            }
        }
    }
}
