//! An application's table of routes: what answers which method at which path.
//!
//! ```
//! use pushlab_application::requests::json;
//! use pushlab_application::routes::{Route, Routes};
//!
//! struct Stock;
//! const TABLE: &[Route<Stock>] = &[
//!     ("GET", "/items", |_, _, _| Ok(json(&["hammer"]))),
//!     ("DELETE", "/items/{name}", |_, _, name| Ok(json(&format!("no {name} any more")))),
//! ];
//! let routes = Routes::new(TABLE);
//! ```

use crate::Request;
use crate::requests::{Answer, method_not_allowed};
use matchit::Router;
use std::collections::BTreeMap;

/// What answers: it is given the application, the request and what the path has in the place of the pattern's `{name}`,
/// which is empty in a pattern without.
pub type Handler<A> = fn(&A, &Request, &str) -> Answer;

/// A method, a pattern of paths and what answers there. A pattern may have one `{name}`, which stands for a segment, or
/// `{*name}` at its end, which stands for the rest; neither stands for nothing.
pub type Route<A> = (&'static str, &'static str, Handler<A>);

/// A table of routes.
pub struct Routes<A> {
    /// Methods and handlers by pattern, in the order of the table.
    paths: Router<Vec<(&'static str, Handler<A>)>>,
}

impl<A> Routes<A> {
    /// The routes of this table.
    ///
    /// # Panics
    /// If a pattern is none, or two contradict each other: a table is part of the program.
    pub fn new(table: &[Route<A>]) -> Self {
        let mut patterns: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for &(method, pattern, handler) in table {
            patterns.entry(pattern).or_default().push((method, handler));
        }
        let mut paths = Router::new();
        for (pattern, handlers) in patterns {
            paths.insert(pattern, handlers).expect("the patterns of a table are well-formed and agree with each other");
        }
        Self { paths }
    }

    /// The answer of the request's route, `method-not-allowed` where its path takes other methods; `None` if nothing is
    /// at its path.
    pub fn answer(&self, application: &A, request: &Request) -> Option<Answer> {
        let found = self.paths.at(&request.path).ok()?;
        let of_method = found.value.iter().find(|(method, _)| *method == request.method);
        let Some((_, handler)) = of_method else {
            let methods: Vec<&str> = found.value.iter().map(|(method, _)| *method).collect();
            return Some(Err(method_not_allowed(&methods)));
        };
        let part = found.params.iter().next().map_or("", |(_, part)| part);
        Some(handler(application, request, part))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Response;
    use crate::requests::{json, respond};

    const TABLE: &[Route<u32>] = &[
        ("GET", "/", |_, _, _| Ok(json(&"root"))),
        ("GET", "/files/{*path}", |_, _, path| Ok(json(&path))),
        ("GET", "/items", |_, _, part| Ok(json(&part))),
        ("POST", "/items", |number, _, _| Ok(json(number))),
        ("GET", "/items/all", |_, _, _| Ok(json(&"all"))),
        ("DELETE", "/items/{id}", |_, _, id| Ok(json(&id))),
        ("POST", "/items/{id}/bids", |_, request, id| Ok(json(&(id, &request.path)))),
    ];

    fn ask(method: &str, path: &str) -> Option<Response> {
        let request = Request {
            method: method.to_owned(),
            path: path.to_owned(),
            query: Vec::new(),
            fields: Vec::new(),
            body: Vec::new(),
            peer: [127, 0, 0, 1].into(),
            is_tls: false,
            person: None,
        };
        Routes::new(TABLE).answer(&7, &request).map(respond)
    }

    #[test]
    fn a_request_gets_the_answer_of_its_route() {
        let body = |method, path| {
            let response = ask(method, path)?;
            assert_eq!(response.status, 200, "{method} {path}");
            Some(String::from_utf8(response.body.as_bytes().to_vec()).expect("text"))
        };
        assert_eq!(body("GET", "/").as_deref(), Some(r#""root""#));
        assert_eq!(body("GET", "/items").as_deref(), Some(r#""""#));
        assert_eq!(body("POST", "/items").as_deref(), Some("7"));
        assert_eq!(body("GET", "/items/all").as_deref(), Some(r#""all""#));
        assert_eq!(body("DELETE", "/items/ü {x}").as_deref(), Some(r#""ü {x}""#));
        assert_eq!(body("GET", "/files/a/../b/").as_deref(), Some(r#""a/../b/""#));
        assert_eq!(body("POST", "/items/5/bids").as_deref(), Some(r#"["5","/items/5/bids"]"#));
    }

    #[test]
    fn nothing_is_at_other_paths() {
        let others = [
            "",
            "items",
            "/item",
            "/items/",
            "/items//bids",
            "/items/5/",
            "/items/5/6",
            "/items/5/bids/",
            "//",
            "/files/",
            "/{x}",
        ];
        for path in others {
            assert_eq!(ask("GET", path), None, "{path}");
        }
    }

    #[test]
    fn another_method_is_told_which_there_are() {
        for (method, path, allowed) in [
            ("PUT", "/items", "GET, POST"),
            ("GET", "/items/5", "DELETE"),
            ("GET", "/items/5/bids", "POST"),
            ("DELETE", "/items/all", "GET"),
            ("get", "/", "GET"),
        ] {
            let response = ask(method, path).expect("an answer");
            assert_eq!(response.status, 405, "{method} {path}");
            assert!(response.fields.contains(&("Allow".into(), allowed.into())), "{method} {path}");
        }
    }
}
