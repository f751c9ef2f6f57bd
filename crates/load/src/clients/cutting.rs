//! A storm: all clients are cut off at once, and come back when they may.

use super::event_loop::ClientLoop;
use super::hosts::Hosts;
use super::retry::Retry;
use crate::connection::{Protocol, Side};
use crate::transport::Receiver;
use pushlab_os::clock::monotonic_ns;
use std::mem::take;

impl<R: Receiver, P: Protocol> ClientLoop<R, P> {
    /// Cuts all clients off when their time has come. Client i of N comes back at i/N of the time that they are given for
    /// it, from the end of the load phase on.
    pub(super) fn cut_off_when_due(&mut self, now: u64) {
        let Some(over_ns) = self.config.return_over_ns.filter(|_| !self.is_cut_off && now >= self.marks.load_ns) else {
            return;
        };
        self.is_cut_off = true;
        self.cut_all();
        for index in 0..self.clients.len() {
            let (place, all) = (u128::from(self.client_number(index)), u128::from(self.config.clients));
            let after_ns = (u128::from(over_ns) * place / all) as u64;
            self.retries.push(Retry { due_ns: self.marks.load_end_ns + after_ns, client: index, side: Side::Down });
        }
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
            (client.is_down_resting, client.is_up_resting, client.attempts) = (true, false, 0);
            self.subscribed -= u32::from(take(&mut client.is_subscribed));
        }
    }
}
