//! No two modules of a crate need each other, directly or by way of others.

use std::collections::{BTreeSet, VecDeque};

use super::Finding;
use crate::modules::{Modules, Unreadable};
use crate::tree::Tree;

const FIX: &str = "move what both need into a module of its own, or have it passed in";

pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (root, _) in tree.below("crates/").filter(|(path, _)| is_root(path)) {
        match Modules::read(tree, root) {
            Ok(modules) => findings.extend(circles(&modules).iter().map(|circle| finding(&modules, circle))),
            Err(Unreadable { path, line, what }) => {
                findings.push(Finding::new(&path, line, what, "correct it, or the names in it remain unchecked"));
            }
        }
    }
    findings
}

/// Whether a file is the root of a crate's library or of a program of it.
fn is_root(path: &str) -> bool {
    let below = path.strip_prefix("crates/").and_then(|path| path.split_once("/src/")).map_or("", |(_, below)| below);
    let is_program = |file: &str| file.ends_with(".rs") && !file.contains('/');
    matches!(below, "lib.rs" | "main.rs") || below.strip_prefix("bin/").is_some_and(is_program)
}

/// Modules that all need each other, and a shortest circle among them.
struct Circle {
    path: Vec<usize>,
    tangled: usize,
}

fn circles(modules: &Modules) -> Vec<Circle> {
    let mut order: Vec<usize> = (0..modules.modules.len()).collect();
    order.sort_by_key(|&at| &modules.modules[at].name);
    let reached: Vec<BTreeSet<usize>> = (0..order.len()).map(|from| reached(modules, from)).collect();
    let mut told = BTreeSet::new();
    let mut circles = Vec::new();
    for from in order.iter().copied().filter(|&from| reached[from].contains(&from)) {
        if told.contains(&from) {
            continue;
        }
        let tangle: Vec<usize> =
            order.iter().copied().filter(|at| reached[from].contains(at) && reached[*at].contains(&from)).collect();
        let shortest = tangle.iter().filter_map(|&at| way_back(modules, at)).min_by_key(Vec::len);
        circles.extend(shortest.map(|path| Circle { path, tangled: tangle.len() }));
        told.extend(tangle);
    }
    circles
}

fn used_by(modules: &Modules, from: usize) -> impl Iterator<Item = usize> {
    modules.uses.range((from, 0)..(from + 1, 0)).map(|((_, to), _)| *to)
}

fn reached(modules: &Modules, from: usize) -> BTreeSet<usize> {
    let mut reached = BTreeSet::new();
    let mut next = vec![from];
    while let Some(at) = next.pop() {
        next.extend(used_by(modules, at).filter(|to| reached.insert(*to)));
    }
    reached
}

/// The shortest way from a module to itself, both ends included.
fn way_back(modules: &Modules, from: usize) -> Option<Vec<usize>> {
    let mut seen = BTreeSet::new();
    let mut ways = VecDeque::from([vec![from]]);
    while let Some(way) = ways.pop_front() {
        for to in used_by(modules, *way.last()?).filter(|to| seen.insert(*to)) {
            let longer = [&way[..], &[to]].concat();
            if to == from {
                return Some(longer);
            }
            ways.push_back(longer);
        }
    }
    None
}

fn finding(modules: &Modules, circle: &Circle) -> Finding {
    let names: Vec<&str> = circle.path.iter().map(|&at| modules.modules[at].name.as_str()).collect();
    let places = circle.path.windows(2).map(|step| {
        let used = &modules.uses[&(step[0], step[1])];
        (&modules.modules[step[0]].path, used)
    });
    let evidence: Vec<String> =
        places.clone().map(|(path, used)| format!("{path}:{} names `{}`", used.line, used.name)).collect();
    let (tangled, shortest, evidence) = (circle.tangled, names.join(" → "), evidence.join(", "));
    let what = format!("{tangled} modules need each other, the shortest circle is {shortest}: {evidence}");
    let (path, line) = places.clone().next().map_or(("", 1), |(path, used)| (path.as_str(), used.line));
    Finding::new(path, line, what, FIX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<_> = files.iter().map(|(path, text)| (format!("crates/server/src/{path}"), *text)).collect();
        let files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        check(&Tree::of(&files)).iter().map(Finding::to_string).collect()
    }

    const ROOT: (&str, &str) = ("lib.rs", "mod a; mod b; mod c; mod d;");

    #[test]
    fn names_a_shortest_circle_and_where_each_step_is() {
        let a = ("a.rs", "use crate::b::B;\nuse crate::d::D;\npub struct A;");
        let b = ("b.rs", "\nuse crate::c;\npub struct B(c::C);");
        let c = ("c.rs", "pub struct C; fn f() { crate::a::A; }");
        let d = ("d.rs", "pub struct D;\npub type A = super::a::A;");
        let expected = "crates/server/src/a.rs:2: 4 modules need each other, the shortest circle is \
            a → d → a: crates/server/src/a.rs:2 names `crate::d::D`, crates/server/src/d.rs:2 names `super::a::A`; ";
        assert_eq!(found(&[ROOT, a, b, c, d]), [format!("{expected}{FIX}")]);
        let alone = ("d.rs", "pub struct D;");
        let found = found(&[ROOT, a, b, c, alone]);
        assert_eq!(found.len(), 1);
        let expected = "crates/server/src/a.rs:1: 3 modules need each other, the shortest circle is a → b → c → a: ";
        assert!(found[0].starts_with(expected), "{found:?}");
    }

    #[test]
    fn each_tangle_is_told_once() {
        let of = |name| format!("pub struct T; fn f() {{ crate::{name}::T; }}");
        let texts = ["b", "a", "d", "c"].map(of);
        assert_eq!(
            found(&[ROOT, ("a.rs", &texts[0]), ("b.rs", &texts[1]), ("c.rs", &texts[2]), ("d.rs", &texts[3])]).len(),
            2
        );
    }

    #[test]
    fn parent_and_child() {
        let root = ("lib.rs", "mod core;");
        let child = ("core/http.rs", "use super::Core; impl Core { pub fn read(&self) {} } pub struct Head;");
        // Methods cannot be seen, and to hand something on is not to need it.
        let parent = "mod http; pub use http::Head; pub struct Core; fn f(core: &Core) { core.read() }";
        assert!(found(&[root, ("core/mod.rs", parent), child]).is_empty());
        let parent = "mod http; use http::Head; pub struct Core(Head);";
        assert_eq!(found(&[root, ("core/mod.rs", parent), child]).len(), 1);
    }

    #[test]
    fn tests_may_use_anything() {
        let a = ("a.rs", "use crate::b::B; pub struct A;");
        let b = ("b.rs", "pub struct B; #[cfg(test)] mod tests { use crate::a::A; }");
        assert!(found(&[("lib.rs", "mod a; mod b; #[cfg(test)] mod tests;"), a, b]).is_empty());
    }

    #[test]
    fn a_program_is_read_as_a_library_is() {
        let texts = [("main.rs", "mod a; mod b;"), ("a.rs", "use crate::b::B;"), ("b.rs", "pub struct B;")];
        assert!(found(&texts).is_empty());
        assert_eq!(found(&[texts[0], texts[1], ("b.rs", "pub struct B; use super::a::x;")]).len(), 1);
    }

    #[test]
    fn what_cannot_be_read_is_no_pass() {
        assert_eq!(found(&[("lib.rs", "mod a;")]).len(), 1);
        assert_eq!(found(&[("lib.rs", "fn")]).len(), 1);
    }
}
