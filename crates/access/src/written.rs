//! What an access file says, as it is written.

use crate::keys::Signing;
use crate::ledger::Quota;
use crate::person::Right;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Most rules.
pub const MAX_RULES: usize = 1000;
/// Longest leeway, seconds.
const MAX_LEEWAY_S: u64 = 300;

/// An access file: who may do what. What no rule allows is refused.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Access")]
pub struct Written {
    /// How clients say who they are; without it, all are anonymous.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<WrittenTokens>,
    /// The back end, whose key opens `/api` and `/stats`, and every channel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub back_end: Option<WrittenBackEnd>,
    /// What is allowed, to whom.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rule: Vec<WrittenRule>,
    /// How much one of them may take up.
    #[serde(default)]
    pub limits: WrittenLimits,
    /// Channels, as patterns, of which the server tells who is there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub presence: Vec<String>,
}

/// JSON Web Tokens (RFC 7519).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WrittenTokens {
    /// Who must have made them: the claim `iss`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issuer: Option<String>,
    /// Whom they must be for: the claim `aud`, or one of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audience: Option<String>,
    /// The claim that says whose they are.
    #[serde(default = "default_identity")]
    pub identity: String,
    /// How many seconds the issuer's clock may be off.
    #[serde(default = "default_leeway_s")]
    pub leeway_s: u64,
    /// How many seconds before a token expires its connections are warned.
    #[serde(default = "default_warning_s")]
    pub warning_s: u64,
    /// The longest lifetime of a token in seconds, from its `iat`, or from now without one; longer ones are refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_lifetime_s: Option<u64>,
    /// A cookie that may carry the token, from this server's pages and from origins named to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cookie: Option<String>,
    /// Where the key set (JWKS) is: an https address, which is fetched again every ten minutes and when a token names
    /// an unknown key, or a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_set: Option<String>,
    /// How many seconds keys from an address are used if they cannot be fetched again; a day by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_set_max_age_s: Option<u64>,
    /// Keys that stand in files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub key: Vec<WrittenKey>,
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
pub struct WrittenKey {
    /// How tokens are signed with it.
    pub algorithm: Signing,
    /// Its file, relative to this one: the secret of HS256, otherwise the public key in PEM format.
    pub file: String,
    /// Its name in token headers, `kid`; without one, the key is tried for every token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

/// The back end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WrittenBackEnd {
    /// The file with its key, relative to this one: at least 32 visible characters.
    pub key_file: String,
}

/// To whom a rule applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Who {
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
pub struct WrittenRule {
    /// To whom it applies.
    pub who: Who,
    /// What their token must claim: each named claim must have this value, or be a list that contains it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub claims: BTreeMap<String, Value>,
    /// Patterns of channels: `*` stands for any characters, `{claim}` for what the token claims.
    pub channels: Vec<String>,
    /// What is allowed.
    pub may: Vec<Right>,
}

/// How much one identity or one address may take up.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WrittenLimits {
    /// One identity, over all its connections.
    #[serde(default)]
    pub identity: Quota,
    /// One address; for IPv6, the /64 network that it is in.
    #[serde(default)]
    pub address: WrittenAddressLimits,
}

/// How much one address may take up; what is not named has no limit.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WrittenAddressLimits {
    /// WebSockets, streams and held polls at a time, and sockets that carry none of these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    connections: Option<u32>,
    /// Publications a second; as many may come at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    publications_per_s: Option<u32>,
    /// Bytes published a second; as many may come at once, so no publication can be larger.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bytes_per_s: Option<u32>,
}

impl From<WrittenAddressLimits> for Quota {
    fn from(limits: WrittenAddressLimits) -> Self {
        let WrittenAddressLimits { connections, publications_per_s, bytes_per_s } = limits;
        Self { connections, subscriptions: None, publications_per_s, bytes_per_s }
    }
}

impl Written {
    /// Says which value is wrong, or which key would have no effect.
    pub fn check(&self) -> Result<(), String> {
        if let Some(token) = &self.token {
            token.check()?;
        }
        if self.rule.len() > MAX_RULES {
            return Err(format!("it has {} rules; at most {MAX_RULES} are allowed", self.rule.len()));
        }
        for (at, rule) in self.rule.iter().enumerate() {
            self.check_rule(rule).map_err(|what| format!("rule {}: {what}", at + 1))?;
        }
        self.limits.identity.check("limits.identity")?;
        Quota::from(self.limits.address).check("limits.address")?;
        if self.token.is_none() && !self.limits.identity.is_unlimited() {
            return Err("limits.identity is for clients with a token, but there is no [token]".to_owned());
        }
        if self.token.is_none() && !self.presence.is_empty() {
            return Err("presence shows clients with a token, but there is no [token]".to_owned());
        }
        Ok(())
    }

    fn check_rule(&self, rule: &WrittenRule) -> Result<(), String> {
        let is_identified = rule.who == Who::Identified;
        let wrong = if !is_identified && !rule.claims.is_empty() {
            "claims need who = \"identified\": others have none"
        } else if is_identified && self.token.is_none() {
            "it is for clients with a token, but there is no [token]"
        } else if rule.channels.is_empty() || rule.may.is_empty() {
            "it allows nothing: set both channels and may"
        } else if rule.may.contains(&Right::Presence) && self.presence.is_empty() {
            "may = [\"presence\"] needs channels with presence: write presence = [\"room:*\"] above the first table"
        } else if !rule.claims.values().all(is_json) {
            "a claim is a string, number, true, false, or a list or table of these: tokens have no dates, nan or inf"
        } else {
            return Ok(());
        };
        Err(wrong.to_owned())
    }
}

impl WrittenTokens {
    fn check(&self) -> Result<(), String> {
        let is_cookie = |name: &str| {
            !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
        };
        let is_address = self.key_set.as_deref().is_some_and(|url| url.contains("://"));
        let is_secure = self.key_set.as_deref().is_some_and(|url| url.starts_with("https://"));
        let wrong = if self.leeway_s > MAX_LEEWAY_S {
            "token.leeway_s is at most 300: a clock that is off by more should be set"
        } else if self.identity.is_empty() {
            "token.identity is the name of a claim, such as \"sub\""
        } else if self.max_lifetime_s == Some(0) {
            "token.max_lifetime_s = 0 would refuse every token; leave it out for no limit"
        } else if self.cookie.as_deref().is_some_and(|name| !is_cookie(name)) {
            "token.cookie is a cookie's name: letters, digits, - _ ."
        } else if self.key.is_empty() && self.key_set.is_none() {
            "[token] has no key to check tokens with: add key_set or [[token.key]]"
        } else if is_address && !is_secure {
            // By whoever stands in between, keys would be theirs.
            "token.key_set must be an https:// address or a file: over anything else, keys could be forged"
        } else if self.key_set_max_age_s.is_some() && !is_secure {
            "token.key_set_max_age_s needs a key_set that is fetched from an https:// address"
        } else if self.key_set_max_age_s == Some(0) {
            "token.key_set_max_age_s = 0 would make every key too old; leave it out for a day"
        } else {
            return Ok(());
        };
        Err(wrong.to_owned())
    }
}

/// Whether a token can claim this. TOML has more: its nan and inf become null, and a date a special table.
fn is_json(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Array(values) => values.iter().all(is_json),
        Value::Object(members) => members.iter().all(|(name, value)| !name.starts_with("$__toml") && is_json(value)),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}
