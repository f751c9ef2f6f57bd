//! One event loop, its log, and clients that do as they like.

use crate::client::{Client, some_data};
use crate::event_loop::{EventLoop, Limits, Ready};
use crate::fault::{Fault, Seam};
use crate::link::Socket;
use crate::slow_log::SlowLog;
use crate::tally::{Happening, Tally};
use crate::truth::{CHANNELS, Checked, Finding, Kind, Truth, found};
use fastrand::Rng;
use pushlab_session::gate::Gate;
use pushlab_session::queue::{Policy, QueueRules};
use pushlab_session::rules::Rules;
use pushlab_session::site::{Guests, Site};
use pushlab_wire::cursor::Epoch;
use std::time::Duration;

const CLIENTS: usize = 10;
/// Steps between two looks at everything at rest.
const STEPS_TO_REST: u32 = 1000;
/// Turns in which everything comes to rest.
const MAX_ROUNDS: u32 = 2000;

pub struct World {
    rng: Rng,
    seed: u64,
    fault: Option<Fault>,
    limits: Limits,
    history: pushlab_log::Limits,
    slow_percent: u32,
    has_large: bool,
    truth: Truth,
    event_loop: EventLoop,
    clients: Vec<Client>,
    /// Turns in which the log answers nothing.
    stalled_turns: u32,
    /// Steps until a server that stops is gone.
    steps_left: Option<u32>,
    tally: Tally,
    restarts: u64,
}

fn rules(rng: &mut Rng) -> Rules {
    Rules {
        gate: Gate { site: Site { guests: Guests::Everybody, ..Site::default() }, ..Gate::default() },
        has_application: false,
        echoes: false,
        is_tls: false,
        max_head_bytes: 2048,
        max_body_bytes: 4096,
        max_message_bytes: 4096,
        compression_from: rng.bool().then(|| rng.usize(..200)),
        max_channels: 4,
        max_reply_bytes: one_of(rng, [100, 1500, 64 * 1024]),
        max_wait: Duration::from_secs(8),
        head_timeout: Duration::from_secs(4),
        answer_timeout: Duration::from_secs(4),
        write_timeout: Duration::from_secs(6),
        idle_timeout: Duration::from_secs(8),
        heartbeat: Duration::from_secs(5),
        first_heartbeat: Duration::from_secs(1),
    }
}

fn one_of<T: Copy, const N: usize>(rng: &mut Rng, values: [T; N]) -> T {
    values[rng.usize(..N)]
}

/// How much history is kept, and whether publications are so large that it takes several parts to catch up.
fn history(rng: &mut Rng) -> (pushlab_log::Limits, bool) {
    if rng.u32(..3) == 0 {
        return (pushlab_log::Limits::default(), true);
    }
    let limits = pushlab_log::Limits {
        max_channels: one_of(rng, [2, 4, 100]),
        max_channel_messages: one_of(rng, [2, 8, 30, 1000]),
        max_channel_bytes: one_of(rng, [2000, 400_000]),
        max_bytes: one_of(rng, [10_000, 1_000_000]),
        max_age: Duration::from_secs(one_of(rng, [3, 20, 1000])),
        ..pushlab_log::Limits::default()
    };
    (limits, rng.u32(..4) == 0)
}

impl World {
    pub fn new(seed: u64, fault: Option<Fault>) -> Self {
        let mut rng = Rng::with_seed(seed);
        let policy = [Policy::Close, Policy::DropOldest, Policy::Conflate][(seed % 3) as usize];
        let limits = Limits {
            queue: QueueRules {
                max_messages: rng.usize(2..12),
                max_bytes: one_of(&mut rng, [300, 1000, 5000, 40_000]),
                policy,
            },
            splits_events: rng.u32(..4) == 0,
            max_unread_replies_bytes: one_of(&mut rng, [0, 50, 500, 64 * 1024]),
            read_buffer_bytes: one_of(&mut rng, [256, 64 * 1024]),
            max_work: one_of(&mut rng, [2, 256]),
        };
        let (history, has_large) = history(&mut rng);
        let slow_percent = one_of(&mut rng, [0, 10, 50]);
        let rules = rules(&mut rng);
        let epoch = Epoch::from_number(1);
        let log = SlowLog::new(epoch, history.clone(), slow_percent, rng.fork());
        let clients = (0..CLIENTS).map(|_| Client::new(rng.fork(), policy, slow_percent > 0, rules.max_channels));
        let clients = clients.collect();
        Self {
            seed,
            fault,
            limits,
            history,
            slow_percent,
            has_large,
            truth: Truth::new(epoch),
            event_loop: EventLoop::new(rules, limits, log, Seam::new(fault, rng.fork()), 0),
            clients,
            stalled_turns: 0,
            steps_left: None,
            tally: Tally::default(),
            restarts: 0,
            rng,
        }
    }

    /// Goes so many steps.
    ///
    /// # Errors
    /// What was found wrong, with seed and step.
    pub fn run(mut self, steps: u32) -> Result<Tally, Finding> {
        for step in 1..=steps {
            let result = self.step().and_then(|()| if step % STEPS_TO_REST == 0 { self.rest() } else { Ok(()) });
            result.map_err(|Finding { kind, what }| Finding {
                kind,
                what: format!("{what}\nseed {}, step {step}, {:?}", self.seed, self.limits),
            })?;
        }
        self.take_tally();
        Ok(self.tally)
    }

    fn step(&mut self) -> Checked {
        match self.rng.u32(..200) {
            0..32 => self.publish(),
            32..68 => self.turn(),
            68..100 => self.act(),
            100..144 => self.arrive(false),
            144..188 => self.read(false)?,
            188..192 => self.leave()?,
            192..195 => self.event_loop.now += self.rng.u64(..6_000_000_000),
            195 => (0..self.rng.u32(..20)).for_each(|_| self.publish()),
            196 if self.rng.u32(..6) == 0 && self.steps_left.is_none() => self.stop(),
            197 if self.rng.u32(..20) == 0 => self.restart()?,
            _ => {}
        }
        self.look()?;
        match &mut self.steps_left {
            Some(0) => {
                self.rest()?;
                self.restart()
            }
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Takes note of what was published, and of what is wrong.
    fn look(&mut self) -> Checked {
        for publication in self.event_loop.published.drain(..) {
            self.truth.published(&publication)?;
        }
        self.event_loop.check()
    }

    /// Somebody else publishes.
    fn publish(&mut self) {
        let channel = CHANNELS[self.rng.usize(..CHANNELS.len())];
        let data = if self.has_large && self.rng.u32(..16) == 0 {
            format!("\"{}\"", "y".repeat(self.rng.usize(..20_000)))
        } else {
            some_data(&mut self.rng).replace('\n', " ")
        };
        // It is not told whether that is done at once.
        self.event_loop.publish(channel, &data).map(drop).expect("the name is a channel's");
    }

    fn turn(&mut self) {
        self.event_loop.now += self.rng.u64(..100_000_000);
        if self.stalled_turns > 0 {
            // Long enough for heartbeats, and for giving up.
            self.stalled_turns -= 1;
            self.event_loop.now += 200_000_000;
        } else {
            self.event_loop.settle(self.rng.usize(..3));
            if self.slow_percent > 0 && self.rng.u32(..100) == 0 {
                self.stalled_turns = self.rng.u32(..60);
            }
        }
        self.event_loop.turn();
        if self.rng.u32(..16) == 0 {
            let now = self.event_loop.now;
            pushlab_log::Log::expire(&mut self.event_loop.log, now);
        }
    }

    /// A client says something, on a new connection if it has none.
    fn act(&mut self) {
        let client = &mut self.clients[self.rng.usize(..CLIENTS)];
        if client.peer.is_none() && self.steps_left.is_none() {
            let socket = Socket::new(one_of(&mut self.rng, [50, 700, 4000, 1 << 20]));
            let place = self.event_loop.admit(socket.clone());
            client.connect(socket, place);
        }
        client.act(&self.truth);
    }

    /// A client for whom something is to be done, if there is one.
    fn pick(&mut self, is_it: impl Fn(&Client) -> bool) -> Option<usize> {
        let start = self.rng.usize(..CLIENTS);
        (start..start + CLIENTS).map(|index| index % CLIENTS).find(|&index| is_it(&self.clients[index]))
    }

    /// Bytes of a client arrive, cut anywhere; all of them if `is_all`.
    fn arrive(&mut self, is_all: bool) {
        let speaks = |client: &Client| {
            client.peer.as_ref().is_some_and(|peer| {
                peer.head.is_some() || !peer.out.is_empty() || peer.is_ending && !peer.socket.0.borrow().has_ended
            })
        };
        let Some(index) = self.pick(speaks) else { return };
        let peer = self.clients[index].peer.as_mut().expect("it was picked for that");
        let is_much = is_all || self.rng.bool();
        let n = if is_much { peer.out.len() } else { peer.out.len().min(self.rng.usize(1..60)) };
        let is_read_closed = {
            let mut link = peer.socket.0.borrow_mut();
            if let Some(head) = peer.head.take() {
                link.has_ended |= head.1;
                link.head_to_server = Some(head);
            }
            link.to_server.extend(peer.out.drain(..n));
            link.has_ended |= peer.is_ending && peer.out.is_empty();
            link.has_ended
        };
        let place = peer.place;
        self.event_loop.on_event(place, Ready { is_readable: true, is_read_closed, ..Ready::default() });
    }

    /// A client reads some of what has come; all of it if `is_all`.
    fn read(&mut self, is_all: bool) -> Checked {
        let hears = |client: &Client| {
            client.peer.as_ref().is_some_and(|peer| {
                let link = peer.socket.0.borrow();
                !link.to_client.is_empty() || !link.heads_to_client.is_empty() || link.is_shut
            })
        };
        let Some(index) = self.pick(hears) else { return Ok(()) };
        let is_much = is_all || self.rng.bool();
        let max = if is_much { usize::MAX } else { self.rng.usize(1..80) };
        self.read_of(index, max)
    }

    fn read_of(&mut self, index: usize, max: usize) -> Checked {
        let client = &mut self.clients[index];
        client.is_draining = self.event_loop.drain.is_some();
        client.read(max, &self.truth)?;
        let Some(peer) = &client.peer else { return Ok(()) };
        let place = peer.place;
        let (is_end, is_lost) = {
            let mut link = peer.socket.0.borrow_mut();
            let is_lost = link.is_shut && !link.is_whole && self.rng.bool();
            let is_end = link.is_shut && (link.to_client.is_empty() || is_lost);
            if is_end {
                link.has_ended = true;
            }
            (is_end, is_lost)
        };
        if is_end {
            client.disconnect(is_lost)?;
        }
        let ready = Ready { is_readable: is_end, is_writable: true, is_read_closed: is_end, is_error: false };
        self.event_loop.on_event(place, ready);
        Ok(())
    }

    /// A client goes: it says nothing more, or is cut.
    fn leave(&mut self) -> Checked {
        let Some(index) = self.pick(|client| client.peer.is_some()) else { return Ok(()) };
        let client = &mut self.clients[index];
        let Some(peer) = &mut client.peer else { return Ok(()) };
        // A request over HTTP/2 has had its end.
        if self.rng.bool() && (!peer.is_http2 || peer.is_websocket()) {
            peer.is_ending = true;
            return Ok(());
        }
        peer.socket.0.borrow_mut().is_reset = true;
        let place = peer.place;
        client.disconnect(true)?;
        let ready = Ready { is_readable: true, is_writable: true, is_read_closed: true, is_error: true };
        self.event_loop.on_event(place, ready);
        Ok(())
    }

    fn stop(&mut self) {
        self.event_loop.begin_drain();
        self.steps_left = Some(self.rng.u32(..100));
    }

    /// The server is gone; another begins its life, with an empty log.
    fn restart(&mut self) -> Checked {
        self.steps_left = None;
        for index in 0..CLIENTS {
            if self.clients[index].peer.is_some() {
                let max = self.rng.usize(..500);
                self.read_of(index, max)?;
                self.look()?;
                self.clients[index].disconnect(true)?;
            }
        }
        self.take_tally();
        self.tally.count(Happening::Restart);
        self.restarts += 1;
        let epoch = Epoch::from_number(self.restarts + 1);
        self.truth = Truth::new(epoch);
        let log = SlowLog::new(epoch, self.history.clone(), self.slow_percent, self.rng.fork());
        let seam = Seam::new(self.fault, self.rng.fork());
        let now = self.event_loop.now;
        let rules = rules(&mut self.rng);
        self.event_loop = EventLoop::new(rules, self.limits, log, seam, now);
        Ok(())
    }

    /// All that was said arrives and is answered: then nothing may be missing.
    fn rest(&mut self) -> Checked {
        for _ in 0..MAX_ROUNDS {
            for _ in 0..CLIENTS {
                self.arrive(true);
                self.look()?;
                self.read(true)?;
                self.look()?;
            }
            self.event_loop.settle(usize::MAX);
            self.event_loop.turn();
            self.look()?;
            let is_quiet = |client: &Client| {
                client.peer.as_ref().is_none_or(|peer| {
                    let link = peer.socket.0.borrow();
                    let is_told = !peer.is_ending || link.has_ended;
                    let is_heard = link.to_client.is_empty() && link.heads_to_client.is_empty();
                    peer.head.is_none() && peer.out.is_empty() && is_heard && !link.is_shut && is_told
                })
            };
            if self.event_loop.is_idle() && self.clients.iter().all(is_quiet) {
                for client in &mut self.clients {
                    client.is_draining = self.event_loop.drain.is_some();
                    client.check_at_rest(&self.truth)?;
                }
                return Ok(());
            }
        }
        found(Kind::Stuck, "it does not come to rest")
    }

    fn take_tally(&mut self) {
        for client in &mut self.clients {
            self.tally.take(&mut client.memory.tally);
        }
        self.tally.take(&mut self.event_loop.tally);
        self.tally.count_some(Happening::Timeout, self.event_loop.output.counts.timeouts);
        self.tally.count_some(Happening::LogFailure, self.event_loop.log.failures);
    }
}
