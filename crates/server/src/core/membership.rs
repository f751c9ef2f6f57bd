//! Which group a connection belongs to, and what it counts as.

use super::Core;
use crate::connection::NO_GROUP;
use crate::framing::Framing;
use crate::stats::shift;
use pushlab_wire::transport::Transport;

impl Core {
    pub(super) fn leave_group(&mut self, id: usize) {
        let connection = &mut self.connections[id];
        if connection.group == NO_GROUP {
            return;
        }
        let (group, slot) = (connection.group as usize, connection.slot);
        connection.group = NO_GROUP;
        let framing = connection.framing();
        self.groups[group].references -= 1;
        if let Some(framing) = framing {
            if framing == Framing::Reply {
                shift(&self.counters.held_polls, -1);
            }
            if let Some(moved) = self.groups.leave(group, framing, slot) {
                self.connections[moved].slot = slot;
            }
        }
    }

    pub(super) fn join_group(&mut self, id: usize, group: usize) {
        let connection = &mut self.connections[id];
        connection.group = group as u32;
        self.groups[group].references += 1;
        if let Some(framing) = connection.framing() {
            connection.slot = self.groups.join(group, framing, id);
            if framing == Framing::Reply {
                shift(&self.counters.held_polls, 1);
            }
        }
    }

    pub(super) fn count_as(&mut self, id: usize, transport: Transport) {
        let connection = &mut self.connections[id];
        if connection.counted == Some(transport) {
            return;
        }
        if let Some(before) = connection.counted.replace(transport) {
            shift(&self.counters.connections[before.index()], -1);
        }
        shift(&self.counters.connections[transport.index()], 1);
    }
}
