//! The pages and what they load: parts of the program, the same for everybody.

use pushlab_application::{Body, Request, Response};
use pushlab_server::Origin;
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

/// The page, which browsers see at these addresses as well.
pub fn page(request: &Request, origins: &[Origin]) -> Response {
    INDEX.response(request, origins)
}

/// What the page does.
pub fn script(request: &Request, origins: &[Origin]) -> Response {
    SCRIPT.response(request, origins)
}

/// What the page looks like.
pub fn style(request: &Request, origins: &[Origin]) -> Response {
    STYLE.response(request, origins)
}

impl Asset {
    fn new(content_type: &'static str, bytes: &'static [u8]) -> Self {
        let mut hasher = DefaultHasher::new();
        bytes.hash(&mut hasher);
        Self { content_type, bytes, tag: format!("\"{:016x}\"", hasher.finish()) }
    }

    /// The file, or word that the one with this tag is still the latest. Browsers ask each time: the program behind the
    /// port may be another one by then.
    fn response(&'static self, request: &Request, origins: &[Origin]) -> Response {
        let tag = self.tag.as_str();
        let is_known = request.field("if-none-match").is_some_and(|known| known.split(',').any(|t| t.trim() == tag));
        let (status, bytes) = if is_known { (304, &[][..]) } else { (200, self.bytes) };
        let response = Response::new(status, self.content_type, Body::Static(bytes));
        let policy = policy(request, origins);
        response.with("Cache-Control", "no-cache").with("ETag", tag).with("Content-Security-Policy", policy)
    }
}

/// What the pages may do: load, and talk to, this server alone. Names and messages of others are shown on them, so
/// no script in the text of a page ever runs.
fn policy(request: &Request, origins: &[Origin]) -> String {
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
