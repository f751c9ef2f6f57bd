//! The static table (appendix A) and the dynamic table (section 2.3.2), which share one range of indexes.

use std::collections::VecDeque;

/// What the standard adds to the length of each field (section 4.1).
pub(super) const FIELD_BYTES: usize = 32;

/// Index 1 is the first.
#[rustfmt::skip]
const STATIC: [(&str, &str); 61] = [
    (":authority", ""),
    (":method", "GET"),
    (":method", "POST"),
    (":path", "/"),
    (":path", "/index.html"),
    (":scheme", "http"),
    (":scheme", "https"),
    (":status", "200"),
    (":status", "204"),
    (":status", "206"),
    (":status", "304"),
    (":status", "400"),
    (":status", "404"),
    (":status", "500"),
    ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"),
    ("accept-language", ""),
    ("accept-ranges", ""),
    ("accept", ""),
    ("access-control-allow-origin", ""),
    ("age", ""),
    ("allow", ""),
    ("authorization", ""),
    ("cache-control", ""),
    ("content-disposition", ""),
    ("content-encoding", ""),
    ("content-language", ""),
    ("content-length", ""),
    ("content-location", ""),
    ("content-range", ""),
    ("content-type", ""),
    ("cookie", ""),
    ("date", ""),
    ("etag", ""),
    ("expect", ""),
    ("expires", ""),
    ("from", ""),
    ("host", ""),
    ("if-match", ""),
    ("if-modified-since", ""),
    ("if-none-match", ""),
    ("if-range", ""),
    ("if-unmodified-since", ""),
    ("last-modified", ""),
    ("link", ""),
    ("location", ""),
    ("max-forwards", ""),
    ("proxy-authenticate", ""),
    ("proxy-authorization", ""),
    ("range", ""),
    ("referer", ""),
    ("refresh", ""),
    ("retry-after", ""),
    ("server", ""),
    ("set-cookie", ""),
    ("strict-transport-security", ""),
    ("transfer-encoding", ""),
    ("user-agent", ""),
    ("vary", ""),
    ("via", ""),
    ("www-authenticate", ""),
];

/// Slots of the hash over the names of the static table.
const SLOTS: usize = 128;

/// For each slot the index of the first field of its name, or zero.
const FIRST_OF_NAME: [u8; SLOTS] = {
    let mut slots = [0; SLOTS];
    let mut at = 0;
    while at < STATIC.len() {
        let name = STATIC[at].0.as_bytes();
        let slot = slot(name);
        if slots[slot] == 0 {
            slots[slot] = at as u8 + 1;
        } else {
            let first = STATIC[slots[slot] as usize - 1].0.as_bytes();
            // That they are also equal, a test says.
            assert!(first.len() == name.len() && first[1] == name[1], "no two names share a slot");
        }
        at += 1;
    }
    slots
};

/// The factors were found by trying: the 52 names have 52 slots.
const fn slot(name: &[u8]) -> usize {
    if name.is_empty() {
        return 0;
    }
    let (first, middle, last) = (name[0] as usize, name[name.len() / 2] as usize, name[name.len() - 1] as usize);
    (name.len().wrapping_mul(75) + first * 107 + middle * 32 + last * 43) % SLOTS
}

/// The lowest index of that name in the static table.
pub(super) fn static_name(name: &[u8]) -> Option<u32> {
    let index = FIRST_OF_NAME[slot(name)];
    let (other, _) = STATIC.get(usize::from(index).checked_sub(1)?)?;
    (other.as_bytes() == name).then_some(u32::from(index))
}

/// The index of that field in the static table; `first` is the lowest of its name.
pub(super) fn static_field(first: u32, value: &[u8]) -> Option<u32> {
    let rows = &STATIC[first as usize - 1..];
    let same_name = rows.iter().take_while(|(name, _)| *name == rows[0].0);
    same_name.zip(first..).find(|((_, other), _)| other.as_bytes() == value).map(|(_, index)| index)
}

/// What [`DynamicTable::find`] found.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Found {
    /// The index of the newest field that is the same.
    pub field: Option<u32>,
    /// The index of the newest field of the same name, if none is the same.
    pub name: Option<u32>,
}

/// The fields seen last, in one piece of memory. Holds none as long as it is empty or its limit zero, and at worst its
/// limit and 12 bytes for every 32 of it: with 4,096 bytes 5.6 KiB.
#[derive(Debug)]
pub(super) struct DynamicTable {
    /// Names and values, the oldest first, behind those that were evicted since the last [`DynamicTable::compact`].
    bytes: Vec<u8>,
    /// The oldest first.
    entries: VecDeque<Entry>,
    size: u32,
    max_bytes: u32,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    start: u32,
    name_bytes: u32,
    value_bytes: u32,
}

impl Entry {
    fn size(self) -> u32 {
        self.name_bytes + self.value_bytes + FIELD_BYTES as u32
    }
}

impl DynamicTable {
    pub fn new(max_bytes: u32) -> Self {
        Self { bytes: Vec::new(), entries: VecDeque::new(), size: 0, max_bytes }
    }

    /// As the standard counts it (section 4.1).
    pub fn size(&self) -> u32 {
        self.size
    }

    /// The limit in use: not what was allowed, but what the last size update said.
    pub fn max_bytes(&self) -> u32 {
        self.max_bytes
    }

    /// Changes the limit in use and evicts what is beyond it (section 4.3).
    pub fn set_max_bytes(&mut self, max_bytes: u32) {
        let is_reduced = max_bytes < self.max_bytes;
        self.max_bytes = max_bytes;
        if is_reduced {
            self.evict(max_bytes);
            self.compact();
            self.bytes.shrink_to(max_bytes as usize);
            self.entries.shrink_to(max_bytes as usize / FIELD_BYTES);
        }
    }

    /// Name and value at an index of either table.
    pub fn field(&self, index: u32) -> Option<(&[u8], &[u8])> {
        let at = (index as usize).checked_sub(1)?;
        match STATIC.get(at) {
            Some((name, value)) => Some((name.as_bytes(), value.as_bytes())),
            None => {
                let newest = self.entries.len().checked_sub(1)?;
                Some(self.text(self.entries[newest.checked_sub(at - STATIC.len())?]))
            }
        }
    }

    /// Looks for a field, the newest first.
    pub fn find(&self, name: &[u8], value: &[u8]) -> Found {
        let mut found = Found::default();
        for (&entry, index) in self.entries.iter().rev().zip(STATIC.len() as u32 + 1..) {
            if entry.name_bytes as usize != name.len() {
                continue;
            }
            let (other_name, other_value) = self.text(entry);
            if other_name != name {
                continue;
            }
            if other_value == value {
                return Found { field: Some(index), name: None };
            }
            found.name.get_or_insert(index);
        }
        found
    }

    /// Adds a field and evicts what no longer fits; one that is larger than the limit empties the table (section 4.4).
    pub fn add(&mut self, name: &[u8], value: &[u8]) {
        let size = name.len() + value.len() + FIELD_BYTES;
        let Some(left) = (self.max_bytes as usize).checked_sub(size) else { return self.evict(0) };
        self.evict(left as u32);
        self.make_room(name.len() + value.len());
        // All of them are below the limit.
        let start = self.bytes.len() as u32;
        let entry = Entry { start, name_bytes: name.len() as u32, value_bytes: value.len() as u32 };
        self.bytes.extend_from_slice(name);
        self.bytes.extend_from_slice(value);
        self.size += entry.size();
        self.entries.push_back(entry);
    }

    /// Memory held beyond the struct.
    pub fn kept_bytes(&self) -> usize {
        self.bytes.capacity() + self.entries.capacity() * size_of::<Entry>()
    }

    fn text(&self, entry: Entry) -> (&[u8], &[u8]) {
        let start = entry.start as usize;
        let end = start + (entry.name_bytes + entry.value_bytes) as usize;
        self.bytes[start..end].split_at(entry.name_bytes as usize)
    }

    /// Evicts the oldest until the size is at most `bytes`.
    fn evict(&mut self, bytes: u32) {
        while self.size > bytes {
            let entry = self.entries.pop_front().expect("without entries the size is zero");
            self.size -= entry.size();
        }
    }

    /// Makes room behind the bytes, for no more than the limit leaves.
    fn make_room(&mut self, bytes: usize) {
        if self.bytes.capacity() - self.bytes.len() >= bytes {
            return;
        }
        self.compact();
        let needed = self.bytes.len() + bytes;
        if needed > self.bytes.capacity() {
            let wanted = (2 * self.bytes.capacity()).min(self.max_bytes as usize).max(needed);
            self.bytes.reserve_exact(wanted - self.bytes.len());
        }
    }

    /// Moves what is left to the beginning.
    fn compact(&mut self) {
        let evicted = self.entries.front().map_or(self.bytes.len(), |oldest| oldest.start as usize);
        self.bytes.drain(..evicted);
        for entry in &mut self.entries {
            entry.start -= evicted as u32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(table: &DynamicTable) -> Vec<String> {
        let fields = (62..).map_while(|index| table.field(index));
        fields.map(|(name, value)| format!("{}={}", name.escape_ascii(), value.escape_ascii())).collect()
    }

    #[test]
    fn every_field_of_the_static_table_is_found() {
        let table = DynamicTable::new(0);
        for (index, (name, value)) in (1..).zip(STATIC) {
            let first = static_name(name.as_bytes()).expect("the name is in the table");
            assert_eq!(STATIC[first as usize - 1].0, name);
            assert_eq!(static_field(first, value.as_bytes()), Some(index));
            assert_eq!(table.field(index), Some((name.as_bytes(), value.as_bytes())));
        }
        assert_eq!((static_name(b""), static_name(b"x"), static_name(b":statut")), (None, None, None));
        assert_eq!(static_field(8, b"201"), None, "the next names have empty values");
        assert_eq!(static_field(61, b"Basic"), None);
        assert_eq!((table.field(0), table.field(62), table.field(u32::MAX)), (None, None, None));
    }

    #[test]
    fn the_oldest_are_evicted() {
        let mut table = DynamicTable::new(3 * 34);
        for name in ["a", "b", "c", "d"] {
            table.add(name.as_bytes(), b"1");
        }
        assert_eq!((names(&table), table.size()), (vec!["d=1".into(), "c=1".into(), "b=1".into()], 102));
        table.add(b"e", b"12");
        assert_eq!((names(&table), table.size()), (vec!["e=12".into(), "d=1".into()], 69));
        table.set_max_bytes(68);
        assert_eq!((names(&table), table.size()), (vec!["e=12".into()], 35));
        table.set_max_bytes(102);
        assert_eq!(names(&table), ["e=12"], "what was evicted does not come back");
    }

    #[test]
    fn a_field_that_just_fits_evicts_the_others_and_a_larger_one_all() {
        let mut table = DynamicTable::new(100);
        table.add(b"a", b"");
        table.add(b"bb", &[b'x'; 66]);
        assert_eq!(table.size(), 100);
        table.add(b"bb", &[b'x'; 67]);
        assert_eq!((table.size(), table.field(62)), (0, None));
    }

    #[test]
    fn the_newest_is_found_first() {
        let mut table = DynamicTable::new(4096);
        for (name, value) in [("a", "1"), ("b", "1"), ("a", "2"), ("a", "1"), ("ab", "")] {
            table.add(name.as_bytes(), value.as_bytes());
        }
        assert_eq!(table.find(b"a", b"1"), Found { field: Some(63), name: None });
        assert_eq!(table.find(b"a", b"3"), Found { field: None, name: Some(63) });
        assert_eq!(table.find(b"b", b""), Found { field: None, name: Some(65) });
        assert_eq!(table.find(b"c", b"1"), Found::default());
    }

    #[test]
    fn memory_stays_below_the_limit_and_an_empty_table_has_none() {
        let mut table = DynamicTable::new(4096);
        assert_eq!((table.bytes.capacity(), table.entries.capacity()), (0, 0));
        let value = [b'v'; 4000];
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..10_000 {
            let most = if random.bool() { 4000 } else { 20 };
            table.add(&value[..random.usize(..20)], &value[..random.usize(..most)]);
            assert!(table.bytes.capacity() <= 4096 && table.entries.capacity() <= 128);
            let counted: u32 = table.entries.iter().map(|entry| entry.size()).sum();
            assert!(counted == table.size() && counted <= 4096);
        }
        table.set_max_bytes(100);
        assert!(table.bytes.capacity() <= 100);
        table.set_max_bytes(0);
        assert_eq!((table.bytes.capacity(), table.entries.capacity(), table.size()), (0, 0, 0));
    }
}
