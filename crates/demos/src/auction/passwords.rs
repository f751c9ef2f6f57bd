//! Passwords: kept as what argon2id makes of them, compared slowly on purpose, and not too often.

use super::values::{AccountName, Password};
use crate::allowance::Allowance;
use crate::failed;
use crate::lock;
use crate::secret::Secret;
use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{Error, PasswordHasher, PasswordVerifier};
use argon2::{Algorithm, Argon2, Params, Version};
use pushlab_server::requests::Refusal;
use pushlab_wire::codes::ErrorCode;
use std::collections::HashMap;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Memory of one hash, KiB: 19 MiB, with [`PASSES`] the least that OWASP's *Password Storage Cheat Sheet* names.
const MEMORY_KIB: u32 = 19 * 1024;
/// Passes over that memory.
const PASSES: u32 = 2;
/// Hashes that are made at once: 2, so 38 MiB at most, however many ask.
pub const MAX_HASHES: usize = 2;
/// How long somebody waits for those before; then the server says that it is overloaded.
const MAX_HASH_QUEUE: Duration = Duration::from_secs(2);
/// Log-ins to one name that may fail at once: 5, and then one every [`RETRY_INTERVAL`].
pub const MAX_FAILURES: u32 = 5;
/// After which time one more log-in may fail.
pub const RETRY_INTERVAL: Duration = Duration::from_secs(10);
/// Names whose failures are remembered: 10,000, 1 MB. At one more all are forgotten, which takes 10,000 hashes.
const MAX_NAMES: usize = 10_000;

/// Makes and compares hashes.
pub struct Passwords {
    argon2: Argon2<'static>,
    running: Mutex<usize>,
    freed: Condvar,
    failures: Mutex<HashMap<String, Allowance>>,
    /// What a password is compared with where there is no account, so that the answer takes as long.
    decoy: String,
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
struct Turn<'p>(&'p Passwords);

impl Passwords {
    /// Makes the hash that stands for accounts that do not exist.
    pub fn new() -> Result<Self, HashError> {
        let params = Params::new(MEMORY_KIB, PASSES, 1, None).expect("within argon2's limits");
        let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
        let decoy = hash(&argon2, &[])?;
        let (running, freed, failures) = Default::default();
        Ok(Self { argon2, running, freed, failures, decoy })
    }

    /// What to keep of a password.
    pub fn hash(&self, password: &Password) -> Result<String, Refusal> {
        let _turn = self.turn()?;
        hash(&self.argon2, password.as_bytes()).map_err(|error| failed("auction", &error))
    }

    /// Whether the password is the one that the hash was made of; without a hash it is not, after the same time.
    pub fn check(&self, name: &AccountName, password: &Password, hash: Option<&str>) -> Result<bool, Refusal> {
        let _turn = self.turn()?;
        self.allow(name)?;
        let kept = hash.unwrap_or(&self.decoy);
        let is_it = match self.argon2.verify_password(password.as_bytes(), kept) {
            Ok(()) => hash.is_some(),
            Err(Error::PasswordInvalid) => false,
            Err(error) => return Err(failed("auction", &HashError::Hash(error))),
        };
        if is_it {
            lock(&self.failures).remove(&name.key());
        }
        Ok(is_it)
    }

    /// Takes one of the log-ins to this name that may fail.
    fn allow(&self, name: &AccountName) -> Result<(), Refusal> {
        let now = Instant::now();
        let mut failures = lock(&self.failures);
        if failures.len() >= MAX_NAMES && !failures.contains_key(&name.key()) {
            failures.clear();
        }
        let allowance = failures.entry(name.key()).or_insert_with(|| Allowance::new(MAX_FAILURES, RETRY_INTERVAL, now));
        allowance.take(now).map_err(|wait| {
            let text = "too many log-ins to this name have failed; try again after the seconds in Retry-After";
            Refusal::new(ErrorCode::LimitReached, text).after(wait)
        })
    }

    fn turn(&self) -> Result<Turn<'_>, Refusal> {
        let full = |running: &mut usize| *running >= MAX_HASHES;
        let waited = self.freed.wait_timeout_while(lock(&self.running), MAX_HASH_QUEUE, full);
        let (mut running, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if full(&mut running) {
            let text = "too many people are logging in or registering; try again in a moment";
            return Err(Refusal::new(ErrorCode::Overloaded, text));
        }
        *running += 1;
        Ok(Turn(self))
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        *lock(&self.0.running) -= 1;
        self.0.freed.notify_one();
    }
}

fn hash(argon2: &Argon2<'_>, password: &[u8]) -> Result<String, HashError> {
    let salt = Secret::new()?.to_string();
    let hash: PasswordHash = argon2.hash_password_with_salt(password, salt.as_bytes()).map_err(HashError::Hash)?;
    Ok(hash.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> AccountName {
        AccountName::parse(text).expect("a good name")
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
        let check = |text: &str, hash| passwords.check(&name("ada"), &password(text), hash).expect("allowed");
        assert!(check("swordfish", Some(&one)) && check("swordfish", Some(&other)));
        assert!(!check("Swordfish", Some(&one)));
        assert!(!check("swordfish", None), "nobody has the decoy's password");
    }

    #[test]
    fn log_ins_that_fail_become_rare_for_their_name_alone() {
        let passwords = Passwords::new().expect("hashes");
        let hash = passwords.hash(&password("swordfish")).expect("a hash");
        let wrong = |who: &str| passwords.check(&name(who), &password("wrong-one"), Some(&hash));
        for _ in 0..MAX_FAILURES {
            assert!(!wrong("ada").expect("allowed"));
        }
        let refused = wrong("ADA").expect_err("one too many, in other capitals");
        assert_eq!(refused.code(), ErrorCode::LimitReached);
        let right = passwords.check(&name("ada"), &password("swordfish"), Some(&hash));
        assert_eq!(right.map_err(|r| r.code()), Err(ErrorCode::LimitReached), "nor the right one");
        assert!(!wrong("bob").expect("another name is free"));
        for _ in 0..2 * MAX_FAILURES {
            assert!(passwords.check(&name("eve"), &password("swordfish"), Some(&hash)).expect("success costs nothing"));
        }
        assert!(lock(&passwords.failures).len() <= 2, "and is not remembered");
    }

    #[test]
    fn a_flood_of_names_takes_bounded_memory() {
        let passwords = Passwords::new().expect("hashes");
        for number in 0..=MAX_NAMES {
            passwords.allow(&name(&format!("n{number}"))).expect("the first of its name");
        }
        assert!(lock(&passwords.failures).len() <= MAX_NAMES);
    }

    #[test]
    fn no_more_than_so_many_at_once() {
        let passwords = Passwords::new().expect("hashes");
        let turns: Vec<_> = (0..MAX_HASHES).map(|_| passwords.turn().expect("a place")).collect();
        let refused = passwords.hash(&password("swordfish")).expect_err("all places are taken");
        assert_eq!(refused.code(), ErrorCode::Overloaded);
        drop(turns);
        passwords.hash(&password("swordfish")).expect("a place");
    }
}
