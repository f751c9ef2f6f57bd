//! What a network is like: a profile, as an experiment's file has it, and those that come with the program.

use crate::loss::Loss;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt::{self, Display, Formatter};
use std::sync::LazyLock;

/// Longest delay, jitter or holding back, milliseconds: what is longer is a misprint, or a protocol's time limit.
pub const MAX_DELAY_MS: f64 = 10_000.0;
/// Highest rate, kbit/s: 100 Gbit/s, far above what the link carries.
pub const MAX_RATE_KBIT_S: u64 = 100_000_000;
/// Longest queue, packets.
pub const MAX_QUEUE_PACKETS: u32 = 100_000;
/// What [`Way::queue_packets`] is unless given: what Linux gives an Ethernet interface (`txqueuelen`).
pub const DEFAULT_QUEUE_PACKETS: u32 = 1000;
/// What [`Profile::mtu_bytes`] is unless given: Ethernet's (RFC 894).
pub const DEFAULT_MTU_BYTES: u32 = 1500;
/// What [`Way::jitter_interval_ms`] is unless given: a radio frame of LTE (3GPP TS 36.211 section 4).
pub const DEFAULT_JITTER_INTERVAL_MS: f64 = 10.0;

/// A network between load and subject.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// One line for tables and reports.
    #[serde(default)]
    pub description: String,
    /// Where its numbers come from.
    #[serde(default)]
    pub source: String,
    /// Largest packet, IP header included, bytes: 576 to 65535. 1500 unless given.
    #[serde(default = "default_mtu")]
    pub mtu_bytes: u32,
    /// From the subject to the load: what a client downloads.
    pub down: Way,
    /// From the load to the subject: what a client uploads.
    pub up: Way,
}

/// One direction of a network. Each field left out adds nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Way {
    /// Delay of every packet after its last bit was sent, milliseconds.
    pub delay_ms: f64,
    /// How much the delay varies, milliseconds; [`Way::jitter`] says what that means.
    pub jitter_ms: f64,
    /// The distribution of the variation. Packets stay in order all the same, because the access networks that
    /// are modelled deliver in order: one that would overtake arrives together with the one before it.
    pub jitter: Jitter,
    /// How long one draw of the variation holds, milliseconds: packets sent within the same interval share it. A
    /// draw for each packet would delay busy traffic more than sparse, as a packet waits for the slowest of those
    /// before it.
    pub jitter_interval_ms: f64,
    /// Bits that pass in a second, IP headers included, in 1000 bit/s; no limit without it.
    pub rate_kbit_s: Option<u64>,
    /// Packets that may wait while another is being sent; a packet that finds so many is dropped. Without a rate
    /// nothing waits.
    pub queue_packets: u32,
    /// Bytes that may wait, in addition to the limit of packets.
    pub queue_bytes: Option<u64>,
    /// Loss on the medium; none without it.
    pub loss: Option<Loss>,
    /// Packets that later ones overtake; none without it.
    pub reorder: Option<Reorder>,
}

/// The distribution of delay, in terms of `delay_ms` and `jitter_ms`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Jitter {
    /// Evenly between `delay_ms - jitter_ms` and `delay_ms + jitter_ms`.
    #[default]
    Uniform,
    /// Normal with mean `delay_ms` and standard deviation `jitter_ms`; what falls below 0 is 0, what falls beyond
    /// four standard deviations is that.
    Normal,
    /// `delay_ms` and an exponentially distributed rest with mean `jitter_ms`, at most ten times that: a floor
    /// that is often met, and a tail, as radio links have it, where retransmission and scheduling only add.
    Exponential,
}

/// Packets that are held back, so that those sent meanwhile overtake them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reorder {
    /// Share of packets, 0 to 1.
    pub probability: f64,
    /// How much later they arrive, milliseconds, above 0.
    pub extra_ms: f64,
}

/// A profile that cannot be: what is wrong, where, and what would do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{field}` is {value}; {advice}")]
pub struct BadProfile {
    /// Where in the profile: `down.rate_kbit_s`.
    pub field: String,
    /// What stands there.
    pub value: String,
    /// What would do.
    pub advice: String,
}

impl BadProfile {
    pub(crate) fn new(field: impl Into<String>, value: impl Display, advice: impl Into<String>) -> Self {
        Self { field: field.into(), value: value.to_string(), advice: advice.into() }
    }
}

fn default_mtu() -> u32 {
    DEFAULT_MTU_BYTES
}

impl Default for Way {
    fn default() -> Self {
        Self {
            delay_ms: 0.0,
            jitter_ms: 0.0,
            jitter: Jitter::default(),
            jitter_interval_ms: DEFAULT_JITTER_INTERVAL_MS,
            rate_kbit_s: None,
            queue_packets: DEFAULT_QUEUE_PACKETS,
            queue_bytes: None,
            loss: None,
            reorder: None,
        }
    }
}

impl Profile {
    /// The profile of this name that comes with the program.
    pub fn find(name: &str) -> Option<&'static Self> {
        profiles().iter().find(|(known, _)| known == name).map(|(_, profile)| profile)
    }

    /// Refuses numbers that no network can have.
    pub fn check(&self) -> Result<(), BadProfile> {
        if !(576..=65_535).contains(&self.mtu_bytes) {
            return Err(BadProfile::new("mtu_bytes", self.mtu_bytes, "give 576 to 65535"));
        }
        self.down.check("down", self.mtu_bytes)?;
        self.up.check("up", self.mtu_bytes)
    }

    /// Mean round trip of a small packet through an idle network, milliseconds, without the time that its bits
    /// take at the rate.
    pub fn round_trip_ms(&self) -> f64 {
        self.down.delay_mean_ms() + self.up.delay_mean_ms()
    }
}

/// What it does to packets: `round trip 57 ms, 13 Mbit/s down, 6 Mbit/s up`.
impl Display for Profile {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let percent = |share: f64| (share > 0.0).then(|| format!("{} %", short(share * 100.0)));
        let (down, up) = (&self.down, &self.up);
        let round_trip = self.round_trip_ms();
        let mut parts = Vec::new();
        parts.extend((round_trip > 0.0).then(|| format!("round trip {} ms", short(round_trip))));
        parts.extend(both_ways(down.rate_kbit_s.map(rate), up.rate_kbit_s.map(rate), ""));
        let lost = |way: &Way| way.loss.and_then(|loss| percent(loss.share()));
        parts.extend(both_ways(lost(down), lost(up), " of packets lost"));
        let reordered = |way: &Way| way.reorder.and_then(|reorder| percent(reorder.probability));
        parts.extend(both_ways(reordered(down), reordered(up), " of packets reordered"));
        parts.extend((self.mtu_bytes != DEFAULT_MTU_BYTES).then(|| format!("packets of {} B at most", self.mtu_bytes)));
        if parts.is_empty() {
            return f.write_str("nothing added");
        }
        f.write_str(&parts.join(", "))
    }
}

/// What holds in each direction, once where it is the same in both.
fn both_ways(down: Option<String>, up: Option<String>, what: &str) -> Vec<String> {
    if down == up {
        return down.map(|both| both + what).into_iter().collect();
    }
    [(down, "down"), (up, "up")]
        .into_iter()
        .filter_map(|(value, way)| Some(format!("{}{what} {way}", value?)))
        .collect()
}

fn rate(kbit_s: u64) -> String {
    match kbit_s as f64 {
        rate if rate >= 1e6 => format!("{} Gbit/s", short(rate / 1e6)),
        rate if rate >= 1e3 => format!("{} Mbit/s", short(rate / 1e3)),
        rate => format!("{} kbit/s", short(rate)),
    }
}

/// Three significant digits, without zeros at the end.
fn short(value: f64) -> String {
    let magnitude = if value == 0.0 { 0 } else { value.abs().log10().floor() as i32 };
    let decimals = (2 - magnitude).clamp(0, 6) as usize;
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

impl Way {
    fn delay_mean_ms(&self) -> f64 {
        match self.jitter {
            Jitter::Uniform | Jitter::Normal => self.delay_ms,
            Jitter::Exponential => self.delay_ms + self.jitter_ms,
        }
    }

    fn check(&self, way: &str, mtu_bytes: u32) -> Result<(), BadProfile> {
        let place = |field: &str| format!("{way}.{field}");
        for (field, value) in [("delay_ms", self.delay_ms), ("jitter_ms", self.jitter_ms)] {
            if !(0.0..=MAX_DELAY_MS).contains(&value) {
                return Err(BadProfile::new(place(field), value, format!("give 0 to {MAX_DELAY_MS} milliseconds")));
            }
        }
        if self.jitter != Jitter::Exponential && self.jitter_ms > self.delay_ms {
            let advice =
                format!("no packet arrives before it was sent; give at most `delay_ms`, which is {}", self.delay_ms);
            return Err(BadProfile::new(place("jitter_ms"), self.jitter_ms, advice));
        }
        if !(0.001..=MAX_DELAY_MS).contains(&self.jitter_interval_ms) {
            let advice = format!("give 0.001 to {MAX_DELAY_MS} milliseconds");
            return Err(BadProfile::new(place("jitter_interval_ms"), self.jitter_interval_ms, advice));
        }
        if let Some(rate) = self.rate_kbit_s.filter(|rate| !(1..=MAX_RATE_KBIT_S).contains(rate)) {
            let advice = format!("give 1 to {MAX_RATE_KBIT_S}, or leave it out for no limit");
            return Err(BadProfile::new(place("rate_kbit_s"), rate, advice));
        }
        if !(1..=MAX_QUEUE_PACKETS).contains(&self.queue_packets) {
            let advice = format!("give 1 to {MAX_QUEUE_PACKETS}");
            return Err(BadProfile::new(place("queue_packets"), self.queue_packets, advice));
        }
        if let Some(bytes) = self.queue_bytes.filter(|&bytes| bytes < u64::from(mtu_bytes)) {
            let advice = format!("a full packet would never wait; give at least `mtu_bytes`, which is {mtu_bytes}");
            return Err(BadProfile::new(place("queue_bytes"), bytes, advice));
        }
        if let Some(loss) = &self.loss {
            check_loss(loss, &place("loss"))?;
        }
        if let Some(Reorder { probability, extra_ms }) = self.reorder {
            probability_in(&place("reorder.probability"), probability)?;
            if !(extra_ms > 0.0 && extra_ms <= MAX_DELAY_MS) {
                let advice = format!("give more than 0 and at most {MAX_DELAY_MS} milliseconds");
                return Err(BadProfile::new(place("reorder.extra_ms"), extra_ms, advice));
            }
        }
        Ok(())
    }
}

/// Name and profile of every network that comes with the program, from the least to the most disturbed.
pub fn profiles() -> &'static [(String, Profile)] {
    static PROFILES: LazyLock<Vec<(String, Profile)>> = LazyLock::new(|| {
        parse(include_str!("profiles.toml")).expect("profiles.toml is part of the program, and a test reads it")
    });
    &PROFILES
}

/// The names of [`profiles`], in their order.
pub fn names() -> impl Iterator<Item = &'static str> {
    profiles().iter().map(|(name, _)| name.as_str())
}

fn parse(text: &str) -> Result<Vec<(String, Profile)>, toml::de::Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct File {
        profile: Vec<Named>,
    }
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Named {
        name: String,
        network: Profile,
    }
    let file: File = toml::from_str(text)?;
    Ok(file.profile.into_iter().map(|named| (named.name, named.network)).collect())
}

/// Refuses what is no probability; `place` is where the loss stands, for the message.
fn check_loss(loss: &Loss, place: &str) -> Result<(), BadProfile> {
    match *loss {
        Loss::Independent { probability } => probability_in(&format!("{place}.independent.probability"), probability),
        Loss::Bursty { p_good_to_bad, p_bad_to_good, loss_good, loss_bad } => {
            let field = |name: &str| format!("{place}.bursty.{name}");
            probability_in(&field("p_good_to_bad"), p_good_to_bad)?;
            probability_in(&field("p_bad_to_good"), p_bad_to_good)?;
            probability_in(&field("loss_good"), loss_good)?;
            probability_in(&field("loss_bad"), loss_bad)?;
            if p_bad_to_good == 0.0 {
                let advice = "the bad state would never end; give the share of packets at which it does";
                return Err(BadProfile::new(field("p_bad_to_good"), p_bad_to_good, advice));
            }
            Ok(())
        }
    }
}

/// Refuses what is no probability.
fn probability_in(field: &str, value: f64) -> Result<(), BadProfile> {
    if (0.0..=1.0).contains(&value) {
        return Ok(());
    }
    Err(BadProfile::new(field, value, "a probability is 0 to 1"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_profile_can_be_and_says_where_it_is_from() {
        let found: Vec<&str> = names().collect();
        assert_eq!(found, ["local", "lan-100", "wifi", "4g", "3g", "satellite", "lossy"]);
        for (name, profile) in profiles() {
            profile.check().unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(!profile.description.is_empty() && !profile.source.is_empty(), "{name}");
            assert_eq!(Profile::find(name), Some(profile));
        }
        assert_eq!(Profile::find("5g"), None);
    }

    #[test]
    fn local_adds_nothing() {
        let local = Profile::find("local").expect("it is there");
        assert_eq!((&local.down, &local.up), (&Way::default(), &Way::default()));
    }

    #[test]
    fn a_profile_is_told_in_words() {
        let told = |name: &str| Profile::find(name).expect("it is there").to_string();
        for (name, words) in [
            ("local", "nothing added"),
            ("lan-100", "round trip 0.4 ms, 100 Mbit/s"),
            ("4g", "round trip 57 ms, 13 Mbit/s down, 6 Mbit/s up"),
            ("3g", "round trip 150 ms, 1.6 Mbit/s down, 768 kbit/s up"),
            ("lossy", "round trip 80 ms, 1.48 % of packets lost"),
        ] {
            assert_eq!(told(name), words);
        }
        let up = Way { reorder: Some(Reorder { probability: 0.25, extra_ms: 1.0 }), ..Way::default() };
        let odd = Profile { mtu_bytes: 576, up, ..Profile::find("local").expect("it is there").clone() };
        assert_eq!(odd.to_string(), "25 % of packets reordered up, packets of 576 B at most");
    }

    #[test]
    fn profiles_have_the_round_trips_they_claim() {
        for (name, from_ms, to_ms) in [("4g", 50.0, 70.0), ("3g", 100.0, 300.0), ("satellite", 590.0, 625.0)] {
            let found = Profile::find(name).expect("it is there").round_trip_ms();
            assert!((from_ms..=to_ms).contains(&found), "{name}: {found}");
        }
    }

    const WHOLE: &str = r#"
        mtu_bytes = 1400
        [down]
        delay_ms = 20
        jitter_ms = 5
        jitter = "normal"
        rate_kbit_s = 1000
        queue_packets = 50
        queue_bytes = 64000
        loss.bursty = { p_good_to_bad = 0.01, p_bad_to_good = 0.3, loss_good = 0.0, loss_bad = 0.8 }
        reorder = { probability = 0.01, extra_ms = 5 }
        [up]
        delay_ms = 20
        loss.independent.probability = 0.01
    "#;

    #[test]
    fn reads_toml_and_writes_it_back() {
        let profile: Profile = toml::from_str(WHOLE).expect("good TOML");
        profile.check().expect("a good profile");
        assert_eq!(profile.up.loss, Some(Loss::Independent { probability: 0.01 }));
        assert_eq!(profile.up.queue_packets, DEFAULT_QUEUE_PACKETS);
        let text = toml::to_string(&profile).expect("it is TOML");
        assert_eq!(toml::from_str::<Profile>(&text).expect("its own TOML"), profile);
    }

    #[test]
    fn refuses_what_cannot_be_and_says_where() {
        for (from, to, field) in [
            ("mtu_bytes = 1400", "mtu_bytes = 100", "mtu_bytes"),
            ("delay_ms = 20", "delay_ms = -1", "down.delay_ms"),
            ("jitter_ms = 5", "jitter_ms = 21", "down.jitter_ms"),
            ("rate_kbit_s = 1000", "rate_kbit_s = 0", "down.rate_kbit_s"),
            ("queue_packets = 50", "queue_packets = 0", "down.queue_packets"),
            ("queue_bytes = 64000", "queue_bytes = 1000", "down.queue_bytes"),
            ("loss_bad = 0.8", "loss_bad = 8", "down.loss.bursty.loss_bad"),
            ("probability = 0.01,", "probability = -1,", "down.reorder.probability"),
            ("extra_ms = 5", "extra_ms = 0", "down.reorder.extra_ms"),
            ("independent.probability = 0.01", "independent.probability = 2", "up.loss.independent.probability"),
        ] {
            let profile: Profile = toml::from_str(&WHOLE.replacen(from, to, 1)).expect("good TOML");
            assert_eq!(profile.check().expect_err(field).field, field);
        }
    }

    #[test]
    fn refuses_unknown_fields() {
        for (from, to) in [("delay_ms", "delay"), ("loss_bad", "loss_badly"), ("extra_ms", "extra"), ("[up]", "[upp]")]
        {
            toml::from_str::<Profile>(&WHOLE.replacen(from, to, 1)).expect_err(to);
        }
    }

    #[test]
    fn refuses_what_is_no_probability() {
        for loss in [
            Loss::Independent { probability: 1.5 },
            Loss::Independent { probability: f64::NAN },
            Loss::Bursty { p_good_to_bad: 0.1, p_bad_to_good: 0.0, loss_good: 0.0, loss_bad: 1.0 },
            Loss::Bursty { p_good_to_bad: 0.1, p_bad_to_good: 0.1, loss_good: -0.1, loss_bad: 1.0 },
        ] {
            let error = check_loss(&loss, "down.loss").expect_err("no probability");
            assert!(error.field.starts_with("down.loss."), "{error}");
        }
    }
}
