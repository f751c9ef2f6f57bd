//! What is asked.

use super::Fields;
use pushlab_wire::fields::FieldList;
use std::io::Write as _;

/// A request.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// `GET`.
    pub method: &'a str,
    /// `http` or `https`.
    pub scheme: &'a str,
    /// Whom it is for: `example.org:8443`.
    pub authority: &'a str,
    /// Path and query, in parts.
    pub target: &'a [&'a str],
    /// Further fields.
    pub fields: &'a Fields,
    /// More of them that a dialect has written itself, which HTTP/1.1 alone can carry: lines with their ends.
    pub lines: &'a str,
    /// What it carries, if its method lets it carry something.
    pub body: Option<&'a [u8]>,
}

impl Request<'_> {
    /// Appends it as HTTP/1.1 writes it (RFC 9112, section 3).
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        let mut append = |part: &str| out.extend_from_slice(part.as_bytes());
        append(self.method);
        append(" ");
        self.target.iter().for_each(|part| append(part));
        append(" HTTP/1.1\r\nHost: ");
        append(self.authority);
        append("\r\n");
        append(self.fields.lines());
        append(self.lines);
        if let Some(body) = self.body {
            // Into memory, so it cannot fail.
            let _ = write!(out, "Content-Length: {}\r\n", body.len());
        }
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(self.body.unwrap_or_default());
    }

    /// Puts its head where none is, as HTTP/2 has it (RFC 9113, section 8.3.1); with `protocol`, it asks for that one
    /// (RFC 8441, section 4). `text` is room for values that are put together.
    pub(super) fn list(&self, protocol: Option<&str>, head: &mut FieldList, text: &mut Vec<u8>) {
        debug_assert!(head.is_empty() && self.lines.is_empty(), "one request at a time, and of no dialect");
        let mut add = |name: &str, value: &str| head.push(name.as_bytes(), value.as_bytes());
        add(":method", if protocol.is_some() { "CONNECT" } else { self.method });
        if let Some(protocol) = protocol {
            add(":protocol", protocol);
        }
        add(":scheme", self.scheme);
        add(":authority", self.authority);
        text.clear();
        self.target.iter().for_each(|part| text.extend_from_slice(part.as_bytes()));
        head.push(b":path", text);
        self.fields.list().iter().for_each(|(name, value)| head.push(name, value));
        if let Some(body) = self.body {
            text.clear();
            // Into memory, so it cannot fail.
            let _ = write!(text, "{}", body.len());
            head.push(b"content-length", text);
        }
    }
}
