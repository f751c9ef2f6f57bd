//! Latency histograms that merge without loss.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::serialization::{Deserializer as HdrDeserializer, Serializer as HdrSerializer, V2Serializer};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};
use std::fmt;
use thiserror::Error;

/// Smallest time told apart from zero, ns. HDR rounds down to a power of two, so the finest bucket is 64 ns wide.
pub const LOWEST_NS: u64 = 100;
/// Largest time kept, ns: one hour. Longer times are counted as one hour.
pub const HIGHEST_NS: u64 = 3_600_000_000_000;
/// Significant decimal digits: any quantile is within 0.1 % of the value recorded.
pub const SIGNIFICANT_DIGITS: u8 = 3;

/// Length of the HDR V2 header: cookie, payload length, normalizing offset, digits, low, high, ratio.
const HEADER_BYTES: usize = 40;

/// Why a stored histogram could not be read.
#[derive(Debug, Error)]
pub enum HistogramError {
    /// The text is not base64.
    #[error("the histogram is not base64: {0}")]
    Base64(#[from] base64::DecodeError),
    /// The bytes end before the histogram does.
    #[error("the histogram is cut short: {found} bytes")]
    Short {
        /// Bytes there were.
        found: usize,
    },
    /// The histogram has other bounds or digits than ours, so merging it would lose or invent precision.
    #[error("the histogram has other bounds: {digits} digits, {low} to {high} ns")]
    Bounds {
        /// Significant digits.
        digits: u32,
        /// Lowest discernible value, ns.
        low: u64,
        /// Highest value, ns.
        high: u64,
    },
    /// The bytes are not an HDR histogram in the V2 encoding.
    #[error("the histogram is not in HDR V2 encoding: {0}")]
    Encoding(#[from] hdrhistogram::serialization::DeserializeError),
}

/// A count of times in nanoseconds, three significant digits, 100 ns to 1 h.
///
/// Recording is one array increment. Merging adds counts bucket by bucket, so the quantiles of a merged histogram
/// are those of all values together, which the mean of two quantiles never is. An instance takes 216 KiB, all of it
/// allocated at the start, so a recording thread never allocates. Serialized, it is base64 of the HDR V2
/// encoding, which HdrHistogram reads in every language.
#[derive(Clone, PartialEq)]
pub struct Histogram(hdrhistogram::Histogram<u64>);

/// Its thousands of buckets would bury whatever it is part of.
impl fmt::Debug for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Histogram({} values, {} to {} ns)", self.count(), self.min().unwrap_or(0), self.max().unwrap_or(0))
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl Histogram {
    /// An empty histogram.
    pub fn new() -> Self {
        let inner = hdrhistogram::Histogram::new_with_bounds(LOWEST_NS, HIGHEST_NS, SIGNIFICANT_DIGITS)
            .expect("the constant bounds satisfy 1 <= low, 2 * low <= high and digits <= 5");
        Self(inner)
    }

    /// Counts a time. Times over [`HIGHEST_NS`] count in the last bucket, so the count is never short.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.0.saturating_record(ns);
    }

    /// Counts a time `count` times over.
    #[inline]
    pub fn record_n(&mut self, ns: u64, count: u64) {
        self.0.saturating_record_n(ns, count);
    }

    /// Adds all counts of `other`. Lossless: both have the same buckets.
    pub fn merge(&mut self, other: &Histogram) {
        self.0.add(&other.0).expect("every Histogram has the same bounds and digits, so every value fits");
    }

    /// What is left of it without the values of `part`, which must all be among its own; `None` where one is not.
    pub fn without(&self, part: &Histogram) -> Option<Self> {
        let mut rest = self.0.clone();
        rest.subtract(&part.0).is_ok().then_some(Self(rest))
    }

    /// Removes all counts and keeps the memory.
    pub fn clear(&mut self) {
        self.0.reset();
    }

    /// Time below or at which the fraction `q` of the values lies, ns: the upper end of the bucket, at most 0.1 %
    /// (or 64 ns) above the value recorded. `None` when empty or when `q` is outside `0..=1`.
    pub fn quantile(&self, q: f64) -> Option<u64> {
        (!self.is_empty() && (0.0..=1.0).contains(&q)).then(|| self.0.value_at_quantile(q))
    }

    /// Mean in ns, from the buckets' middles; `None` when empty.
    pub fn mean(&self) -> Option<f64> {
        (!self.is_empty()).then(|| self.0.mean())
    }

    /// Standard deviation of the values recorded (divisor n), ns; `None` when empty.
    pub fn stdev(&self) -> Option<f64> {
        (!self.is_empty()).then(|| self.0.stdev())
    }

    /// Lower end of the lowest bucket used, ns; `None` when empty.
    pub fn min(&self) -> Option<u64> {
        (!self.is_empty()).then(|| self.0.min())
    }

    /// Upper end of the highest bucket used, ns; `None` when empty.
    pub fn max(&self) -> Option<u64> {
        (!self.is_empty()).then(|| self.0.max())
    }

    /// Values recorded.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// Whether nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// [`Histogram::quantile`] in milliseconds.
    pub fn quantile_ms(&self, q: f64) -> Option<f64> {
        self.quantile(q).map(ms)
    }

    /// [`Histogram::mean`] in milliseconds.
    pub fn mean_ms(&self) -> Option<f64> {
        self.mean().map(|ns| ns / 1e6)
    }

    /// The used buckets in ascending order, as upper end in ns and count: what a chart of the distribution draws.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.0.iter_recorded().map(|step| (step.value_iterated_to(), step.count_at_value()))
    }

    /// Base64 of the HDR V2 encoding, not deflated: 60 bytes when empty, 1 to 6 KiB for a run.
    ///
    /// # Errors
    /// When the encoder fails, which writing to memory does not.
    pub fn to_base64(&self) -> Result<String, hdrhistogram::serialization::V2SerializeError> {
        let mut bytes = Vec::new();
        V2Serializer::new().serialize(&self.0, &mut bytes)?;
        Ok(STANDARD.encode(bytes))
    }

    /// Reads what [`Histogram::to_base64`] wrote.
    ///
    /// The header is checked before the decoder sees it, because the decoder allocates whatever length and bounds
    /// the header claims (up to 4 GiB). Deflated histograms are refused for the same reason.
    ///
    /// # Errors
    /// See [`HistogramError`].
    pub fn from_base64(text: &str) -> Result<Self, HistogramError> {
        let bytes = STANDARD.decode(text)?;
        let header: &[u8; HEADER_BYTES] = bytes.first_chunk().ok_or(HistogramError::Short { found: bytes.len() })?;
        let word = |at: usize| u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let long = |at: usize| u64::from(word(at)) << 32 | u64::from(word(at + 4));
        if word(4) as usize > bytes.len() - HEADER_BYTES {
            return Err(HistogramError::Short { found: bytes.len() });
        }
        let (digits, low, high) = (word(12), long(16), long(24));
        if (digits, low, high) != (u32::from(SIGNIFICANT_DIGITS), LOWEST_NS, HIGHEST_NS) {
            return Err(HistogramError::Bounds { digits, low, high });
        }
        Ok(Self(HdrDeserializer::new().deserialize(&mut bytes.as_slice())?))
    }
}

/// Nanoseconds as milliseconds, the unit of every figure for people.
pub fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

impl Serialize for Histogram {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_base64().map_err(ser::Error::custom)?)
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::from_base64(&text).map_err(de::Error::custom)
    }
}

impl JsonSchema for Histogram {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Histogram".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "contentEncoding": "base64",
            "description": "HDR histogram of nanoseconds, V2 encoding",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_taken_away_again() {
        let (mut all, mut part) = (Histogram::new(), Histogram::new());
        all.record_n(1_000, 7);
        part.record_n(5_000_000, 3);
        let rest = all.clone();
        all.merge(&part);
        assert_eq!(all.without(&part), Some(rest));
        part.record(9_000_000);
        assert_eq!(all.without(&part), None, "not among its own");
    }

    fn random(seed: u64, values: usize) -> (Histogram, Vec<u64>) {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut histogram = Histogram::new();
        let mut all = Vec::new();
        for _ in 0..values {
            // Log-uniform over the whole range: every magnitude is exercised alike.
            let ns = (LOWEST_NS as f64 * (rng.f64() * (HIGHEST_NS as f64 / LOWEST_NS as f64).ln()).exp()) as u64;
            histogram.record(ns);
            all.push(ns);
        }
        all.sort_unstable();
        (histogram, all)
    }

    #[test]
    fn empty_has_no_figures() {
        let empty = Histogram::new();
        assert!(empty.is_empty());
        assert_eq!((empty.quantile(0.5), empty.min(), empty.max(), empty.count()), (None, None, None, 0));
        assert_eq!((empty.mean(), empty.stdev()), (None, None));
    }

    #[test]
    fn quantiles_are_within_a_thousandth() {
        for seed in 0..20 {
            let (histogram, all) = random(seed, 999);
            for q in [0.001, 0.25, 0.5, 0.9, 0.99, 1.0] {
                let exact = all[((q * all.len() as f64).ceil() as usize).max(1) - 1] as f64;
                let found = histogram.quantile(q).unwrap() as f64;
                assert!(found >= exact, "seed {seed} q {q}: {found} < {exact}");
                assert!(found <= exact * 1.001 + 64.0, "seed {seed} q {q}: {found} > {exact}");
            }
            assert_eq!(histogram.quantile(1.5), None);
            assert_eq!(histogram.quantile(f64::NAN), None);
        }
    }

    #[test]
    fn longer_than_an_hour_is_counted_not_lost() {
        let mut histogram = Histogram::new();
        histogram.record(u64::MAX);
        histogram.record_n(0, 3);
        assert_eq!(histogram.count(), 4);
        assert!(histogram.max().unwrap() >= HIGHEST_NS);
        assert_eq!(Histogram::from_base64(&histogram.to_base64().unwrap()).unwrap(), histogram);
    }

    #[test]
    fn merge_equals_recording_together() {
        for seed in 0..20 {
            let (mut left, a) = random(seed, 300);
            let (right, b) = random(seed + 1_000, 700);
            left.merge(&right);
            let mut together = Histogram::new();
            a.iter().chain(&b).for_each(|ns| together.record(*ns));
            assert_eq!(left, together, "seed {seed}");
        }
    }

    #[test]
    fn json_round_trip() {
        for seed in 0..20 {
            let (histogram, _) = random(seed, 500);
            let json = serde_json::to_string(&histogram).unwrap();
            let back: Histogram = serde_json::from_str(&json).unwrap();
            assert_eq!(back, histogram, "seed {seed}");
            assert_eq!(back.mean(), histogram.mean(), "seed {seed}");
        }
        let empty: Histogram = serde_json::from_str(&serde_json::to_string(&Histogram::new()).unwrap()).unwrap();
        assert!(empty.is_empty());
    }

    #[test]
    fn damaged_text_is_an_error_never_a_panic() {
        let text = random(7, 500).0.to_base64().unwrap();
        let mut rng = fastrand::Rng::with_seed(7);
        assert!(Histogram::from_base64("not base64!").is_err());
        assert!(Histogram::from_base64("").is_err());
        let bytes = STANDARD.decode(&text).unwrap();
        for _ in 0..2_000 {
            let mut damaged = bytes.clone();
            let at = rng.usize(..damaged.len());
            damaged[at] ^= rng.u8(1..);
            damaged.truncate(rng.usize(1..=damaged.len()));
            // Any answer will do, as long as there is one.
            let _ = Histogram::from_base64(&STANDARD.encode(damaged));
        }
    }

    #[test]
    fn other_bounds_are_refused() {
        let coarse = hdrhistogram::Histogram::<u64>::new_with_bounds(1, 1_000_000, 1).unwrap();
        let mut bytes = Vec::new();
        V2Serializer::new().serialize(&coarse, &mut bytes).unwrap();
        let error = Histogram::from_base64(&STANDARD.encode(bytes)).unwrap_err();
        assert!(matches!(error, HistogramError::Bounds { digits: 1, low: 1, high: 1_000_000 }), "{error}");
    }

    #[test]
    fn documented_size_holds() {
        let slots = Histogram::new().0.distinct_values();
        assert!((214..=218).contains(&(slots * 8 / 1024)), "{} KiB", slots * 8 / 1024);
    }
}
