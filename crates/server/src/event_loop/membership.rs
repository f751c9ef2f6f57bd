//! Which group a connection belongs to, and what it counts as.

use super::EventLoop;
use crate::stats::shift;
use pushlab_session::framing::Framing;
use pushlab_session::groups::NO_GROUP;
use pushlab_wire::transport::Transport;

impl EventLoop {
    pub(super) fn leave_group(&mut self, id: usize) {
        let connection = &mut self.connections[id];
        if connection.group == NO_GROUP {
            return;
        }
        let (group, slot) = (connection.group as usize, connection.slot);
        connection.group = NO_GROUP;
        if let Some(attendance) = &self.attendance {
            attendance.leave(connection.exchange.holder(), self.groups.channels(group as u32), self.now - self.start);
        }
        if let Some(framing) = connection.exchange.framing() {
            if framing == Framing::Reply {
                shift(&self.counters.held_polls, -1);
            }
            if let Some(moved) = self.groups.leave(group, framing, slot) {
                self.connections[moved].slot = slot;
            }
        }
        self.groups.release(group);
        self.settle_groups();
    }

    /// Puts a connection into a group, out of the one it was in.
    pub(super) fn join_group(&mut self, id: usize, group: u32) {
        // The new one first: what nobody refers to may go.
        if group != NO_GROUP {
            self.groups.refer(group as usize);
        }
        // So it is nowhere away from a channel of both.
        if let Some(attendance) = self.attendance.as_ref().filter(|_| group != NO_GROUP) {
            attendance.join(self.connections[id].exchange.holder(), self.groups.channels(group));
        }
        self.leave_group(id);
        self.connections[id].group = group;
        self.settle_groups();
        self.enter_group(id);
    }

    /// Follows the access file in whose presence is told: connections that are there already count by it as well.
    pub(super) fn follow_presence(&mut self) {
        let Some(attendance) = &mut self.attendance else { return };
        let Some(before) = attendance.follow() else { return };
        for (_, connection) in self.connections.iter().filter(|(_, connection)| connection.group != NO_GROUP) {
            let channels = self.groups.channels(connection.group);
            attendance.move_over(&before, connection.exchange.holder(), channels, self.now - self.start);
        }
    }

    /// Makes a connection a member of its group, if it is one that publications reach.
    pub(super) fn enter_group(&mut self, id: usize) {
        let connection = &mut self.connections[id];
        if let Some(framing) = connection.exchange.framing().filter(|_| connection.group != NO_GROUP) {
            connection.slot = self.groups.join(connection.group as usize, framing, id);
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
