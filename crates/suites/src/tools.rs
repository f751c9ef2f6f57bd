//! Which of the tools that suites need this machine has, and how to get the rest.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::suite::{NAMESPACES, Suite, URING};

/// The script with the list of tools.
const SCRIPT: &str = "tests/tools";

/// Missing tools, each with the package that has it, if one does.
pub type Missing = BTreeMap<String, Option<String>>;

/// A suite that is not run, and the tools it lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    pub name: String,
    pub lacks: Vec<String>,
}

/// Installs what the suites need and lack, if that takes no password, and returns what is still missing.
///
/// # Errors
/// If the script fails.
pub fn set_up(root: &Path, suites: &[Suite]) -> Result<Missing, String> {
    let mut tools: BTreeSet<&str> = suites.iter().flat_map(|suite| &suite.needs).map(String::as_str).collect();
    let mut missing = Missing::new();
    if tools.remove(NAMESPACES) && !has_namespaces() {
        missing.insert(NAMESPACES.to_owned(), None);
    }
    if tools.remove(URING) && !has_uring() {
        missing.insert(URING.to_owned(), None);
    }
    if tools.is_empty() {
        return Ok(missing);
    }
    let failed = |error: std::io::Error| format!("cannot start {SCRIPT}: {error}");
    let script = |verb: &str| {
        let mut command = Command::new(root.join(SCRIPT));
        command.arg(verb).args(&tools).current_dir(root).stdin(Stdio::null());
        command
    };
    if !script("install").status().map_err(failed)?.success() {
        return Err(format!("{SCRIPT} could not install what is missing: see above"));
    }
    let output = script("missing").stderr(Stdio::inherit()).output().map_err(failed)?;
    if !output.status.success() {
        return Err(format!("{SCRIPT} could not list what is missing: see above"));
    }
    missing.extend(parse(&String::from_utf8_lossy(&output.stdout)));
    Ok(missing)
}

fn parse(lines: &str) -> Missing {
    let pairs = lines.lines().filter_map(|line| line.split_once('\t'));
    pairs.map(|(tool, package)| (tool.to_owned(), Some(package.to_owned()))).collect()
}

/// Whether networks can be emulated here: docs/networks.md says what they need.
fn has_namespaces() -> bool {
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--net", "true"]).stdin(Stdio::null()).stderr(Stdio::null());
    let may = pushlab_os::process::is_root() || command.status().is_ok_and(|status| status.success());
    may && std::fs::OpenOptions::new().read(true).write(true).open("/dev/net/tun").is_ok()
}

/// Whether the kernel has io_uring and no sandbox may forbid it: containers do, by a seccomp filter.
fn has_uring() -> bool {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let is_unconfined = read("/proc/self/status").lines().any(|line| line == "Seccomp:\t0");
    // Before Linux 6.6 there is no such switch.
    is_unconfined && matches!(read("/proc/sys/kernel/io_uring_disabled").trim(), "" | "0")
}

/// Divides suites into those that can run here and those that cannot.
pub fn divide(suites: Vec<Suite>, missing: &Missing) -> (Vec<Suite>, Vec<LeftOut>) {
    let lacks = |suite: &Suite| suite.needs.iter().filter(|tool| missing.contains_key(*tool)).cloned().collect();
    let mut left_out = Vec::new();
    let mut able = Vec::new();
    for suite in suites {
        let lacks: Vec<String> = lacks(&suite);
        if lacks.is_empty() {
            able.push(suite);
        } else {
            left_out.push(LeftOut { name: suite.name, lacks });
        }
    }
    (able, left_out)
}

/// Lines that say which suites are left out, and how to run them too.
pub fn tell(left_out: &[LeftOut], missing: &Missing) -> String {
    if left_out.is_empty() {
        return String::new();
    }
    let mut text = "Left out because tools are missing:\n".to_owned();
    for LeftOut { name, lacks } in left_out {
        text.push_str(&format!("  {name:<16} needs {}\n", lacks.join(", ")));
    }
    let lacks = |tool: &str| left_out.iter().any(|one| one.lacks.iter().any(|name| name == tool));
    let lacking = missing.iter().filter(|(tool, _)| lacks(tool));
    let (tools, packages): (Vec<&str>, Vec<&str>) =
        lacking.filter_map(|(tool, package)| Some((tool.as_str(), package.as_deref()?))).unzip();
    if !packages.is_empty() {
        text.push_str(&match Path::new("/usr/bin/apt-get").exists() {
            true => format!("To run them too: sudo {SCRIPT} install {}\n", tools.join(" ")),
            false => format!("To run them too, install these packages (Debian names): {}\n", packages.join(" ")),
        });
    }
    if lacks(NAMESPACES) {
        text.push_str("Network namespaces: docs/networks.md says what they need.\n");
    }
    if lacks(URING) {
        text.push_str("io_uring: docs/server.md says what it needs.\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suite(name: &str, needs: &[&str]) -> Suite {
        let needs = needs.iter().map(|tool| (*tool).to_owned()).collect();
        Suite { name: name.to_owned(), needs, ..Suite::default() }
    }

    #[test]
    fn a_suite_without_its_tools_is_left_out_and_told() {
        let missing = parse("firefox\tfirefox-esr\ngo\tgolang-go\n");
        let all = vec![suite("rust", &[]), suite("browser", &["chromium", "firefox"]), suite("proxies", &["nginx"])];
        let (able, left_out) = divide(all, &missing);
        assert_eq!(able.iter().map(|suite| suite.name.as_str()).collect::<Vec<_>>(), ["rust", "proxies"]);
        let told = tell(&left_out, &missing);
        let lines: Vec<&str> = told.lines().collect();
        assert_eq!(lines[..2], ["Left out because tools are missing:", "  browser          needs firefox"]);
        assert!(lines[2].starts_with("To run them too"), "{told}");
        assert!(!told.contains("go"), "no suite wants it: {told}");
    }

    #[test]
    fn nothing_is_told_where_nothing_is_left_out() {
        assert_eq!(tell(&[], &parse("go\tgolang-go\n")), "");
    }
}
