//! Who receives what on one event loop: subscribers of the same set of channels form a group.
//!
//! A group's publications of one turn become one batch of bytes in the order of their offsets, encoded once and
//! written to every member with one system call. Because order is kept across channels, one cursor resumes them all.

use crate::channels::ChannelSet;
use crate::framing::{FRAMINGS, Framing};
use pushlab_log::Publication;
use pushlab_wire::channel::Channel;
use slab::Slab;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// Groups that are kept though nobody is in them, since polls come back to theirs: the earliest goes for a further one.
const MAX_UNUSED_GROUPS: usize = 1024;
/// Channels of all of these together: what a group takes is mostly theirs, some 100 bytes for each, with the longest names
/// 400. So they are 7 MiB at worst.
const MAX_UNUSED_CHANNELS: usize = 16 * 1024;

/// No group: that of no channels.
pub const NO_GROUP: u32 = u32::MAX;

/// Connections that subscribe to the same channels.
pub struct Group {
    /// Sorted, each once.
    pub channels: Vec<Channel>,
    /// Where the group stands in the list of each of its channels, while connections refer to it.
    places: Vec<u32>,
    /// Bytes of memory its channels and the set of them take, though other groups may have the same channels.
    weight: usize,
    set: ChannelSet,
    /// Connections that refer to this group, members or not.
    references: usize,
    /// Whether it stands in [`Groups::unused`].
    is_queued: bool,
    /// Connections to write to.
    pub members: Members,
    /// Publications of this turn.
    pub pending: Vec<Arc<Publication>>,
}

/// Connections by framing. Most groups have one framing or two: a bit for each that is in use spares reading the others.
#[derive(Default)]
pub struct Members {
    /// Bit [`Framing::index`]: there are some, or were when they were taken.
    used: u16,
    lists: [Vec<u32>; FRAMINGS],
}

impl Members {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// Any one of them.
    pub fn first(&self) -> Option<u32> {
        self.lists.get(self.used.trailing_zeros() as usize)?.first().copied()
    }

    /// The framings in use.
    pub fn framings(&self) -> impl Iterator<Item = Framing> + use<> {
        let used = self.used;
        Framing::ALL.into_iter().filter(move |framing| used & 1 << framing.index() != 0)
    }

    /// Takes those of one framing out.
    pub fn take(&mut self, framing: Framing) -> Vec<u32> {
        self.used &= !(1 << framing.index());
        std::mem::take(&mut self.lists[framing.index()])
    }

    /// Puts those back that were taken out; nobody has come meanwhile.
    pub fn put_back(&mut self, framing: Framing, members: Vec<u32>) {
        self.used |= u16::from(!members.is_empty()) << framing.index();
        self.lists[framing.index()] = members;
    }

    fn push(&mut self, framing: Framing, connection: u32) -> u32 {
        let list = &mut self.lists[framing.index()];
        list.push(connection);
        self.used |= 1 << framing.index();
        list.len() as u32 - 1
    }

    /// Takes one out; gives the one that now has its slot.
    fn remove(&mut self, framing: Framing, slot: u32) -> Option<u32> {
        let list = &mut self.lists[framing.index()];
        list.swap_remove(slot as usize);
        if list.is_empty() {
            self.used &= !(1 << framing.index());
        }
        list.get(slot as usize).copied()
    }
}

/// A group in the list of a channel, which is the group's `nth`.
struct Entry {
    group: u32,
    nth: u32,
}

impl Group {
    /// Bytes of memory its set of channels takes, besides the channels themselves.
    fn kept_bytes(&self) -> usize {
        2 * self.set.as_str().len() + self.channels.len() * (size_of::<Channel>() + size_of::<u32>())
    }
}

/// Bytes of memory a channel takes with its first group: its text, its place in the map, the smallest list.
fn kept_bytes(channel: &Channel) -> usize {
    channel.as_str().len() + size_of::<(Channel, Vec<Entry>)>() + 4 * size_of::<Entry>() + 2 * size_of::<usize>()
}

/// All groups of an event loop. *Invariant*: the work of a call grows with the channels of one group, never with the
/// number of groups.
#[derive(Default)]
pub struct Groups {
    groups: Slab<Group>,
    by_set: HashMap<ChannelSet, usize>,
    /// Groups that connections refer to.
    by_channel: HashMap<Channel, Vec<Entry>>,
    /// Groups to which nobody refers, and some to which somebody does again.
    unused: VecDeque<usize>,
    /// Channels of those.
    unused_channels: usize,
    kept_bytes: usize,
}

impl Groups {
    /// The group of a set of channels, made if need be. It may go again with the next call unless a connection
    /// [refers](Self::refer) to it.
    pub fn intern(&mut self, set: &ChannelSet) -> u32 {
        if set.as_str().is_empty() {
            return NO_GROUP;
        }
        if let Some(&id) = self.by_set.get(set) {
            return id as u32;
        }
        let channels = set.channels(|name| self.by_channel.get_key_value(name).map(|(channel, _)| channel.clone()));
        let mut group = Group {
            places: vec![0; channels.len()],
            channels,
            weight: 0,
            set: set.clone(),
            references: 0,
            is_queued: false,
            members: Default::default(),
            pending: Vec::new(),
        };
        group.weight = group.kept_bytes() + group.channels.iter().map(kept_bytes).sum::<usize>();
        let id = self.groups.insert(group);
        self.by_set.insert(set.clone(), id);
        self.queue(id);
        id as u32
    }

    /// Bytes of memory taken by the channels and sets of channels that connections refer to.
    pub fn kept_bytes(&self) -> usize {
        self.kept_bytes
    }

    /// About how many of those a connection stands for that refers to a group: its share of what the group takes.
    pub fn share(&self, group: u32) -> usize {
        self.groups.get(group as usize).map_or(0, |group| group.weight / group.references.max(1))
    }

    /// The channels of a group.
    pub fn channels(&self, group: u32) -> &[Channel] {
        if group == NO_GROUP { &[] } else { &self.groups[group as usize].channels }
    }

    /// A connection refers to a group: from now on the group gets publications.
    pub fn refer(&mut self, id: usize) {
        let group = &mut self.groups[id];
        group.references += 1;
        if group.references > 1 {
            return;
        }
        self.kept_bytes += group.kept_bytes();
        for (nth, channel) in group.channels.iter().enumerate() {
            let entry = Entry { group: id as u32, nth: nth as u32 };
            let entries = match self.by_channel.get_mut(channel) {
                Some(entries) => entries,
                None => {
                    self.kept_bytes += kept_bytes(channel);
                    self.by_channel.entry(channel.clone()).or_default()
                }
            };
            group.places[nth] = entries.len() as u32;
            entries.push(entry);
        }
    }

    /// A connection that referred to a group does so no more.
    pub fn release(&mut self, id: usize) {
        let group = &mut self.groups[id];
        group.references -= 1;
        if group.references > 0 {
            return;
        }
        self.kept_bytes -= group.kept_bytes();
        for nth in 0..self.groups[id].channels.len() {
            let Group { channels, places, .. } = &self.groups[id];
            let place = places[nth] as usize;
            let entries = self.by_channel.get_mut(&channels[nth]).expect("a group that is referred to is in its lists");
            entries.swap_remove(place);
            if let Some(moved) = entries.get(place) {
                self.groups[moved.group as usize].places[moved.nth as usize] = place as u32;
            } else if entries.is_empty() {
                let channel = &self.groups[id].channels[nth];
                self.kept_bytes -= kept_bytes(channel);
                self.by_channel.remove(channel);
            }
        }
        self.queue(id);
    }

    /// Puts a group among those that go when there are too many.
    fn queue(&mut self, id: usize) {
        if std::mem::replace(&mut self.groups[id].is_queued, true) {
            return;
        }
        self.unused.push_back(id);
        self.unused_channels += self.groups[id].channels.len();
        while self.unused.len() > MAX_UNUSED_GROUPS || self.unused_channels > MAX_UNUSED_CHANNELS {
            // The one that has just come stays, however many channels it has.
            let Some(earliest) = self.unused.pop_front_if(|earliest| *earliest != id) else { return };
            self.unused_channels -= self.groups[earliest].channels.len();
            self.groups[earliest].is_queued = false;
            if self.groups[earliest].references == 0 {
                let group = self.groups.remove(earliest);
                self.by_set.remove(&group.set);
            }
        }
    }

    /// Gives a publication to every group of its channel; groups that had none before are added to `dirty`.
    pub fn distribute(&mut self, publication: &Arc<Publication>, dirty: &mut Vec<usize>) {
        let Some(entries) = self.by_channel.get(&publication.channel) else { return };
        for entry in entries {
            let group = &mut self.groups[entry.group as usize];
            if group.members.is_empty() {
                continue;
            }
            if group.pending.is_empty() {
                dirty.push(entry.group as usize);
            }
            group.pending.push(publication.clone());
        }
    }

    /// Makes a connection a member and gives its slot.
    pub fn join(&mut self, id: usize, framing: Framing, connection: usize) -> u32 {
        self.groups[id].members.push(framing, connection as u32)
    }

    /// Ends a membership; gives the connection that now has the freed slot.
    pub fn leave(&mut self, id: usize, framing: Framing, slot: u32) -> Option<usize> {
        self.groups[id].members.remove(framing, slot).map(|moved| moved as usize)
    }
}

impl std::ops::Index<usize> for Groups {
    type Output = Group;
    fn index(&self, id: usize) -> &Group {
        &self.groups[id]
    }
}

impl std::ops::IndexMut<usize> for Groups {
    fn index_mut(&mut self, id: usize) -> &mut Group {
        &mut self.groups[id]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn intern<N: AsRef<str> + Ord>(groups: &mut Groups, names: &mut [N]) -> usize {
        let mut set = ChannelSet::default();
        set.fill(names).unwrap();
        groups.intern(&set) as usize
    }

    #[test]
    fn the_same_set_is_the_same_group() {
        let mut groups = Groups::default();
        let a = intern(&mut groups, &mut ["b", "a", "b"]);
        assert_eq!(intern(&mut groups, &mut ["a", "b"]), a);
        assert_ne!(intern(&mut groups, &mut ["a"]), a);
        assert_eq!(groups.intern(&ChannelSet::default()), NO_GROUP);
        assert!(groups.channels(NO_GROUP).is_empty());
    }

    #[test]
    fn a_name_is_in_memory_once_however_many_groups_have_it() {
        let mut groups = Groups::default();
        let first = intern(&mut groups, &mut ["a", "b"]);
        groups.refer(first);
        let second = intern(&mut groups, &mut ["a", "c"]);
        let text = |group: usize| groups[group].channels[0].as_str().as_ptr();
        assert_eq!(text(first), text(second));
    }

    #[test]
    fn groups_that_nobody_refers_to_are_bounded_and_the_others_stay() {
        let mut groups = Groups::default();
        let kept = intern(&mut groups, &mut ["kept"]);
        groups.refer(kept);
        for i in 0..3 * MAX_UNUSED_GROUPS {
            let id = intern(&mut groups, &mut [format!("c{i}"), "kept".to_owned()]);
            if i % 2 == 0 {
                groups.refer(id);
                groups.release(id);
            }
            assert!(groups.groups.len() <= MAX_UNUSED_GROUPS + 1);
        }
        assert_eq!(intern(&mut groups, &mut ["kept"]), kept);
        assert_eq!((groups.by_channel.len(), groups.by_set.len()), (1, groups.groups.len()));
    }

    #[test]
    fn the_channels_of_those_are_bounded() {
        let mut groups = Groups::default();
        let of_64 = |groups: &mut Groups, i: usize| {
            intern(groups, &mut (0..64).map(|channel| format!("c{i}-{channel}")).collect::<Vec<_>>())
        };
        for i in 0..2 * MAX_UNUSED_CHANNELS / 64 {
            of_64(&mut groups, i);
        }
        let kept: usize = groups.groups.iter().map(|(_, group)| group.channels.len()).sum();
        assert_eq!((kept, groups.unused_channels), (MAX_UNUSED_CHANNELS, MAX_UNUSED_CHANNELS));
        let mut all: Vec<String> = (0..2 * MAX_UNUSED_CHANNELS).map(|channel| format!("c{channel}")).collect();
        let large = intern(&mut groups, &mut all);
        assert_eq!((groups.groups.len(), groups.channels(large as u32).len()), (1, all.len()));
        of_64(&mut groups, 0);
        assert_eq!((groups.groups.len(), groups.unused_channels), (1, 64));
    }

    /// Random groups come and go: each is in the lists of its channels while somebody refers to it, where it says it is,
    /// and nowhere else.
    #[test]
    fn lists_of_channels_hold_what_is_referred_to() {
        let mut random = fastrand::Rng::with_seed(7);
        let mut groups = Groups::default();
        let mut references = Vec::new();
        for _ in 0..20_000 {
            if random.bool() || references.is_empty() {
                let mut names: Vec<String> = (0..random.usize(1..6)).map(|_| format!("c{}", random.u8(..12))).collect();
                let id = intern(&mut groups, &mut names);
                groups.refer(id);
                references.push(id);
            } else {
                let id = references.swap_remove(random.usize(..references.len()));
                groups.release(id);
            }
        }
        let mut entries = 0;
        for (channel, list) in &groups.by_channel {
            for (place, entry) in list.iter().enumerate() {
                let group = &groups[entry.group as usize];
                assert_eq!(group.channels[entry.nth as usize], *channel);
                assert_eq!(group.places[entry.nth as usize] as usize, place);
                entries += 1;
            }
        }
        references.sort_unstable();
        for (id, group) in &groups.groups {
            assert_eq!(group.references, references.iter().filter(|&&other| other == id).count());
            entries -= if group.references > 0 { group.channels.len() } else { 0 };
        }
        assert_eq!(entries, 0);
    }

    #[test]
    fn leaving_moves_the_last_member() {
        let mut groups = Groups::default();
        let id = intern(&mut groups, &mut ["a"]);
        let slots: Vec<u32> =
            (10..13).map(|c| groups.join(id, Framing::WebSocket { is_compressed: false }, c)).collect();
        assert_eq!(slots, [0, 1, 2]);
        assert_eq!(groups.leave(id, Framing::WebSocket { is_compressed: false }, 0), Some(12));
        assert_eq!(groups.leave(id, Framing::WebSocket { is_compressed: false }, 1), None);
        assert_eq!(groups[id].members.take(Framing::WebSocket { is_compressed: false }), [12]);
        assert!(groups[id].members.is_empty());
    }
}
