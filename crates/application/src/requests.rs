//! What an application needs of every request: what a body holds, and how a refusal is told.

use crate::{Body, Request, Response};
use pushlab_wire::codes::ErrorCode;
use pushlab_wire::fields::trimmed;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::time::Duration;

/// What a request gets.
pub type Answer = Result<Response, Refusal>;

/// Why a request is not done, as its answer tells it: `{"error":CODE,"message":TEXT}` and perhaps more.
#[derive(Debug, Clone)]
pub struct Refusal {
    code: ErrorCode,
    message: Cow<'static, str>,
    details: Map<String, Value>,
    fields: Vec<(&'static str, String)>,
}

impl Refusal {
    /// A refusal: `message` says what was wrong and what to try. With a code of status 503 it names one second after
    /// which to try again.
    pub fn new(code: ErrorCode, message: impl Into<Cow<'static, str>>) -> Self {
        let refusal = Self { code, message: message.into(), details: Map::new(), fields: Vec::new() };
        if code.http_status() == 503 { refusal.after(Duration::from_secs(1)) } else { refusal }
    }

    /// The code.
    pub fn code(&self) -> ErrorCode {
        self.code
    }

    /// Something of this program's or of its files, told as it is.
    pub fn failed(error: &dyn std::error::Error) -> Self {
        Self::new(ErrorCode::InternalError, error.to_string())
    }

    /// With this many seconds, rounded up, in `Retry-After`.
    pub fn after(mut self, wait: Duration) -> Self {
        self.fields.retain(|(name, _)| *name != "Retry-After");
        self.fields.push(("Retry-After", wait.as_secs_f64().ceil().max(1.0).to_string()));
        self
    }

    /// With one more member in its body.
    pub fn with(mut self, name: &str, value: Value) -> Self {
        self.details.insert(name.to_owned(), value);
        self
    }
}

impl From<Refusal> for Response {
    fn from(refusal: Refusal) -> Self {
        let mut body = refusal.details;
        body.insert("error".to_owned(), json!(refusal.code.name()));
        body.insert("message".to_owned(), json!(refusal.message));
        let bytes = Value::Object(body).to_string().into_bytes();
        let response = Self::new(refusal.code.http_status(), "application/json", Body::Own(bytes));
        refusal.fields.into_iter().fold(response, |response, (name, value)| response.with(name, value))
    }
}

/// The answer of an application: what was done, or why not.
pub fn respond(answer: Answer) -> Response {
    answer.unwrap_or_else(Response::from)
}

/// Status 200 and this as JSON.
pub fn json(value: &impl Serialize) -> Response {
    Response::json(serde_json::to_vec(value).expect("answers hold text, numbers and lists, which always serialise"))
}

/// The path answers these methods, and the request has another.
pub(crate) fn method_not_allowed(methods: &[&str]) -> Refusal {
    let allowed = methods.join(", ");
    let mut refusal = Refusal::new(ErrorCode::MethodNotAllowed, format!("this path answers {allowed}"));
    refusal.fields.push(("Allow", allowed));
    refusal
}

/// The body of a request, JSON of this shape. The type must deny unknown fields. That a change comes from an own page the
/// server has seen to.
///
/// # Errors
/// `bad-request` where it is none.
pub fn body<T: DeserializeOwned>(request: &Request) -> Result<T, Refusal> {
    let kind = request.field("content-type").unwrap_or_default();
    let kind = trimmed(kind.split(';').next().unwrap_or_default());
    if !kind.eq_ignore_ascii_case("application/json") {
        // A form of another site cannot send this type, which is a second reason to ask for it.
        return Err(bad("the body must be JSON: send it with Content-Type: application/json"));
    }
    serde_json::from_slice(&request.body).map_err(|error| bad(format!("the body is not what this path takes: {error}")))
}

/// A value that is none, with what would be one.
pub fn bad(message: impl Into<Cow<'static, str>>) -> Refusal {
    Refusal::new(ErrorCode::BadRequest, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    /// A request as a page of the server itself sends it.
    fn request(method: &str, path: &str, body: &str) -> Request {
        let fields = [("host", "127.0.0.1:8000"), ("content-type", "application/json")];
        Request {
            method: method.to_owned(),
            path: path.to_owned(),
            query: Vec::new(),
            fields: fields.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
            body: body.into(),
            peer: [127, 0, 0, 1].into(),
            is_tls: false,
            person: None,
        }
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Named {
        name: String,
    }

    fn read(request: &Request) -> Result<Named, ErrorCode> {
        body(request).map_err(|refusal| refusal.code())
    }

    #[test]
    fn a_body_is_json_of_its_shape() {
        let good = Named { name: "<b>".to_owned() };
        assert_eq!(read(&request("POST", "/", r#"{"name":"<b>"}"#)), Ok(good));
        for bad in ["", "{}", "[]", r#"{"name":1}"#, r#"{"name":"a","more":1}"#, r#"{"name":"a"} {}"#, "\u{0}"] {
            assert_eq!(read(&request("POST", "/", bad)), Err(ErrorCode::BadRequest), "{bad}");
        }
        let mut invalid = request("POST", "/", r#"{"name":"?"}"#);
        invalid.body[9] = 0xff;
        assert_eq!(read(&invalid), Err(ErrorCode::BadRequest), "not UTF-8");
    }

    #[test]
    fn a_body_is_taken_as_json_alone() {
        let mut typed = request("POST", "/", r#"{"name":"a"}"#);
        for (kind, is_taken) in [
            ("application/json; charset=utf-8", true),
            ("Application/JSON", true),
            ("text/plain", false),
            ("application/x-www-form-urlencoded", false),
            ("application/jsonp", false),
            ("", false),
        ] {
            kind.clone_into(&mut typed.fields[1].1);
            assert_eq!(read(&typed).is_ok(), is_taken, "{kind}");
        }
    }

    #[test]
    fn refusals_tell_code_message_and_what_belongs_to_them() {
        let methods = respond(Err(method_not_allowed(&["GET", "POST"])));
        assert_eq!(methods.status, 405);
        assert!(methods.fields.contains(&("Allow".into(), "GET, POST".into())));
        let away = Response::from(Refusal::new(ErrorCode::DatabaseAway, "gone").after(Duration::from_millis(2100)));
        assert_eq!((away.status, away.fields), (503, vec![("Retry-After".into(), "3".into())]));
        let outbid = Response::from(Refusal::new(ErrorCode::Outbid, "more \"please\"").with("leading", json!(5)));
        let body: Value = serde_json::from_slice(outbid.body.as_bytes()).unwrap();
        assert_eq!(body, json!({ "error": "outbid", "message": "more \"please\"", "leading": 5 }));
    }
}
