//! The latest publications of every channel, within limits.
//!
//! Beyond the number of channels a new one is delivered but keeps no history until others have expired. Beyond the bytes
//! of all channels together, one of those that hold most gives its oldest messages. So nobody can push out the history
//! of others by publishing much, or to many channels.

use crate::account::Account;
use crate::engine::Part;
use crate::publication::{Publication, fitting};
use pushlab_wire::channel::Channel;
use slab::Slab;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// How much history is kept.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Channels that have history. A further one has none until one of these has expired. 100,000 by default, of some
    /// 400 bytes each beside their messages.
    pub max_channels: usize,
    /// Messages of a channel, 10,000 by default.
    pub max_channel_messages: usize,
    /// Bytes of a channel, 8 MiB by default. One message is kept however large it is.
    pub max_channel_bytes: usize,
    /// Bytes of all channels, compressed forms among them: the memory that history may take, 256 MiB by default.
    pub max_bytes: usize,
    /// Age, five minutes by default.
    pub max_age: Duration,
    /// Where what is kept counts: one for each log.
    pub account: Arc<Account>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_channels: 100_000,
            max_channel_messages: 10_000,
            max_channel_bytes: 8 << 20,
            max_bytes: 256 << 20,
            max_age: Duration::from_secs(300),
            account: Arc::default(),
        }
    }
}

/// Channels are sorted by the power of two of their bytes: what holds most is known to within a factor of two, and
/// hardly a publication changes a channel's place.
const SIZES: usize = usize::BITS as usize;
/// Entries of [`History::order`] that may stand for nothing.
const ORDER_SLACK: usize = 1024;

/// History of all channels.
pub struct History {
    limits: Limits,
    ids: HashMap<Channel, u32>,
    channels: Slab<ChannelHistory>,
    /// Channels by the power of two of their bytes, which is not exact but at [`ChannelHistory::size`].
    by_size: [Vec<u32>; SIZES],
    /// Every publication that is kept and some that are not any more, oldest first: finds what is too old.
    order: VecDeque<(u64, u32)>,
    messages: usize,
    /// Publications up to here may be missing from channels that have no history.
    forgotten_to: u64,
}

struct ChannelHistory {
    name: Channel,
    ring: VecDeque<Arc<Publication>>,
    bytes: usize,
    /// Offset of the latest publication that is no longer held; 0 if none ever left.
    evicted_to: u64,
    /// Where it stands in [`History::by_size`].
    size: usize,
    place: usize,
}

impl History {
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            ids: HashMap::new(),
            channels: Slab::new(),
            by_size: [const { Vec::new() }; SIZES],
            order: VecDeque::new(),
            messages: 0,
            forgotten_to: 0,
        }
    }

    /// The channel of this name, if it has history.
    pub fn known(&self, name: &str) -> Option<&Channel> {
        self.ids.get_key_value(name).map(|(known, _)| known)
    }

    /// Channels and bytes.
    pub fn size(&self) -> (usize, usize) {
        (self.channels.len(), self.limits.account.history())
    }

    /// Keeps a publication, if there is room for its channel.
    pub fn remember(&mut self, publication: Arc<Publication>, now_ns: u64) {
        self.expire(now_ns);
        let Some(id) = self.id_of(&publication.channel) else {
            self.forgotten_to = publication.offset;
            return;
        };
        self.order.push_back((publication.offset, id as u32));
        publication.charge(&self.limits.account);
        publication.enter_history();
        let size = publication.own_bytes();
        let channel = &mut self.channels[id];
        channel.ring.push_back(publication);
        channel.bytes += size;
        self.messages += 1;
        while self.channels[id].is_over(&self.limits) {
            self.evict_oldest_of(id);
        }
        self.sort(id);
        while self.messages > 0 && self.limits.account.history() > self.limits.max_bytes {
            self.evict_of_the_largest();
        }
        self.compact_order();
    }

    /// What is held after an offset, and what was lost since; `head` is the position after the latest publication.
    pub fn export(&self, head: u64, after: u64) -> Part {
        let mut messages = Vec::new();
        let mut evicted = Vec::new();
        for (_, channel) in &self.channels {
            if channel.evicted_to > after {
                evicted.push((channel.name.clone(), channel.evicted_to));
            }
            let start = channel.ring.partition_point(|p| p.offset <= after);
            messages.extend(channel.ring.range(start..).cloned());
        }
        Part { head, forgotten_to: self.forgotten_to, evicted, messages }
    }

    /// Takes over what another history held. Of two parts the second adds to the first: what that one has lost in between
    /// may still be here.
    pub fn import(&mut self, part: &Part) {
        for (name, to) in &part.evicted {
            let Some(id) = self.id_of(name) else { continue };
            while self.channels[id].ring.front().is_some_and(|oldest| oldest.offset <= *to) {
                self.evict_oldest_of(id);
            }
            let channel = &mut self.channels[id];
            channel.evicted_to = channel.evicted_to.max(*to);
        }
        let mut messages = part.messages.clone();
        messages.sort_unstable_by_key(|p| p.offset);
        for message in messages {
            let published_at_ns = message.published_at_ns;
            self.remember(message, published_at_ns);
        }
        for (name, _) in &part.evicted {
            if let Some(&id) = self.ids.get(name) {
                self.sort(id as usize);
            }
        }
        self.forgotten_to = self.forgotten_to.max(part.forgotten_to);
    }

    /// Lets go of what is too old.
    pub fn expire(&mut self, now_ns: u64) {
        while let Some(&(offset, id)) = self.order.front() {
            let id = id as usize;
            // What is not at the front of its ring has left it already.
            let oldest = self.channels.get(id).and_then(|c| c.ring.front()).filter(|p| p.offset == offset);
            if let Some(oldest) = oldest {
                if Duration::from_nanos(now_ns.saturating_sub(oldest.published_at_ns)) <= self.limits.max_age {
                    return;
                }
                self.evict_oldest_of(id);
                self.sort(id);
            }
            self.order.pop_front();
        }
    }

    /// The offset up to which messages of these channels may be gone.
    pub fn evicted_to(&self, channels: &[Channel]) -> u64 {
        let of = |channel| self.history_of(channel).map_or(self.forgotten_to, |history| history.evicted_to);
        channels.iter().map(of).max().unwrap_or(0)
    }

    /// Adds what a channel holds after an offset, in order, at most about `max_bytes`; gives the offset of the first that
    /// is left out.
    pub fn collect(
        &self,
        channel: &Channel,
        from: u64,
        max_bytes: usize,
        into: &mut Vec<Arc<Publication>>,
    ) -> Option<u64> {
        let history = self.history_of(channel)?;
        let start = history.ring.partition_point(|p| p.offset <= from);
        let count = fitting(history.ring.range(start..), max_bytes);
        into.extend(history.ring.range(start..).take(count).cloned());
        history.ring.get(start + count).map(|first| first.offset)
    }

    /// Adds the newest publications of a channel, in order: so many, or as many as there are and fit into about
    /// `max_bytes`, but at least one.
    pub fn collect_newest(&self, channel: &Channel, count: u32, max_bytes: usize, into: &mut Vec<Arc<Publication>>) {
        let Some(history) = self.history_of(channel) else { return };
        let count = fitting(history.ring.iter().rev().take(count as usize), max_bytes);
        into.extend(history.ring.range(history.ring.len() - count..).cloned());
    }

    fn history_of(&self, channel: &Channel) -> Option<&ChannelHistory> {
        self.ids.get(channel).map(|&id| &self.channels[id as usize])
    }

    /// The channel's number, made if there is room for it.
    fn id_of(&mut self, name: &Channel) -> Option<usize> {
        if let Some(&id) = self.ids.get(name) {
            return Some(id as usize);
        }
        if self.channels.len() >= self.limits.max_channels {
            return None;
        }
        let id = self.channels.insert(ChannelHistory {
            name: name.clone(),
            ring: VecDeque::new(),
            bytes: 0,
            evicted_to: self.forgotten_to,
            size: 0,
            place: self.by_size[0].len(),
        });
        self.by_size[0].push(id as u32);
        self.ids.insert(name.clone(), id as u32);
        Some(id)
    }

    fn evict_oldest_of(&mut self, id: usize) {
        let channel = &mut self.channels[id];
        let Some(oldest) = channel.ring.pop_front() else { return };
        oldest.leave_history();
        channel.bytes -= oldest.own_bytes();
        channel.evicted_to = oldest.offset;
        self.messages -= 1;
    }

    fn evict_of_the_largest(&mut self) {
        let largest = self.by_size.iter().rev().find_map(|ids| ids.last());
        let id = *largest.expect("bytes are held by a channel") as usize;
        self.evict_oldest_of(id);
        self.sort(id);
    }

    /// Puts a channel where its bytes belong; one that holds nothing is forgotten.
    fn sort(&mut self, id: usize) {
        let bytes = self.channels[id].bytes;
        let size = if bytes == 0 { None } else { Some(bytes.ilog2() as usize) };
        if size == Some(self.channels[id].size) {
            return;
        }
        let (old, place) = (self.channels[id].size, self.channels[id].place);
        self.by_size[old].swap_remove(place);
        if let Some(&moved) = self.by_size[old].get(place) {
            self.channels[moved as usize].place = place;
        }
        if let Some(size) = size {
            self.channels[id].size = size;
            self.channels[id].place = self.by_size[size].len();
            self.by_size[size].push(id as u32);
        } else {
            let channel = self.channels.remove(id);
            self.forgotten_to = self.forgotten_to.max(channel.evicted_to);
            self.ids.remove(&channel.name);
        }
    }

    /// Most of a busy channel's entries stand for messages that left its ring. They are let go before they outnumber the
    /// others, at a cost of two looks for each publication.
    fn compact_order(&mut self) {
        if self.order.len() > 2 * self.messages + ORDER_SLACK {
            let channels = &self.channels;
            self.order.retain(|&(offset, id)| {
                let oldest = channels.get(id as usize).and_then(|channel| channel.ring.front());
                oldest.is_some_and(|oldest| offset >= oldest.offset)
            });
        }
    }
}

impl ChannelHistory {
    fn is_over(&self, limits: &Limits) -> bool {
        self.ring.len() > limits.max_channel_messages || (self.bytes > limits.max_channel_bytes && self.ring.len() > 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryLog;
    use pushlab_wire::cursor::Epoch;

    #[test]
    fn a_busy_channel_beside_a_quiet_one_leaves_nothing_behind() {
        let mut log = MemoryLog::new(Epoch::from_number(1), Limits::default());
        let mut history = History::new(Limits { max_channel_messages: 10, ..Limits::default() });
        history.remember(log.append("quiet", "1", None, 0).unwrap(), 0);
        (0..20_000).for_each(|_| history.remember(log.append("busy", "1", None, 0).unwrap(), 0));
        assert_eq!(history.messages, 11);
        assert!(history.order.len() <= 2 * 11 + ORDER_SLACK, "{}", history.order.len());
        assert_eq!(history.order.front().unwrap().0, 1);
    }
}
