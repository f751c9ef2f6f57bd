//! What somebody may do.

use crate::ledger::Holder;
use crate::pattern::Pattern;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What may be done with a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Right {
    /// Receive what is published to it.
    Subscribe,
    /// Publish to it.
    Publish,
    /// Learn who subscribes to it.
    Presence,
    /// Read what was published to it before.
    History,
}

/// Several rights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Rights(u8);

impl FromIterator<Right> for Rights {
    fn from_iter<I: IntoIterator<Item = Right>>(rights: I) -> Self {
        Self(rights.into_iter().fold(0, |all, right| all | 1 << right as u8))
    }
}

impl Rights {
    fn has(self, right: Right) -> bool {
        self.0 & 1 << right as u8 != 0
    }
}

/// Somebody, and what the rules allow them. It is worked out once for a token, and shared by all their connections.
#[derive(Debug, PartialEq, Eq)]
pub struct Person {
    /// Whose account it is on; `None` without a token.
    pub(crate) holder: Option<Holder>,
    /// When their token expires, seconds since 1970, by the clock of the server; `None`: never.
    pub expires_at: Option<u64>,
    pub(crate) grants: Vec<(Pattern, Rights)>,
    pub(crate) is_back_end: bool,
}

impl Person {
    /// The back end, which shows the key that is its own: it may do everything.
    pub(crate) const BACK_END: Self = Self { holder: None, expires_at: None, grants: Vec::new(), is_back_end: true };

    /// Whether they may do that with a channel.
    pub fn may(&self, right: Right, channel: &str) -> bool {
        self.is_back_end || self.grants.iter().any(|(pattern, rights)| rights.has(right) && pattern.matches(channel))
    }

    /// Who it is; `None` without a token.
    pub fn identity(&self) -> Option<&str> {
        match &self.holder {
            Some(Holder::Identity(identity)) => Some(identity),
            _ => None,
        }
    }

    /// On whose account it is what they take up; `None` without a token.
    pub fn holder(&self) -> Option<&Holder> {
        self.holder.as_ref()
    }

    /// Whether there is anything that they may do.
    pub fn may_anything(&self) -> bool {
        self.is_back_end || !self.grants.is_empty()
    }

    /// Whether it is the back end.
    pub fn is_back_end(&self) -> bool {
        self.is_back_end
    }

    /// Whether their token has expired.
    pub fn has_expired(&self, now_s: u64) -> bool {
        self.expires_at.is_some_and(|at| at <= now_s)
    }
}
