//! Requests whose bodies come in parts.

use pushlab_wire::fields::FieldList;
use pushlab_wire::http::{BodyDecoder, BodyKind, Headers, HttpError, RequestHead, parse_request};

/// A request whose body is still coming.
#[derive(Debug)]
pub struct PartialRequest {
    /// Read again when the body is there.
    head: SentHead,
    decoder: BodyDecoder,
    body: Vec<u8>,
}

/// A head as it was sent.
#[derive(Debug)]
enum SentHead {
    Text(Vec<u8>),
    Fields(FieldList),
}

/// What became of some bytes of a body.
#[derive(Debug, PartialEq, Eq)]
pub enum Part {
    /// So many of them belong to it, and more must come.
    Incomplete(usize),
    /// So many of them belong to it, and it is whole.
    Whole(usize),
    /// It is larger than it may be.
    TooLarge,
}

impl PartialRequest {
    /// One with this head, of which nothing more has come.
    pub fn new(head: &[u8], kind: BodyKind) -> Self {
        Self { head: SentHead::Text(head.to_vec()), decoder: BodyDecoder::new(kind), body: Vec::new() }
    }

    /// One over HTTP/2, whose body ends with the peer's side of the stream.
    pub fn of_http2(head: &FieldList) -> Self {
        let decoder = BodyDecoder::new(BodyKind::UntilClose);
        Self { head: SentHead::Fields(head.clone()), decoder, body: Vec::new() }
    }

    /// Takes a part of the body, which may have so many bytes in all.
    ///
    /// # Errors
    /// If these bytes are not of a body.
    pub fn take(&mut self, bytes: &[u8], max_bytes: usize) -> Result<Part, HttpError> {
        let step = self.decoder.decode(bytes)?;
        if self.body.len() + step.data.len() > max_bytes {
            return Ok(Part::TooLarge);
        }
        self.body.extend_from_slice(step.data);
        Ok(if step.is_done { Part::Whole(step.consumed) } else { Part::Incomplete(step.consumed) })
    }

    /// Bytes of memory it takes.
    pub fn kept_bytes(&self) -> usize {
        let head = match &self.head {
            SentHead::Text(text) => text.capacity(),
            SentHead::Fields(fields) => fields.kept_bytes(),
        };
        size_of::<Self>() + head + self.body.capacity()
    }

    /// Gives head and body of a request that is whole.
    pub fn read<T>(&self, with: impl FnOnce(&RequestHead<'_, '_>, &[u8]) -> T) -> T {
        let mut headers = Headers::default();
        let head = match &self.head {
            SentHead::Text(text) => parse_request(text, &mut headers).ok().flatten().map(|(head, _)| head),
            SentHead::Fields(fields) => RequestHead::of_http2(fields, &mut headers, false).ok(),
        };
        with(&head.expect("the head was read once already"), &self.body)
    }
}
