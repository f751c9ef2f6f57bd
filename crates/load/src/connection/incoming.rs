//! What streams bring.

use super::Owner;
use crate::cut::Cut;
use pushlab_wire::http::ResponseHead;

/// The head of an answer.
#[derive(Debug)]
pub struct Head<'a> {
    /// HTTP status.
    pub status: u16,
    /// Whether its connection may carry another request.
    pub keeps_alive: bool,
    /// Its bytes.
    pub size: usize,
    fields: &'a ResponseHead<'a, 'a>,
    beside: &'a [u8],
}

impl<'a> Head<'a> {
    pub(super) fn new(fields: &'a ResponseHead<'a, 'a>, size: usize, beside: &'a [u8]) -> Self {
        Self { status: fields.status, keeps_alive: fields.keeps_alive(), size, fields, beside }
    }

    /// Every field of that name (any case) whose value is text.
    pub fn headers(&self, name: &str) -> impl Iterator<Item = &'a str> {
        self.fields.headers(name)
    }

    /// Checks that it is the head of what was asked for at a path.
    ///
    /// # Errors
    /// Another status than 200.
    pub fn accept(&self, path: &str) -> Result<(), Cut> {
        if self.status == 200 { Ok(()) } else { Err(Cut::refusal(path, self.status, self.beside)) }
    }
}

/// Who hears what a stream brings.
pub trait Incoming {
    /// What follows is on the stream of this owner.
    fn turn_to(&mut self, owner: Owner);

    /// So many bytes were a head that nobody else is told of.
    fn head_bytes(&mut self, size: usize);

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

    /// What an upgraded stream carries, and once, be it nothing, that it has been upgraded. Returns how many bytes are
    /// done with; the others come again, with more.
    ///
    /// # Errors
    /// When the stream cannot go on.
    fn bytes(&mut self, bytes: &mut [u8]) -> Result<usize, Cut>;
}
