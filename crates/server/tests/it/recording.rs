//! Recorded conversations as text; the format is described in `tests/recordings/README.md`.

use std::path::Path;

/// One conversation of clients with a server.
#[derive(Debug, Default)]
pub struct Recording {
    pub name: String,
    /// Options of `pushlab serve`, in pairs.
    pub options: Vec<(String, String)>,
    /// A stream's first heartbeat comes in it where one asked for it early.
    pub has_early_heartbeat: bool,
    /// Why another cut of the client's bytes may be answered otherwise.
    pub cut_matters: Option<String>,
    pub steps: Vec<Step>,
}

/// What happens next. Connections have numbers from 0.
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    Opens(usize),
    /// The client writes this at once.
    Says(usize, Vec<Part>),
    /// The client says nothing more.
    Ends(usize),
    /// The server says this.
    Hears(usize, Vec<Part>),
    /// The server says nothing more.
    HearsEnd(usize),
    /// The server is told to stop.
    Stop,
}

/// A piece of what is said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    Bytes(Vec<u8>),
    /// The server's epoch, masked with what begins here where it is part of a client's frame.
    Epoch([u8; 4]),
    /// Nine characters of a mark (docs/protocol.md, "The receipt mark").
    Receipt,
    /// A decimal number.
    Length,
    /// As many bytes as that number said.
    Body,
}

impl Recording {
    pub fn read(path: &Path) -> Self {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(path).unwrap();
        Self::parse(&name, &text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    fn parse(name: &str, text: &str) -> Result<Self, String> {
        let mut recording = Self { name: name.to_owned(), ..Self::default() };
        let (head, body) = text.split_once("\n\n").ok_or("no blank line behind the head")?;
        for line in head.lines() {
            recording.note(line).map_err(|error| format!("{line:?}: {error}"))?;
        }
        let mut is_new_turn = true;
        for line in body.lines() {
            if line.is_empty() {
                is_new_turn = true;
            } else {
                recording.step(line, is_new_turn).map_err(|error| format!("{line:?}: {error}"))?;
                is_new_turn = false;
            }
        }
        Ok(recording)
    }

    fn note(&mut self, line: &str) -> Result<(), String> {
        match line.split_once(": ").unwrap_or((line, "")) {
            ("about" | "client", text) if !text.is_empty() => {}
            ("server", options) => {
                let mut words = options.split(' ');
                while let Some(option) = words.next() {
                    let value = match option {
                        "--mark-receipts" => "",
                        _ => words.next().ok_or("an option without a value")?,
                    };
                    self.options.push((option.to_owned(), value.to_owned()));
                }
            }
            ("early-heartbeat", "") => self.has_early_heartbeat = true,
            ("cut-matters", reason) if !reason.is_empty() => self.cut_matters = Some(reason.to_owned()),
            _ => return Err("no line of a head".into()),
        }
        Ok(())
    }

    fn step(&mut self, line: &str, is_new_turn: bool) -> Result<(), String> {
        if line == "stop" {
            self.steps.push(Step::Stop);
            return Ok(());
        }
        let digits = line.bytes().take_while(u8::is_ascii_digit).count();
        let number: usize = line[..digits].parse().map_err(|_| "no connection's number")?;
        let id = number.checked_sub(1).ok_or("connections count from 1")?;
        let step = match &line[digits..] {
            " opens" => Step::Opens(id),
            " client ends" => Step::Ends(id),
            " server ends" => Step::HearsEnd(id),
            rest => {
                let (sign, text) = rest.split_once(' ').unwrap_or((rest, ""));
                let line = || parts(&format!("{text}\\r\\n"));
                return match sign {
                    "<" => self.hear(id, line()?),
                    "<<" => self.hear(id, parts(text)?),
                    ">" => self.say(id, line()?, is_new_turn),
                    ">>" => self.say(id, parts(text)?, is_new_turn),
                    "&" => self.say(id, masked(text)?, is_new_turn),
                    _ => Err("neither said nor done".into()),
                };
            }
        };
        self.steps.push(step);
        Ok(())
    }

    fn hear(&mut self, id: usize, more: Vec<Part>) -> Result<(), String> {
        match self.steps.last_mut() {
            Some(Step::Hears(last, parts)) if *last == id => parts.extend(more),
            _ => self.steps.push(Step::Hears(id, more)),
        }
        Ok(())
    }

    fn say(&mut self, id: usize, more: Vec<Part>, is_new_turn: bool) -> Result<(), String> {
        if more.iter().any(|part| matches!(part, Part::Receipt | Part::Length | Part::Body)) {
            return Err("a client's bytes are known".into());
        }
        match self.steps.last_mut() {
            Some(Step::Says(last, parts)) if !is_new_turn && *last == id => parts.extend(more),
            _ if is_new_turn => self.steps.push(Step::Says(id, more)),
            _ => return Err("a client's turn begins behind a blank line".into()),
        }
        Ok(())
    }

    /// Bytes that clients say in all.
    pub fn said(&self) -> usize {
        let length = |part: &Part| if let Part::Bytes(bytes) = part { bytes.len() } else { 5 };
        let said = |step: &Step| if let Step::Says(_, parts) = step { parts.iter().map(length).sum() } else { 0 };
        self.steps.iter().map(said).sum()
    }
}

/// A client's frame with a mask: its head, the mask's key in hexadecimal, and what it covers.
fn masked(line: &str) -> Result<Vec<Part>, String> {
    let mut words = line.splitn(3, ' ');
    let mut all = parts(words.next().unwrap_or(""))?;
    let key = words.next().and_then(|text| u32::from_str_radix(text, 16).ok()).ok_or("no key")?.to_be_bytes();
    all.push(Part::Bytes(key.to_vec()));
    let mut at = 0;
    for part in parts(words.next().unwrap_or(""))? {
        match part {
            Part::Bytes(mut bytes) => {
                for byte in &mut bytes {
                    *byte ^= key[at % 4];
                    at += 1;
                }
                all.push(Part::Bytes(bytes));
            }
            Part::Epoch(mut mask) => {
                mask.copy_from_slice(&key);
                mask.rotate_left(at % 4);
                at += EPOCH_BYTES;
                all.push(Part::Epoch(mask));
            }
            other => all.push(other),
        }
    }
    Ok(all)
}

/// How long every epoch is; lengths within frames and chunks rely on it.
pub const EPOCH_BYTES: usize = 5;

/// Undoes the escapes of a line.
fn parts(mut text: &str) -> Result<Vec<Part>, String> {
    let mut parts = Vec::new();
    let mut bytes = Vec::new();
    while let Some(at) = text.find('\\') {
        bytes.extend_from_slice(&text.as_bytes()[..at]);
        text = &text[at + 1..];
        if let Some(rest) = text.strip_prefix('{') {
            let (name, rest) = rest.split_once('}').ok_or("a brace that does not close")?;
            text = rest;
            let part = match name {
                "epoch" => Part::Epoch([0; 4]),
                "receipt" => Part::Receipt,
                "length" => Part::Length,
                "body" => Part::Body,
                repeated => {
                    let (byte, count) = repeated.split_once('*').ok_or("an unknown name in braces")?;
                    let byte = hex(byte.strip_prefix('x').ok_or("a byte begins with x")?)?;
                    let count: usize = count.parse().map_err(|_| "a byte is repeated by a number")?;
                    bytes.resize(bytes.len() + count, byte);
                    continue;
                }
            };
            parts.push(Part::Bytes(std::mem::take(&mut bytes)));
            parts.push(part);
            continue;
        }
        let (byte, used) = match text.as_bytes().first() {
            Some(b'r') => (b'\r', 1),
            Some(b'n') => (b'\n', 1),
            Some(b't') => (b'\t', 1),
            Some(b'\\') => (b'\\', 1),
            Some(b'x') => (hex(text.get(1..3).ok_or("an escape that is cut")?)?, 3),
            _ => return Err("an unknown escape".into()),
        };
        bytes.push(byte);
        text = &text[used..];
    }
    bytes.extend_from_slice(text.as_bytes());
    parts.push(Part::Bytes(bytes));
    Ok(parts)
}

fn hex(text: &str) -> Result<u8, String> {
    u8::from_str_radix(text, 16).map_err(|_| "not two hexadecimal digits".into())
}

/// Bytes as a recording shows them, for messages.
pub fn shown(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string().replace("\\n", "\\n\n")
}

#[test]
fn a_recording_is_read_as_it_is_written() {
    let text = "about: a test\nclient: none\nserver: --mark-receipts --history-messages 2\nearly-heartbeat\n\
                cut-matters: because\n\n1 opens\n2 opens\n\n1> GET \\x00\\\\\\{x61*3}\n1>\n1>> x\n\n1>> y\n\
                1<< a\\{length}b\n1< c\n\n2& \\x81\\x88 00000101 a\\{epoch}bc\n2 server ends\n\n1 client ends\n\nstop\n";
    let recording = Recording::parse("name", text).unwrap();
    let options = recording.options.iter().map(|(option, value)| (&**option, &**value));
    assert_eq!(options.collect::<Vec<_>>(), [("--mark-receipts", ""), ("--history-messages", "2")]);
    assert_eq!((recording.has_early_heartbeat, recording.cut_matters.as_deref()), (true, Some("because")));
    let bytes = |text: &[u8]| Part::Bytes(text.to_vec());
    let expected = [
        Step::Opens(0),
        Step::Opens(1),
        Step::Says(0, vec![bytes(b"GET \0\\aaa\r\n"), bytes(b"\r\n"), bytes(b"x")]),
        Step::Says(0, vec![bytes(b"y")]),
        Step::Hears(0, vec![bytes(b"a"), Part::Length, bytes(b"b"), bytes(b"c\r\n")]),
        Step::Says(
            1,
            vec![bytes(b"\x81\x88"), bytes(&[0, 0, 1, 1]), bytes(b"a"), Part::Epoch([0, 1, 1, 0]), bytes(b"cb")],
        ),
        Step::HearsEnd(1),
        Step::Ends(0),
        Step::Stop,
    ];
    assert_eq!(recording.steps, expected);
    for wrong in
        ["1> a", "\n1> \\q", "\n0 opens", "\nx", "\n1>> \\{epoch", "\n1> \\{body}", "\n1>>> a", "\n1& \\x81 zz a"]
    {
        assert!(Recording::parse("name", &format!("about: a\n\n1 opens\n{wrong}\n")).is_err(), "{wrong:?}");
    }
}
