//! What is known of a foreign server: `subjects/NAME/subject.toml`.

use pushlab_dialects::Dialect;
use pushlab_wire::transport::Transport;
use pushlab_workload::plan::Speaks;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A foreign server: what it is, how it is installed and started, and what it speaks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The folder's name: lower-case letters, digits and hyphens.
    pub name: String,
    /// Its name for people.
    pub title: String,
    /// What it is, in a line.
    pub about: String,
    /// On what it runs.
    pub platform: Platform,
    /// Where it is at home.
    pub home: String,
    /// Its licence, as SPDX has it.
    pub licence: String,
    /// The version that is measured; `as packaged` where the operating system decides it.
    pub version: String,
    /// Programs that must be on the PATH.
    pub tools: Vec<String>,
    /// Files that must be there, such as a module in a package of the operating system.
    #[serde(default)]
    pub files: Vec<String>,
    /// What must be there as well before it can be installed, and does not show in names.
    #[serde(default)]
    pub probes: Vec<Probe>,
    /// What to do when one of these is missing.
    pub hint: String,
    /// Commands that install it, each run in a copy of the folder in the cache.
    pub install: Vec<Vec<String>>,
    /// The command that starts it, run in the same copy; `{host}` and `{port}` stand for where it is to listen.
    pub start: Vec<String>,
    /// The same, if there is a way to make its runtime log garbage collections to standard output, a line for each as it
    /// happens: as V8 (`--trace-gc`) or HotSpot (`-Xlog:gc`) writes it.
    #[serde(default)]
    pub start_logged: Option<Vec<String>>,
    /// How it is known to be ready.
    pub ready: Ready,
    /// Whether a client can have its own message back alone.
    pub echo: bool,
    /// Whether a client chooses the channels that it gets.
    pub rooms: bool,
    /// Whether it connects to a back end that feeds it, named in its environment as `FEED`.
    #[serde(default)]
    pub feed: bool,
    /// Whether clients that poll can ask it for a list of users, in a request of its own.
    #[serde(default)]
    pub users: bool,
    /// Whether a poll may ask for the newest messages (`newest=10`) in place of what is new.
    #[serde(default)]
    pub newest: bool,
    /// Whether an event stream can bring a client its own message back (`GET /sse/echo?data=DATA`).
    #[serde(default)]
    pub echo_streams: bool,
    /// Whether it speaks TLS if its environment names a certificate chain and its key, as `TLS_CERTIFICATE` and `TLS_KEY`.
    #[serde(default)]
    pub tls: bool,
    /// How many cores of its own make it worth measuring: with fewer it is left out.
    #[serde(default = "one_core")]
    pub cores_min: u32,
    /// The files that are our server: their lines are counted.
    pub server: Vec<String>,
    /// What a page in a browser loads; `None` where the browser's own interfaces are enough.
    #[serde(default)]
    pub client: Option<ClientPackage>,
    /// Its client for pages that are measured; `None` where an experiment cannot put its clients into a browser.
    #[serde(default)]
    pub browser: Option<PageClient>,
    /// Every endpoint; the first of each transport is the usual one.
    #[serde(rename = "transport")]
    pub endpoints: Vec<Endpoint>,
}

fn one_core() -> u32 {
    1
}

/// On what a server runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Platform {
    /// Node.js.
    Node,
    /// Bun.
    Bun,
    /// Go.
    Go,
    /// Java, or another language on its virtual machine.
    Java,
    /// CPython.
    Python,
    /// Rust.
    Rust,
    /// A module of nginx.
    Nginx,
}

impl Platform {
    /// Its name for people.
    pub fn title(self) -> &'static str {
        match self {
            Self::Node => "Node.js",
            Self::Bun => "Bun",
            Self::Go => "Go",
            Self::Java => "Java",
            Self::Python => "Python",
            Self::Rust => "Rust",
            Self::Nginx => "nginx",
        }
    }
}

/// How something that a server needs is looked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Probe {
    /// What is looked for, as it is told where it is missing.
    pub what: String,
    /// A command that succeeds where it is there, and takes no more than a moment.
    pub command: Vec<String>,
}

/// How a server is known to be ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Ready {
    /// It prints `{"listening":"HOST:PORT"}` and a line feed.
    Line,
    /// Its port takes connections.
    Port,
}

/// A client library for browsers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClientPackage {
    /// Its npm package.
    pub package: String,
    /// Its version.
    pub version: String,
    /// A module that uses of it what a page would: bundled, it tells the size.
    pub import: String,
}

/// What makes the pages of a browser clients of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PageClient {
    /// Files of the installation that a page loads, in this order: the framework's own client, then an adapter that
    /// sets `globalThis.framework`. None where all of `transports` are of the dialect `bare`, which needs no library.
    #[serde(default)]
    pub scripts: Vec<String>,
    /// Names of the endpoints to which it can connect.
    pub transports: Vec<String>,
}

impl PageClient {
    /// What is wrong with it, if anything.
    fn mistake(&self, endpoints: &[Endpoint]) -> Option<String> {
        let find = |name: &String| endpoints.iter().find(|endpoint| endpoint.name == *name);
        if let Some(unknown) = self.transports.iter().find(|name| find(name).is_none()) {
            return Some(format!("names the transport {unknown:?}, which is not there"));
        }
        if self.transports.is_empty() {
            return Some("needs at least one of the transports".to_owned());
        }
        let is_bare = |name| find(name).is_some_and(|endpoint| endpoint.dialect == Dialect::Bare);
        if self.scripts.is_empty() && !self.transports.iter().all(is_bare) {
            return Some("needs scripts: the framework's client, and its adapter".to_owned());
        }
        let is_outside = |script: &&String| script.split('/').any(|part| part.is_empty() || part == "..");
        let outside = self.scripts.iter().find(is_outside)?;
        Some(format!("has the script {outside:?}, which must be a path below the installation"))
    }
}

/// An endpoint of a server: a transport, a dialect, a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Endpoint {
    /// Unique in the subject.
    pub name: String,
    /// How bytes travel.
    pub transport: Transport,
    /// What is spoken.
    pub dialect: Dialect,
    /// What the dialect needs to know of the server's routes.
    pub path: String,
    /// Which of several forms the dialect has over the transport.
    #[serde(default)]
    pub how: String,
    /// The version of what serves this endpoint, where it is not the subject's.
    #[serde(default)]
    pub version: Option<String>,
    /// Whether the server leaves Nagle's algorithm on, so that a message waits until the last one is acknowledged: its
    /// clients never delay that (`sockets.delayed_acks`).
    #[serde(default)]
    pub nagle: bool,
    /// Whether the server can compress for clients that ask for it. It then compresses messages of at least
    /// `COMPRESSION_FROM` bytes, an environment variable, and none if that is not set.
    #[serde(default)]
    pub compresses: bool,
    /// Whether a client that was cut off gets what it missed, if the server is told to keep it: by the environment that the
    /// preset `storm` sets.
    #[serde(default)]
    pub resumes: bool,
    /// What the server is known not to keep at this endpoint.
    #[serde(default)]
    pub loses: Option<Loses>,
}

/// What a server is known not to keep at an endpoint: a check passes with these faults, and with no others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Loses {
    /// The faults, at least one.
    pub what: Vec<Fault>,
    /// Most deliveries that may be lost, percent of all: from 1 to 99 where `what` has `loss`, and nowhere else.
    #[serde(default)]
    pub loss_percent_max: Option<u8>,
    /// How they come about, and where its documentation or source says so.
    pub why: String,
}

/// A way in which deliveries can go wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Fault {
    /// Some never come.
    Loss,
    /// Some come again.
    Repeats,
    /// Some come after a later one of the same publisher.
    Order,
    /// Some echoes never come.
    Echoes,
}

impl Fault {
    /// As in manifests.
    pub fn name(self) -> &'static str {
        match self {
            Self::Loss => "loss",
            Self::Repeats => "repeats",
            Self::Order => "order",
            Self::Echoes => "echoes",
        }
    }
}

impl Loses {
    /// Why it says too little or too much, if so.
    fn mistake(&self) -> Option<&'static str> {
        let is_bounded = self.loss_percent_max.is_some_and(|percent| (1..100).contains(&percent));
        if self.what.is_empty() || self.why.trim().is_empty() {
            Some("needs what (loss, repeats, order, echoes) and why")
        } else if self.what.contains(&Fault::Loss) && !is_bounded {
            Some("needs loss_percent_max, from 1 to 99")
        } else if !self.what.contains(&Fault::Loss) && self.loss_percent_max.is_some() {
            Some("has loss_percent_max, but no loss in what")
        } else {
            None
        }
    }

    /// Whether a check may find this fault.
    pub fn admits(&self, fault: Fault) -> bool {
        self.what.contains(&fault)
    }

    /// Whether it admits a loss of so many deliveries.
    pub fn allows(&self, lost: u64, expected: u64) -> bool {
        u128::from(lost) * 100 <= u128::from(expected) * u128::from(self.loss_percent_max.unwrap_or(0))
    }
}

impl Endpoint {
    /// What is known of it to go wrong.
    pub fn admitted(&self) -> Option<&Loses> {
        self.loses.as_ref()
    }

    /// What clients are told.
    pub fn speaks(&self) -> Speaks {
        Speaks { dialect: self.dialect, path: self.path.clone(), how: self.how.clone(), recording: None }
    }
}

impl Manifest {
    /// Reads a manifest; `folder` is the name of the folder that it lies in.
    ///
    /// # Errors
    /// What is wrong with it, as a sentence.
    pub fn parse(text: &str, folder: &str) -> Result<Self, String> {
        let manifest: Self = toml::from_str(text).map_err(|error| error.to_string())?;
        if manifest.name != folder {
            return Err(format!("name is {:?}, but its folder is {folder:?}", manifest.name));
        }
        let is_unlogged = manifest.start_logged.as_ref().is_some_and(Vec::is_empty);
        if manifest.start.is_empty() || is_unlogged || manifest.endpoints.is_empty() || manifest.tools.is_empty() {
            return Err("start, start_logged, tools and transport need at least one entry each".to_owned());
        }
        if let Some(probe) = manifest.probes.iter().find(|probe| probe.command.is_empty()) {
            return Err(format!("the probe for {:?} has no command", probe.what));
        }
        for (i, endpoint) in manifest.endpoints.iter().enumerate() {
            if manifest.endpoints[..i].iter().any(|other| other.name == endpoint.name) {
                return Err(format!("two transports are named {:?}", endpoint.name));
            }
            if let Some(mistake) = endpoint.loses.as_ref().and_then(Loses::mistake) {
                return Err(format!("loses of {:?} {mistake}", endpoint.name));
            }
        }
        let mistake = manifest.browser.as_ref().and_then(|browser| browser.mistake(&manifest.endpoints));
        mistake.map_or(Ok(manifest), |mistake| Err(format!("[browser] {mistake}")))
    }

    /// The scripts of its client for pages, where that can connect to an endpoint.
    pub fn page_scripts(&self, endpoint: &Endpoint) -> Option<&[String]> {
        let browser = self.browser.as_ref().filter(|browser| browser.transports.contains(&endpoint.name))?;
        Some(&browser.scripts)
    }

    /// The endpoint of this name, or, without one, the usual endpoint of a transport.
    pub fn endpoint(&self, name: Option<&str>, transport: Transport) -> Option<&Endpoint> {
        let fits =
            |endpoint: &&Endpoint| endpoint.transport == transport && name.is_none_or(|name| endpoint.name == name);
        self.endpoints.iter().find(fits)
    }

    /// The version of what serves the endpoint of this name; without one, that of the subject.
    pub fn version_of(&self, endpoint: Option<&str>) -> &str {
        let own = self.endpoints.iter().find(|known| endpoint == Some(known.name.as_str()));
        own.and_then(|endpoint| endpoint.version.as_deref()).unwrap_or(&self.version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(of_way: &str) -> Result<Manifest, String> {
        Manifest::parse(&manifest_text(of_way), "some")
    }

    fn manifest_text(of_way: &str) -> String {
        format!(
            r#"
                name = "some"
                title = "Some"
                about = "Something"
                platform = "go"
                home = "https://example.org"
                licence = "MIT"
                version = "1.5.3"
                tools = ["go"]
                hint = "install Go"
                install = []
                start = ["./server"]
                ready = "line"
                echo = true
                rooms = true
                server = []
                [[transport]]
                name = "websocket"
                transport = "websocket"
                dialect = "bare"
                path = ""
                [[transport]]
                name = "other"
                transport = "websocket"
                dialect = "bare"
                path = ""
                {of_way}
            "#
        )
    }

    #[test]
    fn what_a_way_loses_is_said_in_kinds_and_with_a_reason() {
        let one = manifest(r#"loses = { what = ["order", "echoes"], why = "threads" }"#).unwrap();
        let loses = one.endpoints[1].admitted().unwrap();
        assert_eq!(loses.what, [Fault::Order, Fault::Echoes]);
        assert!(loses.admits(Fault::Order) && !loses.admits(Fault::Loss));
        assert_eq!(one.endpoints[0].admitted(), None);
        for (bad, why) in [
            (r#"loses = "order, since it has threads""#, "invalid type"),
            (r#"loses = { what = ["anything"], why = "threads" }"#, "unknown variant `anything`"),
            (r#"loses = { what = [], why = "threads" }"#, "needs what"),
            (r#"loses = { what = ["loss"], loss_percent_max = 5, why = " " }"#, "needs what"),
            (r#"loses = { what = ["loss"], why = "threads" }"#, "needs loss_percent_max"),
            (r#"loses = { what = ["loss"], loss_percent_max = 0, why = "threads" }"#, "needs loss_percent_max"),
            (r#"loses = { what = ["loss"], loss_percent_max = 100, why = "threads" }"#, "needs loss_percent_max"),
            (r#"loses = { what = ["order"], loss_percent_max = 5, why = "threads" }"#, "no loss in what"),
        ] {
            let error = manifest(bad).unwrap_err();
            assert!(error.contains(why), "{bad}: {error}");
        }
    }

    #[test]
    fn a_client_for_pages_names_its_endpoints_and_scripts() {
        let with = |table: &str| {
            let text = manifest_text("").replace("[[transport]]\n                name = \"websocket\"", table);
            Manifest::parse(&text, "some")
        };
        let table = |scripts: &str, transports: &str| {
            let endpoint = "[[transport]]\nname = \"websocket\"";
            with(&format!("[browser]\nscripts = {scripts}\ntransports = {transports}\n{endpoint}"))
        };
        let one = table(r#"["node_modules/a.js", "page.js"]"#, r#"["other"]"#).unwrap();
        let scripts = ["node_modules/a.js".to_owned(), "page.js".to_owned()];
        assert_eq!(one.page_scripts(&one.endpoints[1]), Some(&scripts[..]));
        assert_eq!(one.page_scripts(&one.endpoints[0]), None);
        assert_eq!(table("[]", r#"["websocket"]"#).unwrap().browser.unwrap().scripts, [""; 0]);
        for (scripts, transports, why) in [
            ("[]", "[]", "needs at least one"),
            ("[]", r#"["telepathy"]"#, "\"telepathy\", which is not there"),
            (r#"["../page.js"]"#, r#"["other"]"#, "below the installation"),
            (r#"["/etc/passwd"]"#, r#"["other"]"#, "below the installation"),
        ] {
            let error = table(scripts, transports).unwrap_err();
            assert!(error.starts_with("[browser] ") && error.contains(why), "{scripts} {transports}: {error}");
        }
        let text = manifest_text("").replace("dialect = \"bare\"", "dialect = \"sockjs\"");
        let text = text.replacen("[[transport]]", "[browser]\ntransports = [\"other\"]\n[[transport]]", 1);
        assert!(Manifest::parse(&text, "some").unwrap_err().contains("needs scripts"));
    }

    #[test]
    fn a_loss_is_bounded_by_its_share() {
        let one = manifest(r#"loses = { what = ["loss"], loss_percent_max = 10, why = "threads" }"#).unwrap();
        let loses = one.endpoints[1].admitted().unwrap();
        assert!(loses.allows(50_000, 500_000) && !loses.allows(50_001, 500_000));
        let none = manifest(r#"loses = { what = ["order"], why = "threads" }"#).unwrap();
        let none = none.endpoints[1].admitted().unwrap();
        assert!(none.allows(0, 500_000) && !none.allows(1, 500_000));
    }

    #[test]
    fn a_way_may_have_a_version_of_its_own() {
        let one = manifest(r#"version = "1.8.9""#).unwrap();
        let versions = [None, Some("websocket"), Some("other")].map(|endpoint| one.version_of(endpoint));
        assert_eq!(versions, ["1.5.3", "1.5.3", "1.8.9"]);
    }
}
