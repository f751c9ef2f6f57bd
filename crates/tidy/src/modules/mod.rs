//! A crate's modules, and which of them name what another defines.
//!
//! Read from the text with `syn`, so what needs types stays unseen: methods and fields; so does a macro that nobody
//! imports. Code for tests is left out.

mod names;
mod reading;

use std::collections::BTreeMap;

use crate::tree::Tree;
use names::Meaning;
use reading::{Kind, Reading};
pub use reading::{Module, Unreadable};

/// Where a module names what another one defines.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Use {
    pub line: usize,
    /// As it stands there: `super::Core`.
    pub name: String,
}

/// The modules of a library or a program.
#[derive(Debug)]
pub struct Modules {
    pub modules: Vec<Module>,
    /// From and to, as numbers in `modules`, with the first place.
    pub uses: BTreeMap<(usize, usize), Use>,
}

impl Modules {
    /// Follows `mod` from a root such as `crates/server/src/lib.rs`.
    ///
    /// # Errors
    /// If a file is not Rust, or the file of a `mod` is missing.
    pub fn read(tree: &Tree, root: &str) -> Result<Self, Unreadable> {
        let Reading { modules, names, mentions } = reading::read(tree, root)?;
        let mut uses = BTreeMap::new();
        for mention in &mentions {
            let from = names.module_of(mention.scope);
            for meaning in names.resolve(mention.scope, &mention.path) {
                let to = match meaning {
                    Meaning::Item(module) => module,
                    // To name a module is to use nothing of it yet, but `*` is all of it.
                    Meaning::Scope(scope) if mention.path.last().is_some_and(|last| last == "*") => {
                        names.module_of(scope)
                    }
                    Meaning::Scope(_) => continue,
                };
                let hands_on = mention.kind == Kind::ReExport && modules[to].is_below(&modules[from]);
                if to == from || hands_on {
                    continue;
                }
                let here = Use { line: mention.line, name: mention.path.join("::") };
                let first = uses.entry((from, to)).or_insert_with(|| here.clone());
                if here < *first {
                    *first = here;
                }
            }
        }
        Ok(Self { modules, uses })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Uses as `from:line → to`, of a crate whose files are given below its `src`.
    fn uses(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<_> = files.iter().map(|(path, text)| (format!("crates/a/src/{path}"), *text)).collect();
        let files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        let Modules { modules, uses } = Modules::read(&Tree::of(&files), "crates/a/src/lib.rs").unwrap();
        let text = |((from, to), used): (&(usize, usize), &Use)| {
            format!("{}:{} → {}", modules[*from].name, used.line, modules[*to].name)
        };
        let mut uses: Vec<String> = uses.iter().map(text).collect();
        uses.sort();
        uses
    }

    const ROOT: &str = "mod a; mod b;";

    #[test]
    fn imports_and_paths_are_uses() {
        let b = ("b.rs", "pub struct B; pub fn b() {} pub trait T {} pub enum E { V }");
        for a in [
            "use crate::b::B;",
            "use super::b::{self, b as c};",
            "use crate::{b::{T as _}};",
            "use crate::b::*;",
            "use crate::b::E::*;",
            "fn f() { crate::b::b() }",
            "fn f() { use super::b; b::b() }",
            "use super::b; impl b::T for Vec<b::B> {}",
            "use crate::b as c; struct A(Option<c::B>);",
            "fn f() { assert!(matches!(g(), crate::b::E::V)) }",
            "mod inner { use super::super::b::B; }",
            "macro_rules! m { () => { $crate::b::b() } }",
        ] {
            assert_eq!(uses(&[("lib.rs", ROOT), ("a.rs", a), b]), ["a:1 → b"], "{a}");
        }
    }

    #[test]
    fn what_is_no_use() {
        let b = ("b.rs", "pub struct B; pub fn b() {}");
        for a in [
            "use super::b;",
            "#[cfg(test)] mod tests { use crate::b::B; }",
            "#[cfg(all(test, unix))] use crate::b::B;",
            "struct S { #[cfg(test)] b: crate::b::B }",
            "impl S { #[cfg(test)] fn f() { crate::b::b() } }",
            "fn f() { #[cfg(test)] let b = crate::b::B; }",
            "#[test] fn f() { crate::b::b() }",
            "/// [`crate::b::B`]\n#[doc = \"crate::b::B\"] // crate::b::B\nfn f() { \"crate::b::B\"; }",
            "pub(in crate::b) fn f() {}",
            "use std::b::B; use ::b::b; fn f() { b::b(); B }",
            "struct B; fn f(b: B) -> crate::a::B { b.b() }",
        ] {
            assert!(uses(&[("lib.rs", ROOT), ("a.rs", a), b]).is_empty(), "{a}");
        }
    }

    #[test]
    fn a_use_belongs_to_where_the_item_is_defined() {
        let root = "mod a; mod b; mod c; pub use b::B; use c::C; pub use std::fmt; pub mod d { pub struct D; }";
        let b = ("b/mod.rs", "mod inner;\npub use inner::B;");
        let inner = ("b/inner.rs", "pub struct B;");
        let c = ("c.rs", "macro_rules! c { () => { pub struct C; } } c!();");
        let uses = |a| uses(&[("lib.rs", root), ("a.rs", a), b, inner, c]);
        let known = ["crate:1 → c"];
        assert_eq!(uses(""), known);
        for a in ["use crate::B;", "use crate::b::B;", "use super::*; fn f() -> B {}"] {
            assert!(uses(a).contains(&"a:1 → b::inner".to_owned()), "{a}");
        }
        assert_eq!(uses("use crate::C;"), ["a:1 → c", "crate:1 → c"]);
        assert_eq!(uses("use crate::d::D;"), ["a:1 → crate", "crate:1 → c"]);
        assert_eq!(uses("use crate::fmt::Debug;"), known);
    }

    #[test]
    fn a_parent_that_hands_on_what_a_child_defines_does_not_use_it() {
        let uses = |a| uses(&[("lib.rs", "mod a;"), ("a/mod.rs", a), ("a/b.rs", "pub struct B; pub fn b() {}")]);
        assert!(uses("pub mod b; pub(crate) use b::B; pub use self::b::*;").is_empty());
        assert_eq!(uses("mod b; use b::B;"), ["a:1 → a::b"]);
        assert_eq!(uses("mod b;\npub use b::B;\nfn f(_: B) {}"), ["a:3 → a::b"]);
        assert_eq!(uses("mod b; fn f() { b::b() }"), ["a:1 → a::b"]);
        assert!(uses("mod b; pub use b::b; fn f(b: u8) -> u8 { let c = |b: u8| b; c(b) }").is_empty());
    }

    #[test]
    fn a_child_uses_what_its_parent_defines_or_imports() {
        let a = "mod child; use crate::b::B; pub struct A;";
        let uses = |child| {
            let files = [("lib.rs", ROOT), ("a.rs", a), ("a/child.rs", child), ("b.rs", "pub struct B;")];
            uses(&files)
        };
        assert_eq!(uses("use super::A;"), ["a:1 → b", "a::child:1 → a"]);
        assert_eq!(uses("use super::B;"), ["a:1 → b", "a::child:1 → b"]);
        assert_eq!(uses("impl super::A {}"), ["a:1 → b", "a::child:1 → a"]);
        assert_eq!(uses("use super::made_by_a_macro;"), ["a:1 → b", "a::child:1 → a"]);
    }

    #[test]
    fn says_what_it_cannot_read() {
        let read = |text| Modules::read(&Tree::of(&[("src/lib.rs", text)]), "src/lib.rs").unwrap_err();
        assert_eq!((read("\nmod absent;").line, read("fn a() {}\n\n}").line), (2, 3));
    }
}
