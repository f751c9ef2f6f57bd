//! What an access file allows, to whom, and for how long.

use super::websocket::say;
use super::{Exchange, State};
use crate::effect::{Context, Effect, Page};
use crate::gate::{Gate, Refusal, refusal_of_token};
use crate::standing::{Notice, Standing};
use pushlab_access::{Holder, Person, TICKET_S, TokenError};
use pushlab_wire::channel::Channel;
use pushlab_wire::codes::{CloseCode, ErrorCode};
use pushlab_wire::http::RequestHead;
use pushlab_wire::native::json_string;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

/// A channel that was asked for, and why it is refused.
pub(super) type RefusedChannel = (String, Refusal);

/// What checking a signature counts as, in bytes to compress: some 30 to 100 µs.
pub(super) const SIGNATURE_WORK_BYTES: usize = 24 * 1024;

impl Exchange {
    /// Who uses the connection, if an access file says who may do what.
    fn person(&self) -> Option<&Person> {
        self.standing.as_ref().map(|standing| &*standing.person)
    }

    /// On whose account it is what this connection publishes, and whose it is to end.
    pub fn holder(&self) -> Option<&Holder> {
        self.person()?.holder()
    }

    /// On whose account that is too: the address that it came from.
    pub fn address(&self) -> Option<&Holder> {
        self.standing.as_ref()?.address.as_ref()
    }

    /// Lets in who sent a request, or does not.
    pub(super) fn admit(&mut self, head: &RequestHead<'_, '_>, cx: &mut Context<'_>) -> Result<(), Refusal> {
        if let Some(access) = &cx.rules.gate.access {
            let forwarded = head.raw_headers("x-forwarded-for");
            let address = cx.peer.map(|peer| cx.rules.gate.trusted_proxies.client(peer.address, forwarded));
            // Checked once for each token, but whoever sends another each time is to take no more than their turn.
            let mut checks = 0;
            let shown = cx.rules.gate.shown(head, cx.time.unix_s, &mut checks);
            cx.output.coded_bytes += checks * SIGNATURE_WORK_BYTES;
            let Some(person) = shown.transpose().map_err(|cause| {
                access.refusals.add(cause, address);
                refusal_of_token(cause)
            })?
            else {
                return Ok(());
            };
            Gate::may_anything(&person)?;
            self.standing = Some(Box::new(Standing::new(person, address.map(Holder::at))));
        }
        Ok(())
    }

    /// Takes a place for what lasts, whose channels are in the output.
    pub(super) fn enter(&mut self, cx: &Context<'_>) -> Result<(), Refusal> {
        match (&mut self.standing, &cx.rules.gate.access) {
            (Some(standing), Some(access)) => standing.enter(cx.output.channels.count(), cx.peer, access, cx.time.ns),
            _ => Ok(()),
        }
    }

    /// Counts the subscriptions that it has from now on, whose channels are in the output.
    pub(super) fn count_subscriptions(&mut self, cx: &Context<'_>) -> Result<(), Refusal> {
        match (&mut self.standing, &cx.rules.gate.access) {
            (Some(standing), Some(access)) => standing.subscribe(cx.output.channels.count(), access),
            _ => Ok(()),
        }
    }

    pub(super) fn may_subscribe(&self, channel: &str, cx: &Context<'_>) -> Result<(), Refusal> {
        cx.rules.gate.may_subscribe(self.identity, self.person(), channel)
    }

    pub(super) fn may_publish(&self, channel: &str, cx: &Context<'_>) -> Result<(), Refusal> {
        cx.rules.gate.may_publish(self.person(), channel)
    }

    /// Leaves in the output those of the channels named to which it may subscribe, and gives the others. If they are all
    /// of them, the whole is refused.
    pub(super) fn choose_allowed(
        &mut self,
        names: &mut Vec<Cow<'_, str>>,
        cx: &mut Context<'_>,
    ) -> Result<Vec<RefusedChannel>, Refusal> {
        // A name that cannot be a channel's makes the request wrong, whatever the rules say.
        let bad = |error: pushlab_wire::channel::BadChannel| (ErrorCode::BadChannel, error.to_string().into());
        cx.output.channels.fill(names).map_err(bad)?;
        let mut refused = Vec::new();
        names.retain(|name| match self.may_subscribe(name, cx) {
            Ok(()) => true,
            Err(refusal) => {
                refused.push((name.clone().into_owned(), refusal));
                false
            }
        });
        if names.is_empty() && !refused.is_empty() {
            return Err(refused.swap_remove(0).1);
        }
        cx.output.channels.fill(names).map_err(bad)?;
        self.enter(cx)?;
        Ok(refused)
    }

    /// Says which channels are refused, each for itself.
    pub(super) fn say_refused(&self, refused: &[RefusedChannel], cx: &mut Context<'_>) {
        for (channel, (code, text)) in refused {
            cx.output.counts.errors += 1;
            let (text, channel) = (json_string(text), json_string(channel));
            let frame = ["[\"error\",\"", code.name(), "\",", &text, ",", &channel, "]"].concat();
            self.framing_out().announcement(&mut cx.output.bytes, frame.as_bytes());
        }
    }

    /// Shows the server's counters.
    pub(super) fn watch(&mut self, page: Page, cx: &mut Context<'_>) -> Effect {
        match Gate::may_watch(self.person()) {
            Ok(()) => Effect::Page(page),
            Err((code, text)) => self.refuse(code, &text, cx),
        }
    }

    // --- Tickets ---

    pub(super) fn ask_for_ticket(&mut self, head: &RequestHead<'_, '_>, cx: &mut Context<'_>) -> Effect {
        match cx.rules.gate.token(head) {
            Some(token) => Effect::Ticket(token.into()),
            None => {
                let text = "a ticket stands for a token: send Authorization: Bearer TOKEN";
                self.refuse(ErrorCode::Unauthorized, text, cx)
            }
        }
    }

    /// Answers with a ticket, if there is one.
    pub fn answer_ticket(&mut self, ticket: Option<&str>, cx: &mut Context<'_>) -> Effect {
        match ticket {
            Some(ticket) => {
                let body = format!("{{\"ticket\":\"{ticket}\",\"expires_s\":{TICKET_S}}}\n");
                self.answer("application/json", body.as_bytes(), cx)
            }
            None => {
                let text = "too many tickets wait to be used; ask again in a moment";
                self.refuse(ErrorCode::Overloaded, text, cx)
            }
        }
    }

    // --- Time ---

    /// How long to wait at most before [`Self::mind_token`] is due.
    pub(super) fn until_notice(&self, usual: Duration, cx: &Context<'_>) -> Duration {
        let Some((standing, access)) = self.standing.as_ref().zip(cx.rules.gate.access.as_ref()) else { return usual };
        // A poll that is held ends with the token; its client is not warned, as the next poll brings another.
        let warning_s = if matches!(self.state, State::HeldPoll) { 0 } else { access.rules().warning_s() };
        // No sooner than the clock of tokens moves on.
        let until = standing.until_notice(warning_s, cx.time.unix_s);
        until.map_or(usual, |until| usual.min(until.max(Duration::from_secs(1))))
    }

    /// Says that the token expires or has expired, if that is due; gives what follows.
    pub fn mind_token(&mut self, cx: &mut Context<'_>) -> Option<Effect> {
        let access = cx.rules.gate.access.as_ref()?;
        let lasts = matches!(self.state, State::WebSocket { .. } | State::Stream(_));
        let standing = self.standing.as_mut().filter(|_| lasts)?;
        match standing.notice(access.rules().warning_s(), cx.time.unix_s)? {
            Notice::Expires(seconds) => {
                let frame = format!("[\"token-expires\",{seconds}]");
                self.framing_out().announcement(&mut cx.output.bytes, frame.as_bytes());
                cx.output.patience = Some(self.until_notice(cx.rules.heartbeat, cx));
                Some(Effect::Nothing)
            }
            Notice::Expired => {
                let text = "the token has expired; connect again with a new one";
                Some(self.dismiss(ErrorCode::TokenExpired, CloseCode::TokenExpired, text, cx))
            }
        }
    }

    /// The back end ends the connections of this identity.
    pub fn disconnect(&mut self, cx: &mut Context<'_>) -> Effect {
        self.dismiss(ErrorCode::Disconnected, CloseCode::Disconnected, "the back end has ended this connection", cx)
    }

    /// Ends it, and says why where that can be said.
    fn dismiss(&mut self, code: ErrorCode, close: CloseCode, text: &str, cx: &mut Context<'_>) -> Effect {
        match &self.state {
            State::WebSocket { .. } => Self::close(close, text, cx),
            &State::Stream(framing) => {
                cx.output.counts.errors += 1;
                let frame = ["[\"error\",\"", code.name(), "\",", &json_string(text), "]"].concat();
                framing.announcement(&mut cx.output.bytes, frame.as_bytes());
                framing.end(&mut cx.output.bytes);
                Effect::End
            }
            State::HeldPoll => self.abort(code, text, cx),
            State::Http(_) | State::Answering | State::Over => Effect::Nothing,
        }
    }

    /// Goes on with another token.
    pub(super) fn renew(&mut self, token: &str, cx: &mut Context<'_>) -> Effect {
        let (Some(standing), Some(access)) = (&mut self.standing, &cx.rules.gate.access) else {
            let text = "this server asks for no token: it has no access file";
            return self.say_error(ErrorCode::BadFrame, text, cx);
        };
        let mut checks = 0;
        let person = access.check(token, cx.time.unix_s, &mut checks);
        cx.output.coded_bytes += checks * SIGNATURE_WORK_BYTES;
        let is_theirs = |person: &Arc<Person>| standing.person.identity() == person.identity();
        match person.and_then(|person| if is_theirs(&person) { Ok(person) } else { Err(TokenError::OtherIdentity) }) {
            Ok(person) => {
                standing.renew(person);
                Effect::Reconsider
            }
            Err(cause) => {
                let address = match standing.address {
                    Some(Holder::Address(address)) => Some(address),
                    _ => None,
                };
                access.refusals.add(cause, address);
                let (code, text) = refusal_of_token(cause);
                self.say_error(code, &text, cx)
            }
        }
    }

    /// Looks which of its channels it may keep. Says which it may not, and for how long its token is good. `true`: the
    /// output has the channels that it keeps, which are fewer than it had.
    pub fn keep_allowed(&mut self, channels: &[Channel], cx: &mut Context<'_>) -> bool {
        let mut refused = Vec::new();
        let mut kept: Vec<Cow<'_, str>> = Vec::new();
        for channel in channels.iter().map(Channel::as_str) {
            match self.may_subscribe(channel, cx) {
                Ok(()) => kept.push(channel.into()),
                Err(refusal) => refused.push((channel.to_owned(), refusal)),
            }
        }
        let expires_at = self.person().and_then(|person| person.expires_at);
        let left = expires_at.map_or(0, |at| at.saturating_sub(cx.time.unix_s));
        let _ = say(format!("[\"auth\",{left}]").as_bytes(), cx);
        self.say_refused(&refused, cx);
        cx.output.patience = Some(self.until_notice(cx.rules.heartbeat, cx));
        if refused.is_empty() {
            return false;
        }
        cx.output.channels.fill(&mut kept).expect("these were channels before");
        // Fewer are never refused.
        let _ = self.count_subscriptions(cx);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::Server;
    use pushlab_access::{Access, LiveAccess};

    const RULES: &str = "[token]\n[[token.key]]\nalgorithm = \"HS256\"\nfile = \"secret\"\n[[rule]]\nwho = \"everybody\"\n\
                         channels = [\"*\"]\nmay = [\"subscribe\"]\n";

    #[test]
    fn who_shows_a_token_pays_for_checking_it() {
        let mut secret = |_: &str| Ok(b"0123456789abcdef0123456789abcdef".to_vec());
        let access = Access::read(RULES, "access.toml", &mut secret).unwrap();
        for (token, status, work) in [("", "200", 0), ("Authorization: Bearer a.b.c\r\n", "401", SIGNATURE_WORK_BYTES)]
        {
            let mut server = Server::new();
            server.rules.gate.access = Some(Arc::new(LiveAccess::new(access.clone())));
            let (said, _) = server.receive(format!("POST /echo HTTP/1.1\r\nHost: a\r\n{token}\r\n").as_bytes());
            assert!(said.starts_with(&format!("HTTP/1.1 {status} ")), "{said}");
            assert_eq!(server.output.coded_bytes, work, "{token}");
            // What the application answers is paid for here too.
            let mut server = Server::new();
            server.rules.has_application = true;
            server.rules.gate.access = Some(Arc::new(LiveAccess::new(access.clone())));
            let (_, effect) = server.receive(format!("GET /api/history HTTP/1.1\r\nHost: a\r\n{token}\r\n").as_bytes());
            assert!(matches!(effect, Effect::Ask(_)), "{token}");
            assert_eq!(server.output.coded_bytes, work, "{token}");
        }
    }
}
