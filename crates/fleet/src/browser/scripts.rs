//! What pages load from the worker: our own page, and before it the client of a foreign subject's framework.

use super::BrowserError;
use pushlab_dialects::Dialect;
use pushlab_workload::plan::Plan;
use std::collections::BTreeMap;

const PAGE: &str = include_str!("page.html");
const SCRIPT: &str = include_str!("page.js");
const BARE: &str = include_str!("bare.js");
const COUNTING: &str = include_str!("counting.js");

const HTML: &str = "text/html; charset=utf-8";
const JAVASCRIPT: &str = "text/javascript; charset=utf-8";
/// The place in the page before which other scripts are loaded.
const OWN: &str = "<script src=\"page.js\"></script>";

/// Files by their path, with type and content.
#[derive(Debug)]
pub struct Files(BTreeMap<String, (&'static str, Vec<u8>)>);

impl Files {
    /// Those of a plan.
    ///
    /// # Errors
    /// [`BrowserError::Script`].
    pub fn of(plan: &Plan) -> Result<Self, BrowserError> {
        let mut before: Vec<Vec<u8>> = Vec::new();
        if plan.speaks.as_ref().is_some_and(|speaks| speaks.dialect == Dialect::Bare) {
            before.push(BARE.into());
        }
        let scripts = plan.page_scripts.iter().flatten();
        let read = scripts
            .map(|path| std::fs::read(path).map_err(|source| BrowserError::Script { path: path.clone(), source }));
        let read = read.collect::<Result<Vec<_>, _>>()?;
        if !read.is_empty() {
            before.push(COUNTING.into());
        }
        before.extend(read);
        let mut page = String::new();
        let mut files = BTreeMap::new();
        for (number, script) in before.into_iter().enumerate() {
            page.push_str(&format!("<script src=\"before-{number}.js\"></script>\n    "));
            files.insert(format!("/before-{number}.js"), (JAVASCRIPT, script));
        }
        files.insert("/page.js".to_owned(), (JAVASCRIPT, SCRIPT.into()));
        files.insert("/".to_owned(), (HTML, PAGE.replace(OWN, &format!("{page}{OWN}")).into_bytes()));
        Ok(Self(files))
    }

    /// The file at a path.
    pub fn get(&self, path: &str) -> Option<&(&'static str, Vec<u8>)> {
        self.0.get(path)
    }
}
