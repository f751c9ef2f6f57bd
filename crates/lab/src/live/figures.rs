//! What is known of a campaign at an instant, and its page.

use super::state::{Activity, LiveRun, LiveState};
use pushlab_record::{Outcome, PlannedRun, RunRecord};
use pushlab_watch::Usage;
use pushlab_wire::exposition::{Exposition, Kind};
use pushlab_workload::messages::Progress;
use pushlab_workload::plan::Phase;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Phases and their names.
const PHASES: [(Phase, &str); 6] = [
    (Phase::Connect, "connect"),
    (Phase::Idle, "idle"),
    (Phase::WarmUp, "warm-up"),
    (Phase::Load, "load"),
    (Phase::Drain, "drain"),
    (Phase::After, "after"),
];

/// Shared by the campaign and those who show them.
pub type Shared = Arc<Mutex<Figures>>;

/// Whoever panicked left numbers behind, which cannot be half written.
pub fn lock(figures: &Shared) -> MutexGuard<'_, Figures> {
    figures.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is known of a campaign.
#[derive(Debug, Default)]
pub struct Figures {
    name: String,
    result: Option<i64>,
    planned: usize,
    done: usize,
    void: u64,
    failed: u64,
    publications: Total,
    deliveries: Total,
    subject_cpu_ns: Total,
    generator_cpu_ns: Total,
    run: Option<RunNow>,
}

/// What is known of the run that goes on.
#[derive(Debug)]
struct RunNow {
    planned: PlannedRun,
    started: Instant,
    phase: Option<Phase>,
    progress: Progress,
    deliveries: Rate,
    subject_cpu_ns: Rate,
    generator_cpu_ns: Rate,
    /// Resident memory of subject and generator, bytes, once it was read.
    rss_bytes: Option<(u64, u64)>,
}

/// A sum over all runs of something that each run counts from 0.
#[derive(Debug, Default)]
struct Total {
    ended: u64,
    running: u64,
}

impl Total {
    /// What the present run has counted so far; readings may come in any order.
    fn reach(&mut self, count: u64) {
        self.running = self.running.max(count);
    }

    /// The next run counts from 0 again.
    fn end_run(&mut self) {
        self.ended += std::mem::take(&mut self.running);
    }

    fn sum(&self) -> u64 {
        self.ended + self.running
    }
}

/// How fast something grows that is counted from 0.
#[derive(Debug)]
struct Rate {
    since: (Instant, u64),
    per_s: Option<f64>,
}

/// Over what a rate is taken, at least. Readings of progress are a second apart, give or take.
const RATE_OVER: Duration = Duration::from_millis(900);

impl Rate {
    fn from(now: Instant) -> Self {
        Self { since: (now, 0), per_s: None }
    }

    fn note(&mut self, now: Instant, count: u64) {
        let (then, before) = self.since;
        let length = now.saturating_duration_since(then);
        if length >= RATE_OVER {
            self.per_s = Some(count.saturating_sub(before) as f64 / length.as_secs_f64());
            self.since = (now, count);
        }
    }

    /// Of a time in ns: per cent of one core.
    fn percent(&self) -> Option<f64> {
        self.per_s.map(|ns_per_s| ns_per_s / 1e7)
    }
}

impl Figures {
    /// Of the campaign of this name.
    pub fn of(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }

    /// A campaign begins, as experiment `id` of its store.
    pub fn begin(&mut self, planned: usize, done: usize, id: i64) {
        (self.planned, self.done, self.result) = (planned, done, Some(id));
    }

    /// A run begins.
    pub fn run(&mut self, planned: &PlannedRun, now: Instant) {
        self.end_run();
        self.run = Some(RunNow::new(planned.clone(), now));
    }

    /// A phase begins. A run that is tried again begins to connect again.
    pub fn phase(&mut self, phase: Phase, now: Instant) {
        if phase == Phase::Connect {
            self.end_run();
            self.run = self.run.take().map(|run| RunNow { started: run.started, ..RunNow::new(run.planned, now) });
        }
        if let Some(run) = &mut self.run {
            run.phase = Some(phase);
        }
    }

    /// The generator tells how far it is.
    pub fn progress(&mut self, progress: &Progress, now: Instant) {
        self.publications.reach(progress.published);
        self.deliveries.reach(progress.delivered);
        if let Some(run) = &mut self.run {
            run.progress = *progress;
            run.deliveries.note(now, progress.delivered);
        }
    }

    /// Both sides were sampled.
    pub fn usage(&mut self, subject: Usage, generator: Usage, now: Instant) {
        self.subject_cpu_ns.reach(subject.cpu_ns);
        self.generator_cpu_ns.reach(generator.cpu_ns);
        if let Some(run) = &mut self.run {
            run.rss_bytes = Some((subject.rss_bytes, generator.rss_bytes));
            run.subject_cpu_ns.note(now, subject.cpu_ns);
            run.generator_cpu_ns.note(now, generator.cpu_ns);
        }
    }

    /// A run has ended.
    pub fn recorded(&mut self, record: &RunRecord) {
        self.done += 1;
        self.failed += u64::from(record.outcome != Outcome::Completed);
        self.void += u64::from(record.is_void());
        // Progress is told once a second; the record has what came behind the last.
        if let Some(result) = &record.result {
            self.publications.reach(result.seconds.iter().map(|s| s.published).sum());
            self.deliveries.reach(result.seconds.iter().map(|s| s.delivered).sum());
        }
        self.subject_cpu_ns.reach(record.subject.last().map_or(0, |s| s.cpu_ns));
        self.generator_cpu_ns.reach(record.generator.last().map_or(0, |s| s.cpu_ns));
        self.end_run();
        self.run = None;
    }

    fn end_run(&mut self) {
        let totals =
            [&mut self.publications, &mut self.deliveries, &mut self.subject_cpu_ns, &mut self.generator_cpu_ns];
        totals.into_iter().for_each(Total::end_run);
    }

    /// What a page is told. The campaign runs from the moment that it began; who knows of its end says so.
    pub fn state(&self, now: Instant) -> LiveState {
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        LiveState {
            state: if self.result.is_some() { Activity::Running } else { Activity::Idle },
            name: self.name.clone(),
            result: self.result,
            runs_planned: number(self.planned),
            runs_done: number(self.done),
            runs_void: number(self.void as usize),
            runs_failed: number(self.failed as usize),
            run: self.run.as_ref().map(|run| run.state(now)),
            problem: None,
        }
    }

    /// The page for Prometheus. What is not known now has no sample.
    pub fn page(&self) -> String {
        let mut page = Exposition::default();
        page.family("pushlab_build_info", Kind::Gauge, "Always 1; the labels tell the version.")
            .sample(&[("version", env!("CARGO_PKG_VERSION"))], 1.0);
        let mut one = |name, kind, help, value: Option<f64>| {
            let mut family = page.family(name, kind, help);
            if let Some(value) = value {
                family.sample(&[], value);
            }
        };
        let count = |count: u64| Some(count as f64);
        let seconds = |ns: u64| ns as f64 / 1e9;
        let run = self.run.as_ref();
        let (subject_rss, generator_rss) = run.and_then(|run| run.rss_bytes).unzip();
        let progress = run.map(|run| run.progress).unwrap_or_default();
        let (gauge, counter) = (Kind::Gauge, Kind::Counter);
        one("pushlab_lab_runs_planned", gauge, "Runs of the campaign.", count(self.planned as u64));
        let help = "Runs that have ended, those of an interrupted part of the campaign among them.";
        one("pushlab_lab_runs_done", gauge, help, count(self.done as u64));
        one("pushlab_lab_runs_void_total", counter, "Runs that a warning took out of the figures.", count(self.void));
        one("pushlab_lab_runs_failed_total", counter, "Runs that did not come to their end.", count(self.failed));
        let help = "Clients subscribed now, read once a second.";
        one("pushlab_lab_clients_connected", gauge, help, count(progress.connected.into()));
        let help = "Publications sent in any phase, over all runs, read once a second.";
        one("pushlab_lab_publications_total", counter, help, count(self.publications.sum()));
        let help = "Deliveries received in any phase, over all runs, read once a second.";
        one("pushlab_lab_deliveries_total", counter, help, count(self.deliveries.sum()));
        let help = "Median latency of the latest whole second's deliveries, in seconds; absent without deliveries.";
        one("pushlab_lab_latency_median_seconds", gauge, help, progress.latency_median_ns.map(seconds));
        let help = "99th percentile of the same second's latency, in seconds.";
        one("pushlab_lab_latency_p99_seconds", gauge, help, progress.latency_p99_ns.map(seconds));
        let help = "CPU time of the subjects, over all runs, in seconds.";
        one("pushlab_lab_subject_cpu_seconds_total", counter, help, Some(seconds(self.subject_cpu_ns.sum())));
        let help = "Resident memory of the present run's subject, in bytes.";
        one("pushlab_lab_subject_resident_memory_bytes", gauge, help, subject_rss.and_then(count));
        let help = "CPU time of the generator, over all runs, in seconds.";
        one("pushlab_lab_generator_cpu_seconds_total", counter, help, Some(seconds(self.generator_cpu_ns.sum())));
        let help = "Resident memory of the present run's generator, in bytes.";
        one("pushlab_lab_generator_resident_memory_bytes", gauge, help, generator_rss.and_then(count));
        self.write_run(&mut page);
        page.into_text()
    }

    fn write_run(&self, page: &mut Exposition) {
        let help = "Always 1; the labels tell the run that goes on. Absent between runs.";
        let mut info = page.family("pushlab_lab_run_info", Kind::Gauge, help);
        if let Some(RunNow { planned, .. }) = &self.run {
            let cell = &planned.cell;
            let labels = [
                ("experiment", cell.experiment.as_str()),
                ("subject", &cell.subject),
                ("transport", cell.transport.name()),
                ("policy", cell.policy.name()),
                ("network", cell.network.as_deref().unwrap_or_default()),
                ("clients", &cell.clients.to_string()),
                ("repeat", &planned.repeat.to_string()),
            ];
            info.sample(&labels, 1.0);
        }
        let help = "1 for the phase that the run is in, 0 for the others. All 0 while a subject is started.";
        let mut phases = page.family("pushlab_lab_phase", Kind::Gauge, help);
        let now = self.run.as_ref().and_then(|run| run.phase);
        for (phase, name) in PHASES {
            phases.sample(&[("phase", name)], if now == Some(phase) { 1.0 } else { 0.0 });
        }
    }
}

impl RunNow {
    fn new(planned: PlannedRun, now: Instant) -> Self {
        let rate = || Rate::from(now);
        Self {
            planned,
            started: now,
            phase: None,
            progress: Progress::default(),
            deliveries: rate(),
            subject_cpu_ns: rate(),
            generator_cpu_ns: rate(),
            rss_bytes: None,
        }
    }

    fn state(&self, now: Instant) -> LiveRun {
        let ms = |ns: Option<u64>| ns.map(|ns| ns as f64 / 1e6);
        LiveRun {
            number: self.planned.order,
            label: self.planned.label(),
            phase: self.phase,
            elapsed_ms: now.saturating_duration_since(self.started).as_millis() as u64,
            clients: self.progress.connected,
            published: self.progress.published,
            delivered: self.progress.delivered,
            deliveries_per_s: self.deliveries.per_s.unwrap_or(0.0),
            latency_p50_ms: ms(self.progress.latency_median_ns),
            latency_p99_ms: ms(self.progress.latency_p99_ns),
            subject_cpu: self.subject_cpu_ns.percent(),
            generator_cpu: self.generator_cpu_ns.percent(),
            subject_rss_bytes: self.rss_bytes.map(|(subject, _)| subject),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pushlab_experiment::cell::Cell;
    use pushlab_experiment::cell::SlowPolicy;
    use pushlab_wire::transport::Transport;
    use pushlab_workload::result::{LoadResult, Second};

    fn planned(order: u32) -> PlannedRun {
        let (experiment, subject) = ("chat".to_owned(), "pushlab".to_owned());
        let cell = Cell {
            experiment,
            subject,
            transport: Transport::Sse,
            policy: SlowPolicy::Close,
            variant: None,
            network: Some("4g".to_owned()),
            clients: 7,
            deliveries_per_s: None,
            payload_bytes: None,
        };
        PlannedRun { order, cell, repeat: 2, seed: 1 }
    }

    fn record(outcome: Outcome, seconds: Vec<Second>) -> RunRecord {
        RunRecord {
            result: Some(LoadResult { seconds, ..LoadResult::default() }),
            ..RunRecord::ended(planned(1), outcome)
        }
    }

    fn line(figures: &Figures, name: &str) -> Option<String> {
        let page = figures.page();
        let mut lines = page.lines().filter_map(|line| line.strip_prefix(name)).map(|rest| rest.trim().to_owned());
        let found = lines.next();
        assert_eq!(lines.next(), None, "{name} twice");
        found
    }

    #[test]
    fn counters_go_on_from_run_to_run() {
        let mut figures = Figures::default();
        figures.begin(3, 1, 7);
        for (delivered, at_its_end) in [(10, 15), (12, 20)] {
            figures.run(&planned(1), Instant::now());
            figures.phase(Phase::Connect, Instant::now());
            figures
                .progress(&Progress { connected: 7, published: 5, delivered, ..Progress::default() }, Instant::now());
            assert_eq!(line(&figures, "pushlab_lab_clients_connected ").unwrap(), "7");
            let seconds = vec![Second { published: 5, delivered: at_its_end, ..Second::default() }];
            figures.recorded(&record(Outcome::Completed, seconds));
        }
        assert_eq!(line(&figures, "pushlab_lab_deliveries_total ").unwrap(), "35");
        assert_eq!(line(&figures, "pushlab_lab_publications_total ").unwrap(), "10");
        assert_eq!(line(&figures, "pushlab_lab_runs_done ").unwrap(), "3");
        assert_eq!(line(&figures, "pushlab_lab_clients_connected ").unwrap(), "0", "nobody is left");
    }

    #[test]
    fn a_second_try_adds_to_the_first() {
        let mut figures = Figures::default();
        figures.run(&planned(1), Instant::now());
        for _ in 0..2 {
            figures.phase(Phase::Connect, Instant::now());
            figures.usage(Usage { cpu_ns: 500_000_000, rss_bytes: 3 }, Usage::default(), Instant::now());
            assert_eq!(line(&figures, "pushlab_lab_subject_resident_memory_bytes ").unwrap(), "3");
        }
        assert_eq!(line(&figures, "pushlab_lab_subject_cpu_seconds_total ").unwrap(), "1");
        figures.recorded(&record(Outcome::Failed { reason: String::new(), phase: None }, Vec::new()));
        assert_eq!(line(&figures, "pushlab_lab_runs_failed_total ").unwrap(), "1");
        assert_eq!(line(&figures, "pushlab_lab_runs_void_total ").unwrap(), "0");
    }

    #[test]
    fn what_is_not_known_has_no_sample() {
        let mut figures = Figures::default();
        let absent = ["pushlab_lab_run_info", "pushlab_lab_latency_p99_seconds ", "pushlab_lab_subject_resident"];
        absent.iter().for_each(|name| assert_eq!(line(&figures, name), None, "{name}"));
        figures.run(&planned(1), Instant::now());
        figures.phase(Phase::WarmUp, Instant::now());
        figures.progress(&Progress { latency_p99_ns: Some(2_500_000), ..Progress::default() }, Instant::now());
        assert_eq!(line(&figures, "pushlab_lab_latency_p99_seconds ").unwrap(), "0.0025");
        let info = line(&figures, "pushlab_lab_run_info").unwrap();
        let labels =
            r#"experiment="chat",subject="pushlab",transport="sse",policy="close",network="4g",clients="7",repeat="2""#;
        assert_eq!(info, format!("{{{labels}}} 1"));
        for (_, name) in PHASES {
            let value = if name == "warm-up" { "1" } else { "0" };
            assert_eq!(line(&figures, &format!("pushlab_lab_phase{{phase=\"{name}\"}}")).unwrap(), value, "{name}");
        }
    }

    #[test]
    fn a_page_is_told_of_the_run_and_its_rates() {
        let begun = Instant::now();
        let at = |ms| begun + Duration::from_millis(ms);
        let mut figures = Figures::of("chat");
        assert_eq!(figures.state(begun), LiveState { name: "chat".to_owned(), ..LiveState::default() });
        figures.begin(3, 1, 7);
        figures.run(&planned(2), at(0));
        let starting = figures.state(at(40));
        assert_eq!((starting.state, starting.result, starting.runs_done), (Activity::Running, Some(7), 1));
        assert_eq!(starting.run.map(|run| (run.number, run.phase, run.elapsed_ms)), Some((2, None, 40)));
        figures.phase(Phase::Connect, at(100));
        for second in 1..=3 {
            let progress = Progress { delivered: 500 * second, latency_p99_ns: Some(2_500_000), ..Progress::default() };
            figures.progress(&progress, at(100 + 1000 * second));
            let usage = Usage { cpu_ns: 250_000_000 * second, rss_bytes: 3 };
            figures.usage(usage, Usage::default(), at(100 + 1000 * second));
            // Between two seconds nothing changes.
            figures.usage(usage, Usage::default(), at(150 + 1000 * second));
        }
        let run = figures.state(at(3200)).run.unwrap();
        assert_eq!((run.phase, run.elapsed_ms, run.delivered), (Some(Phase::Connect), 3200, 1500));
        assert_eq!((run.deliveries_per_s, run.subject_cpu, run.generator_cpu), (500.0, Some(25.0), Some(0.0)));
        assert_eq!((run.latency_p50_ms, run.latency_p99_ms, run.subject_rss_bytes), (None, Some(2.5), Some(3)));
        figures.recorded(&record(Outcome::Completed, Vec::new()));
        let between = figures.state(at(4000));
        assert_eq!((between.runs_done, between.run), (2, None));
    }
}
