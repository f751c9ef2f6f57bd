//! Who may do what: the one place that decides it.

use crate::site::{RequestOrigin, Site};
use pushlab_wire::codes::ErrorCode;
use std::borrow::Cow;

/// Why something is refused: the code, and what to tell.
pub type Refusal = (ErrorCode, Cow<'static, str>);

/// Who sent a request, as far as it tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    origin: RequestOrigin,
}

/// The rules.
#[derive(Debug, Default)]
pub struct Gate {
    /// Which pages are the server's own.
    pub site: Site,
    /// Channels that the server itself publishes to: those of its feed and its tick.
    pub own_channels: Vec<String>,
    /// Beginnings of the names of channels that only the application publishes to.
    pub reserved: Vec<String>,
    /// Beginnings of the names of channels that pages of other sites may not subscribe to.
    pub same_origin: Vec<String>,
}

impl Identity {
    /// Somebody of whom nothing is known yet, who may do what everybody may.
    pub const UNKNOWN: Self = Self { origin: RequestOrigin::OtherSite };
}

impl Gate {
    /// Who sent a request with these fields, for the application or for a transport. The fields are read only if a rule needs them.
    pub fn identify<'h>(
        &self,
        fields: impl Iterator<Item = (&'h str, &'h str)> + Clone,
        is_for_application: bool,
    ) -> Identity {
        if is_for_application || !self.same_origin.is_empty() {
            Identity { origin: self.site.request_origin(fields) }
        } else {
            Identity::UNKNOWN
        }
    }

    /// Whether a client may publish to a channel.
    ///
    /// # Errors
    /// `forbidden`, with what to tell.
    pub fn may_publish(&self, channel: &str) -> Result<(), Refusal> {
        let text = if self.own_channels.iter().any(|own| own == channel) {
            format!("only the server itself publishes to {channel}, which is the channel of its feed or tick")
        } else if let Some(prefix) = self.reserved.iter().find(|prefix| channel.starts_with(&***prefix)) {
            format!("only the server itself publishes to channels that begin with {prefix}")
        } else {
            return Ok(());
        };
        Err((ErrorCode::Forbidden, text.into()))
    }

    /// Whether a client may subscribe to channels.
    ///
    /// # Errors
    /// `forbidden`, with what to tell.
    pub fn may_subscribe<'n>(
        &self,
        identity: Identity,
        mut channels: impl Iterator<Item = &'n str>,
    ) -> Result<(), Refusal> {
        if self.same_origin.is_empty() || identity.origin == RequestOrigin::Own {
            return Ok(());
        }
        match channels.find(|name| self.same_origin.iter().any(|prefix| name.starts_with(&**prefix))) {
            None => Ok(()),
            Some(name) => {
                let why = self.site.refusal(identity.origin);
                Err((ErrorCode::Forbidden, format!("{name} is for pages of this server: {why}").into()))
            }
        }
    }

    /// Whether a request may reach the application. What another site's page sends on behalf of its visitor is a
    /// forgery; what it only asks for it cannot read.
    ///
    /// # Errors
    /// `forbidden`, with what to tell.
    pub fn may_ask(&self, identity: Identity, is_change: bool) -> Result<(), Refusal> {
        match identity.origin {
            RequestOrigin::Own => Ok(()),
            RequestOrigin::OtherSite if !is_change => Ok(()),
            origin => Err((ErrorCode::Forbidden, self.site.refusal(origin))),
        }
    }
}
