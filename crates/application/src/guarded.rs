//! An application only for those who have the server's pass.

use crate::requests::Refusal;
use crate::{Application, Body, Publisher, Request, Response};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use pushlab_session::gate::NEEDS_PASS;
use pushlab_session::pass::{Pass, cookie_name};
use pushlab_wire::codes::ErrorCode;
use std::sync::Arc;

/// The parameter of an address that brings the pass to a browser, which then keeps it in a cookie.
pub const PARAMETER: &str = "token";

/// What a browser shows whoever comes without the pass.
const PAGE: &[u8] = b"<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content=width=device-width>\
<title>Pushlab: a token is needed</title>\
<h1>A token is needed</h1>\
<p>Open the address that the program printed in its terminal: it ends in <code>?token=</code> and the token. This browser \
then remembers the token until it is closed or the program prints another.</p>";

/// An application that answers only to those who show a pass.
#[derive(Debug)]
pub struct Guarded {
    application: Arc<dyn Application>,
    pass: Pass,
}

impl Guarded {
    /// This application, for those who have this pass.
    pub fn new(application: Arc<dyn Application>, pass: Pass) -> Self {
        Self { application, pass }
    }

    fn is_shown(&self, request: &Request) -> bool {
        self.pass.is_shown(request.fields.iter().map(|(name, value)| (name.as_str(), value.as_str())))
    }

    /// The same address without the pass, so that no history or screenshot has it, and a cookie, which requests from
    /// pages of other sites do not carry.
    fn let_in(request: &Request, secret: &str) -> Response {
        let is_plain = |path: &str| path.bytes().all(|b| b.is_ascii_alphanumeric() || b"/-_.".contains(&b));
        let path = Some(&*request.path).filter(|path| is_plain(path) && !path.starts_with("//")).unwrap_or("/");
        let mut address = path.to_owned();
        for (name, value) in request.query.iter().filter(|(name, _)| name != PARAMETER) {
            let separator = if address.len() == path.len() { '?' } else { '&' };
            let [name, value] = [name, value].map(|text| utf8_percent_encode(text, NON_ALPHANUMERIC));
            address.push_str(&format!("{separator}{name}={value}"));
        }
        let secure = if request.is_tls { "; Secure" } else { "" };
        let name = cookie_name(request.field("host"), request.is_tls);
        Response::new(303, "text/plain", Body::Static(b""))
            .with("Location", address)
            .with("Set-Cookie", format!("{name}={secret}; Path=/; HttpOnly; SameSite=Strict{secure}"))
    }

    fn turn_away(request: &Request) -> Response {
        let is_browser = request.field("accept").is_some_and(|accepted| accepted.contains("text/html"));
        if !is_browser {
            return Refusal::new(ErrorCode::Unauthorized, NEEDS_PASS).into();
        }
        Response::new(401, "text/html; charset=utf-8", Body::Static(PAGE))
            .with("Content-Security-Policy", "default-src 'none'; base-uri 'none'; frame-ancestors 'none'")
    }
}

impl Application for Guarded {
    fn begin(&self, publisher: Publisher) {
        self.application.begin(publisher);
    }

    fn answer(&self, request: &Request) -> Option<Response> {
        if !request.is_change() && request.parameter(PARAMETER).is_some_and(|text| self.pass.is(text)) {
            return Some(Self::let_in(request, self.pass.secret()));
        }
        if self.is_shown(request) { self.application.answer(request) } else { Some(Self::turn_away(request)) }
    }

    fn may_wait(&self, request: &Request) -> bool {
        self.is_shown(request) && self.application.may_wait(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{IpAddr, Ipv4Addr};

    struct Secrets;

    impl Application for Secrets {
        fn answer(&self, request: &Request) -> Option<Response> {
            (request.path == "/secret").then(|| Response::new(200, "text/plain", Body::Static(b"secret")))
        }

        fn may_wait(&self, _: &Request) -> bool {
            true
        }
    }

    fn request(method: &str, path: &str, query: &[(&str, &str)], fields: &[(&str, &str)]) -> Request {
        let owned = |pairs: &[(&str, &str)]| pairs.iter().map(|&(a, b)| (a.to_owned(), b.to_owned())).collect();
        Request {
            method: method.to_owned(),
            path: path.to_owned(),
            query: owned(query),
            fields: owned(&[&[("host", "127.0.0.1:8080")], fields].concat()),
            body: Vec::new(),
            peer: IpAddr::V4(Ipv4Addr::LOCALHOST),
            is_tls: false,
        }
    }

    #[test]
    fn only_who_shows_the_pass_reaches_the_application() {
        let guarded = Guarded::new(Arc::new(Secrets), Pass::new("0123abc".to_owned()));
        let cookie = [("cookie", "pushlab-pass-8080=0123abc")];
        let status = |request: &Request| guarded.answer(request).map(|response| response.status);
        for method in ["GET", "POST", "DELETE"] {
            for path in ["/secret", "/", "/anything"] {
                let stranger = request(method, path, &[("token", "0123abd")], &[("cookie", "pushlab-pass-8080=x")]);
                assert_eq!((status(&stranger), guarded.may_wait(&stranger)), (Some(401), false), "{method} {path}");
            }
            let known = request(method, "/secret", &[], &cookie);
            assert_eq!((status(&known), guarded.may_wait(&known)), (Some(200), true), "{method}");
            assert_eq!(status(&request(method, "/nothing", &[], &cookie)), None);
        }
        assert_eq!(status(&request("POST", "/secret", &[("token", "0123abc")], &[])), Some(401), "a form");
        let page = guarded.answer(&request("GET", "/", &[], &[("accept", "text/html,*/*")])).unwrap();
        assert_eq!((page.status, &*page.content_type), (401, "text/html; charset=utf-8"));
    }

    #[test]
    fn the_address_with_the_pass_becomes_a_cookie() {
        let guarded = Guarded::new(Arc::new(Secrets), Pass::new("0123abc".to_owned()));
        let query = [("token", "0123abc"), ("a", "b&c"), ("d", "")];
        for (path, is_tls, location) in [
            ("/", false, "/"),
            ("/live", true, "/live"),
            ("//evil.example/", false, "/"),
            ("/a\r\nb", false, "/"),
            ("/\\evil.example", false, "/"),
        ] {
            let answer = guarded.answer(&Request { is_tls, ..request("GET", path, &query, &[]) }).unwrap();
            let field = |name: &str| answer.fields.iter().find(|(n, _)| n == name).map(|(_, value)| &**value);
            let expected = format!("{location}?a=b%26c&d=");
            assert_eq!((answer.status, field("Location")), (303, Some(&*expected)), "{path}");
            let (prefix, secure) = if is_tls { ("__Host-", "; Secure") } else { ("", "") };
            let cookie = format!("{prefix}pushlab-pass-8080=0123abc; Path=/; HttpOnly; SameSite=Strict{secure}");
            assert_eq!(field("Set-Cookie"), Some(&*cookie));
        }
    }
}
