//! The pages are part of the program, so they must have been built first.

use std::env;
use std::path::PathBuf;

fn main() {
    let dist = PathBuf::from(env::var("CARGO_MANIFEST_DIR").unwrap_or_default()).join("../../web/console/dist");
    for page in ["report.html", "console/index.html", "console/console.js", "console/console.css"] {
        let page = dist.join(page);
        println!("cargo::rerun-if-changed={}", page.display());
        if !page.is_file() {
            println!(
                "cargo::error={} has not been built: run `make build` (it needs Node.js 20.19 or newer)",
                page.display()
            );
        }
    }
}
