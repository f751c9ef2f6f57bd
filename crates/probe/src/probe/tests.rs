//! Against real processes: a shell and what it starts.

use super::*;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(20);

/// A shell that obeys lines and is killed at the end of the test.
struct Shell {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Shell {
    fn start() -> Self {
        let mut child = Command::new("sh").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, input, output }
    }

    /// Runs a command and returns the line it prints.
    fn run(&mut self, command: &str) -> String {
        writeln!(self.input, "{command}").unwrap();
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }

    fn probe(&self, config: ProbeConfig) -> Probe {
        Probe::new(self.child.id(), config).unwrap()
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn sample(probe: &mut Probe) -> Sample {
    probe.sample(monotonic_ns()).unwrap()
}

fn sample_until(probe: &mut Probe, wanted: impl Fn(&Sample) -> bool) -> Sample {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let found = sample(probe);
        if wanted(&found) {
            return found;
        }
        assert!(Instant::now() < deadline, "still {found:?}");
        std::thread::yield_now();
    }
}

#[test]
fn an_idle_process_has_plausible_figures() {
    let mut shell = Shell::start();
    assert_eq!(shell.run("echo ready"), "ready");
    let found = sample(&mut shell.probe(ProbeConfig::default()));
    assert_eq!((found.processes, found.threads), (1, 1));
    assert!(found.rss_bytes > 100_000 && found.rss_bytes < 100_000_000, "{found:?}");
    assert!(found.pss_bytes.unwrap() <= found.rss_bytes);
    assert!(found.descriptors.unwrap() >= 3);
    assert!(found.ctx_voluntary.is_some() && found.loopback.is_some());
    assert!(found.cpu_ns > 0);
    assert_eq!(found.tcp, None, "no ports were given");
}

#[test]
fn descendants_are_found_and_their_time_is_kept() {
    let mut shell = Shell::start();
    let mut probe = shell.probe(ProbeConfig::default());
    sample(&mut probe);
    // A subshell that starts a busy child and waits for it: three generations.
    shell.run("( sh -c 'while :; do :; done' & echo $! ; wait ) & sleep 0");
    let busy = sample_until(&mut probe, |found| found.processes >= 3 && found.cpu_ns > 300_000_000);
    assert!(busy.cpu_user_ns > 0);
    // The kill goes through the shell so that the loop dies with its parent waiting.
    let grandchild = probe.processes.iter().max_by_key(|process| process.account.times().total).unwrap().pid;
    shell.run(&format!("kill -9 {grandchild}; echo killed"));
    let after = sample_until(&mut probe, |found| found.processes == 1);
    assert!(after.cpu_ns >= busy.cpu_ns, "{} after {}", after.cpu_ns, busy.cpu_ns);
}

#[test]
fn children_between_two_samples_are_counted() {
    let mut shell = Shell::start();
    let mut probe = shell.probe(ProbeConfig::default());
    let before = sample(&mut probe);
    // The loop runs in a child that has been waited for before the next sample looks.
    shell.run("sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done'; echo done");
    let after = sample(&mut probe);
    let waited = probe.processes[0].stat.waited_user_ticks * probe.tick_ns;
    assert!(waited > 0, "the loop was too short to be seen");
    assert!(after.cpu_ns >= before.cpu_ns + waited, "{} ns of {waited}", after.cpu_ns - before.cpu_ns);
    assert!(after.cpu_user_ns >= before.cpu_user_ns + waited);
}

#[test]
fn an_orphan_stays_in_the_tree() {
    let mut shell = Shell::start();
    let mut probe = shell.probe(ProbeConfig::default());
    shell.run("sh -c 'sleep 1000 >/dev/null & exec sleep 1000 >/dev/null' & echo started");
    sample_until(&mut probe, |found| found.processes == 3);
    let pid = |probe: &Probe, wanted: &dyn Fn(u32) -> bool| {
        probe.processes.iter().find(|process| wanted(process.stat.ppid)).unwrap().pid
    };
    let middle = pid(&probe, &|parent| parent == probe.roots()[0]);
    let orphan = pid(&probe, &|parent| parent == middle);
    shell.run(&format!("kill -9 {middle}; wait {middle}; echo killed"));
    sample_until(&mut probe, |found| found.processes == 2);
    assert_eq!(probe.processes[1].pid, orphan);
    shell.run(&format!("kill -9 {orphan}; echo killed"));
    sample_until(&mut probe, |found| found.processes == 1);
}

#[test]
fn cpu_time_never_goes_back_when_threads_end() {
    // In a process of its own: what the children of other tests took is known less exactly once they have ended.
    const ALONE: &str = "PUSHLAB_PROBE_ALONE";
    if std::env::var_os(ALONE).is_none() {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "probe::tests::cpu_time_never_goes_back_when_threads_end"]).env(ALONE, "");
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains("1 passed"), "{said}");
        return;
    }
    let me = std::process::id();
    let mut probe = Probe::new(me, ProbeConfig { pss: false, ..ProbeConfig::default() }).unwrap();
    let mut last = sample(&mut probe).cpu_ns;
    for _ in 0..20 {
        let spin = std::thread::spawn(|| {
            let begun = pushlab_os::clock::thread_cpu_ns();
            while pushlab_os::clock::thread_cpu_ns() < begun + 5_000_000 {}
        });
        spin.join().unwrap();
        let now = sample(&mut probe).cpu_ns;
        // All of an ended thread's time is on the books.
        assert!(now >= last + 5_000_000, "{now} after {last}");
        last = now;
    }
}

#[test]
fn a_process_that_ends_is_gone_reaped_or_not() {
    let mut shell = Shell::start();
    let mut probe = shell.probe(ProbeConfig::default());
    sample(&mut probe);
    let pid = shell.child.id();
    shell.child.kill().unwrap();
    let deadline = Instant::now() + PATIENCE;
    // Nobody has waited: a zombie.
    loop {
        match probe.sample(monotonic_ns()) {
            Err(ProbeError::Gone { pid: gone }) => break assert_eq!(gone, pid),
            Err(error) => panic!("{error}"),
            Ok(_) => assert!(Instant::now() < deadline, "a killed process lives on"),
        }
    }
    assert!(matches!(Probe::new(pid, ProbeConfig::default()), Err(ProbeError::Gone { .. })));
    shell.child.wait().unwrap();
    assert!(matches!(probe.sample(monotonic_ns()), Err(ProbeError::Gone { .. })));
    assert!(matches!(Probe::new(pid, ProbeConfig::default()), Err(ProbeError::Gone { .. })));
}

#[test]
fn sockets_and_loopback_of_this_process() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let config = ProbeConfig { ports: vec![port], budget: 1.0, ..ProbeConfig::default() };
    let mut probe = Probe::new(std::process::id(), config).unwrap();
    let before = sample(&mut probe);
    assert_eq!(before.tcp.unwrap().listen, 1);
    let mut client = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
    let _server = listener.accept().unwrap();
    client.write_all(&[0; 5_000]).unwrap();
    let after = sample_until(&mut probe, |found| {
        found.tcp.is_some_and(|tcp| tcp.established == 1 && tcp.totals.unwrap().received_bytes == 5_000)
    });
    let bytes = |sample: &Sample| sample.loopback.unwrap().bytes;
    assert!(bytes(&after) >= bytes(&before) + 5_000);
    assert!(probe.costs().iter().any(|cost| cost.reader == Reader::Tcp && cost.reads >= 2 && cost.failure.is_none()));
}

#[test]
fn costly_readers_pause_and_cheap_ones_do_not() {
    // A clock that advances 3 ms at each look makes every reader cost 3 ms: at 2 % that is one in 150 ms.
    fn slow() -> u64 {
        static NOW: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
        NOW.fetch_add(3_000_000, std::sync::atomic::Ordering::Relaxed)
    }
    let config = ProbeConfig { clock: slow, pss: false, ..ProbeConfig::default() };
    let mut probe = Probe::new(std::process::id(), config).unwrap();
    let read: Vec<bool> = (0..7).map(|tick| probe.sample(tick * 50_000_000).unwrap().descriptors.is_some()).collect();
    assert_eq!(read, [true, false, false, true, false, false, true]);
    let costs = probe.costs();
    let period = |reader| costs.iter().find(|cost| cost.reader == reader).unwrap().period_ns;
    assert_eq!((period(Reader::Processes), period(Reader::Descriptors)), (0, 150_000_000));
}

#[test]
fn samples_survive_json() {
    let mut probe = Probe::new(std::process::id(), ProbeConfig::default()).unwrap();
    let found = sample(&mut probe);
    let json = serde_json::to_string(&found).unwrap();
    assert_eq!(serde_json::from_str::<Sample>(&json).unwrap(), found);
}
