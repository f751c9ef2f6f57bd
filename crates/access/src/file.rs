//! The access file.

use crate::keys::{Key, KeyError, Signing, read_set};
use crate::ledger::{Holder, Quota};
use crate::pattern::{BadPattern, Pattern, Template};
use crate::person::{Person, Rights};
use crate::token::{Said, TokenError, Tokens};
use crate::written::{Who, Written, WrittenTokens};
use core::hint::black_box;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// Shortest key of the back end, characters.
const MIN_BACK_END_KEY: usize = 32;
/// How long a key set that cannot be fetched again is used: long enough for the issuer to be down overnight, no longer.
const KEY_SET_MAX_AGE_S: u64 = 86_400;

/// The rules of an access file, and the keys that it names.
#[derive(Debug, Clone, Default)]
pub struct Access {
    tokens: Option<Tokens>,
    warning_s: u64,
    cookie: Option<String>,
    key_set: Option<KeySet>,
    files: Vec<NamedFile>,
    rules: Vec<Rule>,
    anonymous: Option<Arc<Person>>,
    back_end_key: Option<Secret>,
    back_end: Option<Arc<Person>>,
    presence: Vec<Pattern>,
    /// What one identity may take up.
    pub identity_quota: Quota,
    /// What one address may take up.
    pub address_quota: Quota,
}

/// A key set behind an address.
#[derive(Debug, Clone)]
pub struct KeySet {
    /// Its address.
    pub url: String,
    /// How long its keys count after a fetch.
    pub max_age: Duration,
    /// When the keys in use were fetched, if any were.
    asked_at_ns: Option<u64>,
}

impl KeySet {
    /// The age of the keys in use; `None` if there are none.
    pub fn age(&self, now_ns: u64) -> Option<Duration> {
        self.asked_at_ns.map(|at_ns| Duration::from_nanos(now_ns.saturating_sub(at_ns)))
    }
}

/// A file that an access file names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedFile {
    /// As it is named.
    pub path: String,
    /// Whether anybody who can read it can make tokens, or act as the back end.
    pub is_secret: bool,
}

/// The back end's key, which no output gets to see.
#[derive(Clone)]
struct Secret(String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

#[derive(Debug, Clone)]
struct Rule {
    who: Who,
    claims: BTreeMap<String, Value>,
    channels: Vec<Template>,
    rights: Rights,
}

/// What is wrong with an access file.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// Not TOML, or not of this shape.
    #[error("{origin}: {why}\nThe format is in schema/access.schema.json.")]
    Format {
        /// The file.
        origin: String,
        /// Where and why.
        why: Box<toml::de::Error>,
    },
    /// A file that it names cannot be read.
    #[error("{origin} names {file}, which cannot be read: {why}")]
    File {
        /// The access file.
        origin: String,
        /// What it names.
        file: String,
        /// Why not.
        why: io::Error,
    },
    /// A file that it names has no key.
    #[error("{origin} names {file}: {why}")]
    Key {
        /// The access file.
        origin: String,
        /// What it names.
        file: String,
        /// Why not.
        why: KeyError,
    },
    /// A pattern that is none.
    #[error("{origin}: {why}")]
    Pattern {
        /// The access file.
        origin: String,
        /// Which.
        why: BadPattern,
    },
    /// A value that makes no sense.
    #[error("{origin}: {what}")]
    Value {
        /// The access file.
        origin: String,
        /// Which, and what would.
        what: String,
    },
}

impl Access {
    /// Reads an access file. `origin` names it in errors; `read` gives the contents of a file that it names. A key set
    /// behind an address is not read: see [`Self::key_set`].
    ///
    /// # Errors
    /// [`AccessError`].
    pub fn read(
        text: &str,
        origin: &str,
        read: &mut dyn FnMut(&str) -> io::Result<Vec<u8>>,
    ) -> Result<Self, AccessError> {
        let written: Written = toml::from_str(text)
            .map_err(|why| AccessError::Format { origin: origin.to_owned(), why: Box::new(why) })?;
        let value = |what: String| AccessError::Value { origin: origin.to_owned(), what };
        let pattern = |why| AccessError::Pattern { origin: origin.to_owned(), why };
        written.check().map_err(value)?;
        let mut files = Vec::new();
        let mut contents = |file: &str, is_secret: bool| {
            files.push(NamedFile { path: file.to_owned(), is_secret });
            read(file).map_err(|why| AccessError::File { origin: origin.to_owned(), file: file.to_owned(), why })
        };
        let (identity_quota, address_quota) = (written.limits.identity, written.limits.address.into());
        let mut access = Self { identity_quota, address_quota, ..Self::default() };
        if let Some(token) = written.token {
            access.read_tokens(token, origin, &mut contents)?;
        }
        if let Some(back_end) = written.back_end {
            let key = String::from_utf8_lossy(&contents(&back_end.key_file, true)?).trim_end().to_owned();
            if key.len() < MIN_BACK_END_KEY || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
                let file = back_end.key_file;
                return Err(value(format!(
                    "the back end's key in {file} is not at least {MIN_BACK_END_KEY} visible characters without spaces \
                     (make one with: openssl rand -hex 32)"
                )));
            }
            access.back_end_key = Some(Secret(key));
            access.back_end = Some(Arc::new(Person::BACK_END));
        }
        access.files = files;
        for (at, rule) in written.rule.into_iter().enumerate() {
            let channels: Vec<Template> =
                rule.channels.iter().map(|text| Template::parse(text)).collect::<Result<_, _>>().map_err(pattern)?;
            if rule.who != Who::Identified && channels.iter().any(Template::needs_token) {
                return Err(value(format!("rule {}: a channel with {{claim}} needs who = \"identified\"", at + 1)));
            }
            let rights = rule.may.into_iter().collect();
            access.rules.push(Rule { who: rule.who, claims: rule.claims, channels, rights });
        }
        access.presence =
            written.presence.iter().map(|text| Pattern::parse(text)).collect::<Result<_, _>>().map_err(pattern)?;
        access.anonymous = Some(Arc::new(access.grant(None, None, &Map::new())));
        Ok(access)
    }

    fn read_tokens(
        &mut self,
        written: WrittenTokens,
        origin: &str,
        contents: &mut impl FnMut(&str, bool) -> Result<Vec<u8>, AccessError>,
    ) -> Result<(), AccessError> {
        let in_file = |file: &str| {
            let (origin, file) = (origin.to_owned(), file.to_owned());
            move |why| AccessError::Key { origin, file, why }
        };
        let mut keys = Vec::new();
        for key in written.key {
            let read = contents(&key.file, key.algorithm == Signing::HS256)?;
            keys.push(Key::read(key.id, key.algorithm, &read).map_err(in_file(&key.file))?);
        }
        let mut set = Vec::new();
        match written.key_set {
            Some(url) if url.contains("://") => {
                let max_age = Duration::from_secs(written.key_set_max_age_s.unwrap_or(KEY_SET_MAX_AGE_S));
                self.key_set = Some(KeySet { url, max_age, asked_at_ns: None });
            }
            Some(file) => set = read_set(&contents(&file, false)?).map_err(in_file(&file))?,
            None => {}
        }
        self.warning_s = written.warning_s;
        self.cookie = written.cookie;
        let WrittenTokens { issuer, audience, identity, leeway_s, max_lifetime_s, .. } = written;
        self.tokens = Some(Tokens { issuer, audience, identity, leeway_s, max_lifetime_s, keys, set });
        Ok(())
    }

    /// Replaces the keys of its key set with those fetched then. Gives how many of them can check tokens: none if the
    /// issuer has withdrawn them all.
    ///
    /// # Errors
    /// [`KeyError`], and the keys stay as they were.
    pub fn take_key_set(&mut self, contents: &[u8], asked_at_ns: u64) -> Result<usize, KeyError> {
        let keys = read_set(contents)?;
        let count = keys.len();
        self.set_keys(keys, Some(asked_at_ns));
        Ok(count)
    }

    /// Forgets the keys of its key set.
    pub(crate) fn forget_key_set(&mut self) {
        self.set_keys(Vec::new(), None);
    }

    fn set_keys(&mut self, keys: Vec<Key>, asked_at_ns: Option<u64>) {
        if let Some((tokens, set)) = self.tokens.as_mut().zip(self.key_set.as_mut()) {
            (tokens.set, set.asked_at_ns) = (keys, asked_at_ns);
        }
    }

    /// Its key set, if that is behind an address.
    pub fn key_set(&self) -> Option<&KeySet> {
        self.key_set.as_ref()
    }

    /// How many keys it has that can check tokens; `None` if it takes no tokens.
    pub fn key_count(&self) -> Option<usize> {
        self.tokens.as_ref().map(|tokens| tokens.keys.len() + tokens.set.len())
    }

    /// The files that it names.
    pub fn files(&self) -> &[NamedFile] {
        &self.files
    }

    /// The cookie that may carry a token.
    pub fn cookie(&self) -> Option<&str> {
        self.cookie.as_deref()
    }

    /// How long before the expiry of a token its connections are told, seconds.
    pub fn warning_s(&self) -> u64 {
        self.warning_s
    }

    /// Whether the server tells of the same channels who is there by these other rules.
    pub fn tells_presence_as(&self, other: &Self) -> bool {
        self.presence == other.presence
    }

    /// Whether the server tells who is in a channel.
    pub fn tells_presence(&self, channel: &str) -> bool {
        self.presence.iter().any(|pattern| pattern.matches(channel))
    }

    /// Somebody without a token.
    pub fn anonymous(&self) -> Arc<Person> {
        self.anonymous.clone().unwrap_or_else(|| Arc::new(self.grant(None, None, &Map::new())))
    }

    /// Whether this is the back end's key. How long that takes does not tell how much of it is right.
    pub fn is_back_end(&self, text: &str) -> bool {
        self.back_end_key.as_ref().is_some_and(|Secret(key)| {
            let differences = key.bytes().zip(text.bytes()).fold(0, |all, (a, b)| all | black_box(a ^ b));
            key.len() == text.len() && differences == 0
        })
    }

    /// Whether a back end is known at all.
    pub fn has_back_end(&self) -> bool {
        self.back_end.is_some()
    }

    /// The back end.
    pub(crate) fn back_end(&self) -> Arc<Person> {
        self.back_end.clone().unwrap_or_else(|| Arc::new(Person::BACK_END))
    }

    /// Who shows a token, and what they may do.
    pub(crate) fn person(&self, token: &str, now_s: u64, checks: &mut usize) -> Result<Person, TokenError> {
        let tokens = self.tokens.as_ref().ok_or(TokenError::NotTaken)?;
        let Said { identity, expires_at, claims } = tokens.check(token, now_s, checks)?;
        Ok(self.grant(Some(Holder::Identity(identity.into())), Some(expires_at), &claims))
    }

    fn grant(&self, holder: Option<Holder>, expires_at: Option<u64>, claims: &Map<String, Value>) -> Person {
        let has = |(name, wanted): (&String, &Value)| match claims.get(name) {
            Some(Value::Array(several)) if !wanted.is_array() => several.contains(wanted),
            Some(one) => one == wanted,
            None => false,
        };
        let applies = |rule: &&Rule| match rule.who {
            Who::Everybody => true,
            Who::Anonymous => holder.is_none(),
            Who::Identified => holder.is_some() && rule.claims.iter().all(has),
        };
        let grants = self
            .rules
            .iter()
            .filter(applies)
            .flat_map(|rule| rule.channels.iter().filter_map(|channel| Some((channel.fill(claims)?, rule.rights))));
        let grants = grants.collect();
        Person { holder, expires_at, grants, is_back_end: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::person::Right;
    use crate::written::MAX_RULES;
    use serde_json::json;

    fn read(text: &str) -> Result<Access, AccessError> {
        Access::read(text, "access.toml", &mut |file| match file {
            "secret" | "key" => Ok(b"0123456789abcdef0123456789abcdef\n".to_vec()),
            "short" => Ok(b"short".to_vec()),
            "set" => Ok(b"{\"keys\":[]}".to_vec()),
            _ => Err(io::ErrorKind::NotFound.into()),
        })
    }

    const TOKEN: &str = "[token]\n[[token.key]]\nalgorithm = \"HS256\"\nfile = \"secret\"\n";

    fn grant(access: &Access, claims: &Value) -> Person {
        access.grant(Some(Holder::Identity("x".into())), Some(1), claims.as_object().unwrap())
    }

    #[test]
    fn rules_say_who_may_do_what() {
        let access = read(&format!(
            r#"{TOKEN}
            [[rule]]
            who = "everybody"
            channels = ["news:*"]
            may = ["subscribe"]
            [[rule]]
            who = "anonymous"
            channels = ["lobby"]
            may = ["subscribe", "publish"]
            [[rule]]
            who = "identified"
            channels = ["user:{{sub}}", "user:{{sub}}:*"]
            may = ["subscribe", "publish", "history"]
            [[rule]]
            who = "identified"
            claims = {{ role = "editor", level = 3 }}
            channels = ["news:*"]
            may = ["publish"]
            "#
        ))
        .unwrap();
        let may = |person: &Person, right: Right, channels: &[&str]| -> Vec<bool> {
            channels.iter().map(|channel| person.may(right, channel)).collect()
        };
        let channels = ["news:a", "lobby", "user:ada", "user:ada:x", "user:adam"];
        let nobody = access.anonymous();
        assert_eq!(may(&nobody, Right::Subscribe, &channels), [true, true, false, false, false]);
        assert_eq!(may(&nobody, Right::Publish, &channels), [false, true, false, false, false]);
        let ada = grant(&access, &json!({ "sub": "ada", "role": "reader", "level": 3 }));
        assert_eq!(may(&ada, Right::Subscribe, &channels), [true, false, true, true, false]);
        assert_eq!(may(&ada, Right::Publish, &channels), [false, false, true, true, false]);
        assert_eq!(may(&ada, Right::History, &channels), [false, false, true, true, false]);
        for (claims, expected) in [
            (json!({ "sub": "ada", "role": ["reader", "editor"], "level": 3 }), true),
            (json!({ "sub": "ada", "role": "editor", "level": 3 }), true),
            (json!({ "sub": "ada", "role": "editor", "level": "3" }), false),
            (json!({ "sub": "ada", "role": "editor" }), false),
        ] {
            assert_eq!(grant(&access, &claims).may(Right::Publish, "news:a"), expected, "{claims}");
        }
        let star = grant(&access, &json!({ "sub": "*" }));
        assert!(!star.may(Right::Subscribe, "user:ada"), "a claim is no pattern");
    }

    #[test]
    fn the_back_end_has_a_key_of_its_own() {
        let access = read("[back_end]\nkey_file = \"key\"\n").unwrap();
        assert!(access.is_back_end("0123456789abcdef0123456789abcdef"));
        for other in ["", "0123456789abcdef0123456789abcde", "0123456789abcdef0123456789abcdef0"] {
            assert!(!access.is_back_end(other), "{other}");
        }
        assert!(access.back_end().may(Right::Publish, "anything") && !access.anonymous().may_anything());
        assert!(!read("").unwrap().is_back_end(""), "without a key nobody is it");
    }

    #[test]
    fn a_wrong_file_says_what_is_wrong() {
        for (text, why) in [
            ("rules = 1", "access.schema.json"),
            ("[[rule]]\nwho = \"friends\"\nchannels = [\"a\"]\nmay = [\"subscribe\"]", "friends"),
            ("[token]\n", "no key to check"),
            ("[token]\nkey_set = \"http://id.example/keys\"", "https://"),
            ("[token]\nkey_set = \"nothing\"", "nothing, which cannot be read"),
            ("[token]\nleeway_s = 301\nkey_set = \"set\"", "leeway_s"),
            ("[token]\ncookie = \"a;b\"\nkey_set = \"set\"", "cookie"),
            ("[token]\n[[token.key]]\nalgorithm = \"HS256\"\nfile = \"short\"", "5 bytes"),
            ("[back_end]\nkey_file = \"short\"", "32 visible characters"),
            ("[[rule]]\nwho = \"identified\"\nchannels = [\"a\"]\nmay = [\"subscribe\"]", "no [token]"),
            ("[[rule]]\nwho = \"everybody\"\nchannels = [\"{sub}\"]\nmay = [\"subscribe\"]", "{claim}"),
            ("[[rule]]\nwho = \"anonymous\"\nclaims = { a = 1 }\nchannels = [\"b\"]\nmay = [\"publish\"]", "claims"),
            ("[[rule]]\nwho = \"everybody\"\nchannels = [\"a b\"]\nmay = [\"subscribe\"]", "no pattern"),
            ("[[rule]]\nwho = \"everybody\"\nchannels = []\nmay = [\"subscribe\"]", "allows nothing"),
            ("[[rule]]\nwho = \"everybody\"\nchannels = [\"a\"]\nmay = [\"read\"]", "read"),
            ("[limits.identity]\nconnections = 0", "limits.identity"),
            ("[limits.address]\npublications_per_s = 0", "limits.address"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
        let many = "[[rule]]\nwho = \"everybody\"\nchannels = [\"a\"]\nmay = [\"publish\"]\n".repeat(MAX_RULES + 1);
        assert!(read(&many).unwrap_err().to_string().contains("1001 rules"));
    }

    #[test]
    fn a_key_that_would_do_nothing_is_wrong() {
        let rule = |more: &str| format!("{TOKEN}[[rule]]\nwho = \"identified\"\nchannels = [\"a\"]\n{more}\n");
        let token = |more: &str| format!("[token]\nkey_set = \"set\"\n{more}\n");
        for (text, why) in [
            ("[limits.address]\nsubscriptions = 5".to_owned(), "unknown field `subscriptions`"),
            ("[limits.identity]\nconnections = 5".to_owned(), "no [token]"),
            ("presence = [\"a\"]".to_owned(), "no [token]"),
            (format!("presence = [\"{{sub}}\"]\n{TOKEN}"), "no pattern"),
            (rule("may = [\"presence\"]"), "rule 1: may = [\"presence\"] needs"),
            (rule("may = [\"publish\"]\nclaims = { born = 1815-12-10 }"), "no dates"),
            (rule("may = [\"publish\"]\nclaims = { level = nan }"), "no dates, nan"),
            (rule("may = [\"publish\"]\nclaims = { a = { b = [inf] } }"), "no dates, nan"),
            (rule("may = [\"publish\"]\ncookie = \"a\""), "unknown field `cookie`"),
            (token("identity = \"\""), "token.identity"),
            (token("max_lifetime_s = 0"), "token.max_lifetime_s = 0"),
            (token("key_set_max_age_s = 60"), "fetched"),
            (token("").replace("\"set\"", "\"https://id.example/\"\nkey_set_max_age_s = 0"), "max_age_s = 0"),
            ("[back_end]\nkey_file = \"key\"\nid = \"a\"".to_owned(), "unknown field `id`"),
        ] {
            let error = read(&text).unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
        assert!(read(&token("max_lifetime_s = 60")).is_ok() && read(&rule("may = [\"publish\"]")).is_ok());
    }

    #[test]
    fn files_that_are_secret_are_told_from_others() {
        let access = read(&format!(
            "{TOKEN}[[token.key]]\nalgorithm = \"HS256\"\nfile = \"key\"\n[back_end]\nkey_file = \"key\""
        ));
        let access = access.unwrap();
        assert!(access.files().iter().all(|file| file.is_secret) && access.files().len() == 3);
        let access = read("[token]\nkey_set = \"set\"").unwrap();
        assert_eq!(access.files(), [NamedFile { path: "set".to_owned(), is_secret: false }]);
        assert_eq!((access.key_count(), read("").unwrap().key_count()), (Some(0), None));
    }
}
