//! What an experiment may not say.

use crate::assertion::Assertion;
use crate::cell::SlowPolicy;
use crate::experiment::Experiment;
use crate::margins;
use crate::metric::{Better, Metric};
use crate::proxy::Proxy;
use crate::studies;
use crate::subject::name_of;
use crate::traffic;
use crate::written::{
    Derived, MAX_CLIENTS, MAX_NAME_BYTES, MAX_PHASE_MS, MAX_RUNS, NO_NETWORK, WARM_UP_TESTED_MIN_MS, Written,
};
use pushlab_link::acks::MAX_ACK_DELAY_MS;
use pushlab_link::profile;
use pushlab_wire::transport::Transport;
use pushlab_workload::plan::{ClientsIn, HttpVersion, Phases, Sockets};
use pushlab_workload::scenario::{Scenario, Shape};
use pushlab_workload::turns;
use std::collections::BTreeSet;

/// How far a planned rate of deliveries may be from the one asked for, as a share of it.
const RATE_ERROR_MAX: f64 = 0.02;

impl Written {
    /// That there is something to measure.
    pub(crate) fn check_lists(&self) -> Result<(), String> {
        check_name("name", &self.name)?;
        for (what, is_empty) in [
            ("subjects", self.subjects.is_empty()),
            ("transports", self.transports.is_empty()),
            ("clients", self.clients.is_empty()),
            ("policies", self.policies.is_empty() || self.policies.contains(&SlowPolicy::Own)),
        ] {
            if is_empty {
                return Err(format!("{what} is empty; name at least one"));
            }
        }
        Ok(())
    }
}

impl Experiment {
    pub(crate) fn check_values(&self) -> Result<(), String> {
        self.check_lists()?;
        no_twins("subjects", &self.subjects.iter().map(|text| name_of(text)).collect::<Vec<_>>())?;
        no_twins("transports", &self.transports)?;
        no_twins("policies", &self.policies)?;
        no_twins("clients", &self.clients)?;
        no_twins("deliveries_per_s", &self.deliveries_per_s)?;
        no_twins("payload_bytes", &self.payload_bytes)?;
        no_twins("variants", &self.variants.iter().map(|variant| &variant.name).collect::<Vec<_>>())?;
        no_twins("networks", &self.networks)?;
        self.check_offers()?;
        if let Some(clients) = self.clients.iter().find(|&&n| n == 0 || n > MAX_CLIENTS) {
            return Err(format!("clients {clients}: from 1 to {MAX_CLIENTS}"));
        }
        if self.deliveries_per_s.contains(&0) || self.payload_bytes.contains(&0) {
            return Err("deliveries_per_s and payload_bytes are at least 1".to_owned());
        }
        if self.repeats == 0 || self.runs() > MAX_RUNS {
            return Err(format!(
                "{} runs: repeats is at least 1, and all runs together at most {MAX_RUNS}",
                self.runs()
            ));
        }
        self.check_blocks()?;
        self.check_side_by_side()?;
        self.check_proxy()?;
        self.check_phases()?;
        if self.load_ms() == 0 && self.scenario != Scenario::Idle {
            return Err("phases.load_ms is 0, so nothing would be measured".to_owned());
        }
        if self.subject_cores == 0 {
            return Err("subject_cores must be at least 1".to_owned());
        }
        if self.polling.interval_ms == 0 || self.connect_rate == 0 {
            return Err("polling.interval_ms and connect_rate are at least 1".to_owned());
        }
        let mut compressions = self.variants.iter().map(|variant| variant.compression_from);
        if self.compression_from == Some(0) || compressions.any(|from| from == Some(0)) {
            return Err("compression_from must be at least 1; leave it out for no compression".to_owned());
        }
        self.variants.iter().try_for_each(|variant| check_name("variants", &variant.name))?;
        self.check_variants()?;
        self.check_streamed()?;
        self.check_pages()?;
        self.check_networks()?;
        self.check_rates()?;
        margins::check(&self.margins)?;
        self.check_reporting()
    }

    /// A variant that is for a point which the experiment does not have would never be measured there.
    fn check_variants(&self) -> Result<(), String> {
        let [clients, rates, sizes] = [&self.clients, &self.deliveries_per_s, &self.payload_bytes]
            .map(|all| all.iter().copied().collect::<BTreeSet<u32>>());
        let beyond = |own: &[u32], all: &BTreeSet<u32>| own.iter().copied().find(|value| !all.contains(value));
        for variant in &self.variants {
            for (what, unknown) in [
                ("clients", beyond(&variant.clients, &clients)),
                ("deliveries_per_s", beyond(&variant.deliveries_per_s, &rates)),
                ("payload_bytes", beyond(&variant.payload_bytes, &sizes)),
            ] {
                if let Some(value) = unknown {
                    return Err(format!("variant {}: {value} is not one of the experiment's {what}", variant.name));
                }
            }
        }
        Ok(())
    }

    /// Streams for echoes where nothing is streamed would be left out without a word.
    fn check_streamed(&self) -> Result<(), String> {
        let scenarios = self.variants.iter().filter_map(|variant| variant.scenario.as_ref());
        let is_streamed = |scenario: &Scenario| matches!(scenario, Scenario::Echo { streamed: true, .. });
        if scenarios.chain([&self.scenario]).any(is_streamed) && !self.transports.contains(&Transport::Sse) {
            return Err(
                "scenario.streamed opens event streams: add sse to transports, or leave streamed out".to_owned()
            );
        }
        Ok(())
    }

    /// Refuses what foreign subjects cannot do.
    fn check_offers(&self) -> Result<(), String> {
        if self.capacity_share.as_ref().is_some_and(|wanted| !(wanted.share > 0.0 && wanted.share <= 1.0)) {
            return Err("capacity_share.share must be above 0 and at most 1".to_owned());
        }
        let mut foreign = self.subjects.iter().filter_map(|text| Some((text, self.offers().of(text)?))).peekable();
        if foreign.peek().is_none() {
            return Ok(());
        }
        let all_sockets =
            || std::iter::once(&self.sockets).chain(self.variants.iter().filter_map(|v| v.sockets.as_ref()));
        for (what, is_asked) in [
            ("sockets.http_version", all_sockets().any(|sockets| sockets.http_version != HttpVersion::Http11)),
            ("sockets.writes_per_event", all_sockets().any(|sockets| sockets.writes_per_event > 1)),
            ("sockets.nagle", all_sockets().any(|sockets| sockets.nagle)),
            ("sockets.send_buffer_bytes", all_sockets().any(|sockets| sockets.send_buffer_bytes.is_some())),
            ("sockets.receive_buffer_bytes", all_sockets().any(|sockets| sockets.receive_buffer_bytes.is_some())),
            ("sockets.connections_per_host_max", all_sockets().any(|s| s.connections_per_host_max.is_some())),
        ] {
            if is_asked {
                return Err(format!("{what} works with our own server only: leave the other subjects out"));
            }
        }
        if self.polling.user_list && foreign.clone().any(|(_, offer)| !offer.users) {
            return Err(
                "polling.user_list: only our own server and subjects whose manifests say `users = true` have a list \
                        of users: leave the other subjects out"
                    .to_owned(),
            );
        }
        let external = foreign.find(|(_, offer)| offer.is_external);
        if let Some((text, _)) = external.filter(|_| !self.networks.is_empty()) {
            return Err(format!(
                "networks: the lab does not start {}, so it cannot put a network in front of it",
                name_of(text)
            ));
        }
        if self.cells().is_empty() {
            let names: Vec<&str> = self.subjects.iter().map(|text| name_of(text)).collect();
            return Err(format!(
                "none of {} offers what is asked for: see `pushlab subjects list` for transports; their manifests list \
                 echo, rooms, feed (from a back end; all support it with by = \"publisher\"), newest, echo_streams, tls, the transports that each compresses \
                 and those whose clients resume",
                names.join(", ")
            ));
        }
        Ok(())
    }

    /// Runs that go side by side must have the machine to themselves, all alike.
    fn check_side_by_side(&self) -> Result<(), String> {
        let key = match (self.turns_ms, self.at_once) {
            (None, None) => return Ok(()),
            (Some(_), Some(_)) => return Err("at_once: runs go at once or take turns; leave one out".to_owned()),
            (Some(_), None) => "turns_ms",
            (None, Some(_)) => "at_once",
        };
        let mut browsers = self.variants.iter().filter_map(|variant| variant.clients_in).chain([self.clients_in]);
        for (what, is_asked) in [
            ("blocks", self.blocks.is_some()),
            ("capacity_share", self.capacity_share.is_some()),
            ("soak_minutes", self.soak_minutes.is_some()),
            ("clients in a browser", browsers.any(|clients_in| clients_in.is_browser())),
        ] {
            if is_asked {
                return Err(format!("{key}: runs that go side by side cannot have {what}"));
            }
        }
        self.turns_ms.map_or(Ok(()), |length_ms| self.check_turns(length_ms))
    }

    /// Turns need a load that can be divided, and nothing that goes on in the turns of others.
    fn check_turns(&self, length_ms: u64) -> Result<(), String> {
        let [shortest, longest] = turns::LENGTH_MS;
        if !(shortest..=longest).contains(&length_ms) {
            return Err(format!("turns_ms {length_ms}: from {shortest} to {longest}"));
        }
        let scenarios = self.variants.iter().filter_map(|variant| variant.scenario.as_ref()).chain([&self.scenario]);
        let is_whole = |scenario: &Scenario| {
            matches!(scenario, Scenario::Idle | Scenario::Storm { .. } | Scenario::Request { .. })
        };
        if scenarios.clone().any(is_whole) {
            return Err("turns_ms: turns need a load that can be divided; idle, storm and request cannot".to_owned());
        }
        if self.shape != Shape::Steady {
            return Err("turns_ms: the shape must be steady, since turns are a shape of their own".to_owned());
        }
        let mut probers = self.variants.iter().filter_map(|variant| variant.prober.as_ref()).chain(&self.prober);
        for (what, is_asked) in [
            ("networks", !self.networks.is_empty()),
            ("baseline_ms", self.baseline_ms > 0),
            ("a prober in a closed loop", probers.any(|prober| prober.closed_loop)),
        ] {
            if is_asked {
                return Err(format!("turns_ms: runs that take turns cannot have {what}"));
            }
        }
        let least_ms = turns::TURNS_MIN * length_ms;
        if self.load_ms() < least_ms {
            return Err(format!(
                "turns_ms {length_ms}: phases.load_ms must be at least {least_ms}, so that each run has {} turns",
                turns::TURNS_MIN
            ));
        }
        Ok(())
    }

    /// Servers that stay up over a block must find everything as it was when they started.
    fn check_blocks(&self) -> Result<(), String> {
        let Some(blocks) = self.blocks else { return Ok(()) };
        if blocks == 0 || !self.repeats.is_multiple_of(blocks) {
            return Err(format!("blocks {blocks}: repeats, which is {}, must be a multiple of it", self.repeats));
        }
        let variants = self.variants.iter().filter_map(|variant| variant.scenario.as_ref());
        if variants.chain([&self.scenario]).any(Scenario::has_back_end) {
            return Err("blocks: a feed's back end lasts for one run; use by = \"publisher\"".to_owned());
        }
        if !self.networks.is_empty() {
            return Err("blocks: a network is made for each run, and the server starts inside it".to_owned());
        }
        if self.baseline_ms > 0 {
            return Err("blocks: baseline_ms is measured before the first client, which is once in a block".to_owned());
        }
        Ok(())
    }

    /// A proxy stands on the loopback interface, in front of a server of ours or somebody else's that the lab starts.
    fn check_proxy(&self) -> Result<(), String> {
        let Some(proxy) = self.through else { return Ok(()) };
        if !self.networks.is_empty() {
            return Err("through: a proxy and networks cannot be combined".to_owned());
        }
        let sockets = self.variants.iter().filter_map(|variant| variant.sockets.as_ref());
        if proxy == Proxy::Buffering && sockets.chain([&self.sockets]).any(|sockets| sockets.tls) {
            return Err("through: the buffering proxy reads what it passes on, so sockets.tls must be false".to_owned());
        }
        if self.subjects.iter().any(|text| self.offers().of(text).is_some_and(|offer| offer.is_external)) {
            return Err("through: the lab puts proxies only in front of servers that it starts".to_owned());
        }
        Ok(())
    }

    /// Rows of the scorecard: each names one figure of each option.
    fn check_card(&self) -> Result<(), String> {
        if self.card.is_empty() {
            return Ok(());
        }
        let places: BTreeSet<u32> = self.cells().iter().filter_map(|cell| self.sweep().of(cell)).collect();
        for row in &self.card {
            let wrong = |what: String| Err(format!("card {:?}: {what}", row.title));
            let Some(metric) = Metric::find(&row.metric) else {
                return wrong(format!("metric {:?} is not known", row.metric));
            };
            if metric.better == Better::Neither {
                return wrong(format!("{} describes, and is not judged", metric.name));
            }
            if row.works && metric.name != "delivered_share" {
                return wrong("a row that says what works has the metric delivered_share".to_owned());
            }
            if self.networks.len() > 1 && !self.networks.iter().any(|network| row.words.contains(network)) {
                return wrong(format!("name one of the networks {:?} in `words`", self.networks));
            }
            // A place that a profile leaves out leaves the row out.
            if row.at.is_none() && places.len() > 1 {
                return wrong(format!("the axis has several places, {places:?}: name one with `at`"));
            }
        }
        Ok(())
    }

    /// What follows from them is counted in ns, in 64 bits.
    fn check_phases(&self) -> Result<(), String> {
        let p = &self.phases;
        let of = |p: &Phases| {
            [
                ("phases.connect_ms", p.connect_ms),
                ("phases.idle_ms", p.idle_ms),
                ("phases.warm_up_ms", p.warm_up_ms),
                ("phases.load_ms", p.load_ms),
                ("phases.drain_ms", p.drain_ms),
                ("phases.after_ms", p.after_ms),
            ]
        };
        let own = [
            ("baseline_ms", self.baseline_ms),
            ("warm_up_max_ms", self.warm_up_max_ms.unwrap_or(0)),
            ("phases.load_ms (or soak_minutes)", self.load_ms()),
        ];
        let variants = self.variants.iter().filter_map(|variant| variant.phases.as_ref()).flat_map(of);
        for (what, ms) in own.into_iter().chain(of(p)).chain(variants) {
            if ms > MAX_PHASE_MS {
                return Err(format!("{what} {ms}: at most {MAX_PHASE_MS}, which is 31 days"));
            }
        }
        let shortest = p.warm_up_ms;
        if let Some(longest) = self.warm_up_max_ms.filter(|longest| *longest != shortest) {
            let least = shortest.max(WARM_UP_TESTED_MIN_MS);
            if longest < least {
                return Err(format!(
                    "warm_up_max_ms {longest}: at least {least}, so that ten windows of a second tell whether the subject is \
                     steady; or {shortest}, which is phases.warm_up_ms, for no such test"
                ));
            }
        }
        Ok(())
    }

    /// How many pages there are is said once.
    fn check_pages(&self) -> Result<(), String> {
        let all = self.variants.iter().filter_map(|variant| variant.clients_in).chain([self.clients_in]);
        for clients_in in all {
            match clients_in.clients_per_page {
                Some(0) => return Err("clients_in.clients_per_page must be at least 1".to_owned()),
                Some(_) if clients_in.pages != ClientsIn::default().pages => {
                    return Err(
                        "clients_in: pages and clients_per_page both say how many pages; leave one out".to_owned()
                    );
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn check_networks(&self) -> Result<(), String> {
        for (name, profile) in &self.network {
            check_name("network", name)?;
            if name == NO_NETWORK {
                return Err(format!("network {name:?} stands for plain loopback; give it another name"));
            }
            profile.check().map_err(|error| format!("network {name}: {error}"))?;
        }
        for name in &self.networks {
            check_name("networks", name)?;
            if name == NO_NETWORK {
                return Err(format!("networks {name:?}: leave the list empty for plain loopback"));
            }
        }
        if let Some(unknown) = self.networks.iter().find(|name| self.network(name).is_none()) {
            let mut known: Vec<&str> = profile::names().collect();
            known.extend(self.network.keys().map(String::as_str));
            return Err(format!(
                "network {unknown:?} is not known; known are {}, and any of a [network.NAME] table",
                known.join(", ")
            ));
        }
        let sockets = std::iter::once(&self.sockets).chain(self.variants.iter().filter_map(|v| v.sockets.as_ref()));
        for sockets in sockets {
            if !(1..=2).contains(&sockets.writes_per_event) {
                return Err(format!("sockets.writes_per_event {}: 1 or 2", sockets.writes_per_event));
            }
            if sockets.clients_per_host == 0 || sockets.connections_per_host_max == Some(0) {
                return Err("sockets.clients_per_host and connections_per_host_max are at least 1".to_owned());
            }
            self.check_ack_delay(sockets)?;
        }
        Ok(())
    }

    /// The link holds acknowledgements back, for as long as the standard lets receivers do it.
    fn check_ack_delay(&self, sockets: &Sockets) -> Result<(), String> {
        let Some(delay_ms) = sockets.ack_delay_ms else { return Ok(()) };
        if !(1..=MAX_ACK_DELAY_MS).contains(&delay_ms) {
            return Err(format!(
                "sockets.ack_delay_ms {delay_ms}: 1 to {MAX_ACK_DELAY_MS} (RFC 1122, section 4.2.3.2); leave it out for \
                 what Linux does"
            ));
        }
        if self.networks.is_empty() {
            return Err(format!(
                "sockets.ack_delay_ms {delay_ms}: the emulated link delays acknowledgements, and there is none; name a \
                 network, for instance networks = [\"local\"], which adds nothing else"
            ));
        }
        if sockets.delayed_acks {
            return Err("sockets.ack_delay_ms and delayed_acks both delay acknowledgements; leave one out".to_owned());
        }
        Ok(())
    }

    /// A planned rate must be one that the scenario can keep: intervals are whole numbers.
    fn check_rates(&self) -> Result<(), String> {
        if self.deliveries_per_s.is_empty() {
            return Ok(());
        }
        for (cell, variant) in self.cells_and_variants() {
            let Some(wanted) = cell.deliveries_per_s else { continue };
            let real = traffic::deliveries_per_s(&self.scenario_at(&cell, variant), cell.clients);
            let is_kept = real.is_some_and(|real| (real / f64::from(wanted) - 1.0).abs() <= RATE_ERROR_MAX);
            if !is_kept {
                let real =
                    real.map_or("no planned rate".to_owned(), |real| format!("{real:.0} at the nearest interval"));
                return Err(format!(
                    "deliveries_per_s {wanted} with {} clients: the scenario has {real}",
                    cell.clients
                ));
            }
        }
        Ok(())
    }

    /// What concerns the report alone, so that a mistake there does not show only after hours.
    fn check_reporting(&self) -> Result<(), String> {
        if let Some(unknown) = self.charts.iter().chain(&self.columns).find(|name| Metric::find(name).is_none()) {
            let known: Vec<&str> = Metric::names().collect();
            return Err(format!("metric {unknown:?} is not known; known are {}", known.join(", ")));
        }
        if let Some(study) = self.study.as_deref().filter(|id| studies::find(id).is_none()) {
            return Err(format!("study {study:?} is not known; known are {}", studies::names()));
        }
        self.check_leaderboard()?;
        self.check_card()?;
        for expect in &self.expect {
            Assertion::parse(&expect.that).map_err(|error| format!("expect {:?}: {error}", expect.that))?;
        }
        Ok(())
    }

    /// A leaderboard has a row for each subject over a transport and a column for each variant, so each pair must have
    /// exactly one cell.
    fn check_leaderboard(&self) -> Result<(), String> {
        let lists = [
            ("clients", self.clients.len()),
            ("deliveries_per_s", self.deliveries_per_s.len()),
            ("payload_bytes", self.payload_bytes.len()),
            ("policies", self.policies.len()),
            ("networks", self.networks.len()),
        ];
        let Some((what, values)) = lists.into_iter().find(|(_, values)| *values > 1) else { return Ok(()) };
        if !self.tables.contains(&Derived::Leaderboard) {
            return Ok(());
        }
        Err(format!(
            "{what} has {values} values, and table \"leaderboard\" takes one: its rows are subjects over transports, its columns variants"
        ))
    }
}

/// A value that stands twice would count its runs as repeats of themselves.
fn no_twins<T: Ord + std::fmt::Debug>(what: &str, values: &[T]) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    match values.iter().find(|value| !seen.insert(*value)) {
        Some(twin) => Err(format!("{what} has {twin:?} twice; use repeats for more runs of the same")),
        None => Ok(()),
    }
}

fn check_name(what: &str, name: &str) -> Result<(), String> {
    let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if name.is_empty() || name.len() > MAX_NAME_BYTES || !name.chars().all(is_name) {
        return Err(format!("{what} {name:?}: use lower-case letters, digits and hyphens, {MAX_NAME_BYTES} at most"));
    }
    Ok(())
}
