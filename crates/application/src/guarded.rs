//! An application only for those who have the server's pass.

use crate::requests::Refusal;
use crate::{Application, Publisher, Request, Response};
use pushlab_session::gate::{self, NEEDS_PASS};
use pushlab_session::pass::Pass;
use pushlab_wire::codes::ErrorCode;
use std::sync::Arc;

/// An application that answers only requests that carry a pass. A browser sends none when it follows a link, so anybody
/// gets the pages' files; their script sends the pass with everything else.
#[derive(Debug)]
pub struct Guarded {
    files: Arc<dyn Application>,
    application: Arc<dyn Application>,
    pass: Pass,
}

impl Guarded {
    /// This application for those who have this pass, and for all others its pages' files, which reveal nothing.
    pub fn new(files: Arc<dyn Application>, application: Arc<dyn Application>, pass: Pass) -> Self {
        Self { files, application, pass }
    }

    fn is_shown(&self, request: &Request) -> bool {
        gate::shows(&self.pass, request.fields.iter().map(|(name, value)| (name.as_str(), value.as_str())))
    }

    fn answer_stranger(&self, request: &Request) -> Response {
        let file = if request.is_change() { None } else { self.files.answer(request) };
        // By the field the pages' script knows that it is the pass that is missing.
        file.unwrap_or_else(|| {
            Response::from(Refusal::new(ErrorCode::Unauthorized, NEEDS_PASS)).with("WWW-Authenticate", "Bearer")
        })
    }
}

impl Application for Guarded {
    fn begin(&self, publisher: Publisher) {
        self.application.begin(publisher);
    }

    fn answer(&self, request: &Request) -> Option<Response> {
        if self.is_shown(request) { self.application.answer(request) } else { Some(self.answer_stranger(request)) }
    }

    fn may_wait(&self, request: &Request) -> bool {
        self.is_shown(request) && self.application.may_wait(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Body;
    use std::net::{IpAddr, Ipv4Addr};

    /// Has something at one path, and may wait for it.
    struct At(&'static str);

    impl Application for At {
        fn answer(&self, request: &Request) -> Option<Response> {
            (request.path == self.0).then(|| Response::new(200, "text/plain", Body::Static(self.0.as_bytes())))
        }

        fn may_wait(&self, _: &Request) -> bool {
            true
        }
    }

    fn request(method: &str, path: &str, fields: &[(&str, &str)]) -> Request {
        let owned = |pairs: &[(&str, &str)]| pairs.iter().map(|&(a, b)| (a.to_owned(), b.to_owned())).collect();
        Request {
            method: method.to_owned(),
            path: path.to_owned(),
            query: owned(&[("token", "0123abc")]),
            fields: owned(&[&[("host", "127.0.0.1:8080")], fields].concat()),
            body: Vec::new(),
            peer: IpAddr::V4(Ipv4Addr::LOCALHOST),
            is_tls: false,
            person: None,
        }
    }

    #[test]
    fn only_who_shows_the_pass_reaches_the_application() {
        let guarded = Guarded::new(Arc::new(At("/page")), Arc::new(At("/secret")), Pass::new("0123abc".to_owned()));
        let status = |request: &Request| guarded.answer(request).map(|response| response.status);
        for method in ["GET", "POST", "DELETE"] {
            for path in ["/secret", "/", "/anything"] {
                let stranger = request(method, path, &[("cookie", "pushlab-pass-8080=0123abc")]);
                assert_eq!((status(&stranger), guarded.may_wait(&stranger)), (Some(401), false), "{method} {path}");
            }
            let shown = [("authorization", "Bearer 0123abc")];
            let known = request(method, "/secret", &shown);
            assert_eq!((status(&known), guarded.may_wait(&known)), (Some(200), true), "{method}");
            assert_eq!(status(&request(method, "/nothing", &shown)), None);
        }
        assert_eq!(["GET", "POST"].map(|method| status(&request(method, "/page", &[]))), [Some(200), Some(401)]);
    }
}
