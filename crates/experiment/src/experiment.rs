//! Experiments whose subjects are known: their cells.

use crate::cell::{Cell, SlowPolicy};
use crate::offers::{self, Find, Offer, Offers};
use crate::places::{Matrix, Places};
use crate::subject::{OURS, name_of};
use crate::traffic;
use crate::variant::Variant;
use crate::written::{AtOnce, ExperimentError, MAX_RUNS, Written};
use pushlab_wire::transport::Transport;
use pushlab_workload::scenario::Scenario;
use serde::Serialize;
use std::collections::HashSet;
use std::ops::{Deref, DerefMut};

/// What cells have in common that go side by side: clients, rate and size, and where all go at once, also the server and
/// its conditions.
pub type Beside<'a> =
    ((u32, Option<u32>, Option<u32>), Option<(&'a str, SlowPolicy, Option<&'a str>, Option<&'a str>)>);

/// An experiment of which is known what its subjects offer. It is written as it was read.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Experiment {
    written: Written,
    #[serde(skip)]
    offers: Offers,
}

impl Deref for Experiment {
    type Target = Written;

    fn deref(&self) -> &Written {
        &self.written
    }
}

impl DerefMut for Experiment {
    fn deref_mut(&mut self) -> &mut Written {
        &mut self.written
    }
}

impl Experiment {
    /// An experiment that is to be carried out: makes sure that its subjects are known and that it makes sense.
    /// `origin` is named in the error.
    ///
    /// # Errors
    /// [`ExperimentError::Value`].
    pub fn resolve(written: Written, find: Find<'_>, origin: &str) -> Result<Self, ExperimentError> {
        let wrong = |what| ExperimentError::Value { origin: origin.to_owned(), what };
        written.check_lists().map_err(wrong)?;
        let offers = Offers::find(&written.subjects, find).map_err(wrong)?;
        let experiment = Self { written, offers };
        experiment.check(origin)?;
        Ok(experiment)
    }

    /// An experiment of which there are results, whatever values it has, and whether its subjects are known or not.
    pub fn believe(written: Written, find: Find<'_>) -> Self {
        let offers = Offers::known(&written.subjects, find);
        Self { written, offers }
    }

    /// What a file would say of it.
    pub fn into_written(self) -> Written {
        self.written
    }

    /// What its subjects offer.
    pub(crate) fn offers(&self) -> &Offers {
        &self.offers
    }

    /// Whether somebody else runs the subject of this name, so that it is reached over the network as it is.
    pub fn is_external(&self, subject: &str) -> bool {
        let mut named = self.subjects.iter().filter(|text| name_of(text) == subject);
        named.any(|text| self.offers.of(text).is_some_and(|offer| offer.is_external))
    }

    fn variant(&self, name: Option<&str>) -> Option<&Variant> {
        self.variants.iter().find(|known| Some(known.name.as_str()) == name)
    }

    /// Whether a subject offers a transport, what a variant's scenario needs, and what is asked for of TLS, compression, polls
    /// for the newest message and clients in a browser's pages.
    fn is_offered(&self, subject: &str, transport: Transport, variant: Option<&Variant>) -> bool {
        let scenario = variant.and_then(|variant| variant.scenario.as_ref()).unwrap_or(&self.scenario);
        let sockets = variant.and_then(|variant| variant.sockets.as_ref()).unwrap_or(&self.sockets);
        // A proxy terminates it.
        let has_tls = sockets.tls && self.through.is_none();
        let own = self.compression_from;
        let is_compressed = variant.and_then(|variant| variant.compression_from).or(own).is_some();
        let clients_in = variant.and_then(|variant| variant.clients_in).unwrap_or(self.clients_in);
        let has_pages = |offer: &Offer| !clients_in.is_browser() || offer.has_pages(transport);
        let polling = variant.and_then(|variant| variant.polling.as_ref()).unwrap_or(&self.polling);
        self.offers.of(subject).is_none_or(|offer| {
            offer.has(transport, scenario, is_compressed)
                && offer.has_polls(transport, polling)
                && has_pages(offer)
                && (offer.tls || !has_tls)
        })
    }

    /// Refuses what makes no sense. For an experiment that was changed after it was read; `origin` is named in the
    /// error.
    ///
    /// # Errors
    /// [`ExperimentError::Value`].
    pub fn check(&self, origin: &str) -> Result<(), ExperimentError> {
        self.check_values().map_err(|what| ExperimentError::Value { origin: origin.to_owned(), what })
    }

    /// How many runs it plans.
    pub fn runs(&self) -> usize {
        let most = self.cells_max();
        let has_foreign = self.subjects.iter().any(|text| text != OURS && !text.contains('='));
        let has_choice = has_foreign || self.variants.iter().any(Variant::leaves_out);
        let cells = if has_choice && most <= MAX_RUNS { self.cells().len() } else { most };
        cells.saturating_mul(self.repeats as usize)
    }

    /// Every point of the matrix that its subject offers, in the order of the lists.
    pub fn cells(&self) -> Vec<Cell> {
        self.cells_and_variants().into_iter().map(|(cell, _)| cell).collect()
    }

    /// The same, with their variants. Takes time for the cells and for what was written, not for points that variants leave
    /// out: whoever writes a form may name many.
    pub(crate) fn cells_and_variants(&self) -> Vec<(Cell, Option<&Variant>)> {
        if self.cells_max() > MAX_RUNS {
            // Never planned: the values of imported figures, of which only some were crossed.
            return Vec::new();
        }
        let (matrix, networks) = (Matrix::of(self), options(self.networks.clone()));
        let mut cells = Vec::with_capacity(self.cells_max());
        for subject in &self.subjects {
            let (name, offer) = (name_of(subject), self.offers.of(subject));
            let policies = offers::policies(offer, &self.policies);
            let of_subject: Vec<&Places<'_>> = matrix.of_subject(name).collect();
            for &transport in &self.transports {
                let is_here = |own: Option<&Variant>| {
                    own.is_none_or(|own| own.is_for(transport)) && self.is_offered(subject, transport, own)
                };
                for places in of_subject.iter().filter(|places| is_here(places.variant)) {
                    let conditions =
                        networks.iter().flat_map(|network| policies.iter().map(move |policy| (network, *policy)));
                    for (network, policy) in conditions {
                        let all = places.all().map(|(clients, deliveries_per_s, payload_bytes)| Cell {
                            experiment: self.name.clone(),
                            subject: name.to_owned(),
                            transport,
                            policy,
                            variant: places.variant.map(|own| own.name.clone()),
                            network: network.clone(),
                            clients,
                            deliveries_per_s,
                            payload_bytes,
                        });
                        cells.extend(all.map(|cell| (cell, places.variant)));
                    }
                }
            }
        }
        cells
    }

    /// The experiment as it is for one cell: variant, rate and size applied.
    pub fn at(&self, cell: &Cell) -> Self {
        let mut own = self.written.clone();
        let variant = self.variant(cell.variant.as_deref());
        own.scenario = self.scenario_at(cell, variant);
        if let Some(variant) = variant.cloned() {
            own.content = variant.content.unwrap_or(own.content);
            own.shape = variant.shape.unwrap_or(own.shape);
            own.polling = variant.polling.unwrap_or(own.polling);
            own.prober = variant.prober.or(own.prober);
            own.headers = variant.headers.unwrap_or(own.headers);
            own.server_options = variant.server_options.unwrap_or(own.server_options);
            own.environment = variant.environment.unwrap_or(own.environment);
            own.compression_from = variant.compression_from.or(own.compression_from);
            own.phases = variant.phases.unwrap_or(own.phases);
            own.sockets = variant.sockets.unwrap_or(own.sockets);
            own.clients_in = variant.clients_in.unwrap_or(own.clients_in);
            own.loops = variant.loops.or(own.loops);
            own.workers = variant.workers.or(own.workers);
        }
        own.phases.load_ms = own.load_ms();
        Self { written: own, offers: self.offers.clone() }
    }

    /// The traffic of a cell of this variant, with rate and size applied.
    pub(crate) fn scenario_at(&self, cell: &Cell, variant: Option<&Variant>) -> Scenario {
        let own = variant.and_then(|variant| variant.scenario.as_ref()).unwrap_or(&self.scenario);
        let mut scenario = own.clone();
        if let Some(bytes) = cell.payload_bytes {
            scenario = traffic::with_payload_bytes(scenario, bytes);
        }
        if let Some(deliveries) = cell.deliveries_per_s {
            scenario = traffic::with_deliveries_per_s(scenario, cell.clients, deliveries);
        }
        scenario
    }

    /// What a cell has in common with the cells that it goes side by side with; `None` where it goes alone.
    pub fn beside<'c>(&self, cell: &'c Cell) -> Option<Beside<'c>> {
        let place = (cell.clients, cell.deliveries_per_s, cell.payload_bytes);
        let server = |variant| Some((&*cell.subject, cell.policy, variant, cell.network.as_deref()));
        match (self.turns_ms, self.at_once) {
            (Some(_), _) => Some((place, None)),
            (None, Some(AtOnce::Transports)) => Some((place, server(cell.variant.as_deref()))),
            (None, Some(AtOnce::Variants)) => Some((place, server(None))),
            (None, None) => None,
        }
    }

    /// Makes room for the turns of so many runs that go side by side: the warm-up and the load of one after another.
    pub fn give_turns_to(&mut self, runs: u32) {
        let phases = &mut self.written.phases;
        for length_ms in [&mut phases.warm_up_ms, &mut phases.load_ms] {
            *length_ms = length_ms.saturating_mul(runs.into());
        }
    }

    /// How long all runs take about, ms.
    pub fn whole_ms(&self) -> u64 {
        let cells = self.cells_and_variants();
        let mut beside = HashSet::new();
        let mut once_ms: u64 = 0;
        for (cell, variant) in &cells {
            let phases = variant.and_then(|variant| variant.phases.as_ref()).unwrap_or(&self.phases);
            let is_first = self.beside(cell).is_none_or(|place| beside.insert(place));
            once_ms = once_ms.saturating_add(match is_first {
                true => self.whole_run_ms(phases, cell.clients),
                // It begins and ends with the first of those that it goes side by side with.
                false if self.turns_ms.is_some() => phases.warm_up_ms.saturating_add(phases.load_ms),
                false => 0,
            });
        }
        once_ms.saturating_mul(u64::from(self.repeats))
    }

    /// How many runs it is with every subject installed, and how long they take about: `72 runs, 1 h 7 min`.
    pub fn size(&self) -> String {
        let runs = self.runs();
        let minutes = self.whole_ms().div_ceil(60_000);
        match (minutes / 60, minutes % 60) {
            (0, minutes) => format!("{runs} runs, {minutes} min"),
            (hours, 0) => format!("{runs} runs, {hours} h"),
            (hours, minutes) => format!("{runs} runs, {hours} h {minutes} min"),
        }
    }
}

/// A list, or the one choice of an axis that is not swept.
fn options<T>(values: Vec<T>) -> Vec<Option<T>> {
    if values.is_empty() { vec![None] } else { values.into_iter().map(Some).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::prober_choice::default_prober;
    use crate::written::{MAX_NAME_BYTES, MAX_PHASE_MS};
    use pushlab_workload::payload::Content;
    use pushlab_workload::plan::RequestHeaders;

    fn parse(text: &str, profile: Option<&str>, origin: &str) -> Result<Experiment, ExperimentError> {
        Experiment::resolve(Written::read(text, profile, origin)?, &|_| Ok(None), origin)
    }

    const SMALL: &str = r#"
        name = "small"
        title = "Small"
        transports = ["websocket", "sse"]
        clients = [1, 2]
        repeats = 3
        scenario = { kind = "chat", interval_ms = 3000, payload_bytes = 71 }
        phases = { connect_ms = 1000, warm_up_ms = 0, idle_ms = 0, load_ms = 100, drain_ms = 100, after_ms = 0 }
        [profile.quick]
        repeats = 1
        phases = { load_ms = 50 }
    "#;

    #[test]
    fn a_profile_replaces_only_what_it_names() {
        let full = parse(SMALL, None, "small").unwrap();
        assert_eq!((full.runs(), full.phases.load_ms, full.phases.drain_ms), (12, 100, 100));
        let quick = parse(SMALL, Some("quick"), "small").unwrap();
        assert_eq!((quick.runs(), quick.phases.load_ms, quick.phases.drain_ms), (4, 50, 100));
        assert_eq!(full.prober, default_prober());
    }

    #[test]
    fn pages_are_clients_where_a_subject_has_some_for_them() {
        let variants = r#"
            subjects = ["other"]
            variants = [{ name = "native" }, { name = "firefox", clients_in = { kind = "firefox" } }]
        "#;
        let cells = |pages: Vec<Transport>| {
            let transports = vec![Transport::WebSocket, Transport::Sse];
            let offer = Offer {
                transports,
                compresses: Vec::new(),
                pages,
                echo: true,
                rooms: true,
                feed: true,
                users: false,
                newest: false,
                tls: false,
                echo_streams: false,
                resumes: Vec::new(),
                is_external: false,
            };
            let find = move |_: &str| Ok(Some(offer.clone()));
            let text = format!("{variants}{SMALL}");
            let cells =
                Experiment::resolve(Written::read(&text, None, "small").unwrap(), &find, "small").unwrap().cells();
            let of = |variant: &str| cells.iter().filter(|cell| cell.variant.as_deref() == Some(variant)).count();
            (of("native"), of("firefox"))
        };
        assert_eq!(cells(vec![Transport::Sse]), (4, 2));
        assert_eq!(cells(Vec::new()), (4, 4), "one that has none is not left out: it is refused where it would be run");
    }

    #[test]
    fn how_many_pages_there_are_is_said_once() {
        let error = |keys: &str| {
            let text = format!("clients_in = {{ kind = \"firefox\", {keys} }}{SMALL}");
            parse(&text, None, "file.toml").map(drop).map_err(|error| error.to_string())
        };
        assert_eq!(error("clients_per_page = 2"), Ok(()));
        assert!(error("clients_per_page = 0").unwrap_err().contains("at least 1"));
        assert!(error("clients_per_page = 2, pages = 30").unwrap_err().contains("leave one out"));
    }

    #[test]
    fn a_leaderboard_has_rows_of_subjects_and_transports_and_columns_of_variants() {
        let read = |text: &str| parse(&format!("tables = [\"leaderboard\"]{text}"), None, "file.toml");
        let error = read(SMALL).unwrap_err().to_string();
        assert!(error.contains("clients has 2 values") && error.contains("takes one"), "{error}");
        assert!(read(&SMALL.replace("[1, 2]", "[2]")).is_ok());
    }

    #[test]
    fn what_goes_at_once_is_read_as_stored_experiments_have_it_too() {
        let read = |text: &str| parse(&format!("at_once = {text}{SMALL}"), None, "small").map(|read| read.at_once);
        assert_eq!(read("\"variants\"").unwrap(), Some(AtOnce::Variants));
        assert_eq!(read("\"transports\"").unwrap(), read("true").unwrap());
        assert_eq!(read("false").unwrap(), None);
        assert!(read("\"subjects\"").is_err());
    }

    #[test]
    fn what_is_printed_is_read_again() {
        let silent = parse(&format!("prober = false{SMALL}"), None, "small").unwrap();
        assert_eq!(silent.prober, None);
        let printed = toml::to_string_pretty(&silent).unwrap();
        assert_eq!(parse(&printed, None, "printed").unwrap(), silent);
    }

    #[test]
    fn compression_is_an_axis_that_not_every_subject_has() {
        let variants = r#"
            subjects = ["pushlab", "other"]
            variants = [{ name = "plain" }, { name = "small", compression_from = 256, content = "json" }]
        "#;
        let offer = |compresses: Vec<Transport>| Offer {
            transports: vec![Transport::WebSocket, Transport::Sse],
            compresses,
            pages: Vec::new(),
            echo: true,
            rooms: true,
            feed: true,
            users: false,
            newest: false,
            tls: false,
            echo_streams: false,
            resumes: Vec::new(),
            is_external: false,
        };
        let resolve = |text: &str, compresses: Vec<Transport>| {
            let find = |name: &str| Ok((name == "other").then(|| offer(compresses.clone())));
            Experiment::resolve(Written::read(&format!("{text}{SMALL}"), None, "small")?, &find, "small")
        };
        let experiment = resolve(variants, vec![Transport::WebSocket]).unwrap();
        let cells = experiment.cells();
        let small: Vec<&Cell> = cells.iter().filter(|cell| cell.variant.as_deref() == Some("small")).collect();
        let of = |cell: &&Cell| (cell.subject.clone(), cell.transport);
        let expected =
            [("pushlab", Transport::WebSocket), ("pushlab", Transport::Sse), ("other", Transport::WebSocket)];
        let expected = expected.map(|(subject, transport)| (subject.to_owned(), transport));
        assert_eq!(small.iter().step_by(2).map(of).collect::<Vec<_>>(), expected);
        assert_eq!(cells.len(), 8 + small.len(), "all of them are there as they are");
        let at = experiment.at(small[0]);
        assert_eq!((at.compression_from, at.content), (Some(256), Content::Json));
        assert_eq!(experiment.at(&cells[0]).compression_from, None);
        let whole = resolve("compression_from = 9\nsubjects = [\"other\"]", vec![Transport::Sse]).unwrap();
        assert!(whole.cells().iter().all(|cell| cell.transport == Transport::Sse) && whole.cells().len() == 2);
        assert_eq!(parse(SMALL, None, "small").unwrap().differences(&whole), ["compression_from"]);
        let none = resolve("compression_from = 9\nsubjects = [\"other\"]", vec![]).unwrap_err().to_string();
        assert!(none.contains("none of other offers") && none.contains("compresses"), "{none}");
        let zero = resolve("compression_from = 0", vec![]).unwrap_err().to_string();
        assert!(zero.contains("compression_from must be at least 1"), "{zero}");
    }

    #[test]
    fn a_storm_is_for_who_resumes_and_a_variant_with_tls_for_who_speaks_it() {
        let variants = r#"
            subjects = ["pushlab", "other"]
            variants = [{ name = "plain" }, { name = "secure", sockets = { tls = true } }]
        "#;
        let offer = Offer {
            transports: vec![Transport::WebSocket, Transport::Sse],
            compresses: Vec::new(),
            pages: Vec::new(),
            echo: true,
            rooms: true,
            feed: true,
            users: false,
            newest: false,
            tls: false,
            echo_streams: false,
            resumes: vec![Transport::Sse],
            is_external: false,
        };
        let others = |scenario: &str, tls: bool| {
            let chat = r#"{ kind = "chat", interval_ms = 3000, payload_bytes = 71 }"#;
            let text = format!("{variants}{}", SMALL.replace(chat, scenario));
            let find = |name: &str| Ok((name == "other").then(|| Offer { tls, ..offer.clone() }));
            let experiment = Experiment::resolve(Written::read(&text, None, "small").unwrap(), &find, "small").unwrap();
            let cells = experiment.cells().into_iter().filter(|cell| cell.subject == "other");
            let mut others: Vec<_> = cells.map(|cell| (cell.transport, cell.variant.unwrap())).collect();
            others.dedup();
            others
        };
        let plain = |transport| (transport, "plain".to_owned());
        let storm =
            |outage: &str| others(&format!(r#"{{ kind = "storm", missed = 10, payload_bytes = 71{outage} }}"#), false);
        assert_eq!(storm(""), [plain(Transport::Sse)]);
        assert_eq!(storm(r#", outage = "restart""#), [plain(Transport::Sse)]);
        assert_eq!(storm(r#", outage = "takeover""#), [], "only ours can");
        let idle = r#"{ kind = "idle" }"#;
        assert_eq!(others(idle, false), [plain(Transport::WebSocket), plain(Transport::Sse)]);
        assert_eq!(others(idle, true).iter().filter(|(_, variant)| variant == "secure").count(), 2);
    }

    #[test]
    fn a_variant_may_be_for_a_part_of_the_matrix() {
        let read = |variant: &str| {
            let axes = "subjects = [\"pushlab\", \"other=a\"]\ndeliveries_per_s = [1, 2]\npayload_bytes = [50, 500]";
            let text = format!("{axes}\nvariants = [{{ name = \"whole\" }}, {{ name = \"part\", {variant} }}]{SMALL}");
            parse(&text, None, "file.toml").map_err(|error| error.to_string())
        };
        let of = |variant: &str| {
            let experiment = read(variant).unwrap();
            let cells = experiment.cells();
            assert_eq!(experiment.runs(), 3 * cells.len());
            cells.into_iter().filter(|cell| cell.variant.as_deref() == Some("part")).collect::<Vec<_>>()
        };
        // Two subjects, transports, numbers of clients, rates and sizes.
        assert_eq!(of("headers = \"browser\"").len(), 32);
        type IsMeant = fn(&Cell) -> bool;
        let parts: [(&str, IsMeant); 5] = [
            ("subjects = [\"other\"]", |cell| cell.subject == "other"),
            ("transports = [\"sse\"]", |cell| cell.transport == Transport::Sse),
            ("clients = [2]", |cell| cell.clients == 2),
            ("deliveries_per_s = [1]", |cell| cell.deliveries_per_s == Some(1)),
            ("payload_bytes = [500]", |cell| cell.payload_bytes == Some(500)),
        ];
        for (part, is_meant) in parts {
            let cells = of(part);
            assert!(cells.len() == 16 && cells.iter().all(is_meant), "{part}");
        }
        assert_eq!(
            of("clients = [1], payload_bytes = [50], deliveries_per_s = [2], subjects = [\"pushlab\"]").len(),
            2
        );
        assert!(of("subjects = [\"gone\"]").is_empty(), "--subject may have taken it out");
        let refused = read("clients = [3]").unwrap_err();
        assert!(refused.contains("variant part: 3 is not one of the experiment's clients"), "{refused}");
    }

    #[test]
    fn what_connecting_takes_counts_where_it_is_long() {
        let whole_ms = |clients: &str| {
            let text = SMALL.replace("[1, 2]", clients).replace("[\"websocket\", \"sse\"]", "[\"sse\"]");
            parse(&text, None, "small").unwrap().whole_ms()
        };
        // Three times the phases, and 0.7 s for little; 2,000 a second connect.
        assert_eq!(whole_ms("[2]"), 3 * (100 + 700));
        assert_eq!(whole_ms("[2, 200000]"), 3 * (100 + 700) + 3 * (100 + 100_000));
    }

    #[test]
    fn heads_may_differ_between_variants() {
        let variants = r#"variants = [{ name = "short" }, { name = "long", headers = "browser" }]"#;
        let experiment = parse(&format!("{variants}{SMALL}"), None, "small").unwrap();
        for cell in experiment.cells() {
            let is_long = cell.variant.as_deref() == Some("long");
            assert_eq!(experiment.at(&cell).headers == RequestHeaders::Browser, is_long, "{}", cell.label());
        }
        let changes_nothing: Vec<bool> = experiment.variants.iter().map(Variant::changes_nothing).collect();
        assert_eq!(changes_nothing, [true, false]);
    }

    #[test]
    fn a_feed_is_a_back_ends_unless_it_says_who_publishes() {
        let read = |scenario: &str| {
            let chat = r#"{ kind = "chat", interval_ms = 3000, payload_bytes = 71 }"#;
            parse(&SMALL.replace(chat, scenario), None, "small").unwrap()
        };
        let back_ends = read(r#"{ kind = "feed", interval_us = 5000, payload_bytes = 71 }"#);
        assert!(back_ends.scenario.has_back_end() && !back_ends.scenario.has_feeder());
        assert!(!toml::to_string(&back_ends).unwrap().contains("by ="), "as it was written before there was a choice");
        let published = read(r#"{ kind = "feed", interval_us = 5000, payload_bytes = 71, by = "publisher" }"#);
        assert!(!published.scenario.has_back_end() && published.scenario.has_feeder());
        assert_eq!(back_ends.differences(&published), ["scenario"]);
        let fan_out = read(r#"{ kind = "fan-out", publishers = 8, payload_bytes = 71 }"#);
        assert!(fan_out.scenario.has_feeder() && fan_out.charts()[0] == "delivered");
        for experiment in [back_ends, published, fan_out] {
            let printed = toml::to_string_pretty(&experiment).unwrap();
            assert_eq!(parse(&printed, None, "printed").unwrap(), experiment);
        }
    }

    #[test]
    fn mistakes_are_named() {
        let error = |text: &str, profile| parse(text, profile, "file.toml").unwrap_err().to_string();
        assert!(error(SMALL, Some("slow")).contains("no profile \"slow\"; it has quick"));
        assert!(error(&SMALL.replace("repeats = 3", "repeets = 3"), None).contains("repeets"));
        assert!(error(&SMALL.replace("\"sse\"", "\"carrier-pigeon\""), None).contains("carrier-pigeon"));
        assert!(error(&SMALL.replace("[1, 2]", "[0]"), None).contains("clients 0"));
        assert!(error(&SMALL.replace("\"small\"", "\"../small\""), None).contains("hyphens"));
        let name = |length| SMALL.replace("\"small\"", &format!("{:?}", "n".repeat(length)));
        assert!(parse(&name(MAX_NAME_BYTES), None, "file.toml").is_ok());
        assert!(error(&name(MAX_NAME_BYTES + 1), None).contains("64 at most"));
        let month = |ms| SMALL.replace("load_ms = 100", &format!("load_ms = {ms}"));
        assert!(parse(&month(MAX_PHASE_MS), None, "file.toml").is_ok());
        assert!(error(&month(MAX_PHASE_MS + 1), None).contains("31 days"));
        assert!(error(&month(i64::MAX as u64), None).contains("31 days"));
        assert!(error(&format!("subject_cores = 0{SMALL}"), None).contains("subject_cores must be at least 1"));
        let warm = |longest_ms: u64| format!("warm_up_max_ms = {longest_ms}{SMALL}");
        assert!(error(&warm(14_999), None).contains("at least 15000, so that ten windows"));
        let tested = parse(&warm(15_000), None, "file.toml").unwrap();
        assert_eq!((tested.is_warmed_until_steady(), tested.warm_up_ms(), tested.run_ms()), (true, 15_000, 15_100));
        let untested = parse(&warm(0), None, "file.toml").unwrap();
        assert_eq!((untested.is_warmed_until_steady(), untested.run_ms()), (false, 100));
        let soak = format!("soak_minutes = {}{SMALL}", u32::MAX);
        assert!(error(&soak, None).contains("soak_minutes"));
        assert!(error("name = ", None).contains("file.toml"));
    }

    #[test]
    fn a_variant_may_have_phases_of_its_own() {
        let phases = "{ connect_ms = 9, idle_ms = 0, warm_up_ms = 0, load_ms = 30, drain_ms = 0, after_ms = 0 }";
        let variants = format!("[[variants]]\nname = \"usual\"\n[[variants]]\nname = \"short\"\nphases = {phases}\n");
        let experiment = parse(&format!("{SMALL}{variants}"), None, "small").unwrap();
        let load_ms = |cell: &Cell| (cell.variant.as_deref().unwrap() == "short", experiment.at(cell).phases.load_ms);
        assert!(experiment.cells().iter().map(load_ms).all(|(is_short, ms)| ms == if is_short { 30 } else { 100 }));
        let runs = experiment.runs() / 2;
        assert_eq!(experiment.whole_ms(), (runs * (100 + 700 + 30 + 700)) as u64);
    }

    #[test]
    fn acknowledgements_are_delayed_by_a_network_alone() {
        let with = |networks: &str, sockets: &str| {
            let variants = format!("[[variants]]\nname = \"windows\"\nsockets = {{ {sockets} }}\n");
            parse(&format!("networks = {networks}{SMALL}\n{variants}"), None, "small")
        };
        let experiment = with("[\"4g\"]", "ack_delay_ms = 200").unwrap();
        assert_eq!(experiment.at(&experiment.cells()[0]).sockets.ack_delay_ms, Some(200));
        for (networks, sockets, says) in [
            ("[]", "ack_delay_ms = 200", "sockets.ack_delay_ms 200: the emulated link"),
            ("[\"4g\"]", "ack_delay_ms = 0", "sockets.ack_delay_ms 0: 1 to 500"),
            ("[\"4g\"]", "ack_delay_ms = 501", "sockets.ack_delay_ms 501: 1 to 500"),
            ("[\"4g\"]", "ack_delay_ms = 9, delayed_acks = true", "leave one out"),
        ] {
            let error = with(networks, sockets).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }

    #[test]
    fn networks_are_crossed_with_all_else_and_told_by_the_cell() {
        let networks = |list: &str| parse(&format!("networks = {list}{SMALL}"), None, "small");
        let experiment = networks("[\"lan-100\", \"4g\"]").unwrap();
        assert_eq!(experiment.runs(), 24);
        let of = |cell: &Cell| (cell.transport.name(), cell.network.clone().unwrap_or_default(), cell.clients);
        let first: Vec<_> = experiment.cells().iter().take(5).map(of).collect();
        let expected = [("websocket", "lan-100", 1), ("websocket", "lan-100", 2), ("websocket", "4g", 1)];
        assert_eq!(first[..3], expected.map(|(transport, network, clients)| (transport, network.to_owned(), clients)));
        assert_eq!(first[4].0, "sse");
        assert_eq!(experiment.cells()[2].label(), "small · websocket · 4g · 1 client");
        let plain = networks("[]").unwrap();
        assert!(plain.cells().iter().all(|cell| cell.network.is_none()) && plain.runs() == 12);
        assert!(plain.differences(&experiment).is_empty(), "what a cell tells is no other traffic");
        for (list, says) in [
            ("[\"4g\", \"4g\"]", "networks has \"4g\" twice"),
            ("[\"4G\"]", "networks \"4G\": use lower-case"),
            ("[\"none\"]", "leave the list empty"),
        ] {
            let error = networks(list).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
