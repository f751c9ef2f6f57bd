//! Which pages are a server's own, by what browsers say of the page that sent a request.

use core::net::IpAddr;
use pushlab_wire::fields::{number, trimmed};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// Where browsers reach the pages of a server, and so which pages are its own.
#[derive(Debug, Clone, Default)]
pub struct Site {
    /// Origins of own pages: those and no others. Where none is named, a page is the server's own if its origin names
    /// the `Host` that the request was sent to; a proxy that rewrites `Host` takes that away.
    pub origins: Vec<Origin>,
    /// Whether what is for own pages answers only to requests that were sent to a loopback name or address, or to the
    /// name of one of `origins`. A page of another site that lets its own name lead here (DNS rebinding) is no other
    /// site to a browser; by the name it shows.
    pub is_loopback_only: bool,
    /// Pages of other sites that may use the transports, though not the application.
    pub guests: Guests,
}

/// Pages of other sites.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Guests {
    /// Those of these origins.
    These(Vec<Origin>),
    /// All of them.
    Everybody,
}

impl Default for Guests {
    /// None.
    fn default() -> Self {
        Self::These(Vec::new())
    }
}

/// Scheme, host and port of a page, as browsers name them: `https://push.example.org`, without the scheme's own port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin(String);

/// What is no origin.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} is no address of pages; write http://HOST[:PORT] or https://HOST[:PORT], without a path")]
pub struct BadOrigin(String);

/// One of the origins that a [`Site`] names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NamedPage(u16);

/// Where a request came from, as far as it tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestOrigin {
    /// A page of the server's own, or no page: a program may say what it likes.
    Own,
    /// A page of another site that is a guest.
    Guest,
    /// A link on a page of another site, which somebody follows: the answer is shown by itself, and that page learns
    /// nothing of it.
    Link,
    /// A page of another site.
    OtherSite,
    /// Somebody who calls the server by a name that is not its own.
    OtherName,
}

impl Origin {
    /// Whether its scheme is `https`.
    pub fn is_secure(&self) -> bool {
        self.0.starts_with("https://")
    }

    /// Its host without the port.
    fn name(&self) -> &str {
        let host = self.0.split_once("://").map_or("", |(_, host)| host);
        name_of(host).unwrap_or_default()
    }
}

impl FromStr for Origin {
    type Err = BadOrigin;

    fn from_str(text: &str) -> Result<Self, BadOrigin> {
        let bad = || BadOrigin(text.to_owned());
        let lower = text.to_ascii_lowercase();
        let (scheme, rest) = lower.split_once("://").ok_or_else(bad)?;
        let own_port = match scheme {
            "https" => ":443",
            "http" => ":80",
            "ws" | "wss" | "file" | "" => return Err(bad()),
            // Of pages in an app or an extension: capacitor://localhost, chrome-extension://ID.
            _ if scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte)) => "",
            _ => return Err(bad()),
        };
        let host = rest.strip_suffix('/').unwrap_or(rest);
        let host = host.strip_suffix(own_port).unwrap_or(host);
        name_of(host).ok_or_else(bad)?;
        Ok(Self(format!("{scheme}://{host}")))
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Site {
    /// Where a request came from, by the fields of a request's head: `Origin`, and `Sec-Fetch-Site` (Fetch Metadata), which browsers
    /// alone say whence a request comes with. What another site's page makes a browser send, with its user's cookies,
    /// is told apart by them.
    pub fn request_origin<'h>(&self, fields: impl Iterator<Item = (&'h str, &'h str)> + Clone) -> RequestOrigin {
        let all = |name: &'static str| values(fields.clone(), name);
        let (mut hosts, mut more) = (all("host"), all("host").skip(1));
        let host = hosts.next().filter(|_| more.next().is_none());
        if self.is_loopback_only && !host.and_then(name_of).is_some_and(|name| self.answers_to(name)) {
            return RequestOrigin::OtherName;
        }
        let is_site_own = all("sec-fetch-site").all(|site| matches!(site, "same-origin" | "none"));
        if is_site_own && all("origin").all(|origin| self.has(origin, host)) {
            return RequestOrigin::Own;
        }
        let is = |name, value| all(name).next() == Some(value);
        let is_link = is("sec-fetch-mode", "navigate") && is("sec-fetch-dest", "document");
        let is_guest = match &self.guests {
            Guests::Everybody => true,
            Guests::These(_) => self.page_of(fields.clone()).is_some(),
        };
        match (is_link && all("origin").next().is_none(), is_guest) {
            (true, _) => RequestOrigin::Link,
            (false, true) => RequestOrigin::Guest,
            (false, false) => RequestOrigin::OtherSite,
        }
    }

    /// The page that sent a request, if it is one of those that are named: which of them.
    pub fn page_of<'h>(&self, fields: impl Iterator<Item = (&'h str, &'h str)>) -> Option<NamedPage> {
        let mut origins = values(fields, "origin");
        let (Some(origin), None) = (origins.next(), origins.next()) else { return None };
        let page = origin.parse::<Origin>().ok()?;
        let at = self.named().position(|one| *one == page)?;
        u16::try_from(at).ok().map(NamedPage)
    }

    /// The origin of a page that is named.
    pub fn origin_of(&self, page: NamedPage) -> Option<&str> {
        self.named().nth(page.0.into()).map(|origin| &*origin.0)
    }

    /// All pages that are named, own ones and guests.
    fn named(&self) -> impl Iterator<Item = &Origin> {
        let guests: &[Origin] = match &self.guests {
            Guests::These(guests) => guests,
            Guests::Everybody => &[],
        };
        self.origins.iter().chain(guests)
    }

    /// Whether the page of an origin is an own one, if it was asked for by this `Host`. Without a proxy that ends TLS
    /// the scheme would be ours; with one it is another, so it is not compared.
    fn has(&self, origin: &str, host: Option<&str>) -> bool {
        let Ok(page) = origin.parse::<Origin>() else { return false };
        if !self.origins.is_empty() {
            return self.origins.contains(&page);
        }
        let scheme = if page.is_secure() { "https" } else { "http" };
        host.is_some_and(|host| format!("{scheme}://{host}").parse().is_ok_and(|own: Origin| own == page))
    }

    fn answers_to(&self, name: &str) -> bool {
        is_loopback(name) || self.origins.iter().any(|origin| origin.name().eq_ignore_ascii_case(name))
    }

    /// Whether the page of an own request came to its browser over TLS that a proxy ends: by its origin, or where none
    /// is told by the origins that own pages have.
    pub fn is_secure(&self, origin: Option<&str>) -> bool {
        match origin {
            Some(origin) => origin.parse().is_ok_and(|page: Origin| page.is_secure()),
            None => !self.origins.is_empty() && self.origins.iter().all(Origin::is_secure),
        }
    }

    /// What to tell somebody whose request to a transport is refused because of where it came from.
    pub fn refusal_of_transports(&self, origin: RequestOrigin) -> Cow<'static, str> {
        match origin {
            RequestOrigin::OtherName => self.refusal(origin),
            _ => "this came from a page of another site, by its Origin or Sec-Fetch-Site; start the server with --allow-origin ORIGIN to \
                  let pages of that origin use its transports, or with --allow-origin '*' to let all pages use them"
                .into(),
        }
    }

    /// What to tell somebody whose request to the application is refused because of where it came from.
    pub fn refusal(&self, origin: RequestOrigin) -> Cow<'static, str> {
        let origins: Vec<String> = self.origins.iter().map(Origin::to_string).collect();
        let known = if origins.is_empty() { String::new() } else { format!(" or {}", origins.join(", ")) };
        match origin {
            RequestOrigin::OtherName => format!(
                "this server answers to localhost, 127.0.0.1 and [::1]{known} alone; open it by one of these, or name \
                 the address of its pages with --public-url"
            ),
            _ if self.origins.is_empty() => "this came from a page of another site, by its Origin and Host; use the \
                                             page that this server serves. Behind a proxy that changes Host the server \
                                             must be told the address of its pages: --public-url https://HOST"
                .to_owned(),
            _ => format!(
                "this came from a page of another site, by its Origin; pages of this server are those of {}, as \
                 --public-url says: open it there, or name this address too",
                origins.join(", ")
            ),
        }
        .into()
    }
}

/// The values of a field.
fn values<'h>(fields: impl Iterator<Item = (&'h str, &'h str)>, name: &'static str) -> impl Iterator<Item = &'h str> {
    fields.filter(move |(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| trimmed(value))
}

/// The name of `HOST` or `HOST:PORT`, an address of IPv6 without its brackets; `None` of what is neither.
fn name_of(host: &str) -> Option<&str> {
    let (name, rest) = match host.strip_prefix('[') {
        Some(rest) => rest.split_once(']').filter(|(name, _)| name.contains(':'))?,
        None => host.find(':').map_or((host, ""), |at| host.split_at(at)),
    };
    let is_port = |port: &str| number(port.as_bytes()).is_some_and(|port| port <= 65_535);
    let is_name = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._:".contains(&b));
    (is_name && (rest.is_empty() || rest.strip_prefix(':').is_some_and(is_port))).then_some(name)
}

fn is_loopback(name: &str) -> bool {
    name.eq_ignore_ascii_case("localhost") || name.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(origins: &[&str], is_loopback_only: bool) -> Site {
        Site {
            origins: origins.iter().map(|text| text.parse().unwrap()).collect(),
            is_loopback_only,
            ..Site::default()
        }
    }

    fn origin(site: &Site, fields: &[(&str, &str)]) -> RequestOrigin {
        site.request_origin(fields.iter().copied())
    }

    #[test]
    fn own_pages_are_told_from_those_of_others() {
        let open = Site::default();
        let own: &[&[(&str, &str)]] = &[
            &[],
            &[("Host", "a.example:8000")],
            &[("host", "a.example:8000"), ("origin", "http://a.example:8000")],
            &[("HOST", "A.example"), ("Origin", "https://a.example"), ("Sec-Fetch-Site", "same-origin")],
            &[("host", "a.example:443"), ("origin", "https://a.example")],
            &[("host", "a.example:80"), ("origin", "http://a.example")],
            &[("host", "[::1]:8000"), ("origin", "http://[::1]:8000")],
            &[("host", "a.example"), ("sec-fetch-site", "none")],
        ];
        for fields in own {
            assert_eq!(origin(&open, fields), RequestOrigin::Own, "{fields:?}");
        }
        let foreign: &[&[(&str, &str)]] = &[
            &[("origin", "http://a.example")],
            &[("host", ""), ("origin", "http://")],
            &[("host", "a.example"), ("origin", "null")],
            &[("host", "a.example"), ("origin", "")],
            &[("host", "a.example"), ("origin", "a.example")],
            &[("host", "a.example"), ("origin", "http://b.example")],
            &[("host", "a.example"), ("origin", "http://a.example.b.example")],
            &[("host", "a.example"), ("origin", "http://a.example:8000")],
            &[("host", "a.example:80"), ("origin", "https://a.example")],
            &[("host", "a.example"), ("origin", "ftp://a.example")],
            &[("host", "a.example"), ("origin", "http://a.example, http://b.example")],
            &[("host", "a.example"), ("origin", "http://a.example"), ("origin", "http://b.example")],
            &[("host", "a.example"), ("host", "b.example"), ("origin", "http://a.example")],
            &[("host", "a.example"), ("origin", "http://a.example"), ("sec-fetch-site", "cross-site")],
            &[("host", "a.example"), ("sec-fetch-site", "same-site")],
            &[("host", "a.example"), ("sec-fetch-site", "same-origin"), ("sec-fetch-site", "cross-site")],
        ];
        for fields in foreign {
            assert_eq!(origin(&open, fields), RequestOrigin::OtherSite, "{fields:?}");
        }
    }

    /// Where origins are named they alone count: a proxy sends the name of the machine behind it as `Host`, which is
    /// the origin of whatever else is there.
    #[test]
    fn named_origins_are_the_only_ones() {
        let behind = site(&["https://Push.example/", "http://127.0.0.1:80"], false);
        for (page, host, expected) in [
            ("https://push.example", "127.0.0.1:8000", RequestOrigin::Own),
            ("https://push.example:443", "push.example", RequestOrigin::Own),
            ("http://127.0.0.1", "127.0.0.1", RequestOrigin::Own),
            ("http://push.example", "push.example", RequestOrigin::OtherSite),
            ("https://push.example:8443", "127.0.0.1:8000", RequestOrigin::OtherSite),
            ("http://127.0.0.1:8000", "127.0.0.1:8000", RequestOrigin::OtherSite),
        ] {
            assert_eq!(origin(&behind, &[("origin", page), ("host", host)]), expected, "{page} at {host}");
        }
        assert_eq!(origin(&behind, &[("host", "anything")]), RequestOrigin::Own, "no page");
    }

    #[test]
    fn guests_are_those_that_are_named_or_everybody() {
        let page = |origin| [("host", "push.example"), ("origin", origin), ("sec-fetch-site", "cross-site")];
        let named = Site { guests: Guests::These(vec!["https://app.example".parse().unwrap()]), ..site(&[], false) };
        assert_eq!(origin(&named, &page("https://app.example")), RequestOrigin::Guest);
        assert_eq!(origin(&named, &page("HTTPS://APP.example:443")), RequestOrigin::Guest);
        assert_eq!(origin(&named, &[("host", "h"), ("origin", "capacitor://h")]), RequestOrigin::OtherSite);
        for other in ["http://app.example", "https://app.example.evil.example", "null", ""] {
            assert_eq!(origin(&named, &page(other)), RequestOrigin::OtherSite, "{other}");
        }
        let twice = [("host", "h"), ("origin", "https://app.example"), ("origin", "https://evil.example")];
        assert_eq!(origin(&named, &twice), RequestOrigin::OtherSite);
        let rebound = Site { is_loopback_only: true, ..named.clone() };
        assert_eq!(origin(&rebound, &page("https://app.example")), RequestOrigin::OtherName);
        let open = Site { guests: Guests::Everybody, ..site(&[], false) };
        assert_eq!(origin(&open, &page("https://anybody.example")), RequestOrigin::Guest);
        let at = named.page_of(page("https://app.example").into_iter()).unwrap();
        assert_eq!(named.origin_of(at), Some("https://app.example"));
    }

    #[test]
    fn a_loopback_site_answers_to_its_names() {
        let (local, named) = (site(&[], true), site(&["https://push.example"], true));
        for good in ["localhost", "LOCALHOST:8080", "127.0.0.1", "127.1.2.3:8080", "[::1]", "[::1]:8080"] {
            assert_eq!(origin(&local, &[("host", good)]), RequestOrigin::Own, "{good}");
            assert_eq!(origin(&named, &[("host", good)]), RequestOrigin::Own, "{good}");
        }
        for bad in [
            "",
            "evil.example",
            "evil.example:8080",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "10.0.0.1",
            "[::2]",
            "[::1].evil.example",
            "[::1",
            "localhost:x",
            "localhost:80:80",
            "evil.example@localhost",
            "0.0.0.0",
        ] {
            assert_eq!(origin(&local, &[("host", bad)]), RequestOrigin::OtherName, "{bad}");
            assert_eq!(origin(&named, &[("host", bad)]), RequestOrigin::OtherName, "{bad}");
        }
        assert_eq!(origin(&local, &[]), RequestOrigin::OtherName);
        assert_eq!(origin(&local, &[("host", "localhost"), ("host", "evil.example")]), RequestOrigin::OtherName);
        assert_eq!(origin(&local, &[("host", "push.example")]), RequestOrigin::OtherName);
        assert_eq!(origin(&named, &[("host", "PUSH.example:8080")]), RequestOrigin::Own, "a proxy may pass Host on");
        // Rebound: the attacker's page is of the same origin as its own name, which leads here.
        let rebound = [("host", "evil.example"), ("origin", "http://evil.example")];
        assert_eq!(origin(&local, &rebound), RequestOrigin::OtherName);
    }

    #[test]
    fn tls_of_a_proxy_shows_in_the_origin() {
        let (open, named) = (Site::default(), site(&["https://push.example"], false));
        let mixed = site(&["https://push.example", "http://localhost:8000"], false);
        assert!(open.is_secure(Some("https://push.example")) && mixed.is_secure(Some("https://push.example")));
        assert!(!open.is_secure(Some("http://push.example")) && !open.is_secure(Some("null")));
        assert_eq!([&open, &named, &mixed].map(|site| site.is_secure(None)), [false, true, false]);
    }

    #[test]
    fn origins_are_read_and_told() {
        for (text, read) in [
            ("https://push.example.org", "https://push.example.org"),
            ("HTTPS://Push.Example.org:443/", "https://push.example.org"),
            ("http://[::1]:8080", "http://[::1]:8080"),
            ("http://localhost:80", "http://localhost"),
            ("capacitor://localhost", "capacitor://localhost"),
            ("chrome-extension://abcdefghijklmnop/", "chrome-extension://abcdefghijklmnop"),
        ] {
            assert_eq!(text.parse::<Origin>().unwrap().to_string(), read);
        }
        for bad in [
            "",
            "push.example",
            "ws://a",
            "file://a",
            "://a",
            "a b://a",
            "capacitor://",
            "https://",
            "https://a/b",
            "https://a:",
            "https://a:70000",
            "https://a b",
        ] {
            let error = bad.parse::<Origin>().unwrap_err().to_string();
            assert!(error.contains("https://HOST"), "{bad}: {error}");
        }
    }

    #[test]
    fn refusals_say_what_to_do() {
        for (site, origin) in [
            (Site::default(), RequestOrigin::OtherSite),
            (site(&["https://push.example"], false), RequestOrigin::OtherSite),
            (site(&["https://push.example"], true), RequestOrigin::OtherName),
        ] {
            let text = site.refusal(origin);
            assert!(text.contains("--public-url"), "{text}");
            assert!(site.origins.is_empty() || text.contains("https://push.example"), "{text}");
        }
    }
}
