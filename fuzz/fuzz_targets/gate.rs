//! Whatever a head says, nobody gets in without the pass, under a foreign name or from a foreign page.
#![no_main]

mod tokens;

use libfuzzer_sys::fuzz_target;
use pushlab_session::gate::{Gate, Identity, ReadableBy};
use pushlab_session::pass::Pass;
use pushlab_session::site::{Guests, Origin, Site};
use pushlab_wire::fields::trimmed;
use pushlab_wire::http::{Headers, parse_request};
use std::net::IpAddr;

const SECRET: &str = "0123abc";
const OWN: &str = "https://push.example";
const GUEST: &str = "https://app.example";

const WORDS: &[&str] = &[
    "\r\n",
    "Host: ",
    "Origin: ",
    "Sec-Fetch-Site: ",
    "Sec-Fetch-Mode: navigate\r\n",
    "Sec-Fetch-Dest: document\r\n",
    "Cookie: ",
    "pushlab-pass-8080=",
    "Sec-WebSocket-Protocol: ",
    "pushlab.token.",
    "; ",
    "Authorization: Bearer ",
    "0123abd",
    SECRET,
    "localhost",
    "127.0.0.1",
    "[::1]",
    ":8080",
    ":443",
    "http://",
    "https://",
    "push.example",
    "app.example",
    "evil.example",
    "same-origin",
    "same-site",
    "cross-site",
    "none",
    "null",
    "demo.",
    "@",
    ",",
];

/// The rules of a server that is configured by the bits of `choice`.
fn gate(choice: u8) -> Gate {
    let is = |bit: u8| choice & 1 << bit != 0;
    let origins = |text: &str, is_there: bool| {
        let origin: Origin = text.parse().expect("it is an origin");
        is_there.then_some(origin).into_iter().collect::<Vec<_>>()
    };
    let guests = if is(2) { Guests::Everybody } else { Guests::These(origins(GUEST, is(3))) };
    Gate {
        trusted_proxies: Default::default(),
        site: Site { origins: origins(OWN, is(0)), is_loopback_only: is(1), guests },
        pass: is(4).then(|| Pass::new(SECRET.to_owned())),
        access: None,
        own_channels: vec!["feed".to_owned()],
        reserved: vec!["demo.".to_owned()],
        same_origin: if is(5) { vec!["console.".to_owned()] } else { Vec::new() },
    }
}

/// What a head says, for rules that are stated here once more.
struct Said<'h> {
    hosts: Vec<&'h str>,
    origins: Vec<&'h str>,
    sites: Vec<&'h str>,
}

impl Said<'_> {
    /// The one name that was asked is the server's own, on this machine.
    fn has_own_name(&self, gate: &Gate) -> bool {
        let [host] = self.hosts[..] else { return false };
        let name = match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
            _ => host,
        };
        let address = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(name);
        let is_named = !gate.site.origins.is_empty() && OWN.ends_with(&format!("//{}", name.to_ascii_lowercase()));
        name.eq_ignore_ascii_case("localhost")
            || address.parse().is_ok_and(|address: IpAddr| address.is_loopback())
            || is_named
    }

    /// No page sent it, or one of the server itself.
    fn is_of_own_page(&self, gate: &Gate) -> bool {
        let is_own = |origin: &&str| match gate.site.origins.is_empty() {
            true => self.hosts.len() == 1 && bare(origin, origin) == bare(self.hosts[0], origin),
            false => is_page(origin, OWN),
        };
        self.origins.iter().all(is_own) && self.sites.iter().all(|site| ["same-origin", "none"].contains(site))
    }

    /// A page sent it that is named as a guest, or as the server's own.
    fn is_of_named_page(&self) -> bool {
        matches!(self.origins[..], [origin] if is_page(origin, OWN) || is_page(origin, GUEST))
    }
}

/// An origin or a host without its scheme, and without the port that the scheme of an origin has anyway.
fn bare(text: &str, origin: &str) -> String {
    let lower = |text: &str| text.trim_end_matches('/').to_ascii_lowercase();
    let port = if lower(origin).starts_with("https://") { ":443" } else { ":80" };
    let text = lower(text);
    let host = text.split_once("://").map_or(&*text, |(_, host)| host);
    host.strip_suffix(port).unwrap_or(host).to_owned()
}

fn is_page(origin: &str, named: &str) -> bool {
    origin.to_ascii_lowercase().starts_with("https://") && bare(origin, origin) == bare(named, named)
}

fuzz_target!(|data: &[u8]| {
    let Some((&choice, data)) = data.split_first() else { return };
    let gate = gate(choice);
    let text = tokens::expand(data, WORDS);
    let head = [b"GET /ws?channel=a HTTP/1.1\r\n", &*text, b"\r\n\r\n"].concat();
    let mut headers = Headers::default();
    let Ok(Some((head, _))) = parse_request(&head, &mut headers) else { return };
    let all = |name| head.headers(name).map(trimmed).collect();
    let said = Said { hosts: all("host"), origins: all("origin"), sites: all("sec-fetch-site") };
    // A cookie goes to every port of a host, and shows nothing.
    let shows_nothing = !head.fields().any(|(_, value)| value.contains(SECRET));

    let may_use = |identity: Identity| gate.may_use_transports(identity).is_ok();
    let identity = gate.identify(head.fields(), false);
    let is_guarded = gate.site.guests != Guests::Everybody;
    if may_use(identity) {
        assert!(gate.pass.is_none() || !shows_nothing, "without the pass");
        if is_guarded {
            assert!(!gate.site.is_loopback_only || said.has_own_name(&gate), "under a foreign name");
            assert!(said.is_of_own_page(&gate) || said.is_of_named_page(), "from a foreign page");
        }
    }
    // Who shows the pass is treated as everybody is where none is asked for.
    let bearer = format!("Bearer {SECRET}");
    let with_pass = head.fields().chain([("authorization", &*bearer)]);
    let open = Gate { pass: None, ..self::gate(choice) };
    let shown = gate.identify(with_pass, false);
    assert_eq!(may_use(shown), open.may_use_transports(open.identify(head.fields(), false)).is_ok());

    if !gate.same_origin.is_empty() && gate.may_subscribe(identity, None, "console.live").is_ok() {
        assert!(said.is_of_own_page(&gate), "a foreign page listens to what is for own ones");
        assert!(!gate.site.is_loopback_only || said.has_own_name(&gate));
    }
    if let ReadableBy::PagesOf(page) = gate.readable_by(identity) {
        assert!(matches!(said.origins[..], [origin] if is_page(origin, page)), "{page} reads another's answer");
    }
    let asking = gate.identify(head.fields(), true);
    assert!(asking.is_for_own_pages());
    if gate.may_ask(asking, true).is_ok() {
        assert!(said.is_of_own_page(&gate), "a foreign page changes something");
        assert!(!gate.site.is_loopback_only || said.has_own_name(&gate));
    }
    let channel = String::from_utf8_lossy(&text);
    let is_taken = channel == "feed" || channel.starts_with("demo.");
    assert_eq!(gate.may_publish(None, &channel).is_ok(), !is_taken);
});
