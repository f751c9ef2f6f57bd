//! What happens in the auction house, each thing in one change of the database.
//!
//! A change begins by writing the house's row, whose lock it keeps until it is committed. So changes come one after the
//! other, whatever the database and however many servers use it, and the house's version counts them: in the order of
//! their commits, without holes. What all are to be told of a change is written with it.

use super::change::{Change, ITEM, Tried, attempt};
use super::database::{Failure, Lease, Location, Pool, Row, Value};
use super::model::{Account, Bid, HouseError, Item, Kind, Leading, OwnBid, Told, item, no_house};
use super::schema;
use super::values::{AccountName, Cents, Offer};
use pushlab_application::secret::Secret;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Accounts: 10,000, some 3 MB. At one more those make room that have neither items nor bids: 100 at a time, first
/// those whose last log-in is longest ago.
pub const MAX_ACCOUNTS: i64 = 10_000;
/// Sessions of an account: 10. One more ends the oldest.
pub const MAX_SESSIONS: usize = 10;
/// Items of one account that are in the house at a time: 50.
pub const MAX_ITEMS_OF_ACCOUNT: i64 = 50;
/// Items in the house: 1,000, at worst 5 MB. A list of them is whole.
pub const MAX_ITEMS: i64 = 1000;
/// Bids of an item that are kept and told: the last 1,000, 100 KB.
pub const MAX_HISTORY: i64 = 1000;
/// An item whose auction has ended stays in the house for a week.
pub const KEEP_ENDED_MS: i64 = 7 * 24 * 3600 * 1000;
/// Of how many changes, ended or old items one look gives news.
pub const PAGE: usize = 200;

/// How long a change is tried again where others were in its way, or how long to ask what became of it.
const PATIENCE: Duration = Duration::from_secs(5);

/// The clock by which auctions and sessions end: milliseconds since 1970.
pub type Clock = Arc<dyn Fn() -> i64 + Send + Sync>;

/// The house, in its database.
pub struct House {
    pool: Pool,
    clock: Clock,
}

/// In one statement, so that version and items belong together.
const ITEMS: &str = "
    SELECT i.id, i.name, i.description, o.name, i.minimum_cents, i.expires_ms, l.name, i.leading_cents, i.bids,
           i.ended, i.version, h.version
    FROM auction_house h
    LEFT JOIN auction_items i ON i.id > 0
    LEFT JOIN auction_accounts o ON o.id = i.owner_id
    LEFT JOIN auction_accounts l ON l.id = i.leader_id
    WHERE h.id = 1 ORDER BY i.ended, i.expires_ms, i.id";

const CHANGES: &str = "
    SELECT h.version, c.version, c.message
    FROM auction_house h LEFT JOIN auction_changes c ON c.version > ?
    WHERE h.id = 1 ORDER BY c.version LIMIT ?";

impl House {
    /// The house in the database at a place, whose tables are made if they are not there.
    pub fn open(location: Location, clock: Clock) -> Result<Self, Failure> {
        let house = Self { pool: Pool::new(location, schema::prepare), clock };
        house.version()?;
        Ok(house)
    }

    /// Where its database is.
    pub fn location(&self) -> &Location {
        self.pool.location()
    }

    /// What its clock shows.
    pub fn now_ms(&self) -> i64 {
        (self.clock)()
    }

    /// The version after the latest change.
    pub fn version(&self) -> Result<i64, Failure> {
        let rows = self.read("SELECT version FROM auction_house WHERE id = 1", &[])?;
        rows.first().ok_or_else(no_house)?.integer(0)
    }

    /// Adds an account, and a session of it as [`Self::begin_session`] does.
    pub fn register(&self, name: &AccountName, password_hash: &str, token_hash: &str) -> Result<Account, HouseError> {
        self.change(|change| {
            if !change.run("SELECT id FROM auction_accounts WHERE name_key = ?", &[(&name.key()).into()])?.is_empty() {
                return Err(HouseError::NameTaken);
            }
            if change.count("SELECT COUNT(*) FROM auction_accounts", &[])? >= MAX_ACCOUNTS && !change.make_room()? {
                return Err(HouseError::Full("the house has as many accounts as it may have, and all are in use"));
            }
            let now_ms = self.now_ms();
            let account = Account { id: change.version, name: name.text().to_owned() };
            let sql = "INSERT INTO auction_accounts (id, name, name_key, password_hash, created_ms)
                       VALUES (?, ?, ?, ?, ?)";
            let key = name.key();
            let values =
                [account.id.into(), (&account.name).into(), (&key).into(), password_hash.into(), now_ms.into()];
            change.run(sql, &values)?;
            change.begin_session(&account, token_hash, now_ms)?;
            Ok(account)
        })
    }

    /// The account of this name, and the hash of its password.
    pub fn account(&self, name: &AccountName) -> Result<Option<(Account, String)>, Failure> {
        let sql = "SELECT id, name, password_hash FROM auction_accounts WHERE name_key = ?";
        let rows = self.read(sql, &[(&name.key()).into()])?;
        let read = |row: &Row| Ok((Account { id: row.integer(0)?, name: row.text(1)? }, row.text(2)?));
        rows.first().map(read).transpose()
    }

    /// Adds a session of an account; what its token hashes to is all that is kept of it.
    pub fn begin_session(&self, account: &Account, token_hash: &str) -> Result<(), HouseError> {
        self.change(|change| {
            change.expect(account)?;
            let now_ms = self.now_ms();
            change.run("DELETE FROM auction_sessions WHERE expires_ms <= ?", &[now_ms.into()])?;
            let sql = "SELECT token_hash FROM auction_sessions WHERE account_id = ? ORDER BY expires_ms DESC";
            for old in change.run(sql, &[account.id.into()])?.iter().skip(MAX_SESSIONS - 1) {
                change.run("DELETE FROM auction_sessions WHERE token_hash = ?", &[(&old.text(0)?).into()])?;
            }
            Ok(change.begin_session(account, token_hash, now_ms)?)
        })
    }

    /// Whose session it is, if it is one.
    pub fn session(&self, token_hash: &str) -> Result<Option<Account>, Failure> {
        let sql = "SELECT a.id, a.name FROM auction_sessions s JOIN auction_accounts a ON a.id = s.account_id
                   WHERE s.token_hash = ? AND s.expires_ms > ?";
        let rows = self.read(sql, &[token_hash.into(), self.now_ms().into()])?;
        rows.first().map(|row| Ok(Account { id: row.integer(0)?, name: row.text(1)? })).transpose()
    }

    /// Ends a session.
    pub fn end_session(&self, token_hash: &str) -> Result<(), HouseError> {
        let sql = "DELETE FROM auction_sessions WHERE token_hash = ?";
        self.change(|change| Ok(change.run(sql, &[token_hash.into()]).map(drop)?))
    }

    /// All items, those whose auctions go on first, and the version of the house of which they are.
    pub fn items(&self) -> Result<(i64, Vec<Item>), Failure> {
        let rows = self.read(ITEMS, &[])?;
        let version = rows.first().ok_or_else(no_house)?.integer(11)?;
        let mut items = Vec::with_capacity(rows.len());
        for row in &rows {
            if row.optional_integer(0)?.is_some() {
                items.push(item(row)?);
            }
        }
        Ok((version, items))
    }

    /// An item and its bids, the latest first.
    pub fn item(&self, id: i64) -> Result<(Item, Vec<Bid>), HouseError> {
        let rows = self.read(ITEM, &[id.into()])?;
        let item = item(rows.first().ok_or(HouseError::NoItem)?)?;
        let sql = "SELECT b.number, a.name, b.amount_cents, b.at_ms
                   FROM auction_bids b JOIN auction_accounts a ON a.id = b.bidder_id
                   WHERE b.item_id = ? AND b.number <= ? ORDER BY b.number DESC";
        // Bids are never changed, so those up to the item's number of bids are its history then.
        let rows = self.read(sql, &[id.into(), item.bids.into()])?;
        let read = |row: &Row| {
            Ok(Bid {
                number: row.integer(0)?,
                bidder: row.text(1)?,
                amount_cents: row.integer(2)?,
                at_ms: row.integer(3)?,
            })
        };
        let bids = rows.iter().map(read).collect::<Result<_, Failure>>()?;
        Ok((item, bids))
    }

    /// The highest bid of an account on each item, in the order of items.
    pub fn bids_of(&self, account: &Account) -> Result<Vec<OwnBid>, Failure> {
        let sql = "SELECT item_id, MAX(amount_cents) FROM auction_bids WHERE bidder_id = ?
                   GROUP BY item_id ORDER BY item_id";
        let rows = self.read(sql, &[account.id.into()])?;
        rows.iter().map(|row| Ok(OwnBid { id: row.integer(0)?, amount_cents: row.integer(1)? })).collect()
    }

    /// Adds an item.
    pub fn add(&self, owner: &Account, offer: &Offer) -> Result<Item, HouseError> {
        self.change(|change| {
            change.expect(owner)?;
            if change.count("SELECT COUNT(*) FROM auction_items", &[])? >= MAX_ITEMS {
                return Err(HouseError::Full("the house is full; try again when items have been removed"));
            }
            let own = "SELECT COUNT(*) FROM auction_items WHERE owner_id = ?";
            if change.count(own, &[owner.id.into()])? >= MAX_ITEMS_OF_ACCOUNT {
                return Err(HouseError::Full("one account has 50 items in the house at most; remove one first"));
            }
            let item = Item {
                id: change.version,
                name: offer.name.clone(),
                description: offer.description.clone(),
                owner: owner.name.clone(),
                minimum_cents: offer.minimum.number(),
                expires_ms: offer.expires_ms,
                leading: None,
                bids: 0,
                ended: false,
                version: change.version,
            };
            let sql = "INSERT INTO auction_items
                       (id, owner_id, name, description, minimum_cents, expires_ms, bids, ended, version)
                       VALUES (?, ?, ?, ?, ?, ?, 0, 0, ?)";
            let values: [Value; 7] = [
                item.id.into(),
                owner.id.into(),
                (&item.name).into(),
                (&item.description).into(),
                item.minimum_cents.into(),
                item.expires_ms.into(),
                item.version.into(),
            ];
            change.run(sql, &values)?;
            Ok(change.told(Kind::Added, item))
        })
    }

    /// Removes an item of this owner, with its bids.
    pub fn remove(&self, owner: &Account, id: i64) -> Result<Item, HouseError> {
        self.change(|change| {
            let (item, owner_id) = change.item(id)?;
            if owner_id != owner.id {
                return Err(HouseError::NotOwner);
            }
            change.delete(item)
        })
    }

    /// Takes a bid, if it is at least the minimum and above all others and the auction goes on.
    pub fn bid(&self, bidder: &Account, id: i64, amount: Cents) -> Result<Item, HouseError> {
        self.change(|change| {
            change.expect(bidder)?;
            let (mut item, _) = change.item(id)?;
            let now_ms = self.now_ms();
            // Once the end was announced it is one, whatever a clock says that was set back.
            if item.ended || now_ms >= item.expires_ms {
                return Err(HouseError::Expired);
            }
            let least_cents = item.leading.as_ref().map_or(item.minimum_cents, |leading| leading.amount_cents + 1);
            let amount_cents = amount.number();
            if amount_cents < least_cents {
                return Err(HouseError::Outbid { leading: item.leading, least_cents });
            }
            item.leading = Some(Leading { bidder: bidder.name.clone(), amount_cents });
            item.bids += 1;
            let sql = "UPDATE auction_items SET leader_id = ?, leading_cents = ?, bids = ?, version = ? WHERE id = ?";
            let values = [bidder.id.into(), amount_cents.into(), item.bids.into(), change.version.into(), id.into()];
            change.run(sql, &values)?;
            let sql = "INSERT INTO auction_bids (item_id, number, bidder_id, amount_cents, at_ms)
                       VALUES (?, ?, ?, ?, ?)";
            let values = [id.into(), item.bids.into(), bidder.id.into(), amount_cents.into(), now_ms.into()];
            change.run(sql, &values)?;
            if item.bids > MAX_HISTORY {
                let sql = "DELETE FROM auction_bids WHERE item_id = ? AND number <= ?";
                change.run(sql, &[id.into(), (item.bids - MAX_HISTORY).into()])?;
            }
            Ok(change.told(Kind::Bid, item))
        })
    }

    /// Ends auctions whose time is over, and removes items that ended long ago: of each some. Says whether there may
    /// be more.
    pub fn tidy(&self) -> Result<bool, HouseError> {
        let now_ms = self.now_ms();
        let sql = "SELECT id FROM auction_items WHERE ended = ? AND expires_ms <= ? ORDER BY expires_ms LIMIT ?";
        let over = self.read(sql, &[0.into(), now_ms.into(), (PAGE as i64).into()])?;
        for row in &over {
            self.attend(row.integer(0)?, |change, mut item| {
                if item.ended || self.now_ms() < item.expires_ms {
                    return Err(HouseError::NoItem);
                }
                item.ended = true;
                let sql = "UPDATE auction_items SET ended = 1, version = ? WHERE id = ?";
                change.run(sql, &[change.version.into(), item.id.into()])?;
                Ok(change.told(Kind::Ended, item))
            })?;
        }
        let old = self.read(sql, &[1.into(), (now_ms - KEEP_ENDED_MS).into(), (PAGE as i64).into()])?;
        for row in &old {
            self.attend(row.integer(0)?, |change, item| change.delete(item))?;
        }
        Ok(over.len().max(old.len()) == PAGE)
    }

    /// A change of an item that may be gone, or changed already, by the time.
    fn attend(
        &self,
        id: i64,
        step: impl Fn(&mut Change<'_>, Item) -> Result<Item, HouseError>,
    ) -> Result<(), HouseError> {
        let done = self.change(|change| {
            let (item, _) = change.item(id)?;
            step(change, item)
        });
        match done {
            Ok(_) | Err(HouseError::NoItem) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The house's version, and the changes after another one, [`PAGE`] at most.
    pub fn changes(&self, after: i64) -> Result<(i64, Vec<Told>), Failure> {
        let rows = self.read(CHANGES, &[after.into(), (PAGE as i64).into()])?;
        let version = rows.first().ok_or_else(no_house)?.integer(0)?;
        let mut changes = Vec::new();
        for row in &rows {
            if let Some(version) = row.optional_integer(1)? {
                changes.push(Told { version, message: row.optional_text(2)? });
            }
        }
        Ok((version, changes))
    }

    fn read(&self, sql: &'static str, values: &[Value]) -> Result<Vec<Row>, Failure> {
        self.pool.with(|lease| lease.connection().run(sql, values))
    }

    /// Does `step` in a change of its own, again if others were in its way.
    fn change<T>(&self, step: impl Fn(&mut Change<'_>) -> Result<T, HouseError>) -> Result<T, HouseError> {
        let ticket = Secret::new().map_err(|error| Failure::Refused(error.into()))?.to_string();
        let begun = Instant::now();
        loop {
            match self.pool.with(|lease| attempt(lease, &step, &ticket))? {
                Tried::Committed(value) => return Ok(value),
                Tried::Undone(HouseError::Database(Failure::Busy(_))) if begun.elapsed() < PATIENCE => {
                    std::thread::sleep(Duration::from_millis(fastrand::u64(1..20)));
                }
                Tried::Undone(error) => return Err(error),
                Tried::Uncertain { value, version, failure } => match self.was_committed(version, &ticket) {
                    Some(true) => return Ok(value),
                    Some(false) if begun.elapsed() < PATIENCE => {}
                    Some(false) => return Err(failure.into()),
                    None => return Err(HouseError::Unknown(failure)),
                },
            }
        }
    }

    /// Whether the change with this ticket was committed, asked until there is an answer or patience ends.
    fn was_committed(&self, version: i64, ticket: &str) -> Option<bool> {
        let ask = |lease: &mut Lease<'_>| {
            lease.connection().begin()?;
            let asked = (|| {
                let connection = lease.connection();
                // The server may still be at work on that commit: its change keeps the lock until it is through.
                connection.run("UPDATE auction_house SET version = version WHERE id = 1", &[])?;
                let sql = "SELECT version FROM auction_changes WHERE version = ? AND ticket = ?";
                Ok(!connection.run(sql, &[version.into(), ticket.into()])?.is_empty())
            })();
            // A connection that is lost would be waited for once more, and is closed anyway.
            if !matches!(asked, Err(Failure::Away(_))) {
                lease.undo();
            }
            asked
        };
        let begun = Instant::now();
        loop {
            match self.pool.with(ask) {
                Ok(answer) => return Some(answer),
                Err(_) if begun.elapsed() > PATIENCE => return None,
                Err(_) => std::thread::sleep(Duration::from_millis(50)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::change::{KEEP_CHANGES, REMOVED_AT_ONCE, UNUSED};
    use super::*;
    use std::sync::atomic::{AtomicI64, Ordering};

    fn house() -> House {
        house_at("sqlite::memory:", Arc::new(|| 0))
    }

    fn house_at(url: &str, clock: Clock) -> House {
        House::open(url.parse().expect("a good URL"), clock).expect("it opens")
    }

    fn name(text: &str) -> AccountName {
        AccountName::parse(text).expect("a good name")
    }

    fn account(house: &House, who: &str) -> Result<Account, HouseError> {
        house.register(&name(who), "hash", &format!("token of {who}"))
    }

    fn run(house: &House, sql: &'static str, values: &[Value]) -> Vec<Row> {
        house.pool.with(|lease| lease.connection().run(sql, values)).expect("it is done")
    }

    fn offer() -> Offer {
        Offer::parse("a chair", "", 1, 10_000, 0).expect("a good offer")
    }

    #[test]
    fn accounts_and_kept_changes_have_a_limit() {
        let clock = Arc::new(AtomicI64::new(0));
        let read = clock.clone();
        let house = house_at("sqlite::memory:", Arc::new(move || read.load(Ordering::Relaxed)));
        let all: Vec<Account> = (0..MAX_ACCOUNTS).map(|n| account(&house, &format!("n{n}")).expect("room")).collect();
        assert_eq!(house.changes(0).expect("in memory").1[0].version, MAX_ACCOUNTS - KEEP_CHANGES + 1);
        let chair = house.add(&all[0], &offer()).expect("room");
        let (version, changes) = house.changes(0).expect("in memory");
        assert_eq!((version, changes.len()), (MAX_ACCOUNTS + 1, PAGE));
        assert_eq!(changes[0].version, version - KEEP_CHANGES + 1, "the oldest is gone");

        house.bid(&all[1], chair.id, Cents::parse(5).expect("an amount")).expect("the first");
        house.bid(&all[2], chair.id, Cents::parse(6).expect("an amount")).expect("higher");
        clock.store(1, Ordering::Relaxed);
        house.begin_session(&all[3], "another").expect("there");
        account(&house, "one-more").expect("room is made");
        let is_there = |n: usize| house.account(&name(&format!("n{n}"))).expect("in memory").is_some();
        let removed = REMOVED_AT_ONCE as usize;
        let gone: Vec<usize> = (0..MAX_ACCOUNTS as usize).filter(|n| !is_there(*n)).collect();
        let unused: Vec<usize> = (4..4 + removed).collect();
        assert_eq!(gone, unused, "not the seller, the bidders, nor whoever logged in later");
        assert_eq!(house.session("token of n4").expect("in memory"), None);
        assert_eq!(house.session("token of n3").expect("in memory"), Some(all[3].clone()));
        for error in [
            house.add(&all[4], &offer()).err(),
            house.bid(&all[4], chair.id, Cents::parse(7).expect("an amount")).err(),
            house.begin_session(&all[4], "late").err(),
        ] {
            assert!(matches!(error, Some(HouseError::NoAccount)), "{error:?}");
        }

        for number in 1..REMOVED_AT_ONCE {
            account(&house, &format!("m{number}")).expect("room");
        }
        let sql = "INSERT INTO auction_bids SELECT ?, id + 10, id, 1, 1 FROM auction_accounts";
        run(&house, sql, &[chair.id.into()]);
        let version = house.version().expect("in memory");
        assert!(matches!(account(&house, "too-many"), Err(HouseError::Full(_))), "all are in use");
        assert_eq!(house.version().expect("in memory"), version, "what is refused changes nothing");
    }

    /// Everybody waits while room is made, so items and bids must not be gone through for each account.
    #[test]
    fn making_room_goes_through_each_table_once() {
        let house = house();
        let explain: &'static str = format!("EXPLAIN QUERY PLAN {UNUSED}").leak();
        let plan = run(&house, explain, &[REMOVED_AT_ONCE.into()]);
        let steps: Vec<(i64, i64, String)> = plan
            .iter()
            .map(|row| {
                (row.integer(0).expect("a step"), row.integer(1).expect("its parent"), row.text(3).expect("what"))
            })
            .collect();
        let is_repeated = |id| steps.iter().any(|(step, _, what)| *step == id && what.starts_with("CORRELATED"));
        for (_, parent, what) in &steps {
            assert!(!(what.starts_with("SCAN") && is_repeated(*parent)), "{what}: {steps:#?}");
        }
        assert!(steps.iter().any(|(id, ..)| is_repeated(*id)), "bids and sessions are searched for each: {steps:#?}");
    }

    /// Whoever gets no session has no account either, so that the same name can be registered again.
    #[test]
    fn an_account_comes_with_its_session_or_not_at_all() {
        let house = house();
        let ada = account(&house, "ada").expect("room");
        let refused = house.register(&name("bob"), "hash", "token of ada");
        assert!(matches!(refused, Err(HouseError::Database(Failure::Refused(_)))), "{refused:?}");
        assert_eq!(house.account(&name("bob")).expect("in memory"), None);
        let bob = account(&house, "bob").expect("the name is free");
        assert_eq!(house.session("token of bob").expect("in memory"), Some(bob));
        assert_eq!(house.session("token of ada").expect("in memory"), Some(ada));
    }

    /// A disk without room: nothing is half done, reading goes on, and so does all when there is room again.
    #[test]
    fn a_full_disk_is_told_and_undoes_the_whole_change() {
        let path = std::env::temp_dir().join(format!("pushlab-full-{}.db", std::process::id()));
        let url = format!("sqlite:{}", path.display());
        {
            let house = house_at(&url, Arc::new(|| 0));
            let ada = account(&house, "ada").expect("room");
            let chair = house.add(&ada, &offer()).expect("room");
            run(&house, "PRAGMA max_page_count = 1", &[]);
            let long = Offer::parse("a table", &"long ".repeat(199), 1, 10_000, 0).expect("a good offer");
            let (mut taken, mut failure) = (0, None);
            while failure.is_none() {
                assert!(taken < MAX_ITEMS_OF_ACCOUNT, "it is never full");
                match house.add(&ada, &long) {
                    Ok(_) => taken += 1,
                    Err(error) => failure = Some(error),
                }
            }
            assert!(matches!(failure, Some(HouseError::Database(Failure::Full(_)))), "{failure:?}");
            let (version, items) = house.items().expect("reading goes on");
            assert_eq!((version, items.len() as i64), (2 + taken, 1 + taken));
            let told = house.changes(version - 1).expect("reading goes on").1;
            assert_eq!(told.len(), 1, "nothing is told of what was not done");
            run(&house, "PRAGMA max_page_count = 1000000", &[]);
            let bid = house.bid(&ada, chair.id, Cents::parse(5).expect("an amount")).expect("room");
            assert_eq!(bid.version, version + 1, "without a hole");
        }
        let house = house_at(&url, Arc::new(|| 0));
        let sound = run(&house, "PRAGMA integrity_check", &[]);
        assert_eq!(sound, [Row(vec![Value::from("ok")])]);
        drop(house);
        for end in ["", "-wal", "-shm"] {
            // What SQLite has removed itself is gone already.
            let _ = std::fs::remove_file(format!("{}{end}", path.display()));
        }
    }

    #[test]
    fn items_have_a_limit() {
        let house = house();
        for number in 0..MAX_ITEMS / MAX_ITEMS_OF_ACCOUNT {
            let owner = account(&house, &format!("n{number}")).expect("room");
            for _ in 0..MAX_ITEMS_OF_ACCOUNT {
                house.add(&owner, &offer()).expect("room");
            }
            assert!(matches!(house.add(&owner, &offer()), Err(HouseError::Full(_))), "of one account");
        }
        let other = account(&house, "other").expect("room");
        assert!(matches!(house.add(&other, &offer()), Err(HouseError::Full(_))), "of all");
        assert_eq!(house.items().expect("in memory").1.len() as i64, MAX_ITEMS, "a list is whole");
    }

    #[test]
    fn the_last_bids_are_kept() {
        let house = house();
        let ada = account(&house, "ada").expect("room");
        let item = house.add(&ada, &offer()).expect("room").id;
        for cents in 1..=MAX_HISTORY + 2 {
            house.bid(&ada, item, Cents::parse(cents).expect("an amount")).expect("higher");
        }
        let (item, history) = house.item(item).expect("there");
        assert_eq!((item.bids, history.len() as i64), (MAX_HISTORY + 2, MAX_HISTORY));
        assert_eq!((history[0].number, history[history.len() - 1].number), (MAX_HISTORY + 2, 3));
    }
}
