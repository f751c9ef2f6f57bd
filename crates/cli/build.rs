//! The report page is part of the program, so it must have been built first.

use std::path::Path;

fn main() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web/console/dist/report.html");
    println!("cargo::rerun-if-changed={}", page.display());
    if !page.is_file() {
        println!("cargo::error=the report page has not been built: run `make build` (it needs Node.js 20.19 or newer)");
    }
}
