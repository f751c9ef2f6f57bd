//! The ring: many sends in one system call. The server's only `unsafe` is in this file; docs/decisions/0026-io-uring.md
//! has the reasons.

#![allow(unsafe_code)]

use super::send::{MAX_SENDS, Outcome, Send};
use io_uring::{EnterFlags, IoUring, opcode, types};
use pushlab_os::Errno;
use pushlab_os::socket::SEND_AT_ONCE;
use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd};

/// Bytes of one send; the kernel takes a little more (`MAX_RW_COUNT`).
const MAX_SEND_BYTES: usize = 1 << 30;
/// System calls in a row that bring nothing forward, after which the ring counts as broken.
const MAX_IDLE_CALLS: u32 = 16;

/// A socket as the ring knows it.
pub enum Target<'s> {
    /// By its place in the table of registered files.
    Registered(u32),
    /// By its descriptor.
    Plain(BorrowedFd<'s>),
}

/// A ring of which nothing is under way between two calls: [`Ring::send`] waits for all that it has begun.
pub struct Ring {
    ring: IoUring,
    /// For tests: the next call hands so many sends to the kernel and then fails.
    pub breaks_after: Option<u32>,
}

impl Ring {
    /// Makes one, of about 100 KiB in the kernel.
    pub fn new() -> io::Result<Self> {
        let entries = MAX_SENDS as u32;
        let ring = match IoUring::builder().setup_submit_all().build(entries) {
            // Before Linux 5.18 there is no such flag: what stands behind a send that was refused takes another call.
            Err(error) if error.raw_os_error() == Some(Errno::INVAL.raw_os_error()) => IoUring::new(entries)?,
            made => made?,
        };
        Ok(Self { ring, breaks_after: None })
    }

    /// Sends to each socket what stands behind its place in `bytes`, and waits for what became of each. A socket may
    /// stand there once.
    ///
    /// # Errors
    /// Those of the ring, which must not be used any more then. Sends that never reached the kernel are
    /// [`Outcome::Left`].
    pub fn send<'s>(
        &mut self,
        bytes: &[u8],
        sends: &mut [Send],
        target: impl Fn(&Send) -> Target<'s>,
    ) -> io::Result<()> {
        let mut queue = self.ring.submission();
        for (nth, send) in sends.iter().enumerate() {
            let rest = &bytes[send.from..];
            let (start, len) = (rest.as_ptr(), rest.len().min(MAX_SEND_BYTES) as u32);
            let entry = match target(send) {
                Target::Registered(slot) => opcode::Send::new(types::Fixed(slot), start, len),
                Target::Plain(socket) => opcode::Send::new(types::Fd(socket.as_raw_fd()), start, len),
            };
            let entry = entry.flags(SEND_AT_ONCE).build().user_data(nth as u64);
            // SAFETY: `bytes` is borrowed until this function returns, which waits for every send that the kernel has
            // taken. Where waiting fails, a send with `MSG_DONTWAIT` has ended in the call that took it, and the ring
            // is given up, so that the kernel never takes the rest.
            if unsafe { queue.push(&entry) }.is_err() {
                return Err(io::Error::other("more sends than the ring holds"));
            }
        }
        drop(queue);
        self.complete(sends)
    }

    /// Has the kernel take what is in the ring, and collects what became of it.
    fn complete(&mut self, sends: &mut [Send]) -> io::Result<()> {
        let mut ended = 0;
        let mut idle_calls = 0;
        while ended < sends.len() {
            let entered = self.enter(sends.len() - ended);
            let before = ended;
            self.collect(sends, &mut ended);
            idle_calls = if ended > before { 0 } else { idle_calls + 1 };
            match entered {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => {
                    return Err(self.give_up(sends, ended, error));
                }
                _ if idle_calls > MAX_IDLE_CALLS => {
                    return Err(self.give_up(sends, ended, io::Error::other("the ring stands still")));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn enter(&mut self, want: usize) -> io::Result<usize> {
        if let Some(room) = self.breaks_after.take() {
            // SAFETY: there is no argument that could be wrong.
            unsafe { self.ring.submitter().enter::<()>(room, 0, 0, None) }?;
            return Err(io::Error::from_raw_os_error(Errno::BUSY.raw_os_error()));
        }
        self.ring.submit_and_wait(want)
    }

    fn collect(&mut self, sends: &mut [Send], ended: &mut usize) {
        for entry in self.ring.completion() {
            let Some(send) = sends.get_mut(entry.user_data() as usize) else { continue };
            send.outcome = outcome(entry.result());
            *ended += 1;
        }
    }

    /// Tells apart what the kernel has taken, and must be waited for, from what it has not.
    fn give_up(&mut self, sends: &mut [Send], mut ended: usize, error: io::Error) -> io::Error {
        let taken = sends.len() - self.ring.submission().len().min(sends.len());
        for _ in 0..MAX_IDLE_CALLS {
            if ended >= taken {
                break;
            }
            let flags = EnterFlags::GETEVENTS.bits();
            // SAFETY: nothing is handed over, and there is no argument that could be wrong.
            let _ = unsafe { self.ring.submitter().enter::<()>(0, (taken - ended) as u32, flags, None) };
            self.collect(sends, &mut ended);
        }
        for send in &mut sends[..taken] {
            // How much of it has left is not known, so the connection cannot go on.
            if matches!(send.outcome, Outcome::Left) && ended < taken {
                send.outcome = Outcome::Failed(io::Error::other("the ring does not tell what became of it"));
            }
        }
        error
    }

    /// Makes an empty table of so many files.
    pub fn register_table(&self, size: u32) -> io::Result<()> {
        self.ring.submitter().register_files_sparse(size)
    }

    /// Puts descriptors into the table from a slot on; -1 empties one, [`super::files::SKIP`] leaves it.
    pub fn update_table(&self, slot: u32, descriptors: &[i32]) -> io::Result<()> {
        match self.ring.submitter().register_files_update(slot, descriptors)? {
            done if done == descriptors.len() => Ok(()),
            _ => Err(io::Error::other("the table of files took only some")),
        }
    }

    /// Lets go of every file at once, where the end of the ring would do it some time later.
    pub fn drop_table(&self) {
        // It fails where there is none.
        let _ = self.ring.submitter().unregister_files();
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        self.drop_table();
    }
}

/// What a completion says.
fn outcome(result: i32) -> Outcome {
    if let Ok(taken) = usize::try_from(result) {
        return Outcome::Taken(taken);
    }
    let is = |errno: Errno| -result == errno.raw_os_error();
    if is(Errno::AGAIN) {
        Outcome::Taken(0)
    } else if [Errno::INTR, Errno::BADF, Errno::INVAL, Errno::OPNOTSUPP, Errno::CANCELED].into_iter().any(is) {
        // The ring's trouble, not the socket's, of which a plain write will tell.
        Outcome::Left
    } else {
        Outcome::Failed(io::Error::from_raw_os_error(-result))
    }
}
