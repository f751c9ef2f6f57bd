//! What a subscriber missed while it was away, sent in parts, so that it costs no more memory than one of them.

use super::Core;
use crate::connection::NO_GROUP;
use crate::stats::add;
use pushlab_log::Replay;
use pushlab_session::framing::Framing;
use pushlab_session::framing::gap_frame;
use pushlab_wire::cursor::Cursor;

/// Bytes of messages in one part: the most that a subscriber that resumes has queued for it.
const MAX_PART_BYTES: usize = 64 * 1024;

impl Core {
    /// Makes a connection a subscriber: what it missed is sent behind `head`, the rest follows as it is published.
    pub(super) fn begin(
        &mut self,
        id: usize,
        group: Option<usize>,
        after: Option<Cursor>,
        framing: Framing,
        mut head: Vec<u8>,
    ) {
        let channels = group.map_or(&[][..], |g| &self.groups[g].channels);
        let replay = self.shared.distributor.read(channels, after, MAX_PART_BYTES);
        self.encode_gap(&replay, framing, &mut head);
        let start = match (replay.gap, after) {
            (Some((_, to)), _) => to,
            (None, Some(after)) => after,
            (None, None) => self.shared.distributor.cursor(replay.up_to),
        };
        framing.start(&mut head, &start.to_string());
        self.connections[id].subscriber.is_catching_up = true;
        if let Some(group) = group {
            self.join_group(id, group);
        }
        self.send_part(id, &replay, framing, head);
    }

    /// Goes on with what a connection missed.
    pub(super) fn catch_up(&mut self, id: usize) {
        let connection = &self.connections[id];
        let framing = connection.framing_out();
        let channels = match connection.group {
            NO_GROUP => &[][..],
            group => &self.groups[group as usize].channels,
        };
        let after = self.shared.distributor.cursor(connection.subscriber.seen);
        let replay = self.shared.distributor.read(channels, Some(after), MAX_PART_BYTES);
        let mut out = Vec::new();
        self.encode_gap(&replay, framing, &mut out);
        self.send_part(id, &replay, framing, out);
    }

    /// Sends one part behind `out`. After the last one the connection is a member of its group.
    fn send_part(&mut self, id: usize, replay: &Replay, framing: Framing, mut out: Vec<u8>) {
        for message in &replay.messages {
            framing.message(&mut out, &message.text);
        }
        self.turn.sent += replay.messages.len() as u64;
        let connection = &mut self.connections[id];
        connection.subscriber.seen = replay.up_to;
        if replay.is_whole {
            connection.subscriber.is_catching_up = false;
            self.enter_group(id);
        }
        if !out.is_empty() {
            self.send(id, &out);
        }
        // Where the socket took it all there is no event to go on at.
        let connection = &self.connections[id];
        if connection.subscriber.is_catching_up && !connection.has_queued() {
            self.unfinished.push(id);
        }
    }

    fn encode_gap(&self, replay: &Replay, framing: Framing, out: &mut Vec<u8>) {
        if let Some((from, to)) = replay.gap {
            add(&self.counters.gaps, 1);
            framing.frame(out, gap_frame(from, to).as_bytes(), to.to_string().as_bytes());
        }
    }
}
