//! What is known of a foreign server: `subjects/NAME/subject.toml`.

use pushlab_load::plan::Speaks;
use pushlab_wire::dialect::Dialect;
use pushlab_wire::transport::Transport;
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
    /// The version that is measured.
    pub version: String,
    /// Programs that must be on the PATH.
    pub tools: Vec<String>,
    /// What to do when one is missing.
    pub hint: String,
    /// Commands that install it, each run in a copy of the folder in the cache.
    pub install: Vec<Vec<String>>,
    /// The command that starts it, run in the same copy; `{host}` and `{port}` stand for where it is to listen.
    pub start: Vec<String>,
    /// How it is known to be ready.
    pub ready: Ready,
    /// Whether a client can have its own message back alone.
    pub echo: bool,
    /// Whether a client chooses the channels that it gets.
    pub rooms: bool,
    /// Whether it connects to a back end that feeds it, named in its environment as `FEED`.
    #[serde(default)]
    pub feed: bool,
    /// The files that are our server: their lines are counted.
    pub server: Vec<String>,
    /// What a page in a browser loads; `None` where the browser's own interfaces are enough.
    #[serde(default)]
    pub client: Option<ClientPackage>,
    /// Every way to speak to it; the first of each transport is the usual one.
    #[serde(rename = "transport")]
    pub ways: Vec<Way>,
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

/// One way to speak to a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Way {
    /// Unique in the subject.
    pub name: String,
    /// How bytes travel.
    pub transport: Transport,
    /// What is spoken.
    pub dialect: Dialect,
    /// What the dialect needs to know of the server's routes.
    pub path: String,
    /// Which of several ways the dialect has over the transport.
    #[serde(default)]
    pub how: String,
    /// The version of what serves this way, where it is not the subject's.
    #[serde(default)]
    pub version: Option<String>,
    /// What the server is known not to keep on this way.
    #[serde(default)]
    pub loses: Option<Loses>,
}

/// What a server is known not to keep on a way: a check passes with these faults, and with no others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Loses {
    /// The faults, at least one.
    pub what: Vec<Fault>,
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

impl Way {
    /// The faults that are known of it.
    pub fn admitted(&self) -> &[Fault] {
        self.loses.as_ref().map_or(&[], |loses| loses.what.as_slice())
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
        if manifest.start.is_empty() || manifest.ways.is_empty() || manifest.tools.is_empty() {
            return Err("start, tools and transport need at least one entry each".to_owned());
        }
        for (i, way) in manifest.ways.iter().enumerate() {
            if manifest.ways[..i].iter().any(|other| other.name == way.name) {
                return Err(format!("two transports are named {:?}", way.name));
            }
            let says_nothing = |loses: &Loses| loses.what.is_empty() || loses.why.trim().is_empty();
            if way.loses.as_ref().is_some_and(says_nothing) {
                return Err(format!("loses of {:?} needs what (loss, repeats, order, echoes) and why", way.name));
            }
        }
        Ok(manifest)
    }

    /// The way of this name, or, without one, the usual way of a transport.
    pub fn way(&self, name: Option<&str>, transport: Transport) -> Option<&Way> {
        let fits = |way: &&Way| way.transport == transport && name.is_none_or(|name| way.name == name);
        self.ways.iter().find(fits)
    }

    /// The version of what serves the way of this name; without one, that of the subject.
    pub fn version_of(&self, way: Option<&str>) -> &str {
        let own = self.ways.iter().find(|known| way == Some(known.name.as_str()));
        own.and_then(|way| way.version.as_deref()).unwrap_or(&self.version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(of_way: &str) -> Result<Manifest, String> {
        let text = format!(
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
        );
        Manifest::parse(&text, "some")
    }

    #[test]
    fn what_a_way_loses_is_said_in_kinds_and_with_a_reason() {
        let one = manifest(r#"loses = { what = ["order", "echoes"], why = "threads" }"#).unwrap();
        assert_eq!(one.ways[1].admitted(), [Fault::Order, Fault::Echoes]);
        assert!(one.ways[0].admitted().is_empty());
        for (bad, why) in [
            (r#"loses = "order, since it has threads""#, "invalid type"),
            (r#"loses = { what = ["anything"], why = "threads" }"#, "unknown variant `anything`"),
            (r#"loses = { what = [], why = "threads" }"#, "needs what"),
            (r#"loses = { what = ["loss"], why = " " }"#, "needs what"),
        ] {
            let error = manifest(bad).unwrap_err();
            assert!(error.contains(why), "{bad}: {error}");
        }
    }

    #[test]
    fn a_way_may_have_a_version_of_its_own() {
        let one = manifest(r#"version = "1.8.9""#).unwrap();
        let versions = [None, Some("websocket"), Some("other")].map(|way| one.version_of(way));
        assert_eq!(versions, ["1.5.3", "1.5.3", "1.8.9"]);
    }
}
