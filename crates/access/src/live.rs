//! The rules in force, which may be replaced while the server runs, and what was worked out by them.

use crate::file::Access;
use crate::keys::KeyError;
use crate::ledger::Ledger;
use crate::person::Person;
use crate::refusals::Refusals;
use crate::token::TokenError;
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

/// How long a ticket is good for, seconds.
pub const TICKET_S: u64 = 30;
/// Tokens that are remembered as checked; with the longest ones 17 MiB. Checking one takes some 30 to 100 µs.
const MAX_REMEMBERED: usize = 4096;
/// Tickets that wait to be used; with the longest tokens 42 MiB.
const MAX_TICKETS: usize = 10_000;
/// Those of one identity, so that nobody takes them all.
const MAX_TICKETS_EACH: usize = 100;

/// The rules in force.
pub struct LiveAccess {
    access: RwLock<Arc<Access>>,
    remembered: Mutex<HashMap<Box<str>, Arc<Person>>>,
    tickets: Mutex<Tickets>,
    wants_keys: AtomicBool,
    /// What clients take up.
    pub ledger: Arc<Ledger>,
    /// The refused tokens.
    pub refusals: Refusals,
}

#[derive(Default)]
struct Tickets {
    of: HashMap<[u8; 16], Ticket>,
    /// How many each identity has.
    each: HashMap<Arc<str>, usize>,
}

struct Ticket {
    whose: Arc<str>,
    token: Box<str>,
    good_until: u64,
}

impl Tickets {
    fn has_room(&self, whose: &str) -> bool {
        self.of.len() < MAX_TICKETS && self.each.get(whose).is_none_or(|&count| count < MAX_TICKETS_EACH)
    }

    fn take(&mut self, id: [u8; 16]) -> Option<Ticket> {
        let ticket = self.of.remove(&id)?;
        if let Some(count) = self.each.get_mut(&ticket.whose) {
            *count -= 1;
            if *count == 0 {
                self.each.remove(&ticket.whose);
            }
        }
        Some(ticket)
    }

    fn forget_old(&mut self, now_s: u64) {
        let is_old = |ticket: &Ticket| ticket.good_until <= now_s;
        let old: Vec<_> = self.of.iter().filter(|(_, ticket)| is_old(ticket)).map(|(id, _)| *id).collect();
        for id in old {
            self.take(id);
        }
    }
}

/// A lock whose holder panicked guards nothing that could be half done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tells no token, so that none reaches an output by mistake.
impl fmt::Debug for LiveAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LiveAccess").field("rules", &self.rules()).finish_non_exhaustive()
    }
}

impl LiveAccess {
    /// These rules.
    pub fn new(access: Access) -> Self {
        Self {
            access: RwLock::new(Arc::new(access)),
            remembered: Mutex::default(),
            tickets: Mutex::default(),
            wants_keys: AtomicBool::new(false),
            ledger: Arc::default(),
            refusals: Refusals::default(),
        }
    }

    /// The rules in force now.
    pub fn rules(&self) -> Arc<Access> {
        self.access.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the rules. Connections keep what the old ones allowed them until their token expires or is renewed, and without
    /// a token until they end.
    pub fn replace(&self, access: Access) {
        self.replace_if(|_| true, access);
    }

    /// Takes the keys of the key set that these rules asked for. Gives how many of them can check tokens; `None`, and
    /// nothing changes, if other rules are in force by now: the keys may be from an issuer no longer trusted.
    ///
    /// # Errors
    /// [`KeyError`], and the keys stay as they are.
    pub fn take_key_set(
        &self,
        asked: &Arc<Access>,
        contents: &[u8],
        asked_at_ns: u64,
    ) -> Result<Option<usize>, KeyError> {
        let mut access = (**asked).clone();
        let count = access.take_key_set(contents, asked_at_ns)?;
        Ok(self.replace_if(|current| Arc::ptr_eq(current, asked), access).then_some(count))
    }

    /// Forgets the keys of a key set that could not be fetched again while they counted. Says whether it did.
    pub fn forget_old_keys(&self, now_ns: u64) -> bool {
        let rules = self.rules();
        if rules.key_set().is_none_or(|set| set.age(now_ns).is_none_or(|age| age < set.max_age)) {
            return false;
        }
        let mut access = (*rules).clone();
        access.forget_key_set();
        self.replace_if(|current| Arc::ptr_eq(current, &rules), access)
    }

    fn replace_if(&self, is_due: impl FnOnce(&Arc<Access>) -> bool, access: Access) -> bool {
        let mut current = self.access.write().unwrap_or_else(PoisonError::into_inner);
        if !is_due(&current) {
            return false;
        }
        *current = Arc::new(access);
        drop(current);
        // After: what somebody works out by the old rules meanwhile is forgotten too, or was worked out by the new ones.
        lock(&self.remembered).clear();
        true
    }

    /// Who shows a token: a client's, or the key of the back end.
    ///
    /// # Errors
    /// Why it is not taken.
    pub fn person(&self, token: &str, now_s: u64) -> Result<Arc<Person>, TokenError> {
        self.check(token, now_s, &mut 0)
    }

    /// The same, and adds to `checks` how many signatures had to be checked for it: none for one that is remembered, at
    /// least one for any other. A wrong one is not remembered.
    ///
    /// # Errors
    /// Why it is not taken.
    pub fn check(&self, token: &str, now_s: u64, checks: &mut usize) -> Result<Arc<Person>, TokenError> {
        if let Some(known) = lock(&self.remembered).get(token) {
            return if known.has_expired(now_s) { Err(TokenError::Expired) } else { Ok(known.clone()) };
        }
        let rules = self.rules();
        if rules.is_back_end(token) {
            return Ok(rules.back_end());
        }
        let person = rules.person(token, now_s, checks).inspect_err(|error| {
            if *error == TokenError::UnknownKey {
                self.wants_keys.store(true, Ordering::Relaxed);
            }
        })?;
        let person = Arc::new(person);
        let mut remembered = lock(&self.remembered);
        // The rules may have been replaced since: then they are asked again next time.
        if Arc::ptr_eq(&rules, &self.rules()) {
            if remembered.len() >= MAX_REMEMBERED {
                remembered.retain(|_, known| !known.has_expired(now_s));
            }
            if remembered.len() >= MAX_REMEMBERED {
                remembered.clear();
            }
            remembered.insert(token.into(), person.clone());
        }
        Ok(person)
    }

    /// Takes a token for one who cannot send it in a field: `id`, which nobody can guess, stands for it once, for
    /// [`TICKET_S`] seconds. `false`: too many wait to be used, of all or of this identity.
    pub fn give_ticket(&self, id: [u8; 16], whose: &str, token: &str, now_s: u64) -> bool {
        let mut tickets = lock(&self.tickets);
        if !tickets.has_room(whose) {
            tickets.forget_old(now_s);
        }
        let has_room = tickets.has_room(whose);
        if has_room {
            let whose: Arc<str> = whose.into();
            *tickets.each.entry(whose.clone()).or_default() += 1;
            tickets.of.insert(id, Ticket { whose, token: token.into(), good_until: now_s.saturating_add(TICKET_S) });
        }
        has_room
    }

    /// Who shows a ticket, which is thereby used; `checks` is as for [`Self::check`].
    ///
    /// # Errors
    /// [`TokenError::BadTicket`], or why the token behind it is not taken.
    pub fn person_by_ticket(&self, ticket: &str, now_s: u64, checks: &mut usize) -> Result<Arc<Person>, TokenError> {
        let id = u128::from_str_radix(ticket, 16).ok().filter(|_| ticket.len() == 32).map(u128::to_be_bytes);
        let ticket = id.and_then(|id| lock(&self.tickets).take(id)).filter(|ticket| ticket.good_until > now_s);
        self.check(&ticket.ok_or(TokenError::BadTicket)?.token, now_s, checks)
    }

    /// Whether a token came whose key is not known since this was asked last: a newer key set may have it.
    pub fn takes_wish_for_keys(&self) -> bool {
        self.wants_keys.swap(false, Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::Signer;
    use crate::person::Right;
    use serde_json::json;

    const NOW: u64 = 1_800_000_000;
    const SECRET: &str = "0123456789abcdef0123456789abcdef";

    fn access(rules: &str) -> Access {
        let text = format!("[token]\n[[token.key]]\nalgorithm = \"HS256\"\nfile = \"secret\"\n{rules}");
        Access::read(&text, "access.toml", &mut |_| Ok(SECRET.into())).unwrap()
    }

    fn rule(channels: &str) -> String {
        format!("[[rule]]\nwho = \"identified\"\nchannels = [\"{channels}\"]\nmay = [\"subscribe\"]\n")
    }

    fn token(expires_at: u64) -> String {
        Signer::secret(SECRET).token(&json!({ "sub": "ada", "exp": expires_at }))
    }

    #[test]
    fn a_remembered_token_expires_and_follows_new_rules() {
        let live = LiveAccess::new(access(&rule("a")));
        let token = token(NOW + 60);
        let first = live.person(&token, NOW).unwrap();
        let mut checks = 0;
        assert!(Arc::ptr_eq(&first, &live.check(&token, NOW, &mut checks).unwrap()) && checks == 0, "checked once");
        live.check("no token", NOW, &mut checks).unwrap_err();
        assert_eq!(checks, 1);
        assert_eq!(live.person(&token, NOW + 65).unwrap_err(), TokenError::Expired);
        live.replace(access(&rule("b")));
        let again = live.person(&token, NOW).unwrap();
        assert!(again.may(Right::Subscribe, "b") && !again.may(Right::Subscribe, "a"));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let live = LiveAccess::new(access(&rule("a")));
        for n in 0..2 * MAX_REMEMBERED as u64 {
            live.person(&token(NOW + 60 + n), NOW).unwrap();
        }
        assert!(lock(&live.remembered).len() <= MAX_REMEMBERED);
        for wrong in 0..100 {
            live.person(&format!("{}{wrong}", token(NOW + 60)), NOW).unwrap_err();
        }
        assert!(lock(&live.remembered).len() <= MAX_REMEMBERED);
    }

    #[test]
    fn a_ticket_is_good_once_and_not_for_long() {
        let live = LiveAccess::new(access(&rule("a")));
        let token = token(NOW + 600);
        assert!(live.give_ticket([7; 16], "ada", &token, NOW) && live.give_ticket([8; 16], "ada", &token, NOW));
        let ticket = "07".repeat(16);
        assert_eq!(live.person_by_ticket(&ticket, NOW, &mut 0).unwrap().identity(), Some("ada"));
        for bad in [&*ticket, &"08".repeat(15), "", &"zz".repeat(16)] {
            assert_eq!(live.person_by_ticket(bad, NOW, &mut 0).unwrap_err(), TokenError::BadTicket, "{bad}");
        }
        assert_eq!(live.person_by_ticket(&"08".repeat(16), NOW + TICKET_S, &mut 0).unwrap_err(), TokenError::BadTicket);
        let given = (0..MAX_TICKETS as u128).filter(|n| live.give_ticket(n.to_be_bytes(), "ada", &token, NOW)).count();
        assert_eq!(given, MAX_TICKETS_EACH, "nobody takes them all");
        for n in 0..(MAX_TICKETS - MAX_TICKETS_EACH) as u128 {
            assert!(live.give_ticket((n | 1 << 100).to_be_bytes(), &format!("n{n}"), &token, NOW), "{n}");
        }
        assert!(!live.give_ticket([9; 16], "bob", &token, NOW), "too many");
        assert!(live.give_ticket([9; 16], "bob", &token, NOW + TICKET_S), "the old ones are forgotten");
        let left = lock(&live.tickets);
        assert_eq!((left.of.len(), left.each.len()), (1, 1));
    }

    #[test]
    fn no_secret_is_printed() {
        let text = format!("{}\n[back_end]\nkey_file = \"key\"\n", rule("a"));
        let live = LiveAccess::new(access(&text));
        let token = token(NOW + 60);
        live.person(&token, NOW).unwrap();
        assert!(live.give_ticket([7; 16], "ada", &token, NOW));
        let printed = format!("{live:?}");
        assert!(printed.contains("rules") && !printed.contains(SECRET) && !printed.contains(&token), "{printed}");
    }

    #[test]
    fn a_key_set_counts_for_the_rules_that_asked_and_for_its_time() {
        let set = |signer: &Signer| json!({ "keys": [signer.entry("k")] }).to_string();
        let by = |signer: &Signer| signer.token_with(json!({ "kid": "k" }), &json!({ "sub": "ada", "exp": NOW + 60 }));
        let rules = |more: &str| {
            let text =
                format!("[token]\nkey_set = \"https://id.example/{more}\"\nkey_set_max_age_s = 100\n{}", rule("a"));
            Access::read(&text, "access.toml", &mut |_| unreachable!()).unwrap()
        };
        let (old, new) = (Signer::ed25519(), Signer::ed25519());
        let live = LiveAccess::new(rules("old"));
        let is_good = |signer: &Signer| live.person(&by(signer), NOW).is_ok();
        let asked = live.rules();
        assert_eq!(live.take_key_set(&asked, set(&old).as_bytes(), 0).unwrap(), Some(1));
        let asked_again = live.rules();
        assert!(is_good(&old) && !is_good(&new));
        live.replace(rules("new"));
        assert_eq!(live.take_key_set(&live.rules(), set(&new).as_bytes(), 0).unwrap(), Some(1));
        for late in [asked, asked_again] {
            assert_eq!(live.take_key_set(&late, set(&old).as_bytes(), 0).unwrap(), None);
        }
        assert!(is_good(&new) && !is_good(&old));
        assert!(live.take_key_set(&live.rules(), b"nonsense", 0).is_err() && is_good(&new));
        assert!(!live.forget_old_keys(100_000_000_000 - 1) && is_good(&new));
        assert!(live.forget_old_keys(100_000_000_000) && !is_good(&new));
        assert!(!live.forget_old_keys(u64::MAX), "there are none");
        assert_eq!(live.take_key_set(&live.rules(), set(&new).as_bytes(), 0).unwrap(), Some(1));
        assert!(is_good(&new));
        assert_eq!(live.take_key_set(&live.rules(), b"{\"keys\":[]}", 0).unwrap(), Some(0));
        assert!(!is_good(&new), "none is none");
    }

    #[test]
    fn an_unknown_key_is_asked_for() {
        let live = LiveAccess::new(access(&rule("a")));
        let other =
            Signer::secret(SECRET).token_with(json!({ "alg": "RS256" }), &json!({ "sub": "a", "exp": NOW + 1 }));
        assert!(!live.takes_wish_for_keys());
        assert_eq!(live.person(&other, NOW).unwrap_err(), TokenError::UnknownKey);
        assert!(live.takes_wish_for_keys() && !live.takes_wish_for_keys());
    }
}
