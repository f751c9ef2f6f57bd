//! The clients of a browser's pages, accounted for as native ones are.

use super::BrowserError;
use super::launch::Browser;
use super::listener::{Listener, Request, Response};
use super::messages::{Answer, Framework, Publication, Report, Sender, Setup};
use super::page_clock::PageClock;
use super::scripts::Files;
use super::trusted::Trusted;
use pushlab_load::clients::{LoopConfig, polls};
use pushlab_load::record::{Delivery, Recorder};
use pushlab_load::run_state::RunState;
use pushlab_load::transport::Sending;
use pushlab_os::clock::{self, CpuClock, monotonic_ns};
use pushlab_wire::stamp::Stamp;
use pushlab_workload::audience::Audience;
use pushlab_workload::pacing::Pacing;
use pushlab_workload::plan::Plan;
use pushlab_workload::result::Part;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

const MS: u64 = 1_000_000;
/// Round trips of each page before its clients begin: the error of its clock falls with the fastest of them.
const ROUND_TRIPS_MIN: u32 = 40;
/// How long a page may be silent, ns, and a hidden one, whose timers browsers let run once a second, and Firefox after
/// up to 15 s where a page has used up its time. Chromium's once a minute is for timers that timers set; those of
/// reports are set when an answer comes.
const SILENT_NS: u64 = 15_000 * MS;
const SILENT_HIDDEN_NS: u64 = 25_000 * MS;
/// How far ahead pages are told what to publish, ns.
const LOOK_AHEAD_NS: u64 = 3_000 * MS;
const LOOK_AHEAD_HIDDEN_NS: u64 = 150_000 * MS;
/// How often the thread looks after everything else.
const TURN: Duration = Duration::from_millis(10);

/// One page, as far as the worker knows.
#[derive(Debug, Clone, Default)]
struct Page {
    /// Against the raw clock, from which it does not drift as it would from one that is steered.
    clock: PageClock,
    /// When the last answer was written, on the raw clock, ns.
    answered_ns: Option<u64>,
    /// When it reported last, on the worker's clock, ns.
    heard_ns: u64,
    /// Up to when it has reported everything, on the worker's clock, ns.
    told_ns: u64,
    is_hidden: bool,
    /// Whether it was hidden or shown since the run began.
    has_turned: bool,
    is_set_up: bool,
    subscribed: u32,
    /// The next publication that it may have to be told of.
    next: u64,
}

impl Page {
    /// It has said something, which was read then on the raw clock.
    fn hear(&mut self, sender: &Sender, read_ns: u64) {
        self.clock.has_asked(sender.sent_ms, read_ns);
        if let (Some(written_ns), Some(came_ms)) = (self.answered_ns, sender.answered_ms) {
            self.clock.was_answered(written_ns, came_ms);
        }
        self.heard_ns = clock::from_raw(read_ns);
    }

    /// An instant of the page on the worker's clock, ns.
    fn to_worker(&self, page_ms: f64) -> u64 {
        clock::from_raw(self.clock.to_worker(page_ms))
    }

    /// An instant of the worker on the page's clock, ms.
    fn to_page(&self, worker_ns: u64) -> f64 {
        self.clock.to_page(clock::to_raw(worker_ns))
    }
}

/// A browser whose pages are there and whose clocks are known.
#[derive(Debug)]
pub struct Pages {
    browser: Browser,
    listener: Listener,
    files: Files,
    pages: Vec<Page>,
}

impl Pages {
    /// Starts the browser of a plan, and waits for its pages.
    ///
    /// # Errors
    /// See [`BrowserError`].
    pub fn start(plan: &Plan) -> Result<Self, BrowserError> {
        let (listener, count) = (Listener::new()?, plan.clients_in.pages);
        let (address, trusted, files) = (listener.address()?, Trusted::of(&plan.target)?, Files::of(plan)?);
        let urls: Vec<String> = (0..count).map(|page| format!("http://{address}/?page={page}")).collect();
        let browser = Browser::start(&plan.clients_in, &urls, trusted.as_ref())?;
        let mut this = Self { browser, listener, files, pages: vec![Page::default(); count as usize] };
        let start_max_ms = plan.clients_in.start_max_ms();
        let deadline = monotonic_ns() + start_max_ms * MS;
        let is_ready = |page: &Page| page.clock.round_trips >= ROUND_TRIPS_MIN;
        while !this.pages.iter().all(is_ready) {
            if let Some(exit_message) = this.browser.exit_message() {
                return Err(BrowserError::Ended(exit_message));
            }
            if monotonic_ns() > deadline {
                let ready = this.pages.iter().filter(|page| is_ready(page)).count();
                let (name, words) = (this.browser.name(), this.browser.last_output());
                return Err(BrowserError::NotReady {
                    name,
                    ready,
                    pages: count,
                    within_s: start_max_ms / 1_000,
                    words,
                });
            }
            let (files, pages) = (&this.files, &mut this.pages);
            this.listener.serve(TURN, &mut |request| {
                respond(request, files, pages, &mut |page, report, _| {
                    page.is_hidden = report.hidden;
                    Some(Answer::default())
                })
            })?;
        }
        match this.pages.iter().position(|page| page.is_hidden != plan.clients_in.hidden) {
            None => {
                this.browser.lower_priority();
                Ok(this)
            }
            Some(page) => {
                Err(BrowserError::Visibility { name: this.browser.name(), page, is_hidden: !plan.clients_in.hidden })
            }
        }
    }

    /// Runs the clients on the calling thread until the run ends. `config` is that of the only loop.
    ///
    /// # Errors
    /// When the browser ends, a page falls silent, is hidden or shown, or the kernel refuses; failing connections are
    /// counted instead.
    pub fn run(mut self, plan: &Plan, config: LoopConfig, state: Arc<RunState>) -> io::Result<Part> {
        state.count_thread(CpuClock::of_this_thread());
        let mut clients = Clients::new(plan, config, Arc::clone(&state));
        let silent_ns = if plan.clients_in.hidden { SILENT_HIDDEN_NS } else { SILENT_NS };
        loop {
            let (files, pages) = (&self.files, &mut self.pages);
            self.listener.serve(TURN, &mut |request| {
                respond(request, files, pages, &mut |page, report, at| clients.hear(page, report, at))
            })?;
            clients.account_for(&self.pages);
            if let Some(page) = self.pages.iter().position(|page| page.has_turned) {
                let (name, is_hidden) = (self.browser.name(), plan.clients_in.hidden);
                return Err(io::Error::other(BrowserError::VisibilityChanged { name, page, is_hidden }));
            }
            let now = monotonic_ns();
            if clients.is_over(&self.pages, now) {
                return Ok(clients.finish(&self.pages));
            }
            if let Some(exit_message) = self.browser.exit_message() {
                return Err(io::Error::other(BrowserError::Ended(exit_message)));
            }
            if let Some(page) = self.pages.iter().position(|page| now.saturating_sub(page.heard_ns) > silent_ns) {
                let (name, words) = (self.browser.name(), self.browser.last_output());
                return Err(io::Error::other(BrowserError::Silent {
                    name,
                    page,
                    for_s: silent_ns / MS / 1_000,
                    words,
                }));
            }
        }
    }
}

/// A page's report, its number, and its instants.
type Hear<'a> = dyn FnMut(&mut Page, Report, usize) -> Option<Answer> + 'a;

/// Answers one request: a file, or a report, which `hear` takes.
fn respond(request: &Request<'_>, files: &Files, pages: &mut [Page], hear: &mut Hear<'_>) -> Response {
    let read_ns = clock::raw_ns();
    let path = request.target.split('?').next().unwrap_or_default();
    match (request.method, files.get(path)) {
        ("GET", Some(&(content_type, ref body))) => {
            return Response { status: "200 OK", content_type, body: body.clone() };
        }
        ("POST", None) if path == "/report" => {}
        _ => return Response::of("404 Not Found"),
    }
    let sender = Sender::parse(request.target).filter(|sender| sender.page < pages.len());
    let (Some(sender), Ok(report)) = (sender, serde_json::from_slice::<Report>(request.body)) else {
        return Response::of("400 Bad Request");
    };
    let page = &mut pages[sender.page];
    page.hear(&sender, read_ns);
    let told_ns = page.to_worker(sender.sent_ms);
    let Some(answer) = hear(page, report, sender.page) else { return Response::of("400 Bad Request") };
    page.told_ns = page.told_ns.max(told_ns);
    let body = serde_json::to_vec(&answer).expect("numbers and texts can always be written as JSON");
    page.answered_ns = Some(clock::raw_ns());
    Response { status: "200 OK", content_type: "application/json", body }
}

/// Something that a page has told, to be accounted for when all pages have told what came before it.
#[derive(Debug)]
enum Happening {
    Delivery { client: u32, data: String },
    Publication { number: u64, free_ns: u64 },
    Request { client: Option<u32> },
}

/// The clients of all pages.
struct Clients {
    config: LoopConfig,
    state: Arc<RunState>,
    recorder: Recorder,
    setup: Setup,
    poll_from_ns: u64,
    pages: u32,
    report_every_ms: u64,
    are_hidden: bool,
    look_ahead_ns: u64,
    /// What is not accounted for yet, with its instant.
    told: Vec<(u64, Happening)>,
    pacing: Option<(Pacing, u64)>,
    has_timeline: bool,
}

impl Clients {
    fn new(plan: &Plan, config: LoopConfig, state: Arc<RunState>) -> Self {
        let polls = polls(&config, state.origin_ns());
        let setup = Setup {
            target: format!("{}://{}{}", plan.target.scheme(), plan.target.authority, plan.target.path),
            transport: plan.transport.name(),
            sends_echoes: config.traffic.sending() == Some(Sending::Echo),
            framework: plan.speaks.as_ref().map(|speaks| Framework {
                path: speaks.path.clone(),
                how: speaks.how.clone(),
                publishes_to: config.requests.publishes_to().to_owned(),
            }),
            clients: Vec::new(),
            connect_every_ms: 1_000.0 / f64::from(plan.connect_rate),
            wait_s: plan.poll_wait_s,
            poll_from_ms: 0.0,
            poll_every_ms: plan.poll_interval_ms,
            poll_of: plan.clients,
            users: (plan.user_list && plan.transport.is_interval_driven()).then(|| plan.users_channel()),
        };
        let look_ahead_ns = if plan.clients_in.hidden { LOOK_AHEAD_HIDDEN_NS } else { LOOK_AHEAD_NS };
        let recorder = Recorder::new(plan.clients, &config, Arc::clone(&state));
        Self {
            config,
            state,
            recorder,
            setup,
            poll_from_ns: polls.start_ns,
            pages: plan.clients_in.pages,
            report_every_ms: plan.clients_in.report_every_ms(),
            are_hidden: plan.clients_in.hidden,
            look_ahead_ns,
            told: Vec::new(),
            pacing: None,
            has_timeline: false,
        }
    }

    /// Takes a report; `None` where it speaks of clients that do not exist.
    fn hear(&mut self, page: &mut Page, report: Report, number: usize) -> Option<Answer> {
        self.read_phases();
        let at = |ms: f64| page.to_worker(ms);
        let is_known = |client: &u32| *client < self.config.clients;
        let mut named = report.deliveries.iter().map(|delivery| &delivery.0);
        let mut asking = report.requests.iter().filter_map(|(client, _)| client.as_ref());
        if !named.all(is_known) || !asking.all(is_known) {
            return None;
        }
        let deliveries = report.deliveries.into_iter();
        self.told.extend(deliveries.map(|(client, ms, data)| (at(ms), Happening::Delivery { client, data })));
        let published = report.published.into_iter();
        self.told.extend(
            published.map(|(number, ms, free_ms)| (at(ms), Happening::Publication { number, free_ns: at(free_ms) })),
        );
        let requests = report.requests.into_iter();
        self.told.extend(requests.map(|(client, ms)| (at(ms), Happening::Request { client })));
        let part = &mut self.recorder.part;
        report.connects.iter().for_each(|ms| part.connect.record((ms.max(0.0) * 1e6) as u64));
        part.gaps += u64::from(report.gaps);
        part.reconnects += u64::from(report.reconnects);
        report.errors.iter().for_each(|error| part.errors.add(error));
        report.refused.iter().for_each(|why| self.recorder.refused(why));
        page.subscribed = report.subscribed;
        page.has_turned |= report.hidden != self.are_hidden || report.visibility_changes > 0;
        Some(Answer {
            again_ms: self.report_every_ms,
            setup: (!std::mem::replace(&mut page.is_set_up, true)).then(|| self.setup_of(page, number)),
            publish: self.publications_of(page, number),
        })
    }

    fn setup_of(&self, page: &Page, number: usize) -> Setup {
        let mut requests = self.config.requests.clone();
        let own = (0..self.config.clients).skip(number).step_by(self.pages as usize);
        let clients = own.map(|client| {
            requests.turn_to_client(client);
            (client, format!("channel={}", requests.channel()))
        });
        let poll_from_ms = page.to_page(self.poll_from_ns);
        Setup { clients: clients.collect(), poll_from_ms, ..self.setup.clone() }
    }

    /// What the page's clients are to publish until some time from now on, as far as it has not been told.
    fn publications_of(&mut self, page: &mut Page, number: usize) -> Vec<Publication> {
        let (Some((pacing, _)), Some(payload)) = (&self.pacing, &mut self.config.payload) else { return Vec::new() };
        let until_ns = monotonic_ns() + self.look_ahead_ns;
        let mut found = Vec::new();
        while page.next < pacing.count && pacing.due_ns(page.next) < until_ns {
            let k = page.next;
            page.next += 1;
            let (source, sequence) = pacing.publisher_of(k);
            let client = match &self.config.audience {
                Audience::Rooms(rooms) => rooms.publisher(source, sequence),
                _ => source,
            };
            if client as usize % self.pages as usize != number {
                continue;
            }
            let stamp = Stamp { source, sequence: sequence as u32, instant_ns: pacing.due_ns(k) };
            self.config.requests.turn_to_source(source);
            found.push(Publication {
                number: k,
                due_ms: page.to_page(stamp.instant_ns),
                client,
                channel: self.config.requests.publishes_to().to_owned(),
                data: String::from_utf8_lossy(payload.stamped(&stamp)).into_owned(),
            });
        }
        found
    }

    /// Learns the phases once they are fixed.
    fn read_phases(&mut self) {
        let Some(timeline) = self.state.timeline().filter(|_| !self.has_timeline) else { return };
        self.has_timeline = true;
        self.recorder.set_timeline(timeline);
        self.pacing = timeline.sent(self.config.traffic).map(|(pacing, load_from)| (pacing.clone(), load_from));
    }

    /// Accounts for everything up to the instant to which all pages have reported, in the order of time.
    fn account_for(&mut self, pages: &[Page]) {
        self.read_phases();
        let told_ns = pages.iter().map(|page| page.told_ns).min().unwrap_or(0);
        self.account_until(told_ns);
        self.recorder.pass_time(told_ns);
        let progress = self.state.loop_progress(self.config.progress);
        let part = &self.recorder.part;
        progress.subscribed.store(pages.iter().map(|page| page.subscribed).sum(), Ordering::Relaxed);
        progress.published.store(self.recorder.published_total, Ordering::Relaxed);
        progress.delivered.store(self.recorder.delivered_total, Ordering::Relaxed);
        progress.load_published.store(part.published, Ordering::Relaxed);
        progress.load_delivered.store(part.delivered, Ordering::Relaxed);
    }

    fn account_until(&mut self, until_ns: u64) {
        self.told.sort_by_key(|(at_ns, _)| *at_ns);
        let due = self.told.partition_point(|(at_ns, _)| *at_ns <= until_ns);
        // Until the phases are known, nothing is in one.
        let never = u64::MAX..u64::MAX;
        let (idle_ns, load_ns) = self.state.timeline().map_or((never.clone(), never), |timeline| {
            (timeline.idle_ns..timeline.warm_up_ns, timeline.load_ns..timeline.load_end_ns)
        });
        let counted_end_ns = if self.config.counts_drain { self.state.after_ns() } else { load_ns.end };
        for (at_ns, happening) in self.told.drain(..due) {
            match happening {
                Happening::Delivery { client, data } => {
                    let before = self.recorder.delivered_total;
                    self.recorder.delivered(Delivery {
                        receiver: client,
                        own_source: client,
                        data: data.as_bytes(),
                        is_relayed: false,
                        now_ns: at_ns,
                    });
                    // The same span as the link counts.
                    if (load_ns.start..counted_end_ns).contains(&at_ns) {
                        self.recorder.part.bytes_load.deliveries += self.recorder.delivered_total - before;
                    }
                }
                Happening::Publication { number, free_ns } => {
                    let Some((pacing, load_from)) = self.pacing.as_ref().filter(|(pacing, _)| number < pacing.count)
                    else {
                        continue;
                    };
                    let is_load = number >= *load_from;
                    self.recorder.published_in_room(is_load, pacing.publisher_of(number).0);
                    self.recorder.published(is_load, at_ns, pacing.due_ns(number).max(free_ns));
                }
                Happening::Request { client } if load_ns.contains(&at_ns) => {
                    let part = &mut self.recorder.part;
                    part.requests += 1;
                    let is_publishers = |client| client < self.config.publishers;
                    // Where all publish, every request is one of a publisher.
                    let is_publisher = client.map_or(self.config.publishers >= self.config.clients, is_publishers);
                    part.requests_publishers += u64::from(is_publisher);
                }
                Happening::Request { .. } => self.recorder.part.requests_idle += u64::from(idle_ns.contains(&at_ns)),
            }
        }
    }

    /// Whether the run is over and every page has reported up to its end. What a page does not report was not lost on
    /// the way: a page that never does is found silent, which fails the run.
    fn is_over(&self, pages: &[Page], now: u64) -> bool {
        let end_ns = self.state.end_ns();
        now >= end_ns && pages.iter().all(|page| page.told_ns >= end_ns)
    }

    fn finish(mut self, pages: &[Page]) -> Part {
        self.account_until(u64::MAX);
        let mut part = self.recorder.finish();
        part.clock_error_ns = pages.iter().map(|page| page.clock.error_ns()).max();
        part
    }
}
