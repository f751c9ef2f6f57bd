//! Every recorded conversation comes out as it was recorded, and no dialect panics, whatever a server says.

#![expect(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test fails by panicking, and reads files")]

use proptest::prelude::*;
use pushlab_dialects::recording::{Exchange, Happening, replay};
use pushlab_dialects::{Dialect, Incoming, Over, Reply, Sending, Step, Topic, Turn};
use pushlab_wire::transport::Transport;
use std::path::PathBuf;

fn recordings() -> Vec<(PathBuf, Vec<Exchange>)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/conversations");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let read = |file: PathBuf| {
        let text = std::fs::read_to_string(&file).unwrap();
        let exchanges = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        (file, exchanges)
    };
    files.into_iter().filter(|file| file.extension().is_some_and(|end| end == "jsonl")).map(read).collect()
}

#[test]
fn recorded_conversations_come_out_as_recorded() {
    for (file, recording) in recordings() {
        assert!(recording.len() > 2, "{}: {} exchanges", file.display(), recording.len());
        let messages = recording.iter().flat_map(|exchange| &exchange.notices).filter(|notice| notice.contains('~'));
        assert!(messages.count() > 0, "{}: nothing was delivered", file.display());
        if let Some((number, now)) = replay(&recording) {
            panic!("{}:{number}: recorded {:#?}\nnow {now:#?}", file.display(), recording[number - 1]);
        }
    }
}

#[test]
fn every_dialect_has_a_recording() {
    let recordings = recordings();
    for dialect in Dialect::ALL.iter().copied() {
        let is_recorded = recordings.iter().any(|(_, recording)| recording.iter().any(|e| e.dialect == dialect));
        assert!(is_recorded, "{dialect:?}: record one with `pushlab subjects check NAME --record DIRECTORY`");
    }
}

/// What a server might have said, bent: a recorded text with some of its characters replaced or cut off.
fn bent(text: &str, at: usize, with: &str, keeps_rest: bool) -> String {
    let place = text.char_indices().map(|(i, _)| i).nth(at % text.chars().count().max(1)).unwrap_or(0);
    let rest = if keeps_rest { text[place..].chars().skip(1).collect() } else { String::new() };
    format!("{}{with}{rest}", &text[..place])
}

proptest! {
    #[test]
    fn no_dialect_panics_on_what_servers_say(at: usize, with in "\\PC{0,3}|[\\[\\]{}\",:0-9]{0,4}", keeps_rest: bool, pick: usize) {
        let recordings = recordings();
        prop_assume!(!recordings.is_empty());
        let (_, mut recording) = recordings[pick % recordings.len()].clone();
        let place = at % recording.len();
        match &mut recording[place].happened {
            Happening::Reply { body: text, .. } | Happening::Text { text, .. } => *text = bent(text, at, &with, keeps_rest),
            _ => {}
        }
        let _ = replay(&recording);
    }

    #[test]
    fn no_dialect_panics_on_nonsense(texts in prop::collection::vec("\\PC{0,40}", 1..6), transport in 0usize..6, over: bool) {
        for dialect in Dialect::ALL.iter().copied() {
            let mut client = dialect.protocol_client();
            let topic = Topic {
                transport: Some(Transport::ALL[transport]),
                channels: vec!["a".to_owned()],
                sending: Some(Sending::Publish),
                ..Topic::default()
            };
            let (mut steps, mut sink) = (Vec::new(), |_: pushlab_dialects::Notice<'_>| ());
            let mut turn = Turn::new(&topic, &mut steps, &mut sink);
            let _ = client.open(&mut turn);
            for text in &texts {
                let over = if over { Over::Up } else { Over::Down };
                let _ = client.reply(over, &Reply { status: 200, headers: &[], body: text }, &mut turn);
                let _ = client.opened(&mut turn);
                let _ = client.text(&Incoming { text, event: "message", id: "" }, &mut turn);
            }
            client.poll(&mut turn);
            client.ended(&mut turn);
            let (Step::Frame(_) | Step::Ask(..)) = client.publish(Sending::Echo, "1", &topic);
        }
    }
}
