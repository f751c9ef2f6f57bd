//! `unsafe` stands where it is accounted for, and nowhere else.

use std::collections::BTreeMap;

use super::Finding;
use crate::source::{code_only, line_of, words};
use crate::tree::Tree;

/// Crates that may be `unsafe`: docs/decisions/0023-os.md.
const CRATES: [&str; 2] = ["crates/os/", "crates/link/"];
/// Single files that may, and why they are in no such crate.
const FILES: &[(&str, &str)] = &[
    (
        "crates/engine/src/uring.rs",
        "what makes it sound is how that file waits for the ring: docs/decisions/0026-io-uring.md",
    ),
    ("crates/load/src/threads.rs", "only the code that starts a thread knows what the thread owns"),
    ("crates/server/src/own_table.rs", "only the server knows what its event loops own"),
    ("crates/probe/src/own_table.rs", "tests have threads with tables of their own"),
];

/// Where each file with `unsafe` has a row that says what for and why.
const DOCUMENT: &str = "docs/decisions/0023-os.md";
/// What follows the number of blocks there.
const CLAIM: &str = " blocks of `unsafe`";

const FIX: &str = "use, or add to, the crate os";

pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut blocks = BTreeMap::new();
    for (path, text) in tree.below("crates/").filter(|(path, text)| path.ends_with(".rs") && text.contains("unsafe")) {
        let code = code_only(text);
        let is_allowed =
            CRATES.iter().any(|folder| path.starts_with(folder)) || FILES.iter().any(|(file, _)| path == *file);
        if !is_allowed {
            let found = words(&code, "unsafe").chain(words(&code, "unsafe_code"));
            let finding = |at| Finding::new(path, line_of(&code, at), "`unsafe` is not allowed here", FIX);
            findings.extend(found.map(finding));
        } else if words(&code, "unsafe").next().is_some() {
            let is_block = |at: &usize| code[at + "unsafe".len()..].trim_start().starts_with('{');
            blocks.insert(&path["crates/".len()..], words(&code, "unsafe").filter(is_block).count());
        }
    }
    accounts(tree.text(DOCUMENT).unwrap_or_default(), &blocks, &mut findings);
    findings
}

/// Compares the document with the blocks of each file, named from the folder of all crates.
fn accounts(document: &str, blocks: &BTreeMap<&str, usize>, findings: &mut Vec<Finding>) {
    let rows: Vec<Row> = document.lines().zip(1..).filter_map(|(text, line)| Row::read(text, line)).collect();
    for Row { line, file, reason } in &rows {
        if !blocks.contains_key(file) {
            let what = format!("has a row for `{file}`, where no `unsafe` is");
            findings.push(Finding::new(DOCUMENT, *line, what, "remove it"));
        } else if reason.is_empty() {
            let what = format!("does not say why `{file}` is `unsafe`");
            findings.push(Finding::new(DOCUMENT, *line, what, "say why no safe call will do"));
        }
    }
    for file in blocks.keys().filter(|file| rows.iter().all(|row| row.file != **file)) {
        let what = format!("has `unsafe` and no row in {DOCUMENT}");
        findings.push(Finding::new(&format!("crates/{file}"), 1, what, "say there what it is for and why"));
    }
    findings.extend(miscounted(document, blocks));
}

fn miscounted(document: &str, blocks: &BTreeMap<&str, usize>) -> Option<Finding> {
    let total: usize = blocks.values().sum();
    let claim = document.lines().zip(1..).find_map(|(text, line)| {
        let number = text.split_once(CLAIM)?.0.rsplit(' ').next()?.parse::<usize>().ok()?;
        Some((number, line))
    });
    let (what, line) = match claim {
        Some((number, _)) if number == total => return None,
        None if total == 0 => return None,
        Some((number, line)) => (format!("counts {number}{CLAIM}, there are {total}"), line),
        None => (format!("does not say that there are {total}{CLAIM}"), 1),
    };
    let list: Vec<String> = blocks.iter().map(|(file, number)| format!("{number} in {file}")).collect();
    Some(Finding::new(DOCUMENT, line, format!("{what} ({})", list.join(", ")), "correct the number"))
}

/// A row of the table: `` | `os/src/clock.rs` | what | why | ``.
struct Row<'a> {
    line: usize,
    file: &'a str,
    reason: &'a str,
}

impl<'a> Row<'a> {
    fn read(text: &'a str, line: usize) -> Option<Self> {
        let (file, rest) = text.strip_prefix("| `")?.split_once('`')?;
        let reason = rest.trim_end().strip_suffix('|')?.rsplit('|').next()?.trim();
        file.ends_with(".rs").then_some(Self { line, file, reason })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<(String, usize)> {
        check(&Tree::of(files)).into_iter().map(|finding| (finding.path, finding.line)).collect()
    }

    #[test]
    fn finds_it_where_it_is_not_allowed() {
        let text = "\nfn a() { unsafe { b() } }";
        for (path, text, line) in [
            ("crates/engine/src/lib.rs", text, 2),
            ("crates/engine/src/uring.rs.rs", text, 2),
            ("crates/bench/tests/a.rs", "#![allow(unsafe_code)]", 1),
            ("crates/log/src/a.rs", "unsafe impl Send for A {}", 1),
        ] {
            assert_eq!(found(&[(path, text)]), [(path.to_owned(), line)]);
        }
        let no_code = "// unsafe\nconst A: &str = \"unsafe\"; fn unsafe_looking() {}";
        assert!(found(&[("crates/lab/src/a.rs", no_code)]).is_empty());
    }

    const CLOCK: (&str, &str) = (
        "crates/os/src/clock.rs",
        "// unsafe {\nfn a() { unsafe { b() }; unsafe\n{ c() } }\nunsafe impl Send for A {}",
    );
    const RING: (&str, &str) = (FILES[0].0, "#![allow(unsafe_code)] fn a() { unsafe { b() } }");
    const TABLE: &str = "3 blocks of `unsafe` are left:\n\n| file | what | why |\n|---|---|---|\n\
        | `os/src/clock.rs` | reading it | missing |\n| `engine/src/uring.rs` | handing over | missing |\n";

    fn accounts_for(document: &str) -> Vec<(String, usize)> {
        found(&[CLOCK, RING, ("crates/os/src/a.rs", "// unsafe { }"), (DOCUMENT, document)])
    }

    #[test]
    fn a_true_table_passes() {
        assert!(accounts_for(TABLE).is_empty());
        assert!(found(&[]).is_empty());
    }

    #[test]
    fn the_number_of_blocks_is_counted() {
        let here = |line| [(DOCUMENT.to_owned(), line)];
        assert_eq!(accounts_for(&TABLE.replace("3 blocks", "\nSome 2 blocks")), here(2));
        assert_eq!(accounts_for(&TABLE.replace("3 blocks", "Blocks")), here(1));
        let findings = check(&Tree::of(&[CLOCK, RING, (DOCUMENT, &TABLE.replace('3', "4"))]));
        let expected = "there are 3 (1 in engine/src/uring.rs, 2 in os/src/clock.rs)";
        assert!(findings[0].what.contains(expected), "{}", findings[0]);
    }

    #[test]
    fn each_file_has_a_row_with_a_reason_and_each_row_a_file() {
        assert_eq!(accounts_for(&TABLE.replacen("missing", "", 1)), [(DOCUMENT.to_owned(), 5)]);
        assert_eq!(accounts_for(&format!("{TABLE}| `os/src/a.rs` | a | b |\n")), [(DOCUMENT.to_owned(), 7)]);
        assert_eq!(accounts_for(&TABLE.replace("os/src/clock", "os/src/time")).len(), 2);
        assert_eq!(found(&[RING]), [(RING.0.to_owned(), 1), (DOCUMENT.to_owned(), 1)]);
    }
}
