//! A storm: all clients are cut off at once, and come back when they may.

use super::event_loop::ClientLoop;
use super::hosts::Hosts;
use crate::connection::Protocol;
use crate::transport::Receiver;
use pushlab_os::clock::monotonic_ns;
use std::mem::take;

impl<R: Receiver, P: Protocol> ClientLoop<R, P> {
    /// Cuts all clients off when their time has come, where it is the load that does.
    pub(super) fn cut_off_when_due(&mut self, now: u64) {
        if !self.is_to_be_cut || now < self.marks.load_ns {
            return;
        }
        self.is_to_be_cut = false;
        self.cut_all();
        for index in 0..self.clients.len() {
            if let Some(due_ns) = self.return_ns(index, self.marks.load_ns) {
                self.rest(index, due_ns);
            }
        }
    }

    /// When a client of a storm that was cut off at an instant is to come back, where that is not its own to say.
    pub(super) fn return_ns(&mut self, index: usize, now: u64) -> Option<u64> {
        let (storm, number) = (self.config.storm?, self.client_number(index));
        self.recorder.returns.return_ns(index as u32, storm.share_ns(number, self.config.clients), now)
    }

    /// Resets every connection. The peer is told, as by a proxy that has died, so that the subject knows who is gone; and
    /// unlike a connection that is closed, one that is reset takes no port with it for a minute.
    fn cut_all(&mut self) {
        for number in self.connections.numbers() {
            self.count_tls(number, monotonic_ns());
            if let Some(connection) = self.connections.at(number) {
                connection.socket.reset_when_closed();
            }
            self.connections.close(number);
        }
        self.retries.clear();
        self.hosts = self.config.hosts.map(|limit| Hosts::new(limit, self.clients.len() as u32));
        for client in &mut self.clients {
            (client.down, client.up, client.body) = (None, None, None);
            (client.is_up_resting, client.attempts) = (false, 0);
            self.subscribed -= u32::from(take(&mut client.is_subscribed));
        }
    }
}
