//! Who may do what: the one place that decides it.

use crate::pass::{Pass, bearers, named};
use crate::site::{Guests, NamedPage, RequestOrigin, Site};
use pushlab_access::proxies::TrustedProxies;
use pushlab_access::{LimitReached, LiveAccess, Person, Right, TokenError};
use pushlab_wire::codes::ErrorCode;
use pushlab_wire::fields::trimmed;
use pushlab_wire::http::{RequestHead, split_target};
use std::borrow::Cow;
use std::sync::Arc;

/// Why something is refused: the code, and what to tell.
pub type Refusal = (ErrorCode, Cow<'static, str>);

/// Who sent a request, by its credentials, or why these are refused.
pub type Shown = Result<Arc<Person>, TokenError>;

/// What to tell somebody without a pass.
pub const NEEDS_PASS: &str = "this needs the token that the program printed when it started: in a browser, open the \
                              address that it printed; from a program, send Authorization: Bearer TOKEN";

/// What to tell somebody without a token whom no rule allows anything.
const NEEDS_TOKEN: &str = "this server wants a token: send Authorization: Bearer TOKEN; a browser's WebSocket sends it as \
                           a subprotocol (pushlab.token.TOKEN, beside pushlab), an EventSource sends ?ticket=, which \
                           POST /ticket gives for a token";
/// With what the name of the channel begins to which it is told who comes to another channel, and who goes.
pub const PRESENCE: &str = "presence:";
/// The subprotocol of a browser's WebSocket that has to send a token, and what another begins with that is the token.
pub const SUBPROTOCOL: &str = "pushlab";
const TOKEN_SUBPROTOCOL: &str = "pushlab.token.";

/// Where a request came from, as far as it tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    origin: RequestOrigin,
    readers: Readers,
    has_pass: bool,
}

/// Which pages may read the answer to a request, in few bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Readers {
    OwnPages,
    AllPages,
    PagesOf(NamedPage),
}

/// Which pages may read an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadableBy<'a> {
    /// Those of the server's own site, and programs.
    OwnPages,
    /// Those of every site.
    AllPages,
    /// Those of this origin.
    PagesOf(&'a str),
}

/// Whom an answer is for; browsers enforce it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Audience<'a> {
    /// Which pages may read it.
    pub readers: ReadableBy<'a>,
    /// Pages of every site may load it, even where they cannot read it.
    pub is_for_all: bool,
}

/// The rules.
#[derive(Debug, Default)]
pub struct Gate {
    /// Which pages are the server's own.
    pub site: Site,
    /// What a client has to show to use a transport, if anything.
    pub pass: Option<Pass>,
    /// The rules of an access file, if there is one.
    pub access: Option<Arc<LiveAccess>>,
    /// Proxies that are believed about who a client is.
    pub trusted_proxies: TrustedProxies,
    /// Channels that the server itself publishes to: those of its feed and its tick.
    pub own_channels: Vec<String>,
    /// Beginnings of the names of channels that only the application publishes to.
    pub reserved: Vec<String>,
    /// Beginnings of the names of channels that pages of other sites may not subscribe to.
    pub same_origin: Vec<String>,
}

impl Identity {
    /// Somebody of whom nothing is known yet.
    pub const UNKNOWN: Self = Self { origin: RequestOrigin::OtherSite, readers: Readers::OwnPages, has_pass: false };

    /// Whether no page of another site is to read the answer.
    pub fn is_for_own_pages(self) -> bool {
        self.readers == Readers::OwnPages
    }
}

impl Gate {
    /// Who sent a request with these fields, for the application or for a transport. The fields are read only if a rule needs
    /// them.
    pub fn identify<'h>(
        &self,
        fields: impl Iterator<Item = (&'h str, &'h str)> + Clone,
        is_for_application: bool,
    ) -> Identity {
        let has_pass = self.pass.as_ref().is_none_or(|pass| shows(pass, fields.clone()));
        let is_open = self.site.guests == Guests::Everybody && !is_for_application;
        let origin = if is_open && self.same_origin.is_empty() {
            RequestOrigin::Guest
        } else {
            self.site.request_origin(fields.clone())
        };
        // What an application answers is for its own pages: nothing lets those of other sites read it.
        let readers = if is_for_application {
            Readers::OwnPages
        } else if is_open {
            let has_page = fields.clone().any(|(name, _)| name.eq_ignore_ascii_case("origin"));
            if has_page { Readers::AllPages } else { Readers::OwnPages }
        } else if matches!(origin, RequestOrigin::Own | RequestOrigin::Guest) {
            self.site.page_of(fields).map_or(Readers::OwnPages, Readers::PagesOf)
        } else {
            Readers::OwnPages
        };
        Identity { origin, readers, has_pass }
    }

    /// Which pages may read the answer.
    pub fn readable_by(&self, identity: Identity) -> ReadableBy<'_> {
        match identity.readers {
            Readers::OwnPages => ReadableBy::OwnPages,
            Readers::AllPages => ReadableBy::AllPages,
            Readers::PagesOf(page) => self.site.origin_of(page).map_or(ReadableBy::OwnPages, ReadableBy::PagesOf),
        }
    }

    /// Whom the answer is for.
    pub fn audience(&self, identity: Identity) -> Audience<'_> {
        Audience { readers: self.readable_by(identity), ..self.common_audience() }
    }

    /// Whom an answer is for that is the same for many: own pages, and programs.
    pub fn common_audience(&self) -> Audience<'static> {
        Audience { readers: ReadableBy::OwnPages, is_for_all: self.site.guests == Guests::Everybody }
    }

    /// Which pages may send what they first ask about in a preflight. Where all may, the answer is the same for all.
    pub fn asks_first(&self, identity: Identity) -> ReadableBy<'_> {
        match &self.site.guests {
            Guests::Everybody => ReadableBy::AllPages,
            Guests::These(_) => self.readable_by(identity),
        }
    }

    /// Whether a request may use a transport.
    ///
    /// # Errors
    /// `forbidden` or `unauthorized`, with what to tell.
    pub fn may_use_transports(&self, identity: Identity) -> Result<(), Refusal> {
        let is_guest = self.site.guests == Guests::Everybody;
        if !is_guest && !matches!(identity.origin, RequestOrigin::Own | RequestOrigin::Guest) {
            return Err((ErrorCode::Forbidden, self.site.refusal_of_transports(identity.origin)));
        }
        if identity.has_pass { Ok(()) } else { Err((ErrorCode::Unauthorized, NEEDS_PASS.into())) }
    }

    /// Whether there is anything that somebody may do.
    ///
    /// # Errors
    /// `unauthorized` or `forbidden`, with what to tell.
    pub fn may_anything(person: &Person) -> Result<(), Refusal> {
        match person.identity() {
            _ if person.may_anything() => Ok(()),
            Some(_) => Err((ErrorCode::Forbidden, "no rule of the access file allows this token anything".into())),
            None => Err((ErrorCode::Unauthorized, NEEDS_TOKEN.into())),
        }
    }

    /// Who sent a request, if there is an access file: by an explicit token, a ticket, or a cookie. The first of these
    /// that is there counts, and an invalid one is never ignored. Adds the number of signatures checked to `checks`.
    pub fn shown(&self, head: &RequestHead<'_, '_>, unix_s: u64, checks: &mut usize) -> Option<Shown> {
        let access = self.access.as_ref()?;
        let ticket = || split_target(head.target).1.find(|(name, _)| name == "ticket").map(|(_, value)| value);
        Some(if let Some(token) = sent_token(head.fields()) {
            access.check(token, unix_s, checks)
        } else if let Some(ticket) = ticket() {
            access.person_by_ticket(&ticket, unix_s, checks)
        } else if let Some(token) = self.kept_token(head, access) {
            access.check(token, unix_s, checks)
        } else {
            Ok(access.rules().anonymous())
        })
    }

    /// The token that a request shows, as whoever wants a ticket for it does.
    pub fn token<'h>(&self, head: &RequestHead<'_, 'h>) -> Option<&'h str> {
        let access = self.access.as_ref()?;
        sent_token(head.fields()).or_else(|| self.kept_token(head, access))
    }

    /// The token in the cookie that the access file names. Browsers send it with every request, whichever page makes
    /// it: it counts only from a named page or one of the server's own.
    fn kept_token<'h>(&self, head: &RequestHead<'_, 'h>, access: &LiveAccess) -> Option<&'h str> {
        let rules = access.rules();
        let name = rules.cookie()?;
        let (_, token) =
            head.cookies().filter_map(|cookie| cookie.split_once('=')).find(|(other, _)| *other == name)?;
        let is_named = match self.site.request_origin(head.fields()) {
            RequestOrigin::Own => true,
            RequestOrigin::Guest => self.site.page_of(head.fields()).is_some(),
            RequestOrigin::Link | RequestOrigin::OtherSite | RequestOrigin::OtherName => false,
        };
        is_named.then_some(token)
    }

    /// Whether somebody may see the server's counters.
    ///
    /// # Errors
    /// `unauthorized`, with what to tell.
    pub fn may_watch(person: Option<&Person>) -> Result<(), Refusal> {
        if person.is_none_or(Person::is_back_end) {
            return Ok(());
        }
        let text = "where an access file is in force, only its back end sees this: send Authorization: Bearer KEY, with \
                    the key of [back_end]";
        Err((ErrorCode::Unauthorized, text.into()))
    }

    /// Whether a client may publish to a channel.
    ///
    /// # Errors
    /// `forbidden`, with what to tell.
    pub fn may_publish(&self, person: Option<&Person>, channel: &str) -> Result<(), Refusal> {
        let text = if self.own_channels.iter().any(|own| own == channel) {
            format!("only the server itself publishes to {channel}, which is the channel of its feed or tick")
        } else if let Some(prefix) = self.reserved.iter().find(|prefix| channel.starts_with(&***prefix)) {
            format!("only the server itself publishes to channels that begin with {prefix}")
        } else if self.access.is_some() && channel.starts_with(PRESENCE) {
            format!("only the server itself publishes to channels that begin with {PRESENCE}")
        } else if person.is_some_and(|person| !person.may(Right::Publish, channel)) {
            no_rule(person, "publish to", channel)
        } else {
            return Ok(());
        };
        Err((ErrorCode::Forbidden, text.into()))
    }

    /// Whether a client may subscribe to a channel.
    ///
    /// # Errors
    /// `forbidden`, with what to tell.
    pub fn may_subscribe(&self, identity: Identity, person: Option<&Person>, channel: &str) -> Result<(), Refusal> {
        let is_own = identity.origin == RequestOrigin::Own;
        let text = if !is_own && self.same_origin.iter().any(|prefix| channel.starts_with(&**prefix)) {
            format!("{channel} is for pages of this server: {}", self.site.refusal(identity.origin))
        } else if person.is_some_and(|person| !may_receive(person, channel, Right::Subscribe)) {
            no_rule(person, "subscribe to", channel)
        } else {
            return Ok(());
        };
        Err((ErrorCode::Forbidden, text.into()))
    }

    /// Whether a request may reach the application. What another site's page sends on behalf of its visitor is a
    /// forgery, or costs the server work; only a link to a page may be followed.
    ///
    /// # Errors
    /// `forbidden`, with what to tell.
    pub fn may_ask(&self, identity: Identity, is_change: bool) -> Result<(), Refusal> {
        match identity.origin {
            RequestOrigin::Own => Ok(()),
            RequestOrigin::Link if !is_change => Ok(()),
            origin => Err((ErrorCode::Forbidden, self.site.refusal(origin))),
        }
    }
}

/// What to tell whom no rule allows this.
fn no_rule(person: Option<&Person>, what: &str, channel: &str) -> String {
    let without = if person.is_some_and(|person| person.identity().is_none()) { " without a token" } else { "" };
    format!("no rule of the access file lets you {what} {channel}{without}")
}

/// Whether somebody may receive a channel's messages, or read its history. A presence channel tells who enters and
/// leaves another channel, so it takes the right to know that.
pub fn may_receive(person: &Person, channel: &str, right: Right) -> bool {
    match (channel.strip_prefix(PRESENCE), right) {
        (Some(other), Right::Subscribe) => person.may(Right::Presence, other),
        (Some(other), _) => person.may(Right::Presence, other) && person.may(right, channel),
        (None, _) => person.may(right, channel),
    }
}

/// Whether a request with these fields carries the pass. Cookies are ignored: browsers send them to every port of the
/// host, whoever listens there.
pub fn shows<'h>(pass: &Pass, fields: impl Iterator<Item = (&'h str, &'h str)> + Clone) -> bool {
    bearers(fields.clone()).chain(offered_tokens(fields)).any(|text| pass.is(text))
}

/// The token that a client sends with a request on purpose: as bearer, or as a subprotocol.
fn sent_token<'h>(fields: impl Iterator<Item = (&'h str, &'h str)> + Clone) -> Option<&'h str> {
    bearers(fields.clone()).next().or_else(|| offered_tokens(fields).next())
}

/// The tokens among the subprotocols that a WebSocket's client offers.
fn offered_tokens<'h>(fields: impl Iterator<Item = (&'h str, &'h str)>) -> impl Iterator<Item = &'h str> {
    subprotocols(fields).filter_map(|name| name.strip_prefix(TOKEN_SUBPROTOCOL))
}

/// The subprotocols that a WebSocket's client offers.
pub fn subprotocols<'h>(fields: impl Iterator<Item = (&'h str, &'h str)>) -> impl Iterator<Item = &'h str> {
    named(fields, "sec-websocket-protocol").flat_map(|names| names.split(',')).map(trimmed)
}

/// What to tell whose limit is reached.
pub fn refusal_of_limit(LimitReached(text): LimitReached) -> Refusal {
    (ErrorCode::LimitReached, text.into())
}

/// What to tell whose token is not taken.
pub fn refusal_of_token(error: TokenError) -> Refusal {
    let code = match error {
        TokenError::Expired => ErrorCode::TokenExpired,
        TokenError::OtherIdentity => ErrorCode::Forbidden,
        _ => ErrorCode::Unauthorized,
    };
    (code, error.to_string().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_is_shown_on_purpose_alone() {
        let pass = Pass::new("0123abc".to_owned());
        let shown = |fields: &[(&str, &str)]| shows(&pass, fields.iter().copied());
        assert!(shown(&[("authorization", "bearer 0123abc")]) && shown(&[("Authorization", "Bearer  0123abc ")]));
        assert!(shown(&[("Sec-WebSocket-Protocol", "pushlab, pushlab.token.0123abc")]));
        for bad in [
            &[][..],
            &[("host", "127.0.0.1:8080"), ("cookie", "pushlab-pass-8080=0123abc")],
            &[("cookie", "__Host-pushlab-pass-8080=0123abc")],
            &[("x-authorization", "Bearer 0123abc")],
            &[("authorization", "Bearer 0123ab")],
            &[("authorization", "Bearer 0123abcd")],
            &[("authorization", "Bearer ")],
            &[("authorization", "0123abc")],
            &[("authorization", "Basic 0123abc")],
            &[("authorization", "Bearer 0123abc, Bearer x")],
            &[("sec-websocket-protocol", "pushlab, pushlab.token.0123abd")],
            &[("sec-websocket-protocol", "0123abc")],
        ] {
            assert!(!shown(bad), "{bad:?}");
        }
    }
}
