//! What a path means, as far as imports and definitions tell.

use std::collections::{BTreeMap, BTreeSet};

/// A module as a space of names: a file's, or one inside a file.
#[derive(Debug)]
pub struct Scope {
    /// The file it stands in.
    pub module: usize,
    pub parent: Option<usize>,
    pub children: BTreeMap<String, usize>,
    pub defined: BTreeSet<String>,
    /// Names and what they stand for; those of functions too, as if they were the module's.
    pub imports: Vec<(String, Vec<String>)>,
    pub globs: Vec<Vec<String>>,
}

/// What a path leads to. It may be two things at once, a module and a function of one name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    Scope(usize),
    /// Something defined in this module's file.
    Item(usize),
}

/// All scopes of a crate; the first is its root.
#[derive(Debug, Default)]
pub struct Names(Vec<Scope>);

/// Scopes and names being looked up: an import may name itself, as `use b::b` does.
type Seen<'a> = Vec<(usize, &'a str)>;

impl Names {
    pub fn add(&mut self, module: usize, parent: Option<usize>) -> usize {
        let (children, defined, imports, globs) = Default::default();
        self.0.push(Scope { module, parent, children, defined, imports, globs });
        self.0.len() - 1
    }

    pub fn scope(&mut self, scope: usize) -> &mut Scope {
        &mut self.0[scope]
    }

    pub fn module_of(&self, scope: usize) -> usize {
        self.0[scope].module
    }

    /// What a path leads to from a scope; nothing for other crates, types' parameters and variables. A last `*` stands
    /// for what is before it.
    pub fn resolve(&self, from: usize, path: &[String]) -> Vec<Meaning> {
        self.walk(from, path, &mut Seen::new())
    }

    fn walk<'a>(&'a self, from: usize, path: &'a [String], seen: &mut Seen<'a>) -> Vec<Meaning> {
        let Some((first, rest)) = path.split_first() else { return Vec::new() };
        let mut found = match first.as_str() {
            "crate" => vec![Meaning::Scope(0)],
            "self" | "super" => self.step(from, first, seen),
            name => self.look_up(from, name, seen).unwrap_or_default(),
        };
        for name in rest.iter().filter(|name| *name != "*") {
            // Only a type or a module has something in it, and a name is one of the two.
            if found.iter().any(|meaning| matches!(meaning, Meaning::Scope(_))) {
                found.retain(|meaning| matches!(meaning, Meaning::Scope(_)));
            }
            let next = |meaning| match meaning {
                Meaning::Item(_) => vec![meaning],
                Meaning::Scope(scope) => self.step(scope, name, seen),
            };
            found = found.into_iter().flat_map(next).collect();
        }
        found
    }

    fn step<'a>(&'a self, scope: usize, name: &'a str, seen: &mut Seen<'a>) -> Vec<Meaning> {
        match name {
            "self" => vec![Meaning::Scope(scope)],
            "super" => self.0[scope].parent.map(Meaning::Scope).into_iter().collect(),
            // What is not to be seen there has been made by a macro.
            _ => self.look_up(scope, name, seen).unwrap_or_else(|| vec![Meaning::Item(self.0[scope].module)]),
        }
    }

    /// `None` if nothing there has this name; empty if it is another crate's.
    fn look_up<'a>(&'a self, at: usize, name: &'a str, seen: &mut Seen<'a>) -> Option<Vec<Meaning>> {
        let scope = &self.0[at];
        let mut found = Vec::new();
        if scope.defined.contains(name) {
            found.push(Meaning::Item(scope.module));
        }
        found.extend(scope.children.get(name).copied().map(Meaning::Scope));
        if seen.contains(&(at, name)) {
            return Some(found);
        }
        seen.push((at, name));
        let mut known = !found.is_empty();
        for (_, path) in scope.imports.iter().filter(|(import, _)| import == name) {
            known = true;
            found.extend(self.walk(at, path, seen));
        }
        if !known {
            for meaning in scope.globs.iter().flat_map(|glob| self.walk(at, glob, seen)).collect::<Vec<_>>() {
                let Meaning::Scope(other) = meaning else { continue };
                if let Some(more) = self.look_up(other, name, seen) {
                    known = true;
                    found.extend(more);
                }
            }
        }
        seen.pop();
        known.then_some(found)
    }
}
