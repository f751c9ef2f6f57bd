//! Live figures: now, and from then on over the transports.

use crate::harness::Place;
use pushlab_lab::LiveState;
use pushlab_lab::live::Activity;

#[test]
fn figures_are_given_with_a_cursor_that_misses_nothing() {
    let place = Place::new("live");
    let state =
        |done| LiveState { state: Activity::Running, runs_done: done, name: "some".into(), ..LiveState::default() };
    place.console.tell(state(1));
    let start = place.get("/api/live").json();
    assert_eq!((start["live"]["state"].as_str(), start["live"]["runs_done"].as_u64()), (Some("running"), Some(1)));
    (2..=4).for_each(|done| place.console.tell(state(done)));
    let cursor = start["cursor"].as_str().unwrap();
    let reply = place.get(&format!("/poll?channel=console.live&after={cursor}"));
    let done: Vec<String> = (1..=4).map(|done| format!("\"runs_done\":{done},")).collect();
    assert!(!reply.body.contains(&done[0]), "{}", reply.body);
    assert!(done[1..].iter().all(|part| reply.body.contains(part)), "{}", reply.body);
}

#[test]
fn pages_of_other_sites_hear_nothing_of_it() {
    let place = Place::new("live-private");
    place.console.tell(LiveState { name: "secret".into(), ..LiveState::default() });
    let target = "/poll?channel=console.live&after=x.0";
    for fields in ["Origin: https://evil.example\r\n", "Sec-Fetch-Site: cross-site\r\n"] {
        let refused = place.ask("GET", target, fields, "");
        assert_eq!(refused.refused(), (403, "forbidden".to_owned()));
    }
    assert_eq!(place.get(target).status, 200);
}

#[test]
fn nobody_else_publishes_there() {
    let place = Place::new("live-forbidden");
    let fields = "Content-Type: application/json\r\n";
    let answer = place.ask("POST", "/publish?channel=console.live", fields, "{}");
    assert_eq!(answer.refused(), (403, "forbidden".to_owned()));
}
