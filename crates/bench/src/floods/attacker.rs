//! The attacker: a process on the load's core that says as much as a few connections take, and connects again whenever
//! one is ended.

use super::plan::{Plan, Report, await_start};
use crate::connect;
use mio::net::TcpStream;
use pushlab_attacks::attack::{Attack, Script};
use std::io::{Read as _, Write as _};
use std::time::{Duration, Instant};

/// Connections that attack at the same time.
const CONNECTIONS: usize = 8;
/// Source addresses: of an attack from many, the first of its connections' families.
const FAMILY: u8 = 34;
/// Time in which nothing moves before it is tried again.
const PAUSE: Duration = Duration::from_micros(100);

/// One connection that attacks.
struct Attacker {
    script: Script,
    socket: TcpStream,
    out: Vec<u8>,
    from: usize,
}

/// Attacks for the time of the plan. Begins when it is told to, and prints its report at the end.
pub fn run(plan: &Plan, attack: Attack) -> anyhow::Result<()> {
    let mut report = Report { connections: 0, bytes: 0 };
    let open = |report: &mut Report, attacker: usize| {
        report.connections += 1;
        let family = if attack.is_from_many() { FAMILY + attacker as u8 } else { FAMILY };
        connect::open(plan.address, family, report.connections as usize, b"")
    };
    let mut attackers = Vec::new();
    for n in 0..CONNECTIONS {
        let mut script = Script::new(attack, n);
        let mut out = Vec::new();
        script.begin(&mut out);
        attackers.push(Attacker { script, socket: open(&mut report, n)?, out, from: 0 });
    }
    await_start(plan)?;
    let until = Instant::now() + Duration::from_millis(plan.duration_ms);
    let mut buffer = vec![0; 64 * 1024];
    while Instant::now() < until {
        let mut has_moved = false;
        for (n, attacker) in attackers.iter_mut().enumerate() {
            match attacker.go_on(attack, &mut buffer) {
                Ok(written) => {
                    has_moved |= written > 0;
                    report.bytes += written as u64;
                }
                Err(_) => {
                    has_moved = true;
                    attacker.socket = open(&mut report, n)?;
                    attacker.out.clear();
                    attacker.from = 0;
                    attacker.script.begin(&mut attacker.out);
                }
            }
        }
        if !has_moved {
            std::thread::sleep(PAUSE);
        }
    }
    println!("{}", serde_json::to_string(&report)?);
    Ok(())
}

impl Attacker {
    /// Says more, as much as is taken; fails when the server has ended the connection.
    fn go_on(&mut self, attack: Attack, buffer: &mut [u8]) -> std::io::Result<usize> {
        use std::io::ErrorKind::{UnexpectedEof, WouldBlock};
        if self.from == self.out.len() {
            self.out.clear();
            self.from = 0;
            self.script.go_on(&mut self.out);
        }
        let written = match self.socket.write(&self.out[self.from..]) {
            Ok(written) => written,
            Err(e) if e.kind() == WouldBlock => 0,
            Err(e) => return Err(e),
        };
        self.from += written;
        if attack.reads() {
            match self.socket.read(buffer) {
                Ok(0) => return Err(UnexpectedEof.into()),
                Ok(_) => {}
                Err(e) if e.kind() == WouldBlock => {}
                Err(e) => return Err(e),
            }
        }
        Ok(written)
    }
}
