//! One message of one channel.

use pushlab_wire::channel::Channel;
use pushlab_wire::native::MessageText;
use std::sync::{Arc, OnceLock};

/// One message of one channel, encoded once and shared by history and every queue.
#[derive(Debug)]
pub struct Publication {
    /// Position in the log, from 1.
    pub offset: u64,
    /// Where it was published.
    pub channel: Channel,
    /// Its text.
    pub text: MessageText,
    /// Its text compressed, once it was asked for; nothing where that is not worth it.
    compressed: OnceLock<Option<Box<[u8]>>>,
    pub(crate) published_at_ns: u64,
}

impl Publication {
    pub(crate) fn new(offset: u64, channel: Channel, text: MessageText, published_at_ns: u64) -> Self {
        Self { offset, channel, text, compressed: OnceLock::new(), published_at_ns }
    }

    /// Has its text compressed, unless somebody has done so: once for all who receive it, whoever asks first. It is kept
    /// as long as the text, and is smaller.
    pub fn compress(&self, with: impl FnOnce(&[u8]) -> Option<Box<[u8]>>) {
        self.compressed.get_or_init(|| with(self.text.as_bytes()));
    }

    /// Its text compressed, if it was, and that is smaller.
    pub fn compressed(&self) -> Option<&[u8]> {
        self.compressed.get()?.as_deref()
    }

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
