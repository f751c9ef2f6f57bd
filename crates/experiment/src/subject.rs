//! How experiments name subjects.

/// The name of our own server.
pub const OURS: &str = "pushlab";

/// What a subject is called in results: `old` of `old=/opt/pushlab`, and of any other text all of it.
pub fn name_of(text: &str) -> &str {
    text.split_once('=').map_or(text, |(name, _)| name)
}
