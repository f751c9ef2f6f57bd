//! Every command in the README is run by a test, and those of docs that are listed beside them.
//!
//! `tests/readme-commands.toml` says which: `[[command]]` with `run`, the command as the document has it, and `test`,
//! a file that runs it, which must therefore contain it on a line that is not a comment.

use serde::Deserialize;

use super::Finding;
use crate::tree::Tree;

const README: &str = "README.md";
const LIST: &str = "tests/readme-commands.toml";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    #[serde(default)]
    command: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    run: String,
    test: String,
}

pub fn check(tree: &Tree) -> Vec<Finding> {
    let Some(readme) = tree.text(README) else {
        return vec![Finding::new(README, 1, "is missing", "write it")];
    };
    let required = commands(readme);
    let text = tree.text(LIST).unwrap_or_default();
    let list: List = match toml::from_str(text) {
        Ok(list) => list,
        Err(error) => {
            let what = format!("cannot be read: {}", error.to_string().replace('\n', " "));
            return vec![Finding::new(LIST, 1, what, "correct it")];
        }
    };
    let mut findings = Vec::new();
    for (line, command) in &required {
        if !list.command.iter().any(|entry| entry.run == *command) {
            let what = format!("no test runs `{command}`");
            findings.push(Finding::new(README, *line, what, format!("write one and name it in {LIST}")));
        }
    }
    let pages = tree.below("docs/").filter(|(path, _)| path.ends_with(".md"));
    let documented: Vec<_> = pages.flat_map(|(_, text)| commands(text)).chain(required).collect();
    for Entry { run, test } in &list.command {
        let line = text.lines().position(|line| line.contains(run.as_str())).map_or(1, |at| at + 1);
        let mut report = |what: String, fix: &str| findings.push(Finding::new(LIST, line, what, fix));
        if !documented.iter().any(|(_, command)| command == run) {
            report(
                format!("`{run}` is neither in the README nor in docs"),
                "remove the entry, or put the command there",
            );
        }
        match tree.text(test) {
            None => report(format!("test `{test}` does not exist"), "correct the path or write the test"),
            Some(text) if !runs(text, run) => {
                report(format!("{test} does not run `{run}`"), "run the very command there")
            }
            Some(_) => {}
        }
    }
    findings
}

/// Commands in blocks marked `sh`, with their line: joined at a trailing `\`, without prompt and comment.
fn commands(readme: &str) -> Vec<(usize, String)> {
    let mut commands: Vec<(usize, String)> = Vec::new();
    let mut in_block = false;
    let mut continues = false;
    for (at, line) in readme.lines().enumerate() {
        let line = line.trim();
        if line.starts_with("```") {
            in_block = !in_block && line == "```sh";
            continue;
        }
        let code = line.split(" #").next().unwrap_or_default();
        let code = code.strip_prefix("$ ").unwrap_or(code).trim();
        if !in_block || code.is_empty() || code.starts_with('#') {
            continue;
        }
        let part = code.trim_end_matches('\\').trim_end();
        match commands.last_mut() {
            Some((_, command)) if continues => *command = format!("{command} {part}"),
            _ => commands.push((at + 1, part.to_owned())),
        }
        continues = code.ends_with('\\');
    }
    commands
}

fn runs(test: &str, command: &str) -> bool {
    let is_comment = |line: &&str| line.starts_with('#') || line.starts_with("//");
    let joined = test.replace("\\\n", " ");
    let normal = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    joined.lines().map(str::trim).filter(|line| !is_comment(line)).any(|line| normal(line).contains(command))
}

#[cfg(test)]
mod tests {
    use super::*;

    const README_TEXT: &str =
        "# P\n```sh\n$ make compare   # ten minutes\n# note\npushlab run \\\n  a.toml\n```\n```toml\nx = 1\n```\n";
    const TEST: &str = "make compare\npushlab run \\\n  a.toml\n";
    const LIST_TEXT: &str = "[[command]]\nrun = \"make compare\"\ntest = \"tests/a.sh\"\n[[command]]\nrun = \"pushlab run a.toml\"\ntest = \"tests/a.sh\"\n";

    fn found(readme: &str, list: &str, test: &str) -> Vec<String> {
        let tree = Tree::of(&[(README, readme), (LIST, list), ("tests/a.sh", test)]);
        check(&tree).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn reads_the_commands() {
        let expected = [(3, "make compare".to_owned()), (5, "pushlab run a.toml".to_owned())];
        assert_eq!(commands(README_TEXT), expected);
    }

    #[test]
    fn each_command_is_listed_and_run() {
        assert!(found(README_TEXT, LIST_TEXT, TEST).is_empty());
        assert_eq!(found(README_TEXT, "", "").len(), 2);
        assert_eq!(found(README_TEXT, LIST_TEXT, "# make compare\npushlab run a.toml").len(), 1);
        assert_eq!(found("", LIST_TEXT, "make compare; pushlab run a.toml").len(), 2);
        assert_eq!(found(README_TEXT, &LIST_TEXT.replace("a.sh", "b.sh"), "").len(), 2);
    }

    #[test]
    fn a_listed_command_may_stand_in_docs() {
        let tree = |page| Tree::of(&[("README.md", ""), (page, README_TEXT), (LIST, LIST_TEXT), ("tests/a.sh", TEST)]);
        assert_eq!(check(&tree("docs/a.md")).len(), 0);
        assert_eq!(check(&tree("crates/a.md")).len(), 2);
    }

    #[test]
    fn a_readme_is_there() {
        assert_eq!(check(&Tree::of(&[])).len(), 1);
    }
}
