//! What is asked.

use std::io::Write as _;

/// A request.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// `GET`.
    pub method: &'a str,
    /// Path and query, in parts.
    pub target: &'a [&'a str],
    /// Whom it is for: `example.org:8443`.
    pub authority: &'a str,
    /// Further header fields, each a line with its end: `Accept: */*\r\n`.
    pub lines: &'a [&'a str],
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
        self.lines.iter().for_each(|lines| append(lines));
        if let Some(body) = self.body {
            // Into memory, so it cannot fail.
            let _ = write!(out, "Content-Length: {}\r\n", body.len());
        }
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(self.body.unwrap_or_default());
    }
}
