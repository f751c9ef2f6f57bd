//! Whatever a server says, in whatever order, no dialect panics, publications go the way that the dialect says, and no
//! head of a request is broken by a server's words.
//!
//! An input is records that end in NUL. The letters of the first choose dialect, transport, way, and what is sent and
//! polled for, `a` being the first there is; every other begins with a letter that says what happens: see
//! [`Script::play`].
#![no_main]

use libfuzzer_sys::fuzz_target;
use pushlab_dialects::{Dialect, Incoming, Notice, Over, ProtocolClient, Refused, Reply, Sending, Step, Topic, Turn};
use pushlab_wire::transport::Transport;

/// Every way that some dialect tells from its usual one.
const WAYS: &[&str] = &[
    "",
    "websocket",
    "raw",
    "eventsource",
    "xhr_streaming",
    "htmlfile",
    "xhr",
    "jsonp",
    "websockets",
    "sockjs",
    "engine.io",
    "faye",
    "closing",
    "service",
    "unidirectional",
];
const STATUSES: &[u16] = &[200, 204, 304, 404, 500];
/// What is sent, whether polls ask for the list of users, for how many of the newest messages, and whether echoes come in
/// event streams.
const PURPOSES: &[(Option<Sending>, bool, Option<u32>, bool)] = &[
    (Some(Sending::Publish), false, None, false),
    (Some(Sending::Echo), false, None, false),
    (None, false, None, false),
    (None, true, None, false),
    (Some(Sending::Publish), true, None, false),
    (None, false, Some(10), false),
    (Some(Sending::Echo), false, None, true),
];
const DATA: &str = r#"{"stamp":"~AAAAAAAAAAAD84t0K5~"}"#;

/// The one that a letter stands for.
fn lettered<T: Copy>(all: &[T], letter: u8) -> Option<T> {
    all.get(usize::from(letter.checked_sub(b'a')?)).copied()
}

fn pick<T: Copy>(all: &[T], byte: u8) -> T {
    all[usize::from(byte) % all.len()]
}

struct Script {
    dialect: Dialect,
    topic: Topic,
    client: Box<dyn ProtocolClient>,
    steps: Vec<Step>,
    /// Of the next texts.
    event: String,
    id: String,
    /// Of the next answer.
    headers: Vec<(&'static str, String)>,
}

impl Script {
    fn new([dialect, transport, way, purpose]: [u8; 4]) -> Option<Self> {
        let dialect = lettered(Dialect::ALL, dialect)?;
        let (sending, user_list, newest, echoes_in_streams) = lettered(PURPOSES, purpose)?;
        let topic = Topic {
            transport: Some(lettered(&Transport::ALL, transport)?),
            path: "/base".to_owned(),
            how: lettered(WAYS, way)?.to_owned(),
            channels: vec!["a".to_owned(), "b".to_owned()],
            publish_to: "a".to_owned(),
            sending,
            wait_s: 25,
            user_list,
            newest,
            echoes_in_streams,
            random: 7,
        };
        let (steps, event, id, headers) = (Vec::new(), String::new(), String::new(), Vec::new());
        Some(Self { dialect, topic, client: dialect.protocol_client(), steps, event, id, headers })
    }

    fn turn(&mut self, act: impl FnOnce(&mut dyn ProtocolClient, &mut Turn<'_>) -> Result<(), Refused>) -> bool {
        let mut sink = |_: Notice<'_>| ();
        let is_fine = act(&mut *self.client, &mut Turn::new(&self.topic, &mut self.steps, &mut sink)).is_ok();
        self.steps.drain(..).for_each(|step| assert_head_is_whole(&step));
        is_fine
    }

    fn open(&mut self) -> bool {
        self.turn(|client, turn| client.open(turn))
    }

    fn play(&mut self, kind: u8, text: &str) {
        // Nothing that ends a line is in a field of a head or an event that was decoded.
        let field = || text.chars().filter(|c| !c.is_control()).collect::<String>();
        match kind {
            // A cut, and a new connection.
            b'c' => drop(self.open()),
            b'o' => drop(self.turn(|client, turn| client.opened(turn))),
            b't' => {
                let (event, id) = (self.event.clone(), self.id.clone());
                let incoming = Incoming { text, event: &event, id: &id };
                self.turn(|client, turn| client.text(&incoming, turn));
            }
            b'n' => self.event = field(),
            b'i' => self.id = field(),
            b'h' => {
                if let (names @ [_, ..], [which, ..]) = (self.dialect.wanted_headers(), text.as_bytes()) {
                    self.headers.push((pick(names, *which), field().chars().skip(1).collect()));
                }
            }
            b'd' | b'u' => {
                let headers = std::mem::take(&mut self.headers);
                let over = if kind == b'd' { Over::Down } else { Over::Up };
                let mut rest = text.chars();
                let status = pick(STATUSES, rest.next().map_or(0, |c| c as u8));
                let reply = Reply { status, headers: &headers, body: rest.as_str() };
                self.turn(|client, turn| client.reply(over, &reply, turn));
            }
            b'e' => drop(self.turn(|client, turn| {
                client.ended(turn);
                Ok(())
            })),
            b'l' => drop(self.turn(|client, turn| {
                client.poll(turn);
                Ok(())
            })),
            b'p' => self.publish(Sending::Publish),
            b'q' => self.publish(Sending::Echo),
            _ => {}
        }
    }

    fn publish(&mut self, sending: Sending) {
        let step = self.client.publish(sending, DATA, &self.topic);
        assert_head_is_whole(&step);
        let Some(transport) = self.topic.transport else { return };
        match self.dialect.publishes_in_frames(transport, &self.topic.how) {
            true => assert!(matches!(step, Step::Frame(_)), "{step:?}"),
            false => assert!(matches!(step, Step::Ask(Over::Up, _)), "{step:?}"),
        }
    }
}

/// What a server says stands in targets and headers, and must not end them. A frame is whatever it is.
fn assert_head_is_whole(step: &Step) {
    let Step::Ask(_, request) = step else { return };
    let mut words = request.method.bytes().chain(request.target.bytes());
    assert!(request.target.starts_with('/') && words.all(|byte| byte.is_ascii_graphic()), "{step:?}");
    let is_header = |line: &str| line.ends_with("\r\n") && line.contains(": ") && line.matches('\r').count() == 1;
    assert!(request.headers.split_inclusive('\n').all(is_header), "{step:?}");
}

fuzz_target!(|data: &[u8]| {
    let mut records = data.split(|&byte| byte == 0);
    let letters = records.next().and_then(|record| record.try_into().ok());
    let Some(mut script) = letters.and_then(Script::new) else { return };
    // A way that does not exist is refused before anything is asked.
    if !script.open() {
        return;
    }
    for record in records {
        let Some((&kind, text)) = record.split_first() else { continue };
        // What is not UTF-8 is refused before a protocol client sees it.
        if let Ok(text) = std::str::from_utf8(text) {
            script.play(kind, text);
        }
    }
});
