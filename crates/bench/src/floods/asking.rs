//! What anybody may ask of the server, each time for something that is new to it.

use pushlab_wire::websocket::handshake;

/// Channels that a connection may have.
const CHANNELS: usize = 64;

/// Messages of a WebSocket that subscribe to all channels that it may have but one; their names begin with `prefix`.
pub fn first_subscriptions(prefix: &str) -> Vec<String> {
    (1..CHANNELS).map(|_| format!("[\"sub\",\"{}\"]", new_name(prefix))).collect()
}

/// Messages of a WebSocket that subscribe to a new channel, and give that up.
pub fn subscription(prefix: &str) -> [String; 2] {
    subscription_to(&new_name(prefix))
}

/// The same to this channel.
pub fn subscription_to(channel: &str) -> [String; 2] {
    ["sub", "unsub"].map(|verb| format!("[\"{verb}\",\"{channel}\"]"))
}

/// A message of a WebSocket that publishes to a channel.
pub fn publication() -> String {
    format!("[\"pub\",\"{}\",1]", new_name("n"))
}

/// A poll of channels in which there is nothing.
pub fn poll(out: &mut Vec<u8>) {
    let channels: Vec<String> = (0..CHANNELS).map(|_| format!("channel={}", new_name("n"))).collect();
    request(out, &format!("GET /poll?{} HTTP/1.1", channels.join("&")), "");
}

/// The opening of a WebSocket, as a browser asks for it in the name of another site's page.
pub fn upgrade(out: &mut Vec<u8>) {
    handshake::encode_request_with(out, "bench", "/ws", *b"0123456789abcdef", "Origin: https://other.example\r\n");
}

/// The opening of a WebSocket with a token.
pub fn upgrade_with(out: &mut Vec<u8>, token: &str) {
    let field = format!("Authorization: Bearer {token}\r\n");
    handshake::encode_request_with(out, "bench", "/ws", *b"0123456789abcdef", &field);
}

/// The question who is in a channel.
pub fn who_is_in(out: &mut Vec<u8>, channel: &str) {
    request(out, &format!("GET /api/presence?channel={channel} HTTP/1.1"), "");
}

/// A log-in to the auction house, in a name that nobody has.
pub fn log_in(out: &mut Vec<u8>) {
    let body = format!("{{\"name\":\"{}\",\"password\":\"correct horse\"}}", new_name("n"));
    request(out, "POST /api/demos/auction/log-in HTTP/1.1\r\nContent-Type: application/json", &body);
}

/// A name of a channel, an account or an identity that was not there before.
pub fn new_name(prefix: &str) -> String {
    format!("{prefix}{:016x}", fastrand::u64(..))
}

fn request(out: &mut Vec<u8>, head: &str, body: &str) {
    let length = body.len();
    out.extend_from_slice(format!("{head}\r\nHost: bench\r\nContent-Length: {length}\r\n\r\n{body}").as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use pushlab_application::{Application as _, Request};
    use pushlab_demos::auction::Auction;
    use pushlab_server::Limits;
    use pushlab_wire::channel::Channel;
    use pushlab_wire::http::{Headers, parse_request, split_target};
    use pushlab_wire::native::ClientFrame;
    use std::collections::BTreeSet;
    use std::net::Ipv4Addr;

    fn channel_of(text: &str) -> String {
        match ClientFrame::parse(text).unwrap() {
            ClientFrame::Subscribe(channel) | ClientFrame::Unsubscribe(channel) => channel.to_string(),
            ClientFrame::Publish { channel, .. } => channel.to_string(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn messages_are_of_new_channels() {
        let [begin, end] = subscription("n");
        assert_eq!(channel_of(&begin), channel_of(&end));
        assert!(Channel::is_valid(&channel_of(&begin)));
        assert_ne!(channel_of(&publication()), channel_of(&publication()));
        let all: BTreeSet<String> =
            first_subscriptions("n").iter().map(|text| channel_of(text)).chain([channel_of(&begin)]).collect();
        assert_eq!(all.len(), Limits::default().max_channels_per_connection);
    }

    #[test]
    fn a_poll_names_as_many_channels_as_it_may() {
        let mut out = Vec::new();
        poll(&mut out);
        let mut headers = Headers::default();
        let (head, size) = parse_request(&out, &mut headers).unwrap().unwrap();
        assert_eq!(size, out.len());
        let (path, parameters) = split_target(head.target);
        let channels: BTreeSet<Channel> = parameters.map(|(_, name)| Channel::parse(&name).unwrap()).collect();
        assert_eq!((path, channels.len()), ("/poll", Limits::default().max_channels_per_connection));
    }

    /// Only then is a hash made.
    #[test]
    fn a_log_in_gets_as_far_as_the_password() {
        let mut out = Vec::new();
        log_in(&mut out);
        let mut headers = Headers::default();
        let (head, size) = parse_request(&out, &mut headers).unwrap().unwrap();
        let request = Request {
            method: head.method.to_owned(),
            path: head.target.to_owned(),
            query: Vec::new(),
            fields: head.fields().map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned())).collect(),
            body: out[size..].to_vec(),
            peer: Ipv4Addr::LOCALHOST.into(),
            is_tls: false,
            person: None,
        };
        let answer = Auction::open("sqlite::memory:").unwrap().answer(&request).unwrap();
        assert_eq!(answer.status, 401, "{}", String::from_utf8_lossy(answer.body.as_bytes()));
    }
}
