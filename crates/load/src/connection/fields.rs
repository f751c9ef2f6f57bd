//! The fields of a request's head that do not change, prepared once for each version of HTTP.

use pushlab_wire::fields::FieldList;

/// Fields that say how a connection of HTTP/1 is used, and that HTTP/2 forbids (RFC 9113, section 8.2.2).
const OF_CONNECTIONS: [&str; 5] = ["connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"];

/// Fields in their order, as each version of HTTP writes them.
#[derive(Debug, Clone, Default)]
pub struct Fields {
    lines: String,
    list: FieldList,
}

impl Fields {
    /// Of names, as HTTP/1.1 writes them, and values.
    pub fn of<'a>(fields: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut this = Self::default();
        fields.into_iter().for_each(|(name, value)| this.add(name, value));
        this
    }

    /// Adds one.
    pub fn add(&mut self, name: &str, value: &str) {
        [name, ": ", value, "\r\n"].into_iter().for_each(|part| self.lines.push_str(part));
        if !OF_CONNECTIONS.iter().any(|other| name.eq_ignore_ascii_case(other)) {
            self.list.push_in_lower_case(name.as_bytes(), value.as_bytes());
        }
    }

    /// As HTTP/1.1 writes them: a line each, with its end.
    #[inline]
    pub fn lines(&self) -> &str {
        &self.lines
    }

    /// As HTTP/2 has them.
    pub fn list(&self) -> &FieldList {
        &self.list
    }
}
