//! One process of the tree, its files kept open.

use crate::cpu::Account;
use crate::descriptors::FdDir;
use crate::procfs::{ProcFile, Stat, is_gone, resident_pages};
use crate::switches::Switches;
use pushlab_os::clock::CpuClock;
use std::io;

/// Three descriptors, and some hundred bytes.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    pub(crate) stat: Stat,
    pub(crate) account: Account,
    pub(crate) rss_pages: u64,
    pub(crate) descriptors: FdDir,
    pub(crate) switches: Switches,
    stat_file: ProcFile,
    statm_file: ProcFile,
    clock: Option<CpuClock>,
}

/// What a reading found.
pub(crate) enum Life {
    Alive,
    /// Ended, not yet reaped: its CPU time can be read, its memory is gone.
    Zombie,
    Gone,
}

impl Process {
    /// Opens the files of a process and reads it once.
    ///
    /// # Errors
    /// What the kernel says; `InvalidData` when a file is not in the format of proc(5).
    pub(crate) fn open(pid: u32, tick_ns: u64, buffer: &mut Vec<u8>) -> io::Result<Self> {
        let stat_file = ProcFile::open(format!("/proc/{pid}/stat"))?;
        let statm_file = ProcFile::open(format!("/proc/{pid}/statm"))?;
        let stat = Stat::parse(stat_file.read_record(buffer)?).ok_or(io::ErrorKind::InvalidData)?;
        let mut process = Self {
            pid,
            stat,
            account: Account::default(),
            rss_pages: 0,
            descriptors: FdDir::open(pid),
            switches: Switches::default(),
            stat_file,
            statm_file,
            clock: CpuClock::of_process(pid).ok(),
        };
        process.read(tick_ns, buffer)?;
        Ok(process)
    }

    /// Reads CPU, memory and threads.
    ///
    /// # Errors
    /// As [`Process::open`], except that a process which has ended is [`Life::Gone`].
    pub(crate) fn read(&mut self, tick_ns: u64, buffer: &mut Vec<u8>) -> io::Result<Life> {
        // The clock first: it goes by number, and the stat file, which goes by process, then vouches that the number
        // had not been given to another.
        let clock_ns = self.clock.and_then(CpuClock::read_ns);
        let text = match self.stat_file.read_record(buffer) {
            Ok(text) => text,
            Err(error) if is_gone(&error) => return Ok(Life::Gone),
            Err(error) => return Err(error),
        };
        self.stat = Stat::parse(text).ok_or(io::ErrorKind::InvalidData)?;
        self.account.update(&self.stat, clock_ns, tick_ns);
        if self.stat.is_dead() {
            self.rss_pages = 0;
            return Ok(Life::Zombie);
        }
        match self.statm_file.read_record(buffer) {
            Ok(text) => self.rss_pages = resident_pages(text).ok_or(io::ErrorKind::InvalidData)?,
            Err(error) if is_gone(&error) => return Ok(Life::Gone),
            Err(error) => return Err(error),
        }
        Ok(Life::Alive)
    }

    /// Asks again whether the process has ended, for a reader that failed on it.
    pub(crate) fn has_ended(&self, buffer: &mut Vec<u8>) -> bool {
        self.stat_file.read_record(buffer).ok().and_then(Stat::parse).is_none_or(|stat| stat.is_dead())
    }
}
