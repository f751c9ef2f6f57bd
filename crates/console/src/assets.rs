//! The pages and what they load: parts of the program, the same for everybody.

use pushlab_application::requests::respond;
use pushlab_application::routes::{Handler, Route, Routes};
use pushlab_application::{Application, Body, Request, Response};
use pushlab_server::Origin;
use pushlab_wire::fields::trimmed;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::LazyLock;

/// The page of a report, with a place for it.
pub const REPORT_PAGE: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../web/console/dist/report.html"));

macro_rules! built {
    ($name:literal) => {
        include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../web/console/dist/console/", $name))
    };
}

/// A file of the bundle.
struct Asset {
    content_type: &'static str,
    bytes: &'static [u8],
    /// Of these very bytes.
    tag: String,
}

static INDEX: LazyLock<Asset> = LazyLock::new(|| Asset::new("text/html; charset=utf-8", built!("index.html")));
static SCRIPT: LazyLock<Asset> = LazyLock::new(|| Asset::new("text/javascript; charset=utf-8", built!("console.js")));
static STYLE: LazyLock<Asset> = LazyLock::new(|| Asset::new("text/css; charset=utf-8", built!("console.css")));

/// All pages are the same file, whose script shows what the path names.
const PAGE: Handler<Files> = |files, request, _| Ok(INDEX.response(request, page_policy(request, &files.origins)));

const TABLE: &[Route<Files>] = &[
    ("GET", "/", PAGE),
    ("GET", "/live", PAGE),
    ("GET", "/compare", PAGE),
    ("GET", "/new", PAGE),
    ("GET", "/measure", PAGE),
    ("GET", "/demos", PAGE),
    ("GET", "/demos/ticker", PAGE),
    ("GET", "/demos/chat", PAGE),
    ("GET", "/demos/auction", PAGE),
    ("GET", "/assets/console.js", |_, request, _| Ok(SCRIPT.response(request, FILE_POLICY.to_owned()))),
    ("GET", "/assets/console.css", |_, request, _| Ok(STYLE.response(request, FILE_POLICY.to_owned()))),
    // Where the report itself is for those with a pass: the script asks for it and puts it in the page's place.
    ("GET", "/reports/{*id}", |_, request, _| Ok(INDEX.response(request, report_policy(true)))),
];

static ROUTES: LazyLock<Routes<Files>> = LazyLock::new(|| Routes::new(TABLE));

/// The pages' files as an application. They hold nothing that is not in the program, so anybody may have them.
#[derive(Debug, Clone)]
pub struct Files {
    origins: Vec<Origin>,
}

impl Files {
    /// The files of pages at these addresses, where they are named.
    pub fn new(origins: Vec<Origin>) -> Self {
        Self { origins }
    }
}

impl Application for Files {
    fn answer(&self, request: &Request) -> Option<Response> {
        // Whoever opens a report gets the page; its script, which asks for the report itself, must not get the page again.
        let is_opened = request.field("accept").is_some_and(|accepted| accepted.contains("text/html"));
        if request.path.starts_with("/reports/") && !is_opened {
            return None;
        }
        ROUTES.answer(self, request).map(respond)
    }
}

impl Asset {
    fn new(content_type: &'static str, bytes: &'static [u8]) -> Self {
        let mut hasher = DefaultHasher::new();
        bytes.hash(&mut hasher);
        Self { content_type, bytes, tag: format!("\"{:016x}\"", hasher.finish()) }
    }

    /// The file, or word that the one with this tag is still the latest. Browsers ask each time: the program behind the
    /// port may be another one by then.
    fn response(&'static self, request: &Request, policy: String) -> Response {
        let tag = self.tag.as_str();
        let is_known = request.field("if-none-match").is_some_and(|known| known.split(',').any(|t| trimmed(t) == tag));
        let (status, bytes) = if is_known { (304, &[][..]) } else { (200, self.bytes) };
        let response = Response::new(status, self.content_type, Body::Static(bytes));
        response.with("Cache-Control", "no-cache").with("ETag", tag).with("Content-Security-Policy", policy)
    }
}

/// What a script or a style sheet may do where it is opened by itself.
const FILE_POLICY: &str = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// A report's own policy, which names its one script and its one style sheet, and what only a field of a head can say.
/// Where the pages' script fetches it first, that script, its style sheet and its question are allowed too.
pub fn report_policy(is_fetched: bool) -> String {
    let (_, rest) = REPORT_PAGE.split_once("content=\"default-src ").expect("the page has a policy");
    let (policy, _) = rest.split_once('"').expect("an attribute ends");
    let mut policy = format!("default-src {policy}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
    if is_fetched {
        policy = policy.replace("script-src ", "script-src 'self' ").replace("style-src ", "style-src 'self' ");
        policy.push_str("; connect-src 'self'");
    }
    policy
}

/// What the pages may do: load, and talk to, this server alone. Names and messages of others are shown on them, so
/// no script in the text of a page ever runs.
fn page_policy(request: &Request, origins: &[Origin]) -> String {
    // By Content Security Policy 3 'self' covers WebSockets; browsers of older readings need them named. A proxy may
    // have changed the host, but where it does the origins are known.
    let is_plain = |host: &&str| host.chars().all(|c| c.is_ascii_alphanumeric() || "-._:[]".contains(c));
    let host = request.field("host").filter(is_plain);
    let mut sockets = host.map_or_else(String::new, |host| format!(" ws://{host} wss://{host}"));
    for origin in origins {
        // `ws` is to `http` as `wss` is to `https`.
        sockets.push_str(&format!(" {}", origin.to_string().replacen("http", "ws", 1)));
    }
    format!(
        "default-src 'self'; connect-src 'self'{sockets}; img-src 'self' data:; \
         base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    )
}
