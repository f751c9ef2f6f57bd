//! The way to the coordinator's clock on which nobody else has to wake up: a datagram to a port of its, and one back.
//!
//! A question is a word that only those know who may ask, and a number; the answer is that number and two instants. Both
//! have 24 bytes, in network order, so that nobody can have more sent to a victim than he sends himself. What is no such
//! question gets no answer.

use super::{Answer, answer};
use pushlab_os::clock::monotonic_ns;
use pushlab_os::random;
use pushlab_os::socket::{read_stamped, stamp_receipts};
use pushlab_workload::clock::Reading;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Length of a question, and of an answer.
const MESSAGE_BYTES: usize = 24;
/// How often a port that nobody asks is looked at, in case it is to be closed.
const WATCH: Duration = Duration::from_millis(100);

/// Where a clock can be asked, and with which word: as text `ADDRESS:PORT WORD`, the word in 32 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct ClockAddress {
    at: SocketAddr,
    word: u128,
}

/// A text that says nowhere to ask a clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not the address of a clock: write ADDRESS:PORT and a word of 32 hexadecimal digits")]
pub struct BadClockAddress;

impl fmt::Display for ClockAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:032x}", self.at, self.word)
    }
}

/// Without the word: a debug print must not tell it.
impl fmt::Debug for ClockAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.at, f)
    }
}

impl FromStr for ClockAddress {
    type Err = BadClockAddress;

    fn from_str(text: &str) -> Result<Self, BadClockAddress> {
        let (at, word) = text.split_once(' ').ok_or(BadClockAddress)?;
        let is_word = word.len() == 32 && word.bytes().all(|digit| digit.is_ascii_hexdigit());
        let word = u128::from_str_radix(word, 16).ok().filter(|_| is_word);
        Ok(Self { at: at.parse().map_err(|_| BadClockAddress)?, word: word.ok_or(BadClockAddress)? })
    }
}

impl From<ClockAddress> for String {
    fn from(address: ClockAddress) -> Self {
        address.to_string()
    }
}

impl TryFrom<String> for ClockAddress {
    type Error = BadClockAddress;

    fn try_from(text: String) -> Result<Self, BadClockAddress> {
        text.parse()
    }
}

/// A port at which this process's clock can be asked, on a thread that does nothing else; both end with it.
#[derive(Debug)]
pub struct ClockPort {
    address: ClockAddress,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl ClockPort {
    /// Opens one, at this address of the host.
    ///
    /// # Errors
    /// When the address is not the host's, or there is no thread or random number left.
    pub fn open(ip: IpAddr) -> io::Result<Self> {
        let socket = UdpSocket::bind((ip, 0))?;
        socket.set_read_timeout(Some(WATCH))?;
        stamp_receipts(&socket)?;
        let address = ClockAddress { at: socket.local_addr()?, word: u128::from_ne_bytes(random::bytes()?) };
        let is_over = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&is_over);
        let work = move || while !flag.load(Ordering::Relaxed) && take_question(&socket, address.word).is_ok() {};
        let thread = std::thread::Builder::new().name("clock-port".into()).spawn(work)?;
        Ok(Self { address, is_over, thread: Some(thread) })
    }

    /// Where, and with which word.
    pub fn address(&self) -> ClockAddress {
        self.address
    }
}

impl Drop for ClockPort {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It has shown why if it panicked.
            let _ = thread.join();
        }
    }
}

/// Answers the next question, if one comes soon. What is wrong with a single datagram is nobody's loss; a socket that
/// cannot be read any more is an error, and whoever asks there goes another way.
fn take_question(socket: &UdpSocket, word: u128) -> io::Result<()> {
    // A question with anything behind it fills more than a question does, and is none.
    let mut room = [0; MESSAGE_BYTES + 1];
    // The call that tells when it came does not tell from whom.
    let from = match socket.peek_from(&mut room) {
        Ok((_, from)) => from,
        Err(error) if is_nothing(&error) => return Ok(()),
        Err(error) => return Err(error),
    };
    let (size, waited_ns) = match read_stamped(socket, &mut room) {
        Ok(read) => read,
        Err(error) if is_nothing(&error) => return Ok(()),
        Err(error) => return Err(error),
    };
    // Not how soon this thread was woken counts, but when the question was there.
    let received_ns = monotonic_ns().saturating_sub(waited_ns.unwrap_or(0));
    if let Some(number) = number_of(&room[..size], word) {
        // Who gets no answer asks again.
        let _ = socket.send_to(&message_of(number, answer(received_ns)), from);
    }
    Ok(())
}

/// Whether nothing came in time.
fn is_nothing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

/// Asks a clock at its port.
#[derive(Debug)]
pub struct ClockSocket {
    socket: UdpSocket,
    word: u128,
    /// The number of the last question. Where they begin nobody can guess, so that nobody answers who has not seen one.
    asked: u64,
}

impl ClockSocket {
    /// Opens a socket for it. Nothing is sent.
    ///
    /// # Errors
    /// When there is no way to the address.
    pub fn open(to: ClockAddress) -> io::Result<Self> {
        let any = match to.at {
            SocketAddr::V4(_) => IpAddr::from(Ipv4Addr::UNSPECIFIED),
            SocketAddr::V6(_) => IpAddr::from(Ipv6Addr::UNSPECIFIED),
        };
        let socket = UdpSocket::bind((any, 0))?;
        socket.connect(to.at)?;
        stamp_receipts(&socket)?;
        Ok(Self { socket, word: to.word, asked: u64::from_ne_bytes(random::bytes()?) })
    }

    /// Asks; `None` if no answer to this question comes in time.
    pub fn ask(&mut self, within: Duration) -> Option<Answer> {
        self.asked = self.asked.wrapping_add(1);
        self.socket.send(&question_of(self.word, self.asked)).ok()?;
        let deadline = Instant::now() + within;
        let mut room = [0; MESSAGE_BYTES + 1];
        loop {
            let left = deadline.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())?;
            self.socket.set_read_timeout(Some(left)).ok()?;
            let (size, waited_ns) = read_stamped(&self.socket, &mut room).ok()?;
            // The answer to an earlier question comes too late to be of use.
            if let Some(read) = reading_of(&room[..size], self.asked) {
                return Some(Answer { read, waited_ns: waited_ns.unwrap_or(0) });
            }
        }
    }
}

fn question_of(word: u128, number: u64) -> [u8; MESSAGE_BYTES] {
    let mut bytes = [0; MESSAGE_BYTES];
    bytes[..16].copy_from_slice(&word.to_be_bytes());
    bytes[16..].copy_from_slice(&number.to_be_bytes());
    bytes
}

/// The number of a question, if it is one of somebody who knows the word.
fn number_of(bytes: &[u8], word: u128) -> Option<u64> {
    let bytes: &[u8; MESSAGE_BYTES] = bytes.try_into().ok()?;
    (bytes[..16] == word.to_be_bytes()).then(|| u64_at(bytes, 16))
}

fn message_of(number: u64, read: Reading) -> [u8; MESSAGE_BYTES] {
    let mut bytes = [0; MESSAGE_BYTES];
    for (place, value) in bytes.chunks_exact_mut(8).zip([number, read.received_ns, read.answered_ns]) {
        place.copy_from_slice(&value.to_be_bytes());
    }
    bytes
}

/// What the answer to the question of this number says, if it is that.
fn reading_of(bytes: &[u8], number: u64) -> Option<Reading> {
    let bytes: &[u8; MESSAGE_BYTES] = bytes.try_into().ok()?;
    let reading = Reading { received_ns: u64_at(bytes, 8), answered_ns: u64_at(bytes, 16) };
    (u64_at(bytes, 0) == number).then_some(reading)
}

fn u64_at(bytes: &[u8; MESSAGE_BYTES], at: usize) -> u64 {
    u64::from_be_bytes(std::array::from_fn(|byte| bytes[at + byte]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);
    const LOOPBACK: [IpAddr; 2] = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];

    #[test]
    fn an_address_is_a_text_that_is_not_printed_by_chance() {
        let port = ClockPort::open(LOOPBACK[0]).unwrap();
        let text = port.address().to_string();
        assert_eq!(text.parse(), Ok(port.address()));
        let (at, word) = text.split_once(' ').unwrap();
        assert_eq!(format!("{:?}", port.address()), at);
        let json = serde_json::to_string(&port.address()).unwrap();
        assert_eq!((json.as_str(), serde_json::from_str(&json).ok()), (&*format!("{text:?}"), Some(port.address())));
        let other = ClockPort::open(LOOPBACK[0]).unwrap().address();
        assert_ne!(other.word, port.address().word, "a word that is always the same");
        for bad in ["", at, &text[..text.len() - 1], &format!("{at} +{}", &word[1..]), &format!("here {word}")] {
            assert_eq!(bad.parse::<ClockAddress>(), Err(BadClockAddress), "{bad}");
        }
    }

    #[test]
    fn messages_say_what_was_put_into_them_and_no_others_do() {
        let mut random = fastrand::Rng::with_seed(53);
        for _ in 0..10_000 {
            let (word, number) = (random.u128(..), random.u64(..));
            let read = Reading { received_ns: random.u64(..), answered_ns: random.u64(..) };
            let (question, said) = (question_of(word, number), message_of(number, read));
            assert_eq!((number_of(&question, word), reading_of(&said, number)), (Some(number), Some(read)));
            assert_eq!((number_of(&question, word ^ 1 << random.u32(..128)), reading_of(&said, !number)), (None, None));
            let cut = random.usize(..MESSAGE_BYTES);
            assert_eq!((number_of(&question[..cut], word), reading_of(&said[..cut], number)), (None, None));
        }
    }

    #[test]
    fn only_who_knows_the_word_is_answered_and_by_as_much_as_was_sent() {
        for ip in LOOPBACK {
            // Where the host has no IPv6, there is nothing to ask.
            let Ok(port) = ClockPort::open(ip) else { continue };
            let ClockAddress { at, word } = port.address();
            let stranger = UdpSocket::bind((ip, 0)).unwrap();
            stranger.connect(at).unwrap();
            let mut random = fastrand::Rng::with_seed(54);
            for size in (0..64).chain([1_500, 60_000]) {
                let garbage: Vec<u8> = std::iter::repeat_with(|| random.u8(..)).take(size).collect();
                stranger.send(&garbage).unwrap();
                // Its beginning is right, or all of it, but for what follows.
                stranger.send(&[&word.to_be_bytes()[..], &garbage[..size.min(7)]].concat()).unwrap();
                stranger.send(&[&question_of(word, 1)[..], &garbage, b"!"].concat()).unwrap();
                stranger.send(&question_of(word ^ 1 << random.u32(..128), 1)).unwrap();
            }
            stranger.set_read_timeout(Some(WATCH)).unwrap();
            let (before_ns, mut room) = (monotonic_ns(), [0; 2 * MESSAGE_BYTES]);
            // The kernel throws away what finds no room, so the question may have to be asked again.
            let size = loop {
                stranger.send(&question_of(word, 2)).unwrap();
                if let Ok(size) = stranger.recv(&mut room) {
                    break size;
                }
                assert!(monotonic_ns() < before_ns + PATIENCE.as_nanos() as u64, "no answer");
            };
            let read = reading_of(&room[..size], 2).expect("the first answer is to the first question");
            assert!(before_ns <= read.received_ns && read.received_ns <= read.answered_ns, "{read:?}");
            assert!(read.answered_ns <= monotonic_ns());
        }
    }

    #[test]
    fn a_socket_takes_the_answer_to_its_own_question_and_ends_with_the_port() {
        let port = ClockPort::open(LOOPBACK[0]).unwrap();
        let mut socket = ClockSocket::open(port.address()).unwrap();
        let before_ns = monotonic_ns();
        let said = socket.ask(PATIENCE).unwrap();
        assert!(before_ns <= said.read.received_ns && said.read.answered_ns + said.waited_ns <= monotonic_ns());
        // An answer that comes late is none to the next question.
        socket.socket.send(&question_of(socket.word, socket.asked)).unwrap();
        let asked_ns = monotonic_ns();
        assert!(socket.ask(PATIENCE).unwrap().read.answered_ns >= asked_ns);
        drop(port);
        assert_eq!(socket.ask(WATCH), None, "its thread has ended, and its port is closed");
        assert!(UdpSocket::bind(socket.socket.peer_addr().unwrap()).is_ok());
    }
}
