//! The streams of a connection.

use crate::settings::FIRST_WINDOW;

/// One of them.
#[derive(Debug)]
pub struct Stream {
    pub number: u32,
    /// Whose it is, once the caller has said so: until then nobody hears of it.
    pub owner: Option<u32>,
    /// What we may send. Below 0 where the peer has made it smaller.
    pub send_window: i64,
    /// What the peer may send.
    pub receive_window: u32,
    /// What was used and the peer was not told of.
    pub used: u32,
    /// Bytes of the body that are to come, if the head said how many.
    pub body_left: Option<u64>,
    /// The peer's head has come; what comes behind the body is a trailer.
    pub has_head: bool,
    pub has_peer_ended: bool,
    pub have_we_ended: bool,
    /// It was to send more than it could.
    pub is_blocked: bool,
    /// It stands among those that are ready.
    pub is_ready: bool,
}

impl Stream {
    pub fn new(number: u32, owner: Option<u32>, send_window: u32, receive_window: u32) -> Self {
        Self {
            number,
            owner,
            send_window: send_window.into(),
            receive_window,
            used: 0,
            body_left: None,
            has_head: false,
            has_peer_ended: false,
            have_we_ended: false,
            is_blocked: false,
            is_ready: false,
        }
    }
}

/// Streams that have ended are remembered as long as so many others have not ended since.
const MEMORY: usize = 16;

/// Those that are open, by number, and the last that were.
#[derive(Debug, Default)]
pub struct Streams {
    open: Vec<Stream>,
    ended: Vec<Ended>,
    /// Where the next that ends is noted.
    next: usize,
}

#[derive(Debug, Clone, Copy)]
struct Ended {
    number: u32,
    was_reset: bool,
    /// Bytes that the peer may have sent before it knew; `None` if it had said all.
    left: Option<u32>,
}

/// How a stream that is not open ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Both sides had ended it, or the peer has reset it.
    Complete,
    /// We have reset it: what the peer had sent before it knew still comes.
    Reset,
    /// Long ago, or it was never open.
    Forgotten,
}

impl Streams {
    /// Adds one, whose number is larger than all before.
    pub fn push(&mut self, stream: Stream) {
        debug_assert!(self.open.last().is_none_or(|last| last.number < stream.number));
        self.open.push(stream);
    }

    #[inline]
    fn place(&self, number: u32) -> Option<usize> {
        self.open.binary_search_by_key(&number, |stream| stream.number).ok()
    }

    #[inline]
    pub fn get(&mut self, number: u32) -> Option<&mut Stream> {
        self.place(number).map(|place| &mut self.open[place])
    }

    pub fn iter(&self) -> impl Iterator<Item = &Stream> {
        self.open.iter()
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Stream> {
        self.open.iter_mut()
    }

    pub fn len(&self) -> usize {
        self.open.len()
    }

    /// Takes one away. One that was refused was never there.
    pub fn remove(&mut self, number: u32, was_reset: bool) -> Option<Stream> {
        let stream = self.place(number).map(|place| self.open.remove(place));
        if stream.is_none() && !was_reset {
            return None;
        }
        let left = match &stream {
            Some(stream) => (!stream.has_peer_ended).then_some(stream.receive_window),
            None => Some(FIRST_WINDOW),
        };
        let ended = Ended { number, was_reset, left };
        if self.ended.len() < MEMORY {
            self.ended.push(ended);
        } else {
            self.ended[self.next] = ended;
            self.next = (self.next + 1) % MEMORY;
        }
        stream
    }

    /// Passes over what came on one that we have reset; says whether the peer can have sent it before it knew.
    pub fn pass_over(&mut self, number: u32, size: usize, is_end: bool) -> bool {
        let Some(ended) = self.ended.iter_mut().find(|ended| ended.number == number) else { return false };
        let left = ended.left.and_then(|left| left.checked_sub(size as u32));
        ended.left = left.filter(|_| !is_end);
        left.is_some()
    }

    /// How one ended that is not open.
    pub fn end_of(&self, number: u32) -> End {
        match self.ended.iter().find(|ended| ended.number == number) {
            Some(Ended { was_reset: true, .. }) => End::Reset,
            Some(_) => End::Complete,
            None => End::Forgotten,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_small() {
        // Beside it stand the connection of the server and its exchange.
        assert!(size_of::<Stream>() <= 56, "{} bytes", size_of::<Stream>());
    }

    #[test]
    fn the_last_that_ended_are_remembered() {
        let mut streams = Streams::default();
        (1..=40).for_each(|number| streams.push(Stream::new(number, Some(number + 100), 1, 1)));
        assert_eq!(streams.get(7).and_then(|stream| stream.owner), Some(107));
        for number in 1..=20 {
            assert_eq!(streams.remove(number, number % 2 == 0).map(|stream| stream.number), Some(number));
        }
        assert!(streams.remove(20, false).is_none() && streams.get(20).is_none());
        assert_eq!(streams.len(), 20);
        let ends = [4, 5, 6, 20, 21].map(|number| streams.end_of(number));
        let passed = [(20, 1, false), (20, 1, false), (6, 0, true), (6, 0, true), (4, 0, true)]
            .map(|(number, size, is_end)| streams.pass_over(number, size, is_end));
        assert_eq!(passed, [true, false, true, false, false], "they had a window of 1");
        assert_eq!(ends, [End::Forgotten, End::Complete, End::Reset, End::Reset, End::Forgotten]);
    }
}
