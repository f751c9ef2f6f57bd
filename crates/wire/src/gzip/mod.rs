//! `Content-Encoding: gzip`: who takes it, which bodies have it, writing and reading it.

mod decoder;
mod encoder;

pub use decoder::{GzipDecoder, GzipError, MAX_HEADER_BYTES};
pub use encoder::{HEAD, deflated_len, encode, push_deflated, push_stored, stored_len};

use crate::fields::trimmed;

/// The content coding of a body (RFC 9110, section 8.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContentCoding {
    /// Not at all.
    Identity,
    /// As gzip.
    Gzip,
}

/// A coding that is not read: another, or several.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unsupported Content-Encoding {0:?}: expected gzip, once, or none")]
pub struct UnknownContentCoding(pub String);

impl ContentCoding {
    /// What the fields `Content-Encoding` of an answer say.
    ///
    /// # Errors
    /// Where it is another coding, or more than one.
    pub fn of<'a>(fields: impl Iterator<Item = &'a str>) -> Result<Self, UnknownContentCoding> {
        let codings = fields.flat_map(|field| field.split(',')).map(trimmed);
        codings.filter(|coding| !coding.is_empty()).try_fold(Self::Identity, |known, coding| {
            // Section 8.4.1.3: the name with x- means the same.
            let is_gzip = ["gzip", "x-gzip"].iter().any(|name| coding.eq_ignore_ascii_case(name));
            match known {
                Self::Identity if is_gzip => Ok(Self::Gzip),
                known if coding.eq_ignore_ascii_case("identity") => Ok(known),
                _ => Err(UnknownContentCoding(coding.to_owned())),
            }
        })
    }
}

/// Whether a client takes gzip, by its fields `Accept-Encoding` (RFC 9110, section 12.5.3).
pub fn is_accepted<'a>(fields: impl Iterator<Item = &'a str>) -> bool {
    let mut of_others = false;
    for coding in fields.flat_map(|field| field.split(',')) {
        let mut parts = coding.split(';').map(trimmed);
        let name = parts.next().unwrap_or_default();
        let weight = parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
        let is_wanted = weight.is_none_or(|weight| weight.bytes().any(|b| matches!(b, b'1'..=b'9')));
        if name.eq_ignore_ascii_case("gzip") || name.eq_ignore_ascii_case("x-gzip") {
            return is_wanted;
        }
        of_others |= name == "*" && is_wanted;
    }
    of_others
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_is_taken_where_it_is_named_and_not_refused() {
        let accepts = |field| is_accepted([field].into_iter());
        for field in ["gzip", "deflate, GZIP;q=0.5", "br, x-gzip", "*", "gzip;q=1.000, *;q=0", "br;q=0,*;q=0.1"] {
            assert!(accepts(field), "{field}");
        }
        for field in ["", "deflate, br", "gzip;q=0", "gzip; q=0.000, *", "*;q=0", "gzipped", "identity", "\u{a0}gzip"] {
            assert!(!accepts(field), "{field}");
        }
        assert!(is_accepted(["br", "gzip"].into_iter()) && !is_accepted([].into_iter()));
    }

    #[test]
    fn codings_are_known_or_named() {
        let of = |fields: &[&str]| ContentCoding::of(fields.iter().copied());
        assert_eq!(of(&[]), Ok(ContentCoding::Identity));
        assert_eq!(of(&["identity"]), Ok(ContentCoding::Identity));
        assert_eq!(of(&["GZip"]), Ok(ContentCoding::Gzip));
        assert_eq!(of(&["x-gzip"]), Ok(ContentCoding::Gzip));
        assert_eq!(
            of(&["br"]).unwrap_err().to_string(),
            "unsupported Content-Encoding \"br\": expected gzip, once, or none"
        );
        for twice in [&["gzip, gzip"][..], &["gzip", "deflate"], &["gzip", "gzip"]] {
            assert!(of(twice).is_err(), "{twice:?}");
        }
    }
}
