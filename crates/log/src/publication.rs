//! One message of one channel.

use pushlab_wire::channel::Channel;
use pushlab_wire::native::MessageText;
use std::sync::Arc;

/// One message of one channel, encoded once and shared by history and every queue.
#[derive(Debug)]
pub struct Publication {
    /// Position in the log, from 1.
    pub offset: u64,
    /// Where it was published.
    pub channel: Channel,
    /// Its text.
    pub text: MessageText,
    pub(crate) published_at_ns: u64,
}

impl Publication {
    /// Text and bookkeeping: the bytes it costs as long as history holds it.
    pub(crate) fn history_bytes(&self) -> usize {
        // Behind the `Arc` are its two counts; in `order` an entry stands for it.
        self.text.as_bytes().len() + size_of::<Self>() + 2 * size_of::<usize>() + size_of::<(u64, u32)>()
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
