//! What is known of a campaign at an instant, and its page.

use crate::record::{Outcome, PlannedRun, RunRecord};
use crate::run::Usage;
use pushlab_load::plan::{Phase, Progress};
use pushlab_wire::exposition::{Exposition, Kind};

/// Phases and their names.
const PHASES: [(Phase, &str); 6] = [
    (Phase::Connect, "connect"),
    (Phase::Idle, "idle"),
    (Phase::WarmUp, "warm-up"),
    (Phase::Load, "load"),
    (Phase::Drain, "drain"),
    (Phase::After, "after"),
];

/// What is known of a campaign.
#[derive(Debug, Default)]
pub struct Figures {
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
    phase: Option<Phase>,
    progress: Progress,
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

impl Figures {
    /// A campaign begins.
    pub fn begin(&mut self, planned: usize, done: usize) {
        (self.planned, self.done) = (planned, done);
    }

    /// A run begins.
    pub fn run(&mut self, planned: &PlannedRun) {
        self.end_run();
        self.run = Some(RunNow::new(planned.clone()));
    }

    /// A phase begins. A run that is tried again begins to connect again.
    pub fn phase(&mut self, phase: Phase) {
        if phase == Phase::Connect {
            self.end_run();
            self.run = self.run.take().map(|run| RunNow::new(run.planned));
        }
        if let Some(run) = &mut self.run {
            run.phase = Some(phase);
        }
    }

    /// The generator tells how far it is.
    pub fn progress(&mut self, progress: &Progress) {
        self.publications.reach(progress.published);
        self.deliveries.reach(progress.delivered);
        if let Some(run) = &mut self.run {
            run.progress = *progress;
        }
    }

    /// Both sides were sampled.
    pub fn usage(&mut self, subject: Usage, generator: Usage) {
        self.subject_cpu_ns.reach(subject.cpu_ns);
        self.generator_cpu_ns.reach(generator.cpu_ns);
        if let Some(run) = &mut self.run {
            run.rss_bytes = Some((subject.rss_bytes, generator.rss_bytes));
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
        one("pushlab_lab_runs_void_total", counter, "Runs that a doubt took out of the figures.", count(self.void));
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
    fn new(planned: PlannedRun) -> Self {
        Self { planned, phase: None, progress: Progress::default(), rss_bytes: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::Cell;
    use crate::cell::SlowPolicy;
    use crate::record::RECORD_VERSION;
    use pushlab_load::plan::{Second, WorkerResult};
    use pushlab_wire::transport::Transport;

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
            version: RECORD_VERSION,
            planned: planned(1),
            started_at: String::new(),
            took_ms: 0,
            attempts: 1,
            outcome,
            doubts: Vec::new(),
            result: Some(WorkerResult { seconds, ..WorkerResult::default() }),
            subject: Vec::new(),
            generator: Vec::new(),
            counters: Vec::new(),
            subject_command: Vec::new(),
            plan: None,
            baseline: None,
            kernel: None,
            tcp: None,
            network: None,
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
        figures.begin(3, 1);
        for (delivered, at_its_end) in [(10, 15), (12, 20)] {
            figures.run(&planned(1));
            figures.phase(Phase::Connect);
            figures.progress(&Progress { connected: 7, published: 5, delivered, ..Progress::default() });
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
        figures.run(&planned(1));
        for _ in 0..2 {
            figures.phase(Phase::Connect);
            figures.usage(Usage { cpu_ns: 500_000_000, rss_bytes: 3 }, Usage::default());
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
        figures.run(&planned(1));
        figures.phase(Phase::WarmUp);
        figures.progress(&Progress { latency_p99_ns: Some(2_500_000), ..Progress::default() });
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
}
