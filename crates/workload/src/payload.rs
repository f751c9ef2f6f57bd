//! The data of a publication: JSON text of an exact size with a stamp inside.

use crate::records::append_members;
use fastrand::Rng;
use pushlab_wire::receipt::{PLACE, RECEIPT_BYTES};
use pushlab_wire::stamp::{STAMP_BYTES, Stamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Smallest data: a JSON string that holds nothing but a stamp.
pub const MIN_PAYLOAD_BYTES: u32 = STAMP_BYTES as u32 + 2;
/// Smallest data with a place for a receipt mark.
pub const MIN_MARKED_BYTES: u32 = MIN_PAYLOAD_BYTES + RECEIPT_BYTES as u32;
/// Largest data; the most a client holds of one publication while it sends.
pub const MAX_PAYLOAD_BYTES: u32 = 1 << 20;

const OBJECT_START: &[u8] = b"{\"stamp\":\"";
const FILLER_START: &[u8] = b"\",\"text\":\"";
const OBJECT_END: &[u8] = b"\"}";
const FILLER: &[u8] = b"The quick brown fox jumps over the lazy dog. ";

/// What people in a chat might say.
const WORDS: [&str; 48] = [
    "a",
    "about",
    "after",
    "again",
    "all",
    "and",
    "answer",
    "because",
    "before",
    "but",
    "channel",
    "come",
    "could",
    "do",
    "everybody",
    "first",
    "for",
    "from",
    "good",
    "have",
    "hello",
    "how",
    "I",
    "in",
    "is",
    "it",
    "just",
    "know",
    "later",
    "maybe",
    "message",
    "morning",
    "no",
    "now",
    "of",
    "perhaps",
    "question",
    "room",
    "see",
    "someone",
    "that",
    "the",
    "think",
    "to",
    "today",
    "understand",
    "with",
    "you",
];

/// A size that no data can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("payload_bytes is {bytes}: it must be {} to {MAX_PAYLOAD_BYTES}", self.least_text())]
pub struct BadPayloadSize {
    /// The size asked for.
    pub bytes: u32,
    /// Whether it was to have a place for a receipt mark, which makes the least size larger.
    pub has_receipt: bool,
}

impl BadPayloadSize {
    fn least_text(&self) -> String {
        if self.has_receipt {
            format!("{MIN_MARKED_BYTES} (a stamp and the place for a receipt mark, in quotes)")
        } else {
            format!("{MIN_PAYLOAD_BYTES} (a stamp in quotes)")
        }
    }
}

/// What publications are made of, beside their stamp.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Content {
    /// One sentence, repeated; random words where sizes vary. Cheap to make, but how well it compresses says nothing about
    /// other data.
    #[default]
    Filler,
    /// Records of numbers, names and timestamps, generated from the seed, no two publications alike. They compress about as
    /// well as what applications send.
    Json,
}

impl Content {
    /// Whether it is what nobody need write down.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// What data looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Form {
    /// Size in bytes; the least, where sizes vary.
    pub bytes: u32,
    /// Largest size, where sizes vary: the text is then of random words. A smaller one than `bytes` counts as that.
    pub bytes_max: Option<u32>,
    /// What else there is.
    pub content: Content,
    /// Whether there is a place for a receipt mark behind the stamp.
    pub has_receipt: bool,
    /// Gives sizes and words, where sizes vary, and records.
    pub seed: u64,
}

impl Form {
    /// Always so many bytes, and a stamp alone.
    pub fn fixed(bytes: u32) -> Self {
        Self { bytes, bytes_max: None, content: Content::Filler, has_receipt: false, seed: 0 }
    }
}

/// JSON text into which stamps are written.
///
/// From 42 bytes on (53 with a place for a receipt mark) it is `{"stamp":"~…~","text":"…"}`; below that a string
/// that begins with the stamp. The place for a mark comes right behind the stamp. Records stand before that text, which
/// then fills what is left.
#[derive(Debug, Clone)]
pub struct Payload {
    form: Form,
    text: Vec<u8>,
    stamp_at: usize,
}

impl Payload {
    /// Data of always so many bytes, with a stamp alone.
    ///
    /// # Errors
    /// Below [`MIN_PAYLOAD_BYTES`] or above [`MAX_PAYLOAD_BYTES`].
    pub fn new(bytes: u32) -> Result<Self, BadPayloadSize> {
        Self::of(Form::fixed(bytes))
    }

    /// Data of a form.
    ///
    /// # Errors
    /// A size below the least ([`MIN_PAYLOAD_BYTES`] or [`MIN_MARKED_BYTES`]) or above [`MAX_PAYLOAD_BYTES`].
    pub fn of(form: Form) -> Result<Self, BadPayloadSize> {
        let has_receipt = form.has_receipt;
        let least = if has_receipt { MIN_MARKED_BYTES } else { MIN_PAYLOAD_BYTES };
        for bytes in [Some(form.bytes), form.bytes_max].into_iter().flatten() {
            if !(least..=MAX_PAYLOAD_BYTES).contains(&bytes) {
                return Err(BadPayloadSize { bytes, has_receipt });
            }
        }
        let mut payload = Self { form, text: Vec::new(), stamp_at: 0 };
        let mut filler = FILLER.iter().cycle();
        payload.compose(form.bytes, |text, end| text.extend(filler.by_ref().take(end - text.len())));
        Ok(payload)
    }

    /// The data with this stamp inside. Where sizes vary, size and words, and records always, follow from the seed and the stamp's
    /// source and sequence number alone, so that they are the same whoever sends it and when.
    #[inline]
    pub fn stamped(&mut self, stamp: &Stamp) -> &[u8] {
        if self.form.bytes_max.is_some() || self.form.content != Content::Filler {
            self.vary(stamp);
        }
        self.text[self.stamp_at..self.stamp_at + STAMP_BYTES].copy_from_slice(&stamp.encode());
        &self.text
    }

    fn vary(&mut self, stamp: &Stamp) {
        let place = u64::from(stamp.source) << 32 | u64::from(stamp.sequence);
        // Multiplied by 2⁶⁴/φ (Knuth, volume 3, section 6.4), so that neighbours get seeds that are far apart.
        let mut rng = Rng::with_seed(self.form.seed ^ place.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let Form { bytes, bytes_max, content, .. } = self.form;
        let bytes = bytes_max.map_or(bytes, |bytes_max| rng.u32(bytes..=bytes_max.max(bytes)));
        self.compose(bytes, |text, end| {
            if content == Content::Json {
                append_records(text, &mut rng, end);
            }
            while text.len() < end {
                text.extend_from_slice(WORDS[rng.usize(..WORDS.len())].as_bytes());
                text.push(b' ');
            }
            text.truncate(end);
        });
    }

    /// Writes data of a size; `fill` extends it to a length.
    fn compose(&mut self, bytes: u32, fill: impl FnOnce(&mut Vec<u8>, usize)) {
        let Self { form, text, stamp_at } = self;
        let place: &[u8] = if form.has_receipt { PLACE } else { b"" };
        let size = bytes as usize;
        let marks = STAMP_BYTES + place.len();
        let is_object = size >= OBJECT_START.len() + marks + FILLER_START.len() + OBJECT_END.len();
        let (start, middle, end): (&[u8], &[u8], &[u8]) =
            if is_object { (OBJECT_START, FILLER_START, OBJECT_END) } else { (b"\"", b"", b"\"") };
        text.clear();
        text.reserve(size);
        text.extend_from_slice(start);
        *stamp_at = text.len();
        text.extend_from_slice(&[b'~'; STAMP_BYTES]);
        text.extend_from_slice(place);
        text.extend_from_slice(middle);
        fill(text, size - end.len());
        text.extend_from_slice(end);
    }
}

/// Puts records before the filler that has just begun, so that it may end at a length.
fn append_records(text: &mut Vec<u8>, rng: &mut Rng, end: usize) {
    let Some(before) = text.strip_suffix(FILLER_START).map(<[u8]>::len) else { return };
    // The quote that ends the string before them.
    text.truncate(before + 1);
    append_members(text, rng, end.saturating_sub(FILLER_START.len() - 1));
    text.extend_from_slice(&FILLER_START[1..]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use pushlab_wire::deflate::Deflater;
    use pushlab_wire::receipt::Receipt;

    const STAMP: Stamp = Stamp { source: 5, sequence: 77, instant_ns: 123_456_700 };

    fn assert_whole(text: &[u8], stamp: Stamp, has_receipt: bool) {
        assert_eq!(Stamp::find(text), Some(stamp));
        assert!(pushlab_wire::native::is_json(std::str::from_utf8(text).unwrap()), "{}", text.len());
        let (receipt, mut marked) = (Receipt { instant_ns: 900 }, text.to_vec());
        assert_eq!(receipt.fill(&mut marked), has_receipt);
        assert_eq!(Receipt::find(&marked), has_receipt.then_some(receipt));
    }

    #[test]
    fn every_size_is_exact_valid_json_with_its_stamp() {
        for (has_receipt, least) in [(false, MIN_PAYLOAD_BYTES), (true, MIN_MARKED_BYTES)] {
            for bytes in (least..300).chain([173, 2000, MAX_PAYLOAD_BYTES]) {
                let mut payload = Payload::of(Form { has_receipt, ..Form::fixed(bytes) }).unwrap();
                let text = payload.stamped(&STAMP);
                assert_eq!(text.len(), bytes as usize);
                assert_whole(text, STAMP, has_receipt);
            }
        }
    }

    #[test]
    fn other_sizes_are_refused() {
        for (has_receipt, least, why) in [
            (false, 22, "22 (a stamp in quotes)"),
            (true, 33, "33 (a stamp and the place for a receipt mark, in quotes)"),
        ] {
            for bytes in [0, least - 1, MAX_PAYLOAD_BYTES + 1] {
                for form in [Form::fixed(bytes), Form { bytes_max: Some(bytes), ..Form::fixed(100) }] {
                    let error = Payload::of(Form { has_receipt, ..form }).unwrap_err();
                    assert_eq!(error, BadPayloadSize { bytes, has_receipt });
                    let text = format!("payload_bytes is {bytes}: it must be {why} to 1048576");
                    assert_eq!(error.to_string(), text);
                }
            }
        }
    }

    proptest! {
        #[test]
        fn varied_data_follows_from_seed_and_place(seed: u64, source in 0u32..5000, sequence in 0u32..5000, least in MIN_MARKED_BYTES..200, more in 0u32..300, has_receipt: bool, is_json: bool) {
            let content = if is_json { Content::Json } else { Content::Filler };
            let form = Form { bytes: least, bytes_max: Some(least + more), content, has_receipt, seed };
            let stamp = Stamp { source, sequence, ..STAMP };
            let (mut one, mut other) = (Payload::of(form).unwrap(), Payload::of(form).unwrap());
            other.stamped(&STAMP);
            let text = one.stamped(&stamp);
            prop_assert!((least..=least + more).contains(&(text.len() as u32)));
            assert_whole(text, stamp, has_receipt);
            prop_assert_eq!(text, other.stamped(&stamp), "whatever was sent before");
        }
    }

    #[test]
    fn sizes_are_uniform_and_seeds_differ() {
        let texts = |seed| {
            let form = Form { bytes_max: Some(109), seed, ..Form::fixed(100) };
            let mut payload = Payload::of(form).unwrap();
            let stamps = (0..10_000).map(|i| Stamp { source: i / 100, sequence: i % 100, instant_ns: 0 });
            stamps.map(|stamp| payload.stamped(&stamp).to_vec()).collect::<Vec<_>>()
        };
        let texts_of_one = texts(1);
        let mut counts = [0; 10];
        texts_of_one.iter().for_each(|text| counts[text.len() - 100] += 1);
        // Each is binomial with a standard deviation of 30.
        assert!(counts.iter().all(|count| (850..1150).contains(count)), "{counts:?}");
        assert_ne!(texts_of_one, texts(2));
    }

    #[test]
    fn records_are_exact_valid_json_and_differ_like_those_of_applications() {
        let form = |bytes, seed| Form { content: Content::Json, seed, ..Form::fixed(bytes) };
        let share = |bytes: u32| {
            let mut payload = Payload::of(form(bytes, 7)).unwrap();
            let mut deflater = Deflater::default();
            let texts: Vec<Vec<u8>> =
                (0..50).map(|sequence| payload.stamped(&Stamp { sequence, ..STAMP }).to_vec()).collect();
            assert!(texts.windows(2).all(|two| two[0] != two[1]));
            let compressed: usize =
                texts.iter().map(|text| deflater.deflate(text).map_or(text.len(), |s| s.len())).sum();
            compressed as f64 / (texts.len() * bytes as usize) as f64
        };
        for bytes in (MIN_PAYLOAD_BYTES..400).chain([1024, 16_384]) {
            let (mut one, mut other) = (Payload::of(form(bytes, 1)).unwrap(), Payload::of(form(bytes, 2)).unwrap());
            let text = one.stamped(&STAMP);
            assert_eq!(text.len(), bytes as usize);
            assert_whole(text, STAMP, false);
            assert!(bytes < 60 || text != other.stamped(&STAMP), "{bytes}");
        }
        let text = Payload::of(form(300, 1)).unwrap().stamped(&STAMP).to_vec();
        let text = str::from_utf8(&text).unwrap();
        assert!(text.contains("\"items\":[{\"id\":") && text.contains("\"at\":\"2026-03-"), "{text}");
        let shares = [100, 1024, 16_384].map(share);
        assert!((0.7..1.01).contains(&shares[0]) && (0.3..0.55).contains(&shares[1]), "{shares:?}");
        assert!((0.15..0.35).contains(&shares[2]), "{shares:?}");
    }

    #[test]
    fn words_need_no_escaping() {
        assert!(WORDS.iter().all(|word| word.bytes().all(|b| b.is_ascii_alphabetic())));
    }
}
