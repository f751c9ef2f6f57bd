//! Files of `/proc`, kept open and read in place, and their formats (proc(5)).

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Bytes read in one call: more than any single-record file of `/proc` holds.
const CHUNK_BYTES: usize = 4096;

/// A file of `/proc` that stays open.
///
/// Reading at offset 0 makes the kernel compute the contents again, at half the cost of opening the file each time.
/// A file of a process keeps belonging to that process: once it is reaped, reads fail with `ESRCH`, even when its
/// number has been given to another process.
#[derive(Debug)]
pub(crate) struct ProcFile(File);

impl ProcFile {
    pub(crate) fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        File::open(path).map(Self)
    }

    /// The contents, which must fit one chunk; for single-record files, where a second read would only find the end.
    pub(crate) fn read_record<'b>(&self, buffer: &'b mut Vec<u8>) -> io::Result<&'b [u8]> {
        buffer.resize(CHUNK_BYTES, 0);
        let length = self.0.read_at(buffer, 0)?;
        Ok(&buffer[..length])
    }

    /// All the contents, whatever their length.
    pub(crate) fn read_all<'b>(&self, buffer: &'b mut Vec<u8>) -> io::Result<&'b [u8]> {
        let mut length = 0;
        loop {
            buffer.resize(length + CHUNK_BYTES, 0);
            match self.0.read_at(&mut buffer[length..], length as u64)? {
                0 => return Ok(&buffer[..length]),
                read => length += read,
            }
        }
    }
}

/// Whether an error of reading a file of a process means that the process has ended.
pub(crate) fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(pushlab_os::Errno::SRCH.raw_os_error())
}

/// What is used of `/proc/PID/stat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stat {
    /// `R`, `S`, `D`, `Z`, …
    pub(crate) state: u8,
    pub(crate) ppid: u32,
    /// CPU times in ticks of the process and of the children it has waited for.
    pub(crate) user_ticks: u64,
    pub(crate) system_ticks: u64,
    pub(crate) waited_user_ticks: u64,
    pub(crate) waited_system_ticks: u64,
    pub(crate) threads: u32,
}

impl Stat {
    /// The name (second field) may hold blanks and parentheses, so the fields begin after the last `)`.
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        let name_end = text.iter().rposition(|byte| *byte == b')')?;
        let mut fields = std::str::from_utf8(&text[name_end + 1..]).ok()?.split_ascii_whitespace();
        let state = *fields.next()?.as_bytes().first()?;
        let ppid = fields.next()?.parse().ok()?;
        // Fields 5 to 13: pgrp to cmajflt.
        let mut ticks = fields.skip(9);
        let mut number = || ticks.next()?.parse::<u64>().ok();
        let (user_ticks, system_ticks) = (number()?, number()?);
        let (waited_user_ticks, waited_system_ticks) = (number()?, number()?);
        // Fields 18 and 19, priority and nice, may be negative.
        let threads = ticks.nth(2)?.parse().ok()?;
        Some(Self { state, ppid, user_ticks, system_ticks, waited_user_ticks, waited_system_ticks, threads })
    }

    /// Ended, waiting to be reaped. A main thread that has ended before its siblings also shows `Z`, but then there
    /// is more than one thread.
    pub(crate) fn is_dead(&self) -> bool {
        matches!(self.state, b'Z' | b'X' | b'x') && self.threads <= 1
    }
}

/// Resident pages: the second field of `/proc/PID/statm`.
///
/// Not field 24 of `stat`, which since Linux 6.2 lacks what sits in per-CPU counters (proc(5) calls it inaccurate).
pub(crate) fn resident_pages(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// Received octets and packets of an interface from `/proc/net/dev`.
pub(crate) fn interface_received(text: &[u8], name: &str) -> Option<(u64, u64)> {
    let line = std::str::from_utf8(text).ok()?.lines().find_map(|line| {
        let (found, rest) = line.split_once(':')?;
        (found.trim() == name).then_some(rest)
    })?;
    let mut fields = line.split_ascii_whitespace();
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

/// The number after `name:` in a file of `name: value` lines, e.g. `smaps_rollup` (kB), `status`, `meminfo` (kB).
pub(crate) fn labelled(text: &[u8], name: &str) -> Option<u64> {
    text.split(|byte| *byte == b'\n').find_map(|line| {
        let rest = line.strip_prefix(name.as_bytes())?.strip_prefix(b":")?;
        std::str::from_utf8(rest).ok()?.split_ascii_whitespace().next()?.parse().ok()
    })
}

/// The last process number given out: the fifth field of `/proc/loadavg`. Unchanged means that nothing was forked.
pub(crate) fn last_pid(text: &[u8]) -> Option<u32> {
    std::str::from_utf8(text).ok()?.split_ascii_whitespace().nth(4)?.parse().ok()
}

/// Calls `each` with every entry of a directory whose name is a number: processes, threads or descriptors.
pub(crate) fn numbered_entries(path: impl AsRef<Path>, mut each: impl FnMut(u32)) -> io::Result<()> {
    for entry in std::fs::read_dir(path)? {
        if let Some(number) = entry?.file_name().to_str().and_then(|name| name.parse().ok()) {
            each(number);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &[u8] = b"4904 (a (b) c) S 4892 4892 2589 0 -1 4194304 100 0 0 0 7 8 9 10 20 -5 3 0 130550 3133440 379 18446744073709551615 9 9 9 0\n";

    #[test]
    fn stat_with_an_awkward_name() {
        let stat = Stat::parse(STAT).unwrap();
        assert_eq!((stat.state, stat.ppid, stat.threads), (b'S', 4892, 3));
        assert_eq!((stat.user_ticks, stat.system_ticks), (7, 8));
        assert_eq!((stat.waited_user_ticks, stat.waited_system_ticks), (9, 10));
        assert!(!stat.is_dead());
    }

    #[test]
    fn cut_off_files_parse_to_nothing() {
        for length in 0..STAT.len() {
            let _ = Stat::parse(&STAT[..length]);
        }
        assert_eq!(Stat::parse(b"1 (x) S"), None);
        assert_eq!(resident_pages(b"12"), None);
        assert_eq!(resident_pages(b"12 34 5\n"), Some(34));
        assert_eq!(last_pid(b"0.69 0.48 0.19 1/80 4904\n"), Some(4904));
        assert_eq!(last_pid(b"0.69"), None);
    }

    #[test]
    fn only_a_dead_process_is_dead() {
        let mut stat = Stat::parse(STAT).unwrap();
        stat.state = b'Z';
        assert!(!stat.is_dead(), "other threads live");
        stat.threads = 1;
        assert!(stat.is_dead());
    }

    #[test]
    fn labelled_lines() {
        let text = b"Rss:  12 kB\nPss:   34 kB\nPss_Anon: 5 kB\n";
        assert_eq!(labelled(text, "Pss"), Some(34));
        assert_eq!(labelled(text, "Swap"), None);
    }

    #[test]
    fn interfaces() {
        let text = b"Inter-|   Receive\n face |bytes packets\n    lo:    3193      29    0\n  eth0: 4934 140 0\n";
        assert_eq!(interface_received(text, "lo"), Some((3193, 29)));
        assert_eq!(interface_received(text, "eth"), None);
    }

    #[test]
    fn an_open_file_is_read_anew() {
        let file = ProcFile::open("/proc/uptime").unwrap();
        let mut buffer = Vec::new();
        let first = file.read_record(&mut buffer).unwrap().to_vec();
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while file.read_record(&mut buffer).unwrap() == first {
            assert!(std::time::Instant::now() < deadline, "uptime stands still");
        }
        let whole = ProcFile::open("/proc/self/smaps").unwrap().read_all(&mut buffer).unwrap().len();
        assert!(whole > CHUNK_BYTES, "longer than a chunk: {whole}");
    }
}
