//! The access file.

use crate::keys::{Key, KeyError, Signing, read_set};
use crate::ledger::{Holder, Quota};
use crate::pattern::{BadPattern, Pattern, Template};
use crate::person::{Person, Right, Rights};
use crate::token::{Said, TokenError, Tokens};
use core::hint::black_box;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::Arc;

/// Most rules.
const MAX_RULES: usize = 1000;
/// Shortest key of the back end, characters.
const MIN_BACK_END_KEY: usize = 32;
/// Longest leeway, seconds.
const MAX_LEEWAY_S: u64 = 300;

/// An access file: who may do what. What no rule allows is refused.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Access")]
pub struct Written {
    /// How clients say who they are; without it, all are anonymous.
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<WrittenTokens>,
    /// The back end, whose key opens `/api` and `/stats`, and every channel.
    #[serde(skip_serializing_if = "Option::is_none")]
    back_end: Option<WrittenBackEnd>,
    /// What is allowed, to whom.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    rule: Vec<WrittenRule>,
    /// How much one of them may take up.
    #[serde(default)]
    limits: WrittenLimits,
    /// Channels, as patterns, of which the server tells who is there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    presence: Vec<String>,
}

/// JSON Web Tokens (RFC 7519).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WrittenTokens {
    /// Who must have made them: the claim `iss`.
    #[serde(skip_serializing_if = "Option::is_none")]
    issuer: Option<String>,
    /// Whom they must be for: the claim `aud`, or one of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    audience: Option<String>,
    /// The claim that says whose they are.
    #[serde(default = "default_identity")]
    identity: String,
    /// How many seconds the issuer's clock may be off.
    #[serde(default = "default_leeway_s")]
    leeway_s: u64,
    /// How many seconds before a token expires its connections are warned.
    #[serde(default = "default_warning_s")]
    warning_s: u64,
    /// A cookie that may carry the token.
    #[serde(skip_serializing_if = "Option::is_none")]
    cookie: Option<String>,
    /// Where the key set (JWKS) is: an https address, which is fetched again every ten minutes and when a token names
    /// an unknown key, or a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    key_set: Option<String>,
    /// Keys that stand in files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    key: Vec<WrittenKey>,
}

fn default_identity() -> String {
    "sub".to_owned()
}

fn default_leeway_s() -> u64 {
    5
}

fn default_warning_s() -> u64 {
    30
}

/// A key with which tokens are checked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WrittenKey {
    /// How tokens are signed with it.
    algorithm: Signing,
    /// Its file, relative to this one: the secret of HS256, otherwise the public key in PEM format.
    file: String,
    /// Its name in token headers, `kid`; without one, the key is tried for every token.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
}

/// The back end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WrittenBackEnd {
    /// The file with its key, relative to this one: at least 32 visible characters.
    key_file: String,
}

/// To whom a rule applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Who {
    /// Those with a token.
    Identified,
    /// Those without.
    Anonymous,
    /// Everybody.
    Everybody,
}

/// What is allowed, to whom.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WrittenRule {
    /// To whom it applies.
    who: Who,
    /// What their token must claim: each named claim must have this value, or be a list that contains it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    claims: BTreeMap<String, Value>,
    /// Patterns of channels: `*` stands for any characters, `{claim}` for what the token claims.
    channels: Vec<String>,
    /// What is allowed.
    may: Vec<Right>,
}

/// How much one identity or one address may take up.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WrittenLimits {
    /// One identity, over all its connections.
    #[serde(default)]
    identity: Quota,
    /// One address; for IPv6, the /64 network that it is in.
    #[serde(default)]
    address: Quota,
}

/// The rules of an access file, and the keys that it names.
#[derive(Debug, Clone, Default)]
pub struct Access {
    tokens: Option<Tokens>,
    warning_s: u64,
    cookie: Option<String>,
    key_set_url: Option<String>,
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
    /// behind an address is not read: see [`Self::key_set_url`].
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
        let mut contents = |file: &str| {
            read(file).map_err(|why| AccessError::File { origin: origin.to_owned(), file: file.to_owned(), why })
        };
        let value = |what: String| AccessError::Value { origin: origin.to_owned(), what };
        let pattern = |why| AccessError::Pattern { origin: origin.to_owned(), why };
        let mut access =
            Self { identity_quota: written.limits.identity, address_quota: written.limits.address, ..Self::default() };
        if let Some(token) = written.token {
            access.read_tokens(token, origin, &mut contents)?;
        }
        if let Some(back_end) = written.back_end {
            let key = String::from_utf8_lossy(&contents(&back_end.key_file)?).trim_end().to_owned();
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
        if written.rule.len() > MAX_RULES {
            return Err(value(format!("it has {} rules; at most {MAX_RULES} are allowed", written.rule.len())));
        }
        for (at, rule) in written.rule.into_iter().enumerate() {
            let at = at + 1;
            if rule.who != Who::Identified && !rule.claims.is_empty() {
                return Err(value(format!("rule {at}: claims are for who = \"identified\", as others have none")));
            }
            if rule.who != Who::Anonymous && access.tokens.is_none() && rule.who == Who::Identified {
                return Err(value(format!("rule {at} is for those with a token, but there is no [token]")));
            }
            let channels: Vec<Template> =
                rule.channels.iter().map(|text| Template::parse(text)).collect::<Result<_, _>>().map_err(pattern)?;
            if rule.who != Who::Identified && channels.iter().any(Template::needs_token) {
                return Err(value(format!("rule {at}: a channel with {{claim}} is for who = \"identified\"")));
            }
            if channels.is_empty() || rule.may.is_empty() {
                return Err(value(format!("rule {at} allows nothing: name channels, and what may be done")));
            }
            access.rules.push(Rule {
                who: rule.who,
                claims: rule.claims,
                channels,
                rights: rule.may.into_iter().collect(),
            });
        }
        access.presence =
            written.presence.iter().map(|text| Pattern::parse(text)).collect::<Result<_, _>>().map_err(pattern)?;
        access.identity_quota.check("limits.identity").map_err(value)?;
        access.address_quota.check("limits.address").map_err(value)?;
        access.anonymous = Some(Arc::new(access.grant(None, None, &Map::new())));
        Ok(access)
    }

    fn read_tokens(
        &mut self,
        written: WrittenTokens,
        origin: &str,
        contents: &mut impl FnMut(&str) -> Result<Vec<u8>, AccessError>,
    ) -> Result<(), AccessError> {
        let value = |what: &str| AccessError::Value { origin: origin.to_owned(), what: what.to_owned() };
        let in_file = |file: &str| {
            let (origin, file) = (origin.to_owned(), file.to_owned());
            move |why| AccessError::Key { origin, file, why }
        };
        if written.leeway_s > MAX_LEEWAY_S {
            return Err(value("token.leeway_s is at most 300: a clock that is off by more should be set"));
        }
        let is_cookie = |name: &str| {
            !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
        };
        if written.cookie.as_deref().is_some_and(|name| !is_cookie(name)) {
            return Err(value("token.cookie is a cookie's name: letters, digits, - _ ."));
        }
        if written.key.is_empty() && written.key_set.is_none() {
            return Err(value("[token] has no key by which tokens could be checked: add key_set, or [[token.key]]"));
        }
        let mut keys = Vec::new();
        for key in written.key {
            let secret = contents(&key.file)?;
            keys.push(Key::read(key.id, key.algorithm, &secret).map_err(in_file(&key.file))?);
        }
        let mut set = Vec::new();
        match written.key_set {
            Some(url) if url.starts_with("https://") => self.key_set_url = Some(url),
            // By whoever stands in between, keys would be theirs.
            Some(url) if url.contains("://") => {
                return Err(value(
                    "token.key_set is an https:// address, or a file: over anything else, keys could be forged",
                ));
            }
            Some(file) => set = read_set(&contents(&file)?).map_err(in_file(&file))?,
            None => {}
        }
        self.warning_s = written.warning_s;
        self.cookie = written.cookie;
        let WrittenTokens { issuer, audience, identity, leeway_s, .. } = written;
        self.tokens = Some(Tokens { issuer, audience, identity, leeway_s, keys, set });
        Ok(())
    }

    /// The same rules, with the keys of this key set.
    ///
    /// # Errors
    /// [`KeyError`], and the keys stay as they were.
    pub fn take_key_set(&mut self, contents: &[u8]) -> Result<(), KeyError> {
        let keys = read_set(contents)?;
        if let Some(tokens) = &mut self.tokens {
            tokens.set = keys;
        }
        Ok(())
    }

    /// Whether it has the keys of a key set.
    pub fn has_key_set(&self) -> bool {
        self.tokens.as_ref().is_some_and(|tokens| !tokens.set.is_empty())
    }

    /// Where its key set is to be had, if it is behind an address.
    pub fn key_set_url(&self) -> Option<&str> {
        self.key_set_url.as_deref()
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
            may = ["subscribe", "publish", "presence", "history"]
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
            ("[token]\n", "no key by which"),
            ("[token]\nkey_set = \"http://id.example/keys\"", "https://"),
            ("[token]\nkey_set = \"nothing\"", "nothing, which cannot be read"),
            ("[token]\nkey_set = \"set\"", "no key for signatures"),
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
            ("presence = [\"{sub}\"]", "no pattern"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
        let many = "[[rule]]\nwho = \"everybody\"\nchannels = [\"a\"]\nmay = [\"publish\"]\n".repeat(MAX_RULES + 1);
        assert!(read(&many).unwrap_err().to_string().contains("1001 rules"));
    }
}
