//! What a server's runtime says of itself on standard output: its garbage collections, the lag of its event loop, and its
//! memory by kind.
//!
//! V8 (`--trace-gc`) and HotSpot (`-Xlog:gc`) write a line for each collection when it is over. What they call its time
//! counts from their own start, with a precision of 1 ms at best; the instant at which the line is read is as good and
//! needs no second clock. Lag is told by servers that have a timer for it, once a second for all times since; memory by
//! those that ask their runtime for it at an interval.

use serde::{Deserialize, Serialize};

/// Most entries of each kind that are kept: collections take 32 MiB then, lags 16 MiB, readings of memory 40 MiB.
const MAX_ENTRIES: usize = 1 << 20;
/// Most lags that follow from one line.
const MAX_LAGS_OF_LINE: usize = 1 << 16;
/// Longest time that a line can tell, ms: a day.
const MAX_MS: f64 = 86_400_000.0;
/// How a line about the event loop begins; the timer's interval, ` ms: ` and its lags in ms follow.
const LAG: &str = "event-loop lag of a timer of ";
/// How a line about memory begins.
const MEMORY: &str = "memory usage: ";

/// A garbage collection, or the part of one, that stopped the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Collection {
    /// When it was over, monotonic clock of the host, ns.
    pub t_ns: u64,
    /// How long the program stood still for it, ns.
    pub pause_ns: u64,
    /// How long the program stood still before that, in the many short steps in which this collection was prepared, ns.
    pub steps_ns: u64,
    /// What of the heap was collected.
    pub kind: CollectionKind,
}

/// What of the heap a collection looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "u8", from = "u8")]
pub enum CollectionKind {
    /// Young objects, and with G1 some of the old.
    Young,
    /// All of it.
    Full,
    /// A pause of a collection that otherwise goes on beside the program.
    Part,
}

impl From<CollectionKind> for u8 {
    fn from(kind: CollectionKind) -> Self {
        match kind {
            CollectionKind::Young => 0,
            CollectionKind::Full => 1,
            CollectionKind::Part => 2,
        }
    }
}

impl From<u8> for CollectionKind {
    fn from(number: u8) -> Self {
        match number {
            0 => Self::Young,
            1 => Self::Full,
            _ => Self::Part,
        }
    }
}

/// How long the event loop let something wait that was due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoopLag {
    /// When it was due, monotonic clock of the host, ns.
    pub t_ns: u64,
    /// How long it waited, ns.
    pub lag_ns: u64,
}

/// Memory of the program as its runtime divides it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryUsage {
    /// When it was told, monotonic clock of the host, ns.
    pub t_ns: u64,
    /// What objects take in the heap, those that nobody needs any more included, bytes.
    pub heap_used_bytes: u64,
    /// The whole heap, bytes.
    pub heap_total_bytes: u64,
    /// What objects of the heap hold outside it, such as buffers, bytes; `None` where the runtime does not tell.
    pub external_bytes: Option<u64>,
}

/// All that a runtime has said.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct RuntimeLog {
    /// Its collections; `None` where it was not asked to tell of them.
    pub collections: Option<Vec<Collection>>,
    /// Lag of its event loop, where it tells that.
    pub lags: Vec<LoopLag>,
    /// Its memory by kind, where it tells that.
    pub memory: Vec<MemoryUsage>,
}

impl RuntimeLog {
    /// An empty one.
    pub fn new(logs_collections: bool) -> Self {
        Self { collections: logs_collections.then(Vec::new), ..Self::default() }
    }

    /// Notes a line that arrived at `t_ns`; one that says something else is left out.
    pub fn note(&mut self, line: &str, t_ns: u64) {
        let collections = self.collections.as_mut().filter(|known| known.len() < MAX_ENTRIES);
        if let Some(collections) = collections {
            collections.extend(of_v8(line, t_ns).or_else(|| of_hotspot(line, t_ns)));
        }
        let room = MAX_ENTRIES.saturating_sub(self.lags.len());
        self.lags.extend(lags(line, t_ns).unwrap_or_default().into_iter().take(room));
        if self.memory.len() < MAX_ENTRIES {
            self.memory.extend(memory(line, t_ns));
        }
    }

    /// Adds what the runtime of the process says that came in the place of this one.
    pub fn extend(&mut self, later: Self) {
        match &mut self.collections {
            Some(collections) => collections.extend(later.collections.unwrap_or_default()),
            None => self.collections = later.collections,
        }
        self.lags.extend(later.lags);
        self.memory.extend(later.memory);
    }

    /// What was noted so far; it is not kept.
    pub fn take(&mut self) -> Self {
        let empty = Self::new(self.collections.is_some());
        std::mem::replace(self, empty)
    }
}

fn ns_of_ms(text: &str) -> Option<u64> {
    let ms: f64 = text.trim().parse().ok()?;
    (0.0..=MAX_MS).contains(&ms).then(|| (ms * 1e6).round() as u64)
}

/// `[6218:0x10291f000]  1084810 ms: Mark-sweep 351.9 (356.0) -> 83.6 (129.3) MB, 1048.0 / 925.8 ms  (+ 3.4 ms in 19
/// steps since start of marking, …) …`, and the like of versions back to that of Node.js 0.10.
///
/// Two times are the pause and what callbacks took of it: until V8 4 they came the other way round (`GCTracer` in V8's
/// `src/heap/gc-tracer.cc`, in older versions `src/heap.cc`), so that the pause is the longer one in any version.
/// Scavenges repeat the steps of a marking that has not ended yet, so steps count with the collection that they prepare.
fn of_v8(line: &str, t_ns: u64) -> Option<Collection> {
    let (_, rest) = line.trim_start().strip_prefix('[')?.split_once(']')?;
    let (since_start, rest) = rest.split_once(" ms: ")?;
    ns_of_ms(since_start)?;
    let kind = match rest.trim_start() {
        rest if rest.starts_with("Scavenge") || rest.starts_with("Minor ") => CollectionKind::Young,
        rest if rest.starts_with("Mark-") => CollectionKind::Full,
        _ => return None,
    };
    let (_, times) = rest.rsplit_once(" MB, ")?;
    let (pause, rest) = times.split_once(" ms")?;
    let pauses: Vec<u64> = pause.split('/').map(ns_of_ms).collect::<Option<_>>()?;
    let steps_ns = if kind == CollectionKind::Full { steps_of_v8(rest) } else { None };
    Some(Collection { t_ns, pause_ns: pauses.into_iter().max()?, steps_ns: steps_ns.unwrap_or(0), kind })
}

/// Of ` (+ 19.3 ms in 105 steps since start of marking, biggest step 1.7 ms)`. The newest versions give a time without
/// any step where threads of their own have marked: the program did not stand still then.
fn steps_of_v8(text: &str) -> Option<u64> {
    let (time, rest) = text.trim_start().strip_prefix("(+ ")?.split_once(" ms in ")?;
    let (count, _) = rest.split_once(" steps")?;
    (count.parse::<u64>().ok()? > 0).then(|| ns_of_ms(time))?
}

/// `[0.512s][info][gc] GC(0) Pause Young (Allocation Failure) 31M->2M(123M) 4.876ms`, with any decorations or none.
fn of_hotspot(line: &str, t_ns: u64) -> Option<Collection> {
    let (_, rest) = line.split_once("GC(")?;
    let (number, rest) = rest.split_once(") Pause ")?;
    number.parse::<u64>().ok()?;
    let kind = match rest {
        rest if rest.starts_with("Young") => CollectionKind::Young,
        rest if rest.starts_with("Full") => CollectionKind::Full,
        _ => CollectionKind::Part,
    };
    let pause_ns = ns_of_ms(rest.trim_end().rsplit(' ').next()?.strip_suffix("ms")?)?;
    Some(Collection { t_ns, pause_ns, steps_ns: 0, kind })
}

/// `event-loop lag of a timer of 50 ms: 0.1 0 120.4`: each is how late the timer was, set again each time that it came.
///
/// One that was late by many intervals kept everything waiting that became due meanwhile: those lags are added, or a
/// loop that is blocked for five seconds would count once and one that is not a hundred times.
fn lags(line: &str, t_ns: u64) -> Option<Vec<LoopLag>> {
    let (interval, lags) = line.trim_end().strip_prefix(LAG)?.split_once(" ms: ")?;
    let interval_ns = ns_of_ms(interval).filter(|interval| *interval > 0)?;
    let lags: Vec<u64> = lags.split_whitespace().map(ns_of_ms).collect::<Option<_>>()?;
    let (mut came_ns, mut found) = (t_ns, Vec::new());
    for &lag_ns in lags.iter().rev() {
        let due_ns = came_ns.saturating_sub(lag_ns);
        let waited = (0..=lag_ns / interval_ns).rev().map(|later| later * interval_ns);
        let room = MAX_LAGS_OF_LINE.saturating_sub(found.len());
        found.extend(waited.take(room).map(|later| LoopLag { t_ns: due_ns + later, lag_ns: lag_ns - later }));
        came_ns = due_ns.saturating_sub(interval_ns);
    }
    found.reverse();
    Some(found)
}

/// `memory usage: heap used 5210432, heap total 8654848, external 18231`, in bytes; the last may be missing.
fn memory(line: &str, t_ns: u64) -> Option<MemoryUsage> {
    let mut parts = line.trim_end().strip_prefix(MEMORY)?.split(", ");
    let mut bytes = |name: &str| parts.next().map(|part| part.strip_prefix(name)?.strip_prefix(' ')?.parse().ok());
    let heap_used_bytes = bytes("heap used")??;
    let heap_total_bytes = bytes("heap total")??;
    let external_bytes = match bytes("external") {
        Some(told) => Some(told?),
        None => None,
    };
    Some(MemoryUsage { t_ns, heap_used_bytes, heap_total_bytes, external_bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Kind, pause and steps of what a line tells, µs.
    fn told(line: &str) -> Option<(CollectionKind, u64, u64)> {
        let mut log = RuntimeLog::new(true);
        log.note(line, 7);
        assert!(log.lags.is_empty(), "{line}");
        let collections = log.collections.unwrap();
        assert!(collections.iter().all(|one| one.t_ns == 7) && collections.len() < 2, "{line}");
        collections.first().map(|one| (one.kind, one.pause_ns / 1_000, one.steps_ns / 1_000))
    }

    #[test]
    fn lines_of_v8_are_read_in_all_their_forms() {
        use CollectionKind::{Full, Young};
        for (line, expected) in [
            // Node.js 0.10.35, 0.12.18 and 20.20.2, as each wrote them.
            (
                "[17149]       81 ms: Scavenge 2.2 (35.0) -> 2.0 (36.0) MB, 1 ms [Runtime::PerformGC].",
                (Young, 1_000, 0),
            ),
            (
                "[17149]      186 ms: Mark-sweep 10.8 (41.0) -> 8.8 (43.0) MB, 16 ms [Runtime::PerformGC] [promotion limit \
                 reached].",
                (Full, 16_000, 0),
            ),
            (
                "[17157]      106 ms: Scavenge 2.0 (37.5) -> 1.7 (37.5) MB, 1.4 ms [allocation failure].",
                (Young, 1_400, 0),
            ),
            (
                "[17157]      417 ms: Mark-sweep 21.4 (55.8) -> 19.2 (56.8) MB, 12.0 ms (+ 53.7 ms in 102 steps since start \
                 of marking, biggest step 12.0 ms) [GC interrupt] [GC in old space requested].",
                (Full, 12_000, 53_700),
            ),
            (
                "[17166:0xcc89400]       35 ms: Scavenge 3.8 (4.0) -> 3.6 (5.0) MB, 2.67 / 0.00 ms  (average mu = 1.000, \
                 current mu = 1.000) allocation failure; ",
                (Young, 2_670, 0),
            ),
            (
                "[17166:0xcc89400]      404 ms: Mark-Compact 64.7 (85.2) -> 7.3 (42.3) MB, 9.77 / 0.00 ms  (+ 6.4 ms in 15 \
                 steps since start of marking, biggest step 3.8 ms, walltime since start of marking 31 ms) (average mu = \
                 1.000, current mu = 1.000) finalize incremental marking via task; GC in old space requested",
                (Full, 9_770, 6_400),
            ),
            // What callbacks took: before the pause in old versions, behind it in later ones.
            (
                "[24851]      927 ms: Scavenge 28.7 (58.2) -> 22.4 (59.2) MB, 5 / 7 ms (+ 2.5 ms in 7 steps since last GC).",
                (Young, 7_000, 0),
            ),
            (
                "[6218:0x10291f000]  1084810 ms: Mark-sweep 351.9 (356.0) -> 83.6 (129.3) MB, 1048.0 / 925.8 ms  (+ 3.4 ms \
                 in 19 steps since start of marking, biggest step 1.1 ms, walltime since start of marking 1133 ms) \
                 (average mu = 0.990, current mu = 0.990) finalize incremental marking via task GC in old space requested",
                (Full, 1_048_000, 3_400),
            ),
            // Node.js 24.
            (
                "[2560:0x5f0f]   176622 ms: Mark-Compact (reduce) 15.2 (34.7) -> 14.5 (16.2) MB, pooled: 0 MB, 88.08 / 0.40 \
                 ms  (+ 36.1 ms in 0 steps since start of marking, biggest step 0.0 ms, walltime since start of marking 111 \
                 ms) (average mu = 0.648, current mu = 0.4) testing;",
                (Full, 88_080, 0),
            ),
        ] {
            assert_eq!(told(line), Some(expected), "{line}");
        }
    }

    #[test]
    fn lines_of_hotspot_are_read_with_decorations_and_without() {
        use CollectionKind::{Full, Part, Young};
        for (line, expected) in [
            // JDK 17 with the serial collector, G1 and the parallel one, as each wrote them.
            ("GC(0) Pause Young (Allocation Failure) 26M->9M(96M) 55.257ms", (Young, 55_257, 0)),
            ("GC(17) Pause Full (System.gc()) 69M->26M(96M) 92.486ms\n", (Full, 92_486, 0)),
            ("GC(0) Pause Young (Normal) (G1 Evacuation Pause) 6M->3M(100M) 21.004ms", (Young, 21_004, 0)),
            ("GC(28) Pause Young (System.gc()) 51M->50M(88M) 17.752ms", (Young, 17_752, 0)),
            ("[0.512s][info][gc] GC(0) Pause Young (Allocation Failure) 31M->2M(123M) 4.876ms", (Young, 4_876, 0)),
            ("GC(12) Pause Remark 20M->20M(256M) 1.500ms", (Part, 1_500, 0)),
        ] {
            assert_eq!(told(line), Some(expected), "{line}");
        }
    }

    #[test]
    fn anything_else_is_left_out() {
        for line in [
            "",
            "{\"listening\":\"127.0.0.1:8000\"}",
            "[17157] Marking speed increased to 3",
            "[24851] Speed up marking because marker was not keeping up",
            "[24851] 852 ms: Scavenge 26.8 (57.2) -> 20.8 (58.2) MB, soon ms",
            "[24851] 852 ms: Scavenge 26.8 (57.2) -> 20.8 (58.2) MB, -3.1 ms",
            "[24851] 852 ms: Scavenge 26.8 (57.2) -> 20.8 (58.2) MB, NaN ms",
            "[24851] 852 ms: Scavenge 26.8 (57.2) -> 20.8 (58.2) MB",
            "[24851] then ms: Scavenge 26.8 (57.2) -> 20.8 (58.2) MB, 3.1 ms",
            "[info][gc,start] GC(0) Pause Young (Allocation Failure)",
            "GC(85) Concurrent Mark Cycle 83.497ms",
            "Using Serial",
            "event-loop lag of a timer of 0 ms: 1",
            "event-loop lag of a timer of 50 ms: much",
        ] {
            assert_eq!(told(line), None, "{line}");
        }
        let mut unasked = RuntimeLog::new(false);
        unasked.note("GC(9) Pause Full (System.gc()) 10M->4M(128M) 12.345ms", 7);
        assert_eq!(unasked, RuntimeLog::default());
    }

    #[test]
    fn what_became_due_while_the_loop_was_blocked_has_waited_too() {
        let mut log = RuntimeLog::new(false);
        log.note("event-loop lag of a timer of 50 ms: 1 120 0\n", 1_000 * MS);
        // The last came when it was due, at 1,000; the one before at 950, due at 830; the first at 780, due at 779.
        let found: Vec<(u64, u64)> = log.lags.iter().map(|lag| (lag.t_ns / MS, lag.lag_ns / MS)).collect();
        assert_eq!(found, [(779, 1), (830, 120), (880, 70), (930, 20), (1_000, 0)]);
        assert_eq!(log.take().lags.len(), 5);
        assert_eq!(log, RuntimeLog::new(false));
        log.note("event-loop lag of a timer of 0.001 ms: 80000000", u64::MAX);
        assert_eq!(log.lags.len(), MAX_LAGS_OF_LINE, "a line that lies takes no more than this");
    }

    #[test]
    fn memory_is_told_by_kind_and_without_what_old_versions_do_not_know() {
        let told = |line: &str| {
            let mut log = RuntimeLog::new(false);
            log.note(line, 7);
            assert!(log.lags.is_empty() && log.memory.len() < 2, "{line}");
            log.memory.first().map(|one| (one.t_ns, one.heap_used_bytes, one.heap_total_bytes, one.external_bytes))
        };
        let line = "memory usage: heap used 5210432, heap total 8654848, external 18231\n";
        assert_eq!(told(line), Some((7, 5_210_432, 8_654_848, Some(18_231))));
        assert_eq!(told("memory usage: heap used 1, heap total 2"), Some((7, 1, 2, None)));
        for other in [
            "memory usage: heap used 1",
            "memory usage: heap used 1, external 2",
            "memory usage: heap used 1, heap total 2, external undefined",
            "memory usage: heap used -1, heap total 2",
            "memory usage: heap used 1.5, heap total 2",
            "about memory usage: heap used 1, heap total 2",
        ] {
            assert_eq!(told(other), None, "{other}");
        }
        let mut log = RuntimeLog::new(false);
        log.note(line, 7);
        let mut later = log.take();
        later.note(line, 9);
        log.extend(later);
        assert_eq!(log.memory.iter().map(|one| one.t_ns).collect::<Vec<_>>(), [7, 9]);
    }

    #[test]
    fn no_more_is_kept_than_there_is_room_for() {
        let mut log = RuntimeLog::new(true);
        for _ in 0..20 {
            log.note("event-loop lag of a timer of 0.001 ms: 80000000", u64::MAX);
        }
        assert_eq!(log.lags.len(), MAX_ENTRIES);
        let line = "GC(9) Pause Full (System.gc()) 10M->4M(128M) 12.345ms";
        (0..=MAX_ENTRIES).for_each(|_| log.note(line, 7));
        (0..=MAX_ENTRIES).for_each(|_| log.note("memory usage: heap used 1, heap total 2", 7));
        assert_eq!(log.memory.len(), MAX_ENTRIES);
        assert_eq!(log.collections.map(|all| all.len()), Some(MAX_ENTRIES));
    }
}
