//! HPACK (RFC 7541), the compression of heads. Each direction of a connection has an [`Encoder`] at one end and a
//! [`Decoder`] at the other, and their tables agree only as long as every block is decoded, once and in order.
//!
//! ```
//! use pushlab_http2::hpack::{Decoder, Encoder, INITIAL_TABLE_BYTES};
//! use pushlab_wire::fields::FieldList;
//!
//! let mut fields = FieldList::default();
//! fields.push(b":status", b"200");
//! fields.push(b"content-type", b"text/event-stream");
//! let mut block = Vec::new();
//! Encoder::new().encode(fields.iter(), &mut block);
//!
//! let mut decoded = FieldList::default();
//! let mut decoder = Decoder::new(INITIAL_TABLE_BYTES);
//! let outcome = decoder.decode(&block, 16_384, &mut decoded)?;
//! assert!(!outcome.is_cut);
//! assert_eq!(decoded, fields);
//! # Ok::<(), pushlab_http2::hpack::HpackError>(())
//! ```

mod decoder;
mod encoder;
mod huffman;
mod tables;

pub use decoder::Decoder;
pub use encoder::{Encoder, MAX_TABLE_BYTES};

/// The limit of either table until a peer's SETTINGS_HEADER_TABLE_SIZE holds (RFC 9113, section 6.5.2).
pub const INITIAL_TABLE_BYTES: u32 = 4096;

/// What became of a block that keeps to the standard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct Outcome {
    /// The list would have become larger than allowed. The fields before the first that did not fit were added, none
    /// after it; the table is right, so the connection can go on.
    pub is_cut: bool,
}

/// A violation of the standard. The tables no longer agree, so the connection must end, with COMPRESSION_ERROR
/// (RFC 9113, section 4.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HpackError {
    /// An integer or a string goes on beyond the end of the block.
    #[error("block ends inside a field")]
    Truncated,
    /// Section 5.1: more than 32 bits, or more than five bytes after the first.
    #[error("integer of more than 32 bits")]
    IntegerOverflow,
    /// Section 2.3.3: zero, or beyond the end of the dynamic table.
    #[error("no field has index {0}")]
    InvalidIndex(u32),
    /// Section 5.2: more than 7 bits, or not all of them ones.
    #[error("bad padding after a Huffman-coded string")]
    BadPadding,
    /// Section 5.2: the symbol EOS.
    #[error("end-of-string symbol inside a Huffman-coded string")]
    EndOfString,
    /// Section 4.2: a size update after a field, or a third one.
    #[error("dynamic table size update out of place")]
    StraySizeUpdate,
    /// Section 6.3.
    #[error("dynamic table of {bytes} bytes where {max} are allowed")]
    TableTooLarge {
        /// What the peer wanted.
        bytes: u32,
        /// The limit.
        max: u32,
    },
    /// RFC 9113, section 4.3.1: the limit was reduced below the size in use, and the next block does not begin with
    /// an update to that limit or less.
    #[error("no update to the reduced dynamic table size")]
    MissingSizeUpdate,
}

#[cfg(test)]
mod tests;
