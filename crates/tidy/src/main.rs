//! The checks of the house, and the generator of everything derived from `schema/`.
//!
//! ```sh
//! cargo run -p pushlab-tidy -- check      # one line for each violation; exit 1 if there is any
//! cargo run -p pushlab-tidy -- generate   # writes what schema/codes.toml defines
//! ```

mod codes;
mod generate;
mod modules;
mod rules;
mod source;
mod tree;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use rules::Severity;
use tree::Tree;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let result = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["check"] => check(&root()),
        ["generate"] => write_outputs(&root()).map(|()| true),
        _ => {
            eprintln!("usage: pushlab-tidy check | generate");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("pushlab-tidy: {message}");
            ExitCode::FAILURE
        }
    }
}

/// The repository's root: this crate is always built inside it.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read_tree(root: &Path) -> Result<Tree, String> {
    Tree::read(root).map_err(|error| format!("cannot read {}: {error}", root.display()))
}

fn check(root: &Path) -> Result<bool, String> {
    let tree = read_tree(root)?;
    let outputs = generate::outputs(root, &tree)?;
    let findings = rules::check(&tree, &outputs);
    for finding in &findings {
        println!("{finding}");
    }
    let violations = findings.iter().filter(|finding| finding.severity == Severity::Violation).count();
    let warnings = findings.len() - violations;
    println!("tidy: {violations} violations, {warnings} warnings");
    Ok(violations == 0)
}

fn write_outputs(root: &Path) -> Result<(), String> {
    let tree = read_tree(root)?;
    for output in generate::outputs(root, &tree)? {
        if tree.text(output.path) == Some(&output.text) {
            println!("{}: up to date", output.path);
            continue;
        }
        let path = root.join(output.path);
        let folder = path.parent().expect("an output's path has at least one folder");
        std::fs::create_dir_all(folder)
            .and_then(|()| std::fs::write(&path, &output.text))
            .map_err(|error| format!("cannot write {}: {error}", output.path))?;
        println!("{}: written", output.path);
    }
    Ok(())
}
