//! Who receives what on one event loop: subscribers of the same set of channels form a group.
//!
//! A group's publications of one turn become one batch of bytes in the order of their offsets, encoded once and
//! written to every member with one system call. Because order is kept across channels, one cursor resumes them all.

use crate::framing::{FRAMINGS, Framing};
use crate::hub::Publication;
use pushlab_wire::channel::{BadChannel, Channel};
use slab::Slab;
use std::collections::HashMap;
use std::sync::Arc;

/// Groups made between two sweeps: bounds what polls that name ever other channels leave behind. A group of 64 long
/// names takes about 25 KiB, so 100 MiB at worst.
const MAX_UNSWEPT_GROUPS: usize = 4096;

/// Connections that subscribe to the same channels.
pub struct Group {
    /// Sorted, each once.
    pub channels: Vec<Channel>,
    key: String,
    /// Connections that refer to this group, members or not.
    pub references: usize,
    /// Connections to write to, by [`Framing::index`].
    pub members: [Vec<u32>; FRAMINGS],
    /// Publications of this turn.
    pub pending: Vec<Arc<Publication>>,
}

/// All groups of an event loop.
#[derive(Default)]
pub struct Groups {
    groups: Slab<Group>,
    by_key: HashMap<String, usize>,
    by_channel: HashMap<Channel, Vec<usize>>,
    key: String,
    unswept: usize,
}

impl Groups {
    /// The group of a set of channels, made if need be. Names may come in any order and repeat.
    pub fn intern<S: AsRef<str>>(&mut self, names: &mut Vec<S>) -> Result<usize, BadChannel> {
        names.sort_unstable_by(|a, b| a.as_ref().cmp(b.as_ref()));
        names.dedup_by(|a, b| a.as_ref() == b.as_ref());
        self.key.clear();
        for name in names.iter() {
            self.key.push_str(name.as_ref());
            self.key.push('\n');
        }
        if let Some(&id) = self.by_key.get(&self.key) {
            return Ok(id);
        }
        let channels = names.iter().map(|n| Channel::parse(n.as_ref())).collect::<Result<Vec<_>, _>>()?;
        if self.unswept >= MAX_UNSWEPT_GROUPS {
            self.sweep();
        }
        self.unswept += 1;
        let id = self.groups.insert(Group {
            channels: channels.clone(),
            key: self.key.clone(),
            references: 0,
            members: Default::default(),
            pending: Vec::new(),
        });
        self.by_key.insert(self.key.clone(), id);
        for channel in channels {
            self.by_channel.entry(channel).or_default().push(id);
        }
        Ok(id)
    }

    /// Gives a publication to every group of its channel; groups that had none before are added to `dirty`.
    pub fn distribute(&mut self, publication: &Arc<Publication>, dirty: &mut Vec<usize>) {
        let Some(ids) = self.by_channel.get(&publication.channel) else { return };
        for &id in ids {
            let group = &mut self.groups[id];
            if group.members.iter().all(Vec::is_empty) {
                continue;
            }
            if group.pending.is_empty() {
                dirty.push(id);
            }
            group.pending.push(publication.clone());
        }
    }

    /// Makes a connection a member and gives its slot.
    pub fn join(&mut self, id: usize, framing: Framing, connection: usize) -> u32 {
        let members = &mut self.groups[id].members[framing.index()];
        members.push(connection as u32);
        members.len() as u32 - 1
    }

    /// Ends a membership; gives the connection that now has the freed slot.
    pub fn leave(&mut self, id: usize, framing: Framing, slot: u32) -> Option<usize> {
        let members = &mut self.groups[id].members[framing.index()];
        members.swap_remove(slot as usize);
        members.get(slot as usize).map(|&moved| moved as usize)
    }

    /// Forgets groups that no connection refers to. Polls come back to theirs within seconds, so this is worth
    /// calling now and then only.
    pub fn sweep(&mut self) {
        self.unswept = 0;
        let empty: Vec<usize> = self.groups.iter().filter(|(_, g)| g.references == 0).map(|(id, _)| id).collect();
        for id in empty {
            let group = self.groups.remove(id);
            self.by_key.remove(&group.key);
            for channel in &group.channels {
                if let Some(ids) = self.by_channel.get_mut(channel) {
                    ids.retain(|&other| other != id);
                    if ids.is_empty() {
                        self.by_channel.remove(channel);
                    }
                }
            }
        }
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

    #[test]
    fn the_same_set_is_the_same_group() {
        let mut groups = Groups::default();
        let a = groups.intern(&mut vec!["b", "a", "b"]).unwrap();
        assert_eq!(groups.intern(&mut vec!["a", "b"]), Ok(a));
        assert_ne!(groups.intern(&mut vec!["a"]), Ok(a));
        assert_eq!(groups.intern(&mut vec!["a b"]), Err(BadChannel));
        groups[a].references = 1;
        groups.sweep();
        assert_eq!(groups.groups.len(), 1);
        assert_eq!(groups.by_channel.len(), 2);
    }

    #[test]
    fn groups_that_nobody_refers_to_are_bounded() {
        let mut groups = Groups::default();
        for i in 0..3 * MAX_UNSWEPT_GROUPS {
            groups.intern(&mut vec![format!("c{i}")]).unwrap();
            assert!(groups.groups.len() <= MAX_UNSWEPT_GROUPS);
        }
    }

    #[test]
    fn leaving_moves_the_last_member() {
        let mut groups = Groups::default();
        let id = groups.intern(&mut vec!["a"]).unwrap();
        let slots: Vec<u32> = (10..13).map(|c| groups.join(id, Framing::WebSocket, c)).collect();
        assert_eq!(slots, [0, 1, 2]);
        assert_eq!(groups.leave(id, Framing::WebSocket, 0), Some(12));
        assert_eq!(groups.leave(id, Framing::WebSocket, 1), None);
        assert_eq!(groups[id].members[0], [12]);
    }
}
