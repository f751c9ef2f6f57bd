//! What clients send: open loop on the run's schedule, or closed loop.

use super::client::Client;
use super::event_loop::ClientLoop;
use crate::connection::Protocol;
use crate::cut::Cut;
use crate::transport::frames::{encode_compressed_text, encode_text};
use crate::transport::{Receiver, Sending, Uplink};
use pushlab_os::clock::monotonic_ns;
use pushlab_wire::stamp::{MAX_SEQUENCE, RESOLUTION_NS, Stamp};
use pushlab_workload::tally::WayTally;
use pushlab_workload::traffic::Traffic;

impl<R: Receiver, P: Protocol> ClientLoop<R, P> {
    /// Sends every publication that is due, as far as sockets take them; the others wait as a number and keep
    /// their intended instants.
    pub(super) fn publish_due(&mut self, now: u64) {
        if now < self.next_publication_ns {
            return;
        }
        let Some(mut turns) = self.publish_turns.take() else { return };
        while let Some(k) = turns.take_due(now) {
            let Some((pacing, _)) = &self.pacing else { break };
            let client = match &self.rooms {
                Some(rooms) => {
                    turns.skip_unless(|k| rooms.is_own(k, pacing));
                    rooms.publisher(k, pacing)
                }
                None => pacing.publisher_of(k).0,
            };
            let index = (client / self.config.lanes) as usize;
            self.clients[index].due += 1;
            self.send_due(index);
        }
        self.next_publication_ns = turns.due_ns().unwrap_or(u64::MAX);
        self.publish_turns = Some(turns);
    }

    /// Begins the closed loop of every client with the warm-up, or when the shape wants it to ask.
    pub(super) fn start_closed_loop(&mut self, now: u64) {
        let is_running = (self.marks.warm_up_ns..self.marks.load_end_ns).contains(&now);
        if self.config.traffic != Traffic::ClosedLoop || !is_running || (self.has_started_loop && self.share.is_none())
        {
            return;
        }
        self.has_started_loop = true;
        let active = match &self.share {
            None => self.clients.len(),
            Some((origin_ns, warp)) => {
                // Client i of N asks while the factor is above i/N.
                let active = (warp.factor_at(now - origin_ns) * f64::from(self.config.clients)).ceil() as u32;
                self.config.own_of(active) as usize
            }
        };
        let before = std::mem::replace(&mut self.active, active.min(self.clients.len()));
        for index in before..self.active {
            let client = &mut self.clients[index];
            if !client.is_waiting {
                client.due = client.sent + 1;
                self.send_due(index);
            }
        }
    }

    /// Sends what waits at one client: all of it in frames, one at a time by POST.
    pub(super) fn send_due(&mut self, index: usize) {
        while R::UPLINK == Uplink::Posts && self.clients[index].receiver.has_own_post() {
            if !self.send_own_post(index) {
                return;
            }
        }
        while self.clients[index].sent < self.clients[index].due {
            let is_sent = match R::UPLINK {
                Uplink::Frames => self.send_frame(index),
                Uplink::Posts => self.send_post(index),
            };
            if !is_sent {
                return;
            }
        }
    }

    fn send_frame(&mut self, index: usize) -> bool {
        let client = &self.clients[index];
        if !client.is_subscribed || self.connections.is_blocked(client.down) {
            return false;
        }
        let Some((sending, stamp)) = self.next_stamp(index) else { return false };
        self.config.requests.turn_to_source(stamp.source);
        let Self { config, clients, connections, rng, out, text, compression, .. } = self;
        let Some(payload) = &mut config.payload else { return false };
        text.clear();
        let data = payload.stamped(&stamp);
        clients[index].receiver.encode_frame(&config.requests, sending, data, text);
        let Some(stream) = clients[index].down else { return false };
        let Some(connection) = connections.at(stream.connection) else { return false };
        out.clear();
        match compression.deflate(text, clients[index].receiver.compressed_bytes_max()) {
            None => {
                encode_text(out, text, rng);
                out.note_payload(data.len());
            }
            Some(small) => {
                encode_compressed_text(out, &small, rng);
                out.note_payload(data.len() * small.len() / text.len());
            }
        }
        let now = monotonic_ns();
        match connection.offer(stream.number, out) {
            Ok(None) => false,
            Ok(Some(taken)) => {
                let handed = out.tally();
                self.count_handed(handed, now);
                self.has_sent(index, &stamp, taken, now, self.clients[index].free_ns);
                self.count_tls(stream.connection, now);
                true
            }
            Err(error) => {
                self.cut(index, &Cut::Io(error));
                false
            }
        }
    }

    fn send_post(&mut self, index: usize) -> bool {
        let may_publish = R::POSTS_UNSUBSCRIBED || self.clients[index].is_subscribed;
        if !may_publish || !self.can_post(index) {
            return false;
        }
        let Some((sending, stamp)) = self.next_stamp(index) else {
            self.release_unused_up(index);
            return false;
        };
        self.config.requests.turn_to_source(stamp.source);
        let Self { config, clients, connections, out, .. } = self;
        let Client { receiver, up, .. } = &mut clients[index];
        let (Some(payload), Some(up)) = (&mut config.payload, up) else { return false };
        let stream = up.stream;
        let Some(connection) = connections.at(stream.connection) else { return false };
        out.clear();
        let data = payload.stamped(&stamp);
        receiver.encode_post(&config.requests, sending, data, out);
        out.note_payload(data.len());
        let now = monotonic_ns();
        match connection.offer(stream.number, out) {
            Ok(None) => false,
            Ok(Some(taken)) => {
                let handed = out.tally();
                let free_ns = up.free_ns;
                up.posts.has_sent(sending);
                self.count_request(index, now);
                self.count_handed(handed, now);
                self.has_sent(index, &stamp, taken, now, free_ns);
                self.count_tls(stream.connection, now);
                true
            }
            Err(error) => {
                self.cut_up(index, &Cut::Io(error));
                false
            }
        }
    }

    /// Whether a POST may be sent now; opens the posting connection where there is none.
    fn can_post(&mut self, index: usize) -> bool {
        if self.clients[index].up.is_none() {
            if self.clients[index].is_up_resting {
                return false;
            }
            self.connect_up(index);
        }
        let Some(up) = &self.clients[index].up else { return false };
        up.is_connected && !up.posts.is_waiting() && !self.connections.is_blocked(Some(up.stream))
    }

    /// Sends what the protocol client itself has to post.
    #[cold]
    fn send_own_post(&mut self, index: usize) -> bool {
        if !self.can_post(index) {
            return false;
        }
        let Self { clients, connections, out, .. } = self;
        let Client { receiver, up: Some(up), .. } = &mut clients[index] else { return false };
        let stream = up.stream;
        let Some(connection) = connections.at(stream.connection) else { return false };
        out.clear();
        receiver.encode_own_post(out);
        let now = monotonic_ns();
        match connection.offer(stream.number, out) {
            Ok(None) => false,
            Ok(Some(taken)) => {
                let handed = out.tally();
                up.posts.has_sent(Sending::Publish);
                self.count_request(index, now);
                self.count_handed(handed, now);
                self.count_sent(taken, now);
                self.count_tls(stream.connection, now);
                true
            }
            Err(error) => {
                self.cut_up(index, &Cut::Io(error));
                false
            }
        }
    }

    /// What the client sends next: the stamp bears the intended instant, however late it is by now.
    fn next_stamp(&mut self, index: usize) -> Option<(Sending, Stamp)> {
        let source = self.client_number(index);
        let client = &mut self.clients[index];
        match self.config.traffic {
            Traffic::Silent => None,
            Traffic::Paced(_) | Traffic::Upstream => {
                let (sending, (pacing, _)) = (self.config.traffic.sending()?, self.pacing.as_ref()?);
                if let Some(rooms) = &self.rooms {
                    return Some((sending, rooms.next_stamp(index, pacing)));
                }
                let instant_ns = pacing.due_ns(pacing.index_of(source, u64::from(client.sent)));
                Some((sending, Stamp { source, sequence: client.sent, instant_ns }))
            }
            Traffic::ClosedLoop => {
                let now = monotonic_ns() / RESOLUTION_NS * RESOLUTION_NS;
                if now >= self.marks.load_end_ns || index >= self.active {
                    client.due = client.sent;
                    return None;
                }
                if now >= self.marks.load_ns && !std::mem::replace(&mut client.is_counting, true) {
                    (client.sent, client.due) = (0, 1);
                }
                Some((Sending::Echo, Stamp { source, sequence: client.sent, instant_ns: now }))
            }
            Traffic::Broadcasts => {
                let now = monotonic_ns() / RESOLUTION_NS * RESOLUTION_NS;
                if now >= self.marks.load_end_ns
                    || !self.feeding.as_ref()?.is_free(index)
                    || client.sent >= MAX_SEQUENCE
                {
                    client.due = client.sent;
                    return None;
                }
                self.state.broadcasts()?.begin(source, client.sent);
                Some((Sending::Publish, Stamp { source, sequence: client.sent, instant_ns: now }))
            }
        }
    }

    /// Counts what was sent. That a transport lets a client send later, as one POST waits for the answer to another, is
    /// no lateness of the generator's: it counts from `free_ns`. The latency counts from the intended instant all the
    /// same.
    fn has_sent(&mut self, index: usize, stamp: &Stamp, taken: usize, now: u64, free_ns: u64) {
        let client = &mut self.clients[index];
        client.sent += 1;
        client.is_waiting = self.config.traffic == Traffic::ClosedLoop;
        let is_load = match &self.pacing {
            Some((pacing, load_from)) => {
                let k = pacing.index_of(stamp.source, u64::from(stamp.sequence));
                if let Some(rooms) = &mut self.rooms {
                    rooms.has_sent(index, k, pacing);
                }
                k >= *load_from
            }
            None => self.marks.is_load(stamp.instant_ns),
        };
        if let Some(feeding) = &mut self.feeding {
            feeding.has_sent(index, now);
        }
        self.recorder.published_in_room(is_load, stamp.source);
        self.recorder.published(is_load, now, stamp.instant_ns.max(free_ns));
        self.count_sent(taken, now);
    }

    #[inline]
    pub(super) fn pass_time(&mut self, now: u64) {
        self.windows.pass_time(now, &self.marks, self.recorder.delivered_total);
    }

    pub(super) fn count_sent(&mut self, bytes: usize, now: u64) {
        if self.marks.is_load(now) {
            self.recorder.part.bytes_sent += bytes as u64;
        }
    }

    #[inline]
    pub(super) fn count_received(&mut self, bytes: usize, now: u64) {
        self.pass_time(now);
        self.windows.tally.down.all += bytes as u64;
    }

    /// Counts a message that a socket has taken, whether it has written all of it or holds a part back.
    pub(super) fn count_handed(&mut self, message: WayTally, now: u64) {
        self.pass_time(now);
        self.windows.tally.up += message;
    }

    /// Counts the answer to a poll.
    pub(super) fn count_poll(&mut self, has_news: bool, now: u64) {
        self.pass_time(now);
        if self.windows.is_load() {
            self.recorder.part.polls += 1;
            self.recorder.part.polls_empty += u64::from(!has_news);
        }
    }

    pub(super) fn count_request(&mut self, index: usize, now: u64) {
        self.pass_time(now);
        self.windows.requests += 1;
        if self.windows.is_load() {
            let is_publisher = self.client_number(index) < self.config.publishers;
            self.recorder.part.requests_publishers += u64::from(is_publisher);
        }
    }
}
