//! What a machine has left for connections.

use super::{labelled_bytes, number, numbers, text};

/// What a machine has left for connections, or gives each process; `None` where it does not say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Room {
    /// Descriptors that one table of this program may hold.
    pub descriptors: Option<u64>,
    /// The same for a program that raises its limit as far as it may, as most runtimes do.
    pub descriptors_raised: Option<u64>,
    /// Files that may still be opened on the whole machine (`fs.file-max`).
    pub files: Option<u64>,
    /// Descriptors that one user's epolls may watch (`fs.epoll.max_user_watches`).
    pub watches: Option<u64>,
    /// Ports of one source address (`net.ipv4.ip_local_port_range`).
    pub ports: Option<u64>,
    /// Connections that the firewall may still track (`net.netfilter.nf_conntrack_max`); `None` where it tracks none.
    pub tracked: Option<u64>,
    /// Memory that can be had without swapping, bytes.
    pub memory_bytes: Option<u64>,
}

impl Room {
    /// That of this machine, now.
    pub fn read() -> Self {
        let limit = pushlab_os::limits::descriptors();
        let files = numbers("/proc/sys/fs/file-nr").map(|[open, _, most]: [u64; 3]| most.saturating_sub(open));
        let ports = numbers("/proc/sys/net/ipv4/ip_local_port_range");
        let tracked = |what: &str| number(&format!("/proc/sys/net/netfilter/nf_conntrack_{what}"));
        Self {
            descriptors: Some(limit.soft),
            descriptors_raised: Some(limit.hard),
            files,
            watches: number("/proc/sys/fs/epoll/max_user_watches"),
            ports: ports.map(|[first, last]: [u64; 2]| last.saturating_sub(first) + 1),
            tracked: tracked("max").zip(tracked("count")).map(|(most, now)| most.saturating_sub(now)),
            memory_bytes: text("/proc/meminfo").and_then(|text| labelled_bytes(&text, "MemAvailable")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_linux_says_how_much_room_there_is() {
        let room = Room::read();
        for known in [room.descriptors, room.files, room.ports, room.memory_bytes] {
            assert!(known.is_some_and(|known| known > 0), "{room:?}");
        }
    }
}
