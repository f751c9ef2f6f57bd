//! What streams bring.

use super::Owner;
use crate::cut::{Cut, is_redirect};
use pushlab_wire::fields::FieldList;
use pushlab_wire::http::ResponseHead;

/// The head of an answer, of either version of HTTP.
#[derive(Debug)]
pub struct Head<'a> {
    /// HTTP status.
    pub status: u16,
    /// Whether its connection may carry another request.
    pub keeps_alive: bool,
    fields: Fields<'a>,
    beside: &'a [u8],
}

#[derive(Debug, Clone, Copy)]
enum Fields<'a> {
    Text(&'a ResponseHead<'a, 'a>),
    List(&'a FieldList),
}

impl<'a> Head<'a> {
    /// One of HTTP/1.1; `beside` is what has come of its body, for a refusal.
    pub(super) fn of_text(head: &'a ResponseHead<'a, 'a>, beside: &'a [u8]) -> Self {
        Self { status: head.status, keeps_alive: head.keeps_alive(), fields: Fields::Text(head), beside }
    }

    /// One of HTTP/2, where every request has a stream of its own, so that none can spoil the connection for the next.
    pub(super) fn of_list(status: u16, head: &'a FieldList, beside: &'a [u8]) -> Self {
        Self { status, keeps_alive: true, fields: Fields::List(head), beside }
    }

    /// Every field of that name (any case) whose value is text.
    pub fn headers(&self, name: &str) -> impl Iterator<Item = &'a str> {
        let (text, list) = match self.fields {
            Fields::Text(text) => (Some(text), None),
            Fields::List(list) => (None, Some(list)),
        };
        let of_list = list.into_iter().flat_map(FieldList::iter);
        let of_list = of_list.filter(move |(other, _)| other.eq_ignore_ascii_case(name.as_bytes()));
        let of_list = of_list.filter_map(|(_, value)| str::from_utf8(value).ok());
        text.into_iter().flat_map(move |text| text.headers(name)).chain(of_list)
    }

    /// Checks that it does not send the client elsewhere: what is measured is one address.
    ///
    /// # Errors
    /// A redirect.
    pub(super) fn stay(&self) -> Result<(), Cut> {
        if !is_redirect(self.status) {
            return Ok(());
        }
        let to = self.headers("location").next().unwrap_or("another address");
        Err(Cut::refused("the server", self.status, format!("(a redirect): use {to}").as_bytes()))
    }

    /// Checks that it is the head of what was asked for at a path.
    ///
    /// # Errors
    /// Another status than 200.
    pub fn accept(&self, path: &str) -> Result<(), Cut> {
        if self.status == 200 { Ok(()) } else { Err(Cut::refused(path, self.status, self.beside)) }
    }
}

/// Who hears what a stream brings.
pub trait Incoming {
    /// What follows is on the stream of this owner.
    fn turn_to(&mut self, owner: Owner);

    /// So many bytes were the head of an answer.
    fn head_bytes(&mut self, size: usize);

    /// So many bytes were HTTP/2's own: heads of frames, and frames that are neither head nor body of an answer.
    fn frame_bytes(&mut self, size: usize);

    /// The head of an answer.
    ///
    /// # Errors
    /// When the stream cannot go on.
    fn head(&mut self, head: &Head<'_>) -> Result<(), Cut>;

    /// A piece of an answer's body; it may be empty where it is the last.
    ///
    /// # Errors
    /// When the stream cannot go on.
    fn body(&mut self, data: &[u8], is_last: bool) -> Result<(), Cut>;

    /// The head of the answer that upgrades a stream.
    ///
    /// # Errors
    /// When the stream cannot go on.
    fn upgraded(&mut self, head: &Head<'_>) -> Result<(), Cut>;

    /// What an upgraded stream carries, and once, be it nothing, that it has been upgraded. Returns how many bytes are
    /// done with; the others come again, with more.
    ///
    /// # Errors
    /// When the stream cannot go on.
    fn bytes(&mut self, bytes: &mut [u8]) -> Result<usize, Cut>;
}
