//! Experiments that a page starts: each in a process of its own, one at a time.
//!
//! `pushlab run FILE --live-lines` tells its live figures line by line on its standard output, and goes on as long as its
//! standard input is open: whoever closes that, on purpose or by ending, interrupts the campaign, which the same
//! experiment goes on with later.

use crate::experiments::looked_over;
use crate::interface::ExperimentRequest;
use crate::live::Board;
use pushlab_application::requests::{Answer, Refusal, body, json};
use pushlab_application::{Request, Response};
use pushlab_lab::LiveState;
use pushlab_lab::live::Activity;
use pushlab_os::new_file;
use pushlab_server::Origin;
use pushlab_wire::codes::{ErrorCode, ExitCode};
use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, BufRead as _, BufReader, PipeReader, PipeWriter, Read};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Folder of the experiments of pages, below that of reports.
const FOLDER: &str = "from-console";
/// Last lines of a campaign's errors that are kept.
const MAX_LINES: usize = 12;
/// Bytes of such a line that are kept.
const MAX_LINE_BYTES: u64 = 1000;
/// Bytes of a line of live figures: 64 KiB. One takes some hundreds.
const MAX_LIVE_BYTES: u64 = 64 * 1024;
/// Time for the last errors to be read once a campaign has ended.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// Time for a campaign to end that was interrupted: its subject may take ten seconds.
const END_WITHIN: Duration = Duration::from_secs(30);
const WATCH: Duration = Duration::from_millis(10);

/// How campaigns are started.
#[derive(Debug, Clone)]
pub struct Starting {
    /// The `pushlab` program.
    pub program: PathBuf,
    /// The results database; `None` for the user's own.
    pub store: Option<PathBuf>,
    /// Folder of reports.
    pub out: PathBuf,
    /// Servers that are running and may be measured.
    pub targets: Vec<Origin>,
}

/// Starts campaigns, and ends the one that goes on when it is dropped.
pub struct Campaigns {
    starting: Starting,
    board: Arc<Board>,
    now: Arc<Mutex<Option<Now>>>,
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

/// The campaign that goes on.
struct Now {
    /// The other end of its standard input; `None` once it was interrupted.
    input: Option<PipeWriter>,
}

/// A campaign to carry out.
struct Job {
    command: Command,
    input: PipeReader,
    name: String,
}

impl Campaigns {
    /// Call in a thread that may run on any core: what it starts inherits that.
    pub fn new(starting: Starting, board: Arc<Board>) -> io::Result<Self> {
        let now = Arc::default();
        let (jobs, received) = mpsc::channel();
        let runner = Runner { board: Arc::clone(&board), now: Arc::clone(&now) };
        let work = move || runner.work(&received);
        let thread = std::thread::Builder::new().name("pushlab-campaigns".into()).spawn(work)?;
        Ok(Self { starting, board, now, jobs: Some(jobs), thread: Some(thread) })
    }

    /// `DELETE /api/campaigns` interrupts the one that goes on.
    pub fn stop(&self) -> Answer {
        match self.interrupt() {
            true => Ok(json(&serde_json::json!({}))),
            false => Err(Refusal::new(ErrorCode::NotFound, "no experiment is being carried out")),
        }
    }

    /// Servers that are running and may be measured.
    pub fn targets(&self) -> &[Origin] {
        &self.starting.targets
    }

    /// `POST /api/campaigns` begins one.
    pub fn start(&self, request: &Request) -> Answer {
        let asked: ExperimentRequest = body(request)?;
        let found = looked_over(&asked, self.targets());
        if !found.problems.is_empty() {
            return Err(Refusal::new(ErrorCode::BadRequest, found.problems.join("; ")));
        }
        let mut now = lock(&self.now);
        if now.is_some() {
            let message = "an experiment is being carried out; wait for its end or interrupt it";
            return Err(Refusal::new(ErrorCode::Busy, message));
        }
        let failed = |what: &str, error: io::Error| Refusal::new(ErrorCode::InternalError, format!("{what}: {error}"));
        let file = self.keep(&found.name, &asked.toml).map_err(|(path, error)| {
            failed(&format!("cannot write {}, choose another folder with --out", path.display()), error)
        })?;
        let (input, output) = io::pipe().map_err(|error| failed("cannot make a pipe", error))?;
        let job = Job { command: self.command(&file, &asked), input, name: found.name.clone() };
        let jobs = self.jobs.as_ref().filter(|jobs| jobs.send(job).is_ok());
        jobs.ok_or_else(|| Refusal::new(ErrorCode::Draining, "the console is about to end"))?;
        *now = Some(Now { input: Some(output) });
        // Before anything that the campaign itself tells, which waits for this lock.
        let state = Activity::Running;
        self.board.tell(LiveState { state, name: found.name, runs_planned: found.runs, ..LiveState::default() });
        Ok(Response { status: 202, ..json(&serde_json::json!({})) })
    }

    /// Interrupts the campaign that goes on; `false` if there is none.
    pub fn interrupt(&self) -> bool {
        let mut now = lock(&self.now);
        now.as_mut().map(|now| now.input = None).is_some()
    }

    /// Keeps the text of an experiment, so that the command that carried it out can be given again.
    fn keep(&self, name: &str, toml: &str) -> Result<PathBuf, (PathBuf, io::Error)> {
        let mut hasher = DefaultHasher::new();
        toml.hash(&mut hasher);
        let folder = self.starting.out.join(FOLDER);
        let path = folder.join(format!("{name}-{:016x}.toml", hasher.finish()));
        let done = std::fs::create_dir_all(&folder).and_then(|()| new_file::write(&path, toml.as_bytes()));
        done.map(|()| path.clone()).map_err(|error| (path, error))
    }

    fn command(&self, file: &Path, asked: &ExperimentRequest) -> Command {
        let mut command = Command::new(&self.starting.program);
        command.arg("run").arg(file).arg("--live-lines").arg("--out").arg(&self.starting.out);
        if let Some(store) = &self.starting.store {
            command.arg("--store").arg(store);
        }
        if let Some(profile) = &asked.profile {
            command.arg(format!("--profile={profile}"));
        }
        if let Some(seed) = asked.seed {
            command.arg(format!("--seed={seed}"));
        }
        command
    }
}

impl Drop for Campaigns {
    fn drop(&mut self) {
        self.interrupt();
        drop(self.jobs.take());
        let deadline = Instant::now() + END_WITHIN;
        if let Some(thread) = self.thread.take() {
            while !thread.is_finished() && Instant::now() < deadline {
                std::thread::sleep(WATCH);
            }
        }
    }
}

/// The thread that starts campaigns and listens to them.
struct Runner {
    board: Arc<Board>,
    now: Arc<Mutex<Option<Now>>>,
}

impl Runner {
    fn work(&self, jobs: &Receiver<Job>) {
        for job in jobs {
            let name = job.name.clone();
            let problem =
                self.carry_out(job).unwrap_or_else(|error| Some(format!("cannot start the experiment: {error}")));
            // Whoever is told that nothing goes on may begin something, and it begins behind this.
            let mut now = lock(&self.now);
            *now = None;
            let last = self.board.state();
            // Of one that was interrupted before its first record nothing was kept.
            let result = last.result.filter(|_| last.runs_done > 0);
            self.board.tell(LiveState { state: Activity::Idle, name, run: None, problem, result, ..last });
        }
    }

    /// Starts a campaign and listens until it ends; says what went wrong with it.
    fn carry_out(&self, job: Job) -> io::Result<Option<String>> {
        let Job { mut command, input, .. } = job;
        // Ctrl-C reaches the console alone, which closes the campaign's input.
        command.stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let mut child = command.spawn()?;
        // The command has an end of the pipe as long as it lives.
        drop(command);
        let errors = Errors::of(&mut child)?;
        if let Some(output) = child.stdout.take() {
            self.listen(output);
        }
        let status = child.wait()?;
        Ok(problem(status, &errors.last_lines()))
    }

    fn listen(&self, output: impl Read) {
        let mut lines = BufReader::new(output);
        while let Ok(Some(line)) = line_of(&mut lines, MAX_LIVE_BYTES) {
            if let Ok(state) = serde_json::from_slice::<LiveState>(&line) {
                // It goes on until its process has ended: after the last run it writes its report.
                let _wait_for_its_start = lock(&self.now);
                self.board.tell(LiveState { state: Activity::Running, ..state });
            }
        }
    }
}

/// A line of at most so many bytes, without its end; what is longer is cut into several. `None` at the end.
fn line_of(lines: &mut impl io::BufRead, max_bytes: u64) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    if lines.take(max_bytes).read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    line.pop_if(|last| *last == b'\n');
    Ok(Some(line))
}

/// The last lines of a campaign's errors, read by a thread of their own.
struct Errors {
    lines: Arc<Mutex<VecDeque<String>>>,
    thread: JoinHandle<()>,
}

impl Errors {
    fn of(child: &mut Child) -> io::Result<Self> {
        let lines = Arc::new(Mutex::new(VecDeque::new()));
        let (output, kept) = (child.stderr.take(), Arc::clone(&lines));
        let work = move || {
            let Some(mut output) = output.map(BufReader::new) else { return };
            while let Ok(Some(line)) = line_of(&mut output, MAX_LINE_BYTES) {
                let mut kept = lock(&kept);
                if kept.len() == MAX_LINES {
                    kept.pop_front();
                }
                kept.push_back(String::from_utf8_lossy(&line).into_owned());
            }
        };
        let thread = std::thread::Builder::new().name("pushlab-campaign-errors".into()).spawn(work)?;
        Ok(Self { lines, thread })
    }

    /// What was said. A process that a killed campaign has left behind may still have the pipe open; it is not waited
    /// for.
    fn last_lines(self) -> String {
        let deadline = Instant::now() + LAST_WORDS;
        while !self.thread.is_finished() && Instant::now() < deadline {
            std::thread::sleep(WATCH);
        }
        let lines = lock(&self.lines);
        lines.iter().map(String::as_str).collect::<Vec<_>>().join("\n")
    }
}

/// What to say of a campaign that ended like this; nothing of one that did its work or was interrupted.
fn problem(status: ExitStatus, said: &str) -> Option<String> {
    let code = status.code().and_then(|code| u8::try_from(code).ok()).and_then(ExitCode::from_number);
    let what = match code {
        Some(ExitCode::Ok | ExitCode::Interrupted) => return None,
        Some(code) => code.meaning().to_owned(),
        None => format!("The experiment's process ended with {status}; the runs that had ended are stored."),
    };
    Some(if said.is_empty() { what } else { format!("{what}\n{said}") })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What stands in them is replaced whole.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
