//! Passwords: kept as what argon2id makes of them, compared slowly on purpose, and not too often.

use super::values::{AccountName, Password};
use crate::allowance::{Allowances, Peer};
use crate::lock::lock;
use crate::refusals::failed;
use argon2::password_hash::Error;
use argon2::password_hash::phc::{Output, ParamsString, PasswordHash, Salt};
use argon2::{Algorithm, Argon2, Block, Params, Version};
use pushlab_application::requests::Refusal;
use pushlab_application::secret::Secret;
use pushlab_wire::codes::ErrorCode;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Memory of one hash, KiB: 19 MiB, with [`PASSES`] the least that OWASP's *Password Storage Cheat Sheet* names.
const MEMORY_KIB: u32 = 19 * 1024;
/// Passes over that memory.
const PASSES: u32 = 2;
/// Hashes that are made at once: 2, so 38 MiB at most, however many ask.
pub const MAX_HASHES: usize = 2;
/// Those who wait for these: 4. With them it is six threads at most, and what needs no hash has the others.
pub const MAX_WAITING: usize = 4;
/// How long they wait; then the server says that it is overloaded.
const MAX_HASH_QUEUE: Duration = Duration::from_secs(2);
/// Log-ins from one address to one name that may fail at once: 5, and then one every [`RETRY_INTERVAL`]. Not those of
/// all addresses together: then anybody could keep somebody out.
pub const MAX_FAILURES: u32 = 5;
/// After which time one more log-in may fail.
pub const RETRY_INTERVAL: Duration = Duration::from_secs(10);
/// Log-ins from one address at once, to whatever names: 300, and then one every [`LOG_IN_INTERVAL`]. So many because a
/// proxy's visitors have one address.
pub const MAX_LOG_INS: u32 = 300;
/// Five a second: a tenth or so of what [`MAX_HASHES`] allow.
pub const LOG_IN_INTERVAL: Duration = Duration::from_millis(200);
/// Registrations from one address at once: 300, and then one every [`REGISTRATION_INTERVAL`].
pub const MAX_REGISTRATIONS: u32 = 300;
/// 60 a minute.
pub const REGISTRATION_INTERVAL: Duration = Duration::from_secs(1);

/// Makes and compares hashes.
pub struct Passwords {
    line: Mutex<Line>,
    freed: Condvar,
    registrations: Mutex<Allowances<Peer>>,
    log_ins: Mutex<Allowances<Peer>>,
    failures: Mutex<Allowances<(Peer, String)>>,
    /// What a password is compared with where there is no account, so that the answer takes as long.
    decoy: String,
}

/// Where a hash is made.
type Memory = Vec<Block>;

/// How many make hashes, and how many wait to.
#[derive(Default)]
struct Line {
    running: usize,
    waiting: usize,
    /// Of those who have made theirs. It is kept for the next: an allocator that gets it back holds some for each thread,
    /// in pieces, which came to 900 MiB in three seconds of log-ins.
    memories: Vec<Memory>,
}

impl Line {
    fn is_full(&self) -> bool {
        self.running >= MAX_HASHES
    }
}

/// The operating system gave no random bytes, or the hash could not be made.
#[derive(Debug, thiserror::Error)]
pub enum HashError {
    /// No random bytes.
    #[error("no random bytes: {0}")]
    Random(#[from] std::io::Error),
    /// No hash.
    #[error("no hash of a password: {0}")]
    Hash(Error),
}

/// A place among the hashes that are made at once.
struct Turn<'p> {
    passwords: &'p Passwords,
    memory: Memory,
}

impl Passwords {
    /// Makes the hash that stands for accounts that do not exist.
    pub fn new() -> Result<Self, HashError> {
        let mut line = Line::default();
        let mut memory = Memory::default();
        let decoy = new_hash(&[], &mut memory)?;
        line.memories.push(memory);
        let registrations = Mutex::new(Allowances::new(MAX_REGISTRATIONS, REGISTRATION_INTERVAL));
        let log_ins = Mutex::new(Allowances::new(MAX_LOG_INS, LOG_IN_INTERVAL));
        let failures = Mutex::new(Allowances::new(MAX_FAILURES, RETRY_INTERVAL));
        let (line, freed) = (Mutex::new(line), Condvar::default());
        Ok(Self { line, freed, registrations, log_ins, failures, decoy })
    }

    /// What to keep of a password.
    pub fn hash(&self, password: &Password) -> Result<String, Refusal> {
        let mut turn = self.turn()?;
        new_hash(password.as_bytes(), &mut turn.memory).map_err(|error| failed("auction", &error))
    }

    /// Takes one of the registrations from an address; to be asked before anything that costs more.
    pub fn allow_registration(&self, peer: Peer) -> Result<(), Refusal> {
        let taken = lock(&self.registrations).take(peer, Instant::now());
        taken.map_err(|wait| too_many("too many register from your address", wait))
    }

    /// Takes one of the log-ins from an address, and one of those from there to this name, which
    /// [`Self::succeeded`] gives back; to be asked before anything that costs more.
    pub fn allow_log_in(&self, peer: Peer, name: &AccountName) -> Result<(), Refusal> {
        let now = Instant::now();
        let taken = lock(&self.log_ins).take(peer, now);
        taken.map_err(|wait| too_many("too many log in from your address", wait))?;
        let taken = lock(&self.failures).take((peer, name.key()), now);
        taken.map_err(|wait| too_many("too many log-ins to this name have failed", wait))
    }

    /// A log-in did not fail.
    pub fn succeeded(&self, peer: Peer, name: &AccountName) {
        lock(&self.failures).forget(&(peer, name.key()));
    }

    /// Whether the password is the one that the hash was made of; without a hash it is not, after the same time.
    pub fn check(&self, password: &Password, hash: Option<&str>) -> Result<bool, Refusal> {
        let mut turn = self.turn()?;
        let kept = hash.unwrap_or(&self.decoy);
        let is_it = fits(password.as_bytes(), kept, &mut turn.memory);
        is_it.map(|is_it| is_it && hash.is_some()).map_err(|error| failed("auction", &HashError::Hash(error)))
    }

    fn turn(&self) -> Result<Turn<'_>, Refusal> {
        let text = "too many people are logging in or registering; try again in a moment";
        let refusal = || Refusal::new(ErrorCode::Overloaded, text);
        let mut line = lock(&self.line);
        if line.is_full() && line.waiting >= MAX_WAITING {
            return Err(refusal());
        }
        line.waiting += 1;
        let waited = self.freed.wait_timeout_while(line, MAX_HASH_QUEUE, |line| line.is_full());
        let mut line = waited.unwrap_or_else(PoisonError::into_inner).0;
        line.waiting -= 1;
        if line.is_full() {
            return Err(refusal());
        }
        line.running += 1;
        Ok(Turn { passwords: self, memory: line.memories.pop().unwrap_or_default() })
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut line = lock(&self.passwords.line);
        line.running -= 1;
        line.memories.push(std::mem::take(&mut self.memory));
        self.passwords.freed.notify_one();
    }
}

fn too_many(what: &str, wait: Duration) -> Refusal {
    let text = format!("{what}; try again after the seconds in Retry-After");
    Refusal::new(ErrorCode::LimitReached, text).after(wait)
}

/// What to keep of a password, with a salt of its own.
fn new_hash(password: &[u8], memory: &mut Memory) -> Result<String, HashError> {
    let salt = Secret::new()?.to_string();
    salted(password, &salt, memory).map_err(HashError::Hash)
}

fn salted(password: &[u8], salt: &str, memory: &mut Memory) -> Result<String, Error> {
    let params = Params::new(MEMORY_KIB, PASSES, 1, None).expect("within argon2's limits");
    let mut hash = PasswordHash {
        algorithm: Algorithm::Argon2id.ident(),
        version: Some(Version::V0x13.into()),
        params: ParamsString::try_from(&params)?,
        salt: Some(Salt::new(salt.as_bytes())?),
        hash: None,
    };
    hash.hash = Some(output(password, &hash, memory)?);
    Ok(hash.to_string())
}

/// Whether a password is the one that a hash was made of.
fn fits(password: &[u8], hash: &str, memory: &mut Memory) -> Result<bool, Error> {
    let hash = PasswordHash::new(hash)?;
    // Outputs are compared in constant time.
    let kept = hash.hash.ok_or(Error::PasswordInvalid)?;
    Ok(output(password, &hash, memory)? == kept)
}

/// What a password comes to with the algorithm, parameters and salt of a hash.
fn output(password: &[u8], hash: &PasswordHash, memory: &mut Memory) -> Result<Output, Error> {
    let version = hash.version.ok_or(Error::Version)?;
    let params = Params::try_from(hash)?;
    let salt = hash.salt.as_ref().ok_or(Error::SaltInvalid)?;
    memory.resize(params.block_count(), Block::new());
    let mut output = [0; Params::DEFAULT_OUTPUT_LEN];
    let argon2 = Argon2::new(hash.algorithm.as_str().try_into()?, version.try_into()?, params);
    argon2.hash_password_into_with_memory(password, salt, &mut output, memory)?;
    Ok(Output::new(&output)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use argon2::{PasswordHasher as _, PasswordVerifier as _};

    fn name(text: &str) -> AccountName {
        AccountName::parse(text).expect("a good name")
    }

    fn peer(last: u8) -> Peer {
        Peer::from(std::net::IpAddr::from([192, 0, 2, last]))
    }

    fn password(text: &str) -> Password {
        Password::parse(text.to_owned()).expect("a good password")
    }

    #[test]
    fn a_hash_is_argon2id_and_each_has_its_salt() {
        let passwords = Passwords::new().expect("hashes");
        let (one, other) = (passwords.hash(&password("swordfish")), passwords.hash(&password("swordfish")));
        let (one, other) = (one.expect("a hash"), other.expect("a hash"));
        assert!(one.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{one}");
        assert_ne!(one, other);
        assert!(one.len() <= 255, "fits its column");
        let check = |text: &str, hash| passwords.check(&password(text), hash).expect("a turn");
        assert!(check("swordfish", Some(&one)) && check("swordfish", Some(&other)));
        assert!(!check("Swordfish", Some(&one)));
        assert!(!check("swordfish", None), "nobody has the decoy's password");
        // What argon2's own way of making hashes has made, and no memory of ours.
        let argon2 = Argon2::default();
        assert_eq!(argon2.params().m_cost(), MEMORY_KIB);
        let foreign = argon2.hash_password_with_salt(b"swordfish", b"0123456789abcdef").expect("a hash").to_string();
        assert!(check("swordfish", Some(&foreign)) && !check("swordfisj", Some(&foreign)));
        assert_eq!(argon2.verify_password(b"swordfish", &*one), Ok(()));
    }

    #[test]
    fn log_ins_that_fail_become_rare_for_their_name_and_address_alone() {
        let passwords = Passwords::new().expect("hashes");
        let attempt = |last, who: &str| passwords.allow_log_in(peer(last), &name(who)).map_err(|r| r.code());
        for _ in 0..MAX_FAILURES {
            assert_eq!(attempt(1, "ada"), Ok(()));
        }
        assert_eq!(attempt(1, "ADA"), Err(ErrorCode::LimitReached), "one too many, in other capitals");
        assert_eq!(attempt(1, "bob"), Ok(()), "another name is free");
        assert_eq!(attempt(2, "ada"), Ok(()), "and she herself, elsewhere, is not kept out");
        for _ in 0..2 * MAX_FAILURES {
            assert_eq!(attempt(3, "eve"), Ok(()), "success costs nothing");
            passwords.succeeded(peer(3), &name("eve"));
        }
    }

    #[test]
    fn one_address_registers_and_logs_in_at_a_pace() {
        let passwords = Passwords::new().expect("hashes");
        let begun = Instant::now();
        let register = |last| passwords.allow_registration(peer(last)).map_err(|r| r.code());
        let log_in = |last, n| passwords.allow_log_in(peer(last), &name(&format!("n{n}"))).map_err(|r| r.code());
        let count = (0..2 * MAX_REGISTRATIONS).take_while(|_| register(1).is_ok()).count() as u32;
        let back = begun.elapsed().as_millis() / REGISTRATION_INTERVAL.as_millis() + 1;
        assert!((MAX_REGISTRATIONS..=MAX_REGISTRATIONS + back as u32).contains(&count), "{count}");
        let count = (0..2 * MAX_LOG_INS).take_while(|n| log_in(1, *n).is_ok()).count() as u32;
        let back = begun.elapsed().as_millis() / LOG_IN_INTERVAL.as_millis() + 1;
        assert!((MAX_LOG_INS..=MAX_LOG_INS + back as u32).contains(&count), "{count}");
        assert_eq!((register(2), log_in(2, 0)), (Ok(()), Ok(())), "another address is free");
    }

    #[test]
    fn so_many_at_once_so_many_wait_and_the_others_are_refused() {
        let passwords = Passwords::new().expect("hashes");
        let mut turns: Vec<_> = (0..MAX_HASHES).map(|_| passwords.turn().expect("a place")).collect();
        std::thread::scope(|scope| {
            let all = || passwords.hash(&password("swordfish")).map_err(|refusal| refusal.code());
            let waiting: Vec<_> = (0..MAX_WAITING).map(|_| scope.spawn(all)).collect();
            let is_full = || lock(&passwords.line).waiting == MAX_WAITING;
            let begun = Instant::now();
            while !is_full() {
                assert!(begun.elapsed() < MAX_HASH_QUEUE, "they wait");
                std::thread::yield_now();
            }
            assert_eq!(all().expect_err("all places are taken"), ErrorCode::Overloaded);
            assert!(is_full(), "refused while the others wait");
            turns.clear();
            for waiter in waiting {
                waiter.join().expect("no panic").expect("a place");
            }
        });
        passwords.hash(&password("swordfish")).expect("nobody is left in the line");
        assert!(lock(&passwords.line).memories.len() <= MAX_HASHES, "no more memory than for those at once");
    }

    #[test]
    fn nobody_waits_for_ever() {
        let passwords = Passwords::new().expect("hashes");
        let _turns: Vec<_> = (0..MAX_HASHES).map(|_| passwords.turn().expect("a place")).collect();
        let refused = passwords.hash(&password("swordfish")).expect_err("all places are taken");
        assert_eq!(refused.code(), ErrorCode::Overloaded);
        assert_eq!(lock(&passwords.line).waiting, 0);
    }
}
