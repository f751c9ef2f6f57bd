//! How busy the whole machine was, to notice strangers.

/// CPU time of all cores together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MachineLoad {
    /// Used by anything, seconds.
    pub busy_s: f64,
    /// Taken by the hypervisor for other guests, seconds.
    pub steal_s: f64,
}

impl MachineLoad {
    /// Since boot; `None` where `/proc/stat` cannot be read.
    pub fn now() -> Option<Self> {
        Self::parse(&std::fs::read_to_string("/proc/stat").ok()?)
    }

    /// What was added since `before`.
    pub fn since(self, before: Self) -> Self {
        Self { busy_s: self.busy_s - before.busy_s, steal_s: self.steal_s - before.steal_s }
    }

    /// The first line of `/proc/stat` (proc(5)): user nice system idle iowait irq softirq steal, in ticks of 10 ms.
    fn parse(text: &str) -> Option<Self> {
        let line = text.lines().next()?.strip_prefix("cpu ")?;
        let ticks: Vec<f64> = line.split_whitespace().map_while(|n| n.parse().ok()).collect();
        let [user, nice, system, _, _, irq, softirq, steal, ..] = ticks[..] else { return None };
        Some(Self { busy_s: (user + nice + system + irq + softirq) / 100.0, steal_s: steal / 100.0 })
    }
}

/// Memory that the kernel holds for everybody, bytes: slab, page tables, kernel stacks and socket buffers; `None`
/// where the kernel does not say.
pub fn kernel_memory_bytes() -> Option<u64> {
    let kib = |text: &str| -> Option<u64> {
        let of = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next());
        ["Slab:", "PageTables:", "KernelStack:"].iter().map(|name| of(name)?.parse::<u64>().ok()).sum()
    };
    let pages = |text: &str| -> Option<u64> {
        let line = text.lines().find_map(|line| line.strip_prefix("TCP:"))?;
        line.split_whitespace().skip_while(|word| *word != "mem").nth(1)?.parse().ok()
    };
    let own = kib(&std::fs::read_to_string("/proc/meminfo").ok()?)? * 1024;
    Some(own + pages(&std::fs::read_to_string("/proc/net/sockstat").ok()?)? * PAGE_BYTES)
}

/// The unit in which `/proc/net/sockstat` counts: a page.
const PAGE_BYTES: u64 = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_is_read() {
        let load = MachineLoad::parse("cpu  100 0 50 999 9 10 40 7 0 0\ncpu0 1 2 3\n");
        assert_eq!(load, Some(MachineLoad { busy_s: 2.0, steal_s: 0.07 }));
        assert_eq!(MachineLoad::parse("intr 1"), None);
    }
}
