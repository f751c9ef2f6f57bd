//! One message of one channel.

use crate::account::Account;
use pushlab_wire::channel::Channel;
use pushlab_wire::cursor::Cursor;
use pushlab_wire::native::MessageText;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering::AcqRel};
use std::sync::{Arc, OnceLock};

/// Flag of [`Publication::kept`].
const IN_HISTORY: usize = 1;

/// One message of one channel, encoded once and shared by history and every queue.
pub struct Publication {
    /// Position in the log, from 1.
    pub offset: u64,
    /// Where it was published.
    pub channel: Channel,
    /// Its text.
    pub text: MessageText,
    /// Its forms compressed, by [`Form`], once they were asked for; nothing where that is not worth it.
    compressed: [OnceLock<Option<Box<[u8]>>>; 2],
    /// Where its bytes count, once they do.
    account: OnceLock<Arc<Account>>,
    /// Twice the bytes that count, and [`IN_HISTORY`]. They change together, as one thread may compress it while another
    /// takes it out of history.
    kept: AtomicUsize,
    pub(crate) published_at_ns: u64,
}

/// A form in which a publication is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Its text.
    Text,
    /// An event of an event stream.
    Event,
}

impl Publication {
    pub(crate) fn new(offset: u64, channel: Channel, text: MessageText, published_at_ns: u64) -> Self {
        let (compressed, account) = Default::default();
        Self { offset, channel, text, compressed, account, kept: AtomicUsize::new(0), published_at_ns }
    }

    /// Counts its bytes in this account while anything refers to it. It counts in one account, once.
    pub fn charge(&self, account: &Arc<Account>) {
        if self.account.set(Arc::clone(account)).is_ok() {
            self.count(self.own_bytes());
        }
    }

    /// It takes so many more bytes.
    fn count(&self, bytes: usize) {
        if let Some(account) = self.account.get() {
            let before = self.kept.fetch_add(2 * bytes, AcqRel);
            account.change(0, bytes);
            if before & IN_HISTORY != 0 {
                account.change_history(0, bytes);
            }
        }
    }

    /// History holds it from now on.
    pub(crate) fn enter_history(&self) {
        let before = self.kept.fetch_or(IN_HISTORY, AcqRel);
        if let Some(account) = self.account.get().filter(|_| before & IN_HISTORY == 0) {
            account.change_history(0, before / 2);
        }
    }

    /// History holds it no longer.
    pub(crate) fn leave_history(&self) {
        let before = self.kept.fetch_and(!IN_HISTORY, AcqRel);
        if let Some(account) = self.account.get().filter(|_| before & IN_HISTORY != 0) {
            account.change_history(before / 2, 0);
        }
    }

    /// One that was made elsewhere.
    pub fn restored(cursor: Cursor, channel: Channel, data: &str, published_at_ns: u64) -> Self {
        let text = MessageText::new(channel.as_str(), &cursor, data);
        Self::new(cursor.offset, channel, text, published_at_ns)
    }

    /// What was published: JSON.
    pub fn data(&self) -> &str {
        let [_, data] = self.text.without_cursor();
        let data = data.strip_suffix(b"]").expect("a message's text is an array");
        std::str::from_utf8(data).expect("a part of a text between two of its characters of one byte")
    }

    /// When it was published, by the clock of whoever appended it.
    pub fn published_at_ns(&self) -> u64 {
        self.published_at_ns
    }

    /// Has a form of it compressed, unless somebody has done so: once for all who receive it, whoever asks first. It is kept
    /// as long as the text, and is smaller.
    pub fn compress(&self, form: Form, with: impl FnOnce() -> Option<Box<[u8]>>) {
        let mut added = 0;
        self.compressed[form as usize].get_or_init(|| with().inspect(|compressed| added = compressed.len()));
        if added > 0 {
            self.count(added);
        }
    }

    /// A form of it compressed, if it was, and that is smaller.
    pub fn compressed(&self, form: Form) -> Option<&[u8]> {
        self.compressed[form as usize].get()?.as_deref()
    }

    /// Text and bookkeeping: the bytes it costs, beside compressed forms, as long as history holds it.
    pub(crate) fn own_bytes(&self) -> usize {
        // Behind the `Arc` are its two counts; in history's `order` an entry stands for it.
        self.text.as_bytes().len() + size_of::<Self>() + 2 * size_of::<usize>() + size_of::<(u64, u32)>()
    }
}

/// What was published, not who keeps it.
impl fmt::Debug for Publication {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { offset, channel, text, published_at_ns, .. } = self;
        write!(f, "{offset} {channel:?} {text:?} {published_at_ns} ns")
    }
}

impl Drop for Publication {
    fn drop(&mut self) {
        if let Some(account) = self.account.get() {
            let kept = *self.kept.get_mut();
            if kept & IN_HISTORY != 0 {
                account.change_history(kept / 2, 0);
            }
            account.change(kept / 2, 0);
        }
    }
}

/// How many of these fit into `max_bytes`, at least one if there is one.
pub fn fitting<'a>(publications: impl Iterator<Item = &'a Arc<Publication>>, max_bytes: usize) -> usize {
    let mut bytes = 0;
    let mut count = 0;
    for publication in publications {
        bytes += publication.text.as_bytes().len() + 1;
        if bytes > max_bytes {
            return count.max(1);
        }
        count += 1;
    }
    count
}
