//! What a subject says on its standard output: that it listens, and what its runtime tells of itself.

use pushlab_os::clock::monotonic_ns;
use pushlab_probe::runtime_log::RuntimeLog;
use std::io::{BufRead as _, BufReader, Read};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};

/// Most that is read of what a subject says before it is ready, bytes.
const MAX_READY_BYTES: usize = 1 << 20;
/// Longest line, bytes: what follows counts as another.
const MAX_LINE_BYTES: u64 = 64 << 10;

/// The output of one subject, read to its end by a thread: if nobody did, a subject that says much would block.
pub struct Output {
    log: Arc<Mutex<RuntimeLog>>,
}

impl Output {
    /// Reads from now on. The first line that says `listening` can be awaited; the sender is gone when there will be none.
    pub fn read(stdout: impl Read + Send + 'static, logs_collections: bool) -> (Self, Receiver<String>) {
        let log = Arc::new(Mutex::new(RuntimeLog::new(logs_collections)));
        let (sender, receiver) = mpsc::channel();
        let noted = log.clone();
        std::thread::spawn(move || listen(stdout, sender, &noted));
        (Self { log }, receiver)
    }

    /// What its runtime has told since this was asked last.
    pub fn runtime_log(&self) -> RuntimeLog {
        // No line is noted by halves.
        self.log.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

fn listen(stdout: impl Read, ready: Sender<String>, log: &Mutex<RuntimeLog>) {
    let (mut reader, mut line) = (BufReader::new(stdout), Vec::new());
    let (mut ready, mut unready_bytes) = (Some(ready), 0);
    // An error is the end: nothing else can be read after it.
    while reader.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
        let t_ns = monotonic_ns();
        let text = String::from_utf8_lossy(&line);
        unready_bytes += line.len();
        match ready.take() {
            // Nobody listens any more after the timeout.
            Some(sender) if text.contains("listening") => drop(sender.send(text.clone().into_owned())),
            waiting => ready = waiting.filter(|_| unready_bytes < MAX_READY_BYTES),
        }
        log.lock().unwrap_or_else(PoisonError::into_inner).note(&text, t_ns);
        line.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;
    use std::sync::mpsc::RecvTimeoutError;
    use std::time::Duration;

    const PATIENCE: Duration = Duration::from_secs(60);

    #[test]
    fn the_ready_line_is_found_among_others_and_collections_before_and_after_it_are_noted() {
        let text = "GC(0) Pause Young (Allocation Failure) 31M->2M(123M) 4.876ms\nhello\n\
                    {\"listening\":\"127.0.0.1:1\"}\nGC(1) Pause Full (System.gc()) 10M->4M(128M) 12.345ms\n\
                    still listening, \u{fffd}\nevent-loop lag of a timer of 50 ms: 1 2\n";
        let mut bytes = text.as_bytes().to_vec();
        bytes.extend_from_slice(b"\xff\xfe no text\n");
        let (output, ready) = Output::read(Cursor::new(bytes), true);
        assert_eq!(ready.recv_timeout(PATIENCE).unwrap(), "{\"listening\":\"127.0.0.1:1\"}\n");
        assert_eq!(ready.recv_timeout(PATIENCE), Err(RecvTimeoutError::Disconnected));
        let deadline = std::time::Instant::now() + PATIENCE;
        let (mut collections, mut lags) = (0, 0);
        while (collections, lags) != (2, 2) && std::time::Instant::now() < deadline {
            let log = output.runtime_log();
            collections += log.collections.unwrap().len();
            lags += log.lags.len();
        }
        assert_eq!((collections, lags), (2, 2));
    }

    #[test]
    fn one_that_says_much_and_never_that_it_listens_is_read_to_its_end_and_not_kept() {
        let many = std::io::repeat(b'x').take(3 * MAX_READY_BYTES as u64);
        let (output, ready) = Output::read(many, false);
        assert_eq!(ready.recv_timeout(PATIENCE), Err(RecvTimeoutError::Disconnected));
        assert_eq!(output.runtime_log(), RuntimeLog::default());
    }
}
