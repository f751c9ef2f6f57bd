//! Sets of channels.

use pushlab_wire::channel::{BadChannel, Channel};

/// A set of channels as one text, which is the same whatever the order in which they were named: the sorted names, each
/// once, each before a line break. Filling it again costs no memory.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct ChannelSet(String);

impl ChannelSet {
    /// Takes these names in place of what it held. They are sorted for that.
    ///
    /// # Errors
    /// If one of them cannot be a channel's; the set is then empty.
    pub fn fill<N: AsRef<str> + Ord>(&mut self, names: &mut [N]) -> Result<(), BadChannel> {
        names.sort_unstable();
        self.0.clear();
        let mut before = None;
        for name in names.iter().map(AsRef::as_ref) {
            if before == Some(name) {
                continue;
            }
            before = Some(name);
            if !Channel::is_valid(name) {
                self.0.clear();
                return Err(BadChannel);
            }
            self.0.push_str(name);
            self.0.push('\n');
        }
        Ok(())
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// How many channels it has.
    pub fn count(&self) -> usize {
        self.0.lines().count()
    }

    /// The channels: each as it is `known`, so that its text is in memory once, or else anew.
    pub fn channels(&self, known: impl Fn(&str) -> Option<Channel>) -> Vec<Channel> {
        let anew = |name| Channel::parse(name).expect("a set holds names that were checked");
        self.0.lines().map(|name| known(name).unwrap_or_else(|| anew(name))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_names_does_not_matter() {
        let mut set = ChannelSet::default();
        set.fill(&mut ["b", "a", "b"]).unwrap();
        assert_eq!(set.as_str(), "a\nb\n");
        assert_eq!(set.channels(|_| None).iter().map(Channel::as_str).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(set.fill(&mut ["a b", "c"]), Err(BadChannel));
        assert_eq!(set.fill(&mut ["c\nd"]), Err(BadChannel));
        assert_eq!((set.as_str(), set.channels(|_| None).len()), ("", 0));
    }
}
