//! The auction house on each database: the same tests on SQLite, MariaDB and PostgreSQL, the latter two as real servers.

use super::bidders::{Person, START_MS, World, amounts};
use super::engines::{Engine, Kind};
use super::harness::{Answer, PATIENCE, wait_until};
use super::proxy::{Cut, Proxy};
use pushlab_demos::auction::{Auction, KEEP_ENDED_MS, MAX_HISTORY, PATH};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Instant;

/// A module for each database, with a test for each name, so that each runs and fails for itself.
macro_rules! on_each_database {
    ($($test:ident),* $(,)?) => {
        on_each_database!(@ sqlite Sqlite $($test)*);
        on_each_database!(@ mariadb Mariadb $($test)*);
        on_each_database!(@ postgres Postgres $($test)*);
    };
    (@ $module:ident $kind:ident $($test:ident)*) => {
        mod $module {
            $(
                #[test]
                fn $test() {
                    super::$test(super::Engine::start(super::Kind::$kind));
                }
            )*
        }
    };
}

on_each_database!(
    one_story,
    a_crowd_bids_on_one_item,
    killed_and_restarted,
    stopped_and_continued,
    a_commit_that_nobody_answers,
);

/// What one house goes through, in one database after the other, because a server takes seconds to start.
fn one_story(engine: Engine) {
    text_is_text(&engine);
    the_higher_bid_leads(&engine);
    of_two_equal_bids_one_wins(&engine);
    only_the_owner_removes(&engine);
    auctions_end_once(&engine);
    two_servers_share_a_house(&engine);
    if engine.kind != Kind::Sqlite {
        let world = World::open(&engine.socket_url());
        assert_eq!(world.site.get(&format!("{PATH}/items")).status, 200, "over its socket");
    }
    many_open_an_empty_one(&engine);
}

/// Neither SQL nor markup nor anything else means more than itself.
fn text_is_text(engine: &Engine) {
    let world = World::open(&engine.url());
    let texts = [
        "'; DROP TABLE auction_items; --",
        "\"); DELETE FROM auction_accounts WHERE (\"1\"=\"1",
        "\\' OR 1=1 #",
        "<script>alert('x')</script><img src=x onerror=alert(1)>",
        "${7*7} {{7*7}} %s %00 $1 ? ?? :name @name",
        "Krøyer 🎨 نص \u{202e}abc 日本語 e\u{301}",
        "NULL",
    ];
    let ada = world.register("ada");
    let cursor = world.cursor();
    let mut ids = Vec::new();
    for text in texts {
        let mut new = world.new_item(text, 1);
        new["description"] = json!(format!("{text}\n\t{text}"));
        let answer = world.ask(Some(&ada), "POST", "items", &new);
        assert_eq!(answer.status, 200, "{answer:?}");
        ids.push(answer.body["item"]["id"].as_i64().unwrap());
        let password = format!("{text} and more");
        let credentials = json!({ "name": format!("guest-{}", ids.len()), "password": password });
        assert_eq!(world.ask(None, "POST", "register", &credentials).status, 200);
        assert_eq!(world.ask(None, "POST", "log-in", &credentials).status, 200);
    }
    for name in &texts[..6] {
        let credentials = json!({ "name": name, "password": "correct horse" });
        for path in ["register", "log-in"] {
            assert_eq!(world.ask(None, "POST", path, &credentials).code(), (400, "bad-request"), "{name}");
        }
    }
    let items = world.site.get(&format!("{PATH}/items")).body["items"].clone();
    let told = world.told(&cursor, |told| told.len() == texts.len());
    for (text, id) in texts.iter().zip(&ids) {
        let listed = items.as_array().unwrap().iter().find(|item| item["id"] == *id).unwrap();
        assert_eq!((&listed["name"], &listed["description"]), (&json!(text), &json!(format!("{text}\n\t{text}"))));
        assert!(told.contains(&json!({ "kind": "added", "item": listed })), "told as it is listed");
        assert_eq!(world.ask(Some(&ada), "DELETE", &format!("items/{id}"), &json!(null)).status, 200);
    }
}

fn the_higher_bid_leads(engine: &Engine) {
    let world = World::open(&engine.url());
    let (owner, bob) = (world.register("Owner"), world.register("Bob"));
    let cursor = world.cursor();
    let item = world.offer(&owner, "a chair", 100);
    let low = world.bid(&bob, item, 99);
    assert_eq!(low.code(), (409, "outbid"));
    assert_eq!((&low.body["leading"], &low.body["least_cents"]), (&Value::Null, &json!(100)));
    assert_eq!(world.bid(&bob, item, 100).body["item"]["leading"], json!({ "bidder": "Bob", "amount_cents": 100 }));
    let equal = world.bid(&owner, item, 100);
    assert_eq!(equal.code(), (409, "outbid"));
    assert_eq!(equal.body["leading"], json!({ "bidder": "Bob", "amount_cents": 100 }));
    assert_eq!(world.bid(&owner, item, 101).status, 200, "on one's own item, too");
    let top = world.bid(&owner, item, 5_000_000_000);
    assert_eq!(top.status, 200, "and over oneself; beyond 32 bits");
    let told = world.told(&cursor, |told| told.len() == 4);
    assert_eq!(told[3], json!({ "kind": "bid", "item": top.body["item"] }));
    assert_eq!(amounts(&told, item), world.history(item));
    let listed = world.site.get(&format!("{PATH}/items"));
    assert!(listed.body["items"].as_array().unwrap().contains(&top.body["item"]), "{listed:?}");
    assert!(listed.body["version"].as_i64() >= top.body["item"]["version"].as_i64());
    let own_bids = |who: Option<&Person>| world.ask(who, "GET", "own-bids", &json!(null));
    assert_eq!(own_bids(Some(&owner)).body, json!({ "bids": [{ "id": item, "amount_cents": 5_000_000_000_i64 }] }));
    assert_eq!(own_bids(Some(&bob)).body, json!({ "bids": [{ "id": item, "amount_cents": 100 }] }));
    assert_eq!(own_bids(Some(&world.register("Cy"))).body, json!({ "bids": [] }));
    assert_eq!(own_bids(None).code(), (401, "unauthorized"));
    world.ask(Some(&owner), "DELETE", &format!("items/{item}"), &json!(null));
    assert_eq!(own_bids(Some(&bob)).body, json!({ "bids": [] }), "bids go with their item");
}

fn of_two_equal_bids_one_wins(engine: &Engine) {
    let world = World::open(&engine.url());
    let people = [world.register("left"), world.register("right")];
    let item = world.offer(&people[0], "a chair", 1);
    let rounds = 1..=25;
    for amount in rounds.clone() {
        let barrier = Barrier::new(2);
        let bid = |who: &Person| {
            barrier.wait();
            world.bid_directly(who, item, amount)
        };
        let (left, right) = std::thread::scope(|scope| {
            let left = scope.spawn(|| bid(&people[0]));
            (bid(&people[1]), left.join().unwrap())
        });
        let (won, lost) = if left.0 == 200 { (left, right) } else { (right, left) };
        assert_eq!((won.0, lost.0, &lost.1["error"]), (200, 409, &json!("outbid")), "{won:?} {lost:?}");
        assert_eq!(won.1["item"]["leading"], lost.1["leading"], "the loser is told who won");
    }
    assert_eq!(world.history(item), rounds.collect::<Vec<i64>>());
}

fn only_the_owner_removes(engine: &Engine) {
    let world = World::open(&engine.url());
    let (owner, eve) = (world.register("keeper"), world.register("eve"));
    let item = world.offer(&owner, "a chair", 1);
    let path = format!("items/{item}");
    assert_eq!(world.bid(&eve, item, 5).status, 200);
    let cursor = world.cursor();
    assert_eq!(world.ask(Some(&eve), "DELETE", &path, &json!(null)).code(), (403, "forbidden"));
    assert_eq!(world.ask(None, "DELETE", &path, &json!(null)).code(), (401, "unauthorized"));
    assert_eq!(world.ask(Some(&owner), "DELETE", &path, &json!(null)).status, 200);
    assert_eq!(world.ask(Some(&owner), "DELETE", &path, &json!(null)).code(), (404, "not-found"));
    assert_eq!(world.bid(&eve, item, 6).code(), (404, "not-found"));
    let removals = |told: &[Value]| told.iter().filter(|m| m["kind"] == "removed" && m["item"]["id"] == item).count();
    assert_eq!(removals(&world.told(&cursor, |told| removals(told) > 0)), 1);
    assert_eq!(world.offer(&owner, "another", 1).cmp(&item), std::cmp::Ordering::Greater, "no number is used twice");
}

fn auctions_end_once(engine: &Engine) {
    let (short, long, end_ms);
    {
        let world = World::open(&engine.url());
        let owner = world.register("seller");
        (short, long) = (world.offer(&owner, "short", 1), world.offer(&owner, "long", 1));
        assert_eq!(world.bid(&owner, short, 5).status, 200);
        let cursor = world.cursor();
        world.pass(3_600_000 - 1);
        assert_eq!(world.bid(&owner, short, 6).status, 200, "a millisecond before the end");
        world.pass(1);
        assert_eq!(world.bid(&owner, short, 7).code(), (409, "expired"));
        let has_ended =
            |id: i64| move |told: &[Value]| told.iter().any(|m| m["kind"] == "ended" && m["item"]["id"] == id);
        let told = world.told(&cursor, |told| has_ended(short)(told) && has_ended(long)(told));
        let ended = told.iter().find(|m| m["kind"] == "ended" && m["item"]["id"] == short).unwrap();
        assert_eq!((&ended["item"]["ended"], &ended["item"]["leading"]["amount_cents"]), (&json!(true), &json!(6)));
        world.pass(-3_000_000);
        assert_eq!(
            world.bid(&owner, short, 7).code(),
            (409, "expired"),
            "ended is ended, though the clock was set back"
        );
        end_ms = world.now_ms() + 3_000_000;
    }
    let late;
    {
        let world = World::open_at(&engine.url(), end_ms);
        let owner = world.register("seller-2");
        late = world.offer(&owner, "over while the house was closed", 1);
    }
    let world = World::open_at(&engine.url(), end_ms + 3_600_000);
    let ended = |id| {
        let item = world.site.get(&format!("{PATH}/items/{id}"));
        item.status == 200 && item.body["item"]["ended"] == true
    };
    wait_until("the end is announced after a restart", PATIENCE, || ended(late));
    assert!(ended(short) && ended(long), "and the others are there still");
    world.pass(KEEP_ENDED_MS);
    wait_until("what ended long ago is removed", PATIENCE, || {
        world.site.get(&format!("{PATH}/items")).body["items"].as_array().unwrap().is_empty()
    });
}

fn two_servers_share_a_house(engine: &Engine) {
    let (here, there) = (World::open(&engine.url()), World::open(&engine.url()));
    let owner = here.register("traveller");
    let cursors = (here.cursor(), there.cursor());
    let item = here.offer(&owner, "a chair", 1);
    for amount in 1..=20 {
        let world = if amount % 3 == 0 { &there } else { &here };
        assert_eq!(world.bid(&owner, item, amount).status, 200, "a session of one is one of the other");
    }
    let is_all = |told: &[Value]| told.len() == 21;
    let told = here.told(&cursors.0, is_all);
    assert_eq!(told, there.told(&cursors.1, is_all), "both tell the same in the same order");
    assert_eq!(amounts(&told, item), (1..=20).collect::<Vec<i64>>());
}

/// Criterion 3 of the house: the highest valid bid wins, the history is consistent, and what is told is what is
/// committed.
fn a_crowd_bids_on_one_item(engine: Engine) {
    const BIDDERS: usize = 200;
    const BIDS: u64 = 4;
    const GROUPS: usize = 2;
    let world = World::open(&engine.url());
    // A few at a time, because each hashes a password.
    let people: Vec<Person> = std::thread::scope(|scope| {
        let register = |group: usize| {
            let names = (0..BIDDERS).skip(group).step_by(GROUPS);
            names.map(|n| world.register(&format!("bidder-{n}"))).collect::<Vec<_>>()
        };
        let groups: Vec<_> = (0..GROUPS).map(|group| scope.spawn(move || register(group))).collect();
        groups.into_iter().flat_map(|group| group.join().unwrap()).collect()
    });
    let item = world.offer(&people[0], "a chair", 50);
    let cursor = world.cursor();
    let barrier = Barrier::new(BIDDERS);
    let results: Vec<(i64, u16)> = std::thread::scope(|scope| {
        let bidders: Vec<_> = people
            .iter()
            .zip(1..)
            .map(|(who, seed)| {
                let (world, barrier) = (&world, &barrier);
                scope.spawn(move || {
                    let mut random = fastrand::Rng::with_seed(seed);
                    barrier.wait();
                    let bid = |n: u64| {
                        // Higher from round to round, so that more than a few are taken, and equal ones meet.
                        let amount = random.i64(1..=100) + 60 * n as i64;
                        let (status, body) = world.bid_directly(who, item, amount);
                        assert!(status == 200 || (status == 409 && body["error"] == "outbid"), "{status} {body}");
                        (amount, status)
                    };
                    (0..BIDS).map(bid).collect::<Vec<_>>()
                })
            })
            .collect();
        bidders.into_iter().flat_map(|bidder| bidder.join().unwrap()).collect()
    });
    let highest = results.iter().map(|(amount, _)| *amount).max().unwrap();
    let mut taken: Vec<i64> = results.iter().filter(|(_, status)| *status == 200).map(|(amount, _)| *amount).collect();
    let history = world.history(item);
    assert!(history.windows(2).all(|pair| pair[0] < pair[1]) && history[0] >= 50, "{history:?}");
    assert_eq!(history.last(), Some(&highest), "the final price is the highest bid");
    taken.sort_unstable();
    assert_eq!(taken, history, "those whose bids were taken were told so, and nobody else");
    let told = world.told(&cursor, |told| amounts(told, item).len() >= history.len());
    assert_eq!(amounts(&told, item), history, "what was told is what was committed");
    let listed = world.site.get(&format!("{PATH}/items/{item}"));
    assert_eq!(listed.body["item"], told.last().unwrap()["item"]);
}

/// However many ask what the database does not answer, those who ask something else are answered.
fn one_that_hangs_holds_up_nobody_else(engine: &Engine) {
    const ASKERS: i64 = 50;
    let world = World::open(&engine.url());
    let eve = world.register("eve");
    let add = || world.ask(Some(&eve), "POST", "items", &world.new_item("a table", 1));
    let holder = (engine.kind == Kind::Sqlite).then(|| locked(engine));
    if holder.is_none() {
        engine.suspend();
    }
    let answers: Vec<Answer> = std::thread::scope(|scope| {
        let askers: Vec<_> = (0..ASKERS).map(|_| scope.spawn(add)).collect();
        wait_until("all have asked", PATIENCE, || world.site.awaiting() == ASKERS);
        for _ in 0..10 {
            for path in ["/api/demos/ticker", "/api/demos/chat/rooms", "/api/demos/time"] {
                assert_eq!(world.site.get(path).status, 200, "{path}");
            }
        }
        assert_eq!(world.site.post("/api/demos/chat/enter", r#"{"name":"Ida"}"#).status, 200);
        assert_eq!(world.site.awaiting(), ASKERS, "they wait still");
        if let Some(holder) = &holder {
            holder.execute_batch("COMMIT").unwrap();
        }
        askers.into_iter().map(|asker| asker.join().unwrap()).collect()
    });
    for answer in &answers {
        let is_done = answer.status == 200 && holder.is_some();
        assert!(is_done || answer.code() == (503, "database-away"), "{answer:?}");
    }
    if holder.is_none() {
        engine.resume();
    }
    wait_until("the database is found again", PATIENCE, || world.site.get(&format!("{PATH}/items")).status == 200);
}

/// A SQLite file that another program keeps from being written.
fn locked(engine: &Engine) -> rusqlite::Connection {
    let other = rusqlite::Connection::open(engine.url().strip_prefix("sqlite:").unwrap()).unwrap();
    other.busy_timeout(PATIENCE).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    other
}

/// Servers that start at once on a database without tables all find them made.
fn many_open_an_empty_one(engine: &Engine) {
    const SERVERS: usize = 8;
    for round in 0..5 {
        engine.empty();
        let barrier = Barrier::new(SERVERS);
        std::thread::scope(|scope| {
            let open = || {
                barrier.wait();
                let until = Instant::now() + PATIENCE;
                loop {
                    match Auction::open(&engine.url()).map(drop).map_err(|error| error.to_string()) {
                        // On a busy machine a database may take longer than a server waits for it.
                        Err(error) if error.contains("deadline has elapsed") && Instant::now() < until => {}
                        opened => return opened,
                    }
                }
            };
            let servers: Vec<_> = (0..SERVERS).map(|_| scope.spawn(open)).collect();
            for opened in servers {
                assert_eq!(opened.join().unwrap(), Ok(()), "round {round}");
            }
        });
        let world = World::open(&engine.url());
        let ada = world.register("ada");
        world.offer(&ada, "a chair", 1);
    }
}

/// What bidders were told while the database came and went.
struct Outcomes {
    acknowledged: BTreeSet<i64>,
    history: Vec<i64>,
    told: Vec<Value>,
    away: usize,
}

/// How the bidding goes.
#[derive(Default)]
struct Course {
    taken: AtomicI64,
    /// Bids of which nothing is known but that the database is away.
    away: AtomicI64,
}

impl Course {
    fn wait_for_bids(&self, more: i64) {
        Self::wait_for(&self.taken, more, "bids are taken");
    }

    fn wait_for_refusals(&self) {
        Self::wait_for(&self.away, 1, "somebody is told that the database is away");
    }

    fn wait_for(count: &AtomicI64, more: i64, what: &str) {
        let until = count.load(Ordering::SeqCst) + more;
        wait_until(what, 3 * PATIENCE, || count.load(Ordering::SeqCst) >= until);
    }
}

/// Bidders who bid ever more while `disturb` does something to the database.
fn bid_while(world: &World, people: &[Person], disturb: impl FnOnce(&Course)) -> Outcomes {
    let item = world.offer(&people[0], "a chair", 1);
    let cursor = world.cursor();
    let (next, is_over) = (AtomicI64::new(1), AtomicBool::new(false));
    let course = Course::default();
    let acknowledged = std::thread::scope(|scope| {
        let bid = |who: Person| {
            let mut acknowledged = BTreeSet::new();
            while !is_over.load(Ordering::SeqCst) {
                // So that the history holds all of them, and the waiting does not burn the processor.
                std::thread::sleep(std::time::Duration::from_millis(20));
                let amount = next.fetch_add(1, Ordering::SeqCst);
                let (status, body) = world.bid_directly(&who, item, amount);
                match (status, body["error"].as_str()) {
                    (200, None) => {
                        assert_eq!(body["item"]["leading"]["amount_cents"], amount);
                        acknowledged.insert(amount);
                        course.taken.fetch_add(1, Ordering::SeqCst);
                    }
                    (409, Some("outbid")) | (429, Some("limit-reached")) => {}
                    (503, Some("database-away")) | (504, Some("outcome-unknown")) => {
                        _ = course.away.fetch_add(1, Ordering::SeqCst)
                    }
                    _ => panic!("{status} {body}"),
                }
            }
            acknowledged
        };
        let bidders: Vec<_> = people.iter().map(|who| scope.spawn(move || bid(who.clone()))).collect();
        let stop = StopOnDrop(&is_over);
        disturb(&course);
        drop(stop);
        bidders.into_iter().flat_map(|bidder| bidder.join().unwrap()).collect()
    });
    let history = world.history(item);
    assert!(history.len() < MAX_HISTORY as usize, "the history is whole");
    let told = world.told(&cursor, |told| amounts(told, item).last() >= history.last());
    let away = course.away.load(Ordering::SeqCst) as usize;
    Outcomes { acknowledged, history, told: amounts(&told, item).into_iter().map(Value::from).collect(), away }
}

/// Lets the bidders end when the test fails between.
struct StopOnDrop<'s>(&'s AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl Outcomes {
    fn check(&self) {
        assert!(self.history.windows(2).all(|pair| pair[0] < pair[1]), "{:?}", self.history);
        let history: BTreeSet<i64> = self.history.iter().copied().collect();
        let lost: Vec<_> = self.acknowledged.difference(&history).collect();
        assert!(lost.is_empty(), "acknowledged and lost: {lost:?}");
        let told: Vec<i64> = self.told.iter().map(|amount| amount.as_i64().unwrap()).collect();
        assert_eq!(told, self.history, "each commit was told, once, in order, and nothing else");
    }
}

fn killed_and_restarted(mut engine: Engine) {
    if engine.kind == Kind::Sqlite {
        return killed_with_its_program(&engine);
    }
    let world = World::open(&engine.url());
    let people: Vec<Person> = (0..8).map(|n| world.register(&format!("bidder-{n}"))).collect();
    let outcomes = bid_while(&world, &people, |course| {
        for _ in 0..3 {
            course.wait_for_bids(10);
            engine.kill();
            course.wait_for_refusals();
            engine.restart();
        }
        course.wait_for_bids(10);
    });
    outcomes.check();
    assert!(outcomes.away > 0, "somebody was told that the database is away");
    engine.kill();
    let list = world.site.get(&format!("{PATH}/items"));
    assert_eq!(list.code(), (503, "database-away"));
    assert!(list.head.contains("Retry-After: "), "{}", list.head);
    assert!(!list.body.to_string().contains("127.0.0.1"), "where it is is not everybody's business");
    let error = Auction::open(&engine.url()).err().expect("nobody answers").to_string();
    assert!(error.contains("127.0.0.1") && !error.contains("cret"), "{error}");
}

/// A database that hangs: it takes what is sent and never answers.
fn stopped_and_continued(mut engine: Engine) {
    one_that_hangs_holds_up_nobody_else(&engine);
    if engine.kind == Kind::Sqlite {
        return locked_by_another_program(&engine);
    }
    let world = World::open(&engine.url());
    let people: Vec<Person> = (0..4).map(|n| world.register(&format!("bidder-{n}"))).collect();
    let outcomes = bid_while(&world, &people, |course| {
        course.wait_for_bids(5);
        engine.suspend();
        let mut answer = world.site.get(&format!("{PATH}/items"));
        while answer.status == 200 {
            answer = world.site.get(&format!("{PATH}/items"));
        }
        assert_eq!(answer.code(), (503, "database-away"), "nobody waits for ever");
        engine.resume();
        course.wait_for_bids(5);
    });
    outcomes.check();
    assert!(outcomes.away > 0);
    engine.kill();
}

/// Whether a change was committed is found out afterwards, and what was is told, whoever was answered what.
fn a_commit_that_nobody_answers(engine: Engine) {
    if engine.kind == Kind::Sqlite {
        // There is nothing between SQLite and its file that could break.
        return;
    }
    let proxy = Proxy::start(engine.port);
    let world = World::open(&engine.url_through(proxy.port));
    let ada = world.register("ada");
    let item = world.offer(&ada, "a chair", 1);
    let cursor = world.cursor();
    for (amount, cut) in [(10, Cut::BeforeCommit), (20, Cut::AfterCommit)] {
        proxy.cut(cut, true);
        let (status, body) = world.bid_directly(&ada, item, amount);
        assert!(proxy.has_cut());
        assert_eq!((status, &body["item"]["leading"]["amount_cents"]), (200, &json!(amount)), "{cut:?} {body}");
    }
    assert_eq!(world.history(item), [10, 20], "done again where it was not, and not twice where it was");
    for (amount, cut) in [(30, Cut::BeforeCommit), (40, Cut::AfterCommit)] {
        proxy.cut(cut, false);
        let (status, body) = world.bid_directly(&ada, item, amount);
        assert!(proxy.has_cut());
        assert_eq!((status, &body["error"]), (504, &json!("outcome-unknown")), "{cut:?} {body}");
        assert!(body["message"].as_str().unwrap().contains("not known"), "{body}");
        proxy.open();
        wait_until("the database is found again", PATIENCE, || world.site.get(&format!("{PATH}/items")).status == 200);
    }
    let committed = [10, 20, 40];
    let told = world.told(&cursor, |told| amounts(told, item).len() >= committed.len());
    assert_eq!(world.history(item), committed);
    assert_eq!(amounts(&told, item), committed, "each once, the one that nobody was answered too");
    a_change_that_nobody_ends(&engine);
}

/// A server that vanishes in the middle of a change keeps the house from the others for a while, and not for ever.
fn a_change_that_nobody_ends(engine: &Engine) {
    let proxy = Proxy::start(engine.port);
    let (gone, other) = (World::open(&engine.url_through(proxy.port)), World::open(&engine.url()));
    let eve = other.register("eve");
    let item = other.offer(&eve, "a chair", 1);
    proxy.cut(Cut::Unnoticed, true);
    let (status, body) = gone.bid_directly(&eve, item, 10);
    assert!(proxy.has_cut());
    assert_eq!((status, &body["error"]), (503, &json!("database-away")), "{body}");
    wait_until("the house is free again", PATIENCE, || other.bid(&eve, item, 20).status == 200);
    assert_eq!(other.history(item), [20]);
}

fn locked_by_another_program(engine: &Engine) {
    let world = World::open(&engine.url());
    let people = [world.register("ada"), world.register("bob")];
    let outcomes = bid_while(&world, &people, |course| {
        course.wait_for_bids(5);
        let other = locked(engine);
        let item = world.ask(Some(&people[0]), "POST", "items", &world.new_item("a table", 1));
        assert_eq!(item.code(), (503, "database-away"), "nobody waits for ever");
        other.execute_batch("COMMIT").unwrap();
        course.wait_for_bids(5);
    });
    outcomes.check();
}

/// Who missed changes that are forgotten, or saw some that are undone, is told to load the house again.
#[test]
fn a_database_that_was_changed_behind_the_server() {
    let engine = Engine::start(Kind::Sqlite);
    let world = World::open(&engine.url());
    let ada = world.register("ada");
    let item = world.offer(&ada, "a chair", 1);
    let other = rusqlite::Connection::open(engine.url().strip_prefix("sqlite:").unwrap()).unwrap();
    other.busy_timeout(PATIENCE).unwrap();
    for (change, amount) in [("version + 5", 10), ("version - 3", 20)] {
        let cursor = world.cursor();
        other
            .execute_batch(&format!("DELETE FROM auction_changes; UPDATE auction_house SET version = {change}"))
            .unwrap();
        let reload = json!({ "kind": "reload" });
        world.site.deliveries("channel=demo.auction", &cursor, |told| told.contains(&reload));
        assert_eq!(world.bid(&ada, item, amount).status, 200);
        world.site.deliveries("channel=demo.auction", &cursor, |told| amounts(told, item).contains(&amount));
    }
}

/// SQLite has no server: it is this program that is killed, in a process of its own.
fn killed_with_its_program(engine: &Engine) {
    use std::io::{BufRead, BufReader};
    let mut acknowledged = BTreeSet::new();
    for _ in 0..3 {
        let mut child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "databases::child_that_bids", "--nocapture"])
            .env(CHILD, engine.url())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let said = lines.map_while(Result::ok).filter_map(|line| line.strip_prefix(SAID)?.parse::<i64>().ok());
        acknowledged.extend(said.take(40));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let world = World::open(&engine.url());
    let items = world.site.get(&format!("{PATH}/items")).body["items"].clone();
    let history: BTreeSet<i64> = world.history(items[0]["id"].as_i64().unwrap()).into_iter().collect();
    assert_eq!(acknowledged.len(), 120);
    assert!(acknowledged.is_subset(&history), "{acknowledged:?} {history:?}");
    assert!(history.iter().copied().eq(1..=history.len() as i64), "no more than one bid was under way");
}

/// The database of a child process.
const CHILD: &str = "PUSHLAB_TEST_AUCTION";
/// What precedes a bid that a child says was taken; other output stands on other lines.
const SAID: &str = "taken ";

/// Bids until it is killed, if it is the child of a test; by itself there is nothing to do.
#[test]
fn child_that_bids() {
    let Ok(url) = std::env::var(CHILD) else { return };
    let world = World::open_at(&url, START_MS);
    let name = format!("bidder-{}", std::process::id());
    let who = world.register(&name);
    let items = world.site.get(&format!("{PATH}/items")).body["items"].clone();
    let (item, mut amount) = match items.get(0) {
        Some(item) => (item["id"].as_i64().unwrap(), item["leading"]["amount_cents"].as_i64().unwrap_or_default()),
        None => (world.offer(&who, "a chair", 1), 0),
    };
    loop {
        amount += 1;
        assert_eq!(world.bid_directly(&who, item, amount).0, 200);
        println!("\n{SAID}{amount}");
    }
}
