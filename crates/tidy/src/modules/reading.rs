//! From files to scopes and mentions.

use std::collections::BTreeSet;

use proc_macro2::{TokenStream, TokenTree};
use syn::ext::IdentExt as _;
use syn::visit::{self, Visit};
use syn::{Attribute, Ident, Item, Meta, UseTree, Visibility};

use super::names::Names;
use crate::tree::Tree;

/// One file of a crate.
#[derive(Debug)]
pub struct Module {
    /// As `core::http`; `crate` for the root.
    pub name: String,
    /// From the repository's root.
    pub path: String,
}

impl Module {
    /// Whether `self` stands somewhere below `above`.
    pub fn is_below(&self, above: &Self) -> bool {
        above.name == "crate" || self.name.strip_prefix(&above.name).is_some_and(|rest| rest.starts_with("::"))
    }
}

/// What a file says by one path.
#[derive(Debug)]
pub struct Mention {
    pub scope: usize,
    pub path: Vec<String>,
    pub line: usize,
    pub kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// In an expression, a type, a pattern or a macro's arguments.
    Code,
    Import,
    /// `pub use`, to any width.
    ReExport,
}

/// Why modules cannot be read.
#[derive(Debug)]
pub struct Unreadable {
    pub path: String,
    pub line: usize,
    pub what: String,
}

#[derive(Default)]
pub struct Reading {
    pub modules: Vec<Module>,
    pub names: Names,
    pub mentions: Vec<Mention>,
}

pub fn read(tree: &Tree, root: &str) -> Result<Reading, Unreadable> {
    let mut reading = Reading::default();
    let folder = root.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut files = vec![File { path: root.to_owned(), name: String::new(), below: folder.to_owned(), parent: None }];
    while let Some(file) = files.pop() {
        files.extend(read_file(tree, file, &mut reading)?);
    }
    Ok(reading)
}

/// A file to be read.
struct File {
    path: String,
    /// Empty for the root.
    name: String,
    /// Folder of the modules it declares.
    below: String,
    parent: Option<(usize, String)>,
}

/// Returns the files of the modules that it declares.
fn read_file(tree: &Tree, file: File, reading: &mut Reading) -> Result<Vec<File>, Unreadable> {
    let unreadable = |line, what| Unreadable { path: file.path.clone(), line, what };
    let text = tree.text(&file.path).unwrap_or_default();
    let syntax =
        syn::parse_file(text).map_err(|error| unreadable(error.span().start().line, format!("is no Rust: {error}")))?;
    if is_for_tests(&syntax.attrs) {
        return Ok(Vec::new());
    }
    let name = if file.name.is_empty() { "crate" } else { &file.name };
    reading.modules.push(Module { name: name.to_owned(), path: file.path.clone() });
    let scope = reading.names.add(reading.modules.len() - 1, file.parent.as_ref().map(|(parent, _)| *parent));
    if let Some((parent, name)) = file.parent {
        reading.names.scope(parent).children.insert(name, scope);
    }
    let mut reader = Reader { reading, scope, inside: Vec::new(), bound: Vec::new(), blocks: 0, declared: Vec::new() };
    reader.visit_file(&syntax);
    let mut files = Vec::new();
    for Declared { scope, path, line } in reader.declared {
        let stem = format!("{}/{}", file.below, path.join("/"));
        let candidates = [format!("{stem}.rs"), format!("{stem}/mod.rs")];
        let Some(found) = candidates.into_iter().find(|path| tree.text(path).is_some()) else {
            return Err(unreadable(line, format!("the file of `mod {}` is missing", path.join("::"))));
        };
        let own = path.join("::");
        let name = if file.name.is_empty() { own } else { format!("{}::{own}", file.name) };
        let last = path.into_iter().next_back().unwrap_or_default();
        files.push(File { path: found, name, below: stem, parent: Some((scope, last)) });
    }
    Ok(files)
}

/// `mod name;`
struct Declared {
    scope: usize,
    /// With the modules inside the file that it stands in.
    path: Vec<String>,
    line: usize,
}

struct Reader<'a> {
    reading: &'a mut Reading,
    scope: usize,
    /// The modules inside the file, down to the one being read.
    inside: Vec<String>,
    /// Names of variables, for each function around.
    bound: Vec<BTreeSet<String>>,
    /// How many blocks are around: their items are not the module's.
    blocks: usize,
    declared: Vec<Declared>,
}

impl Reader<'_> {
    fn mention(&mut self, path: Vec<String>, line: usize, kind: Kind) {
        let is_variable = path.len() == 1 && self.bound.iter().any(|names| names.contains(&path[0]));
        if !(kind == Kind::Code && is_variable) {
            self.reading.mentions.push(Mention { scope: self.scope, path, line, kind });
        }
    }

    fn import(&mut self, tree: &UseTree, before: &[String], kind: Kind) {
        let with = |ident: &Ident| {
            let mut path = before.to_vec();
            // A last `self` is what stands before the braces.
            path.extend((path.is_empty() || ident != "self").then(|| name_of(ident)));
            path
        };
        let (name, path, line) = match tree {
            UseTree::Path(path) => return self.import(&path.tree, &with(&path.ident), kind),
            UseTree::Group(group) => return group.items.iter().for_each(|tree| self.import(tree, before, kind)),
            UseTree::Name(name) => (None, with(&name.ident), line_of(&name.ident)),
            UseTree::Rename(rename) => (Some(name_of(&rename.rename)), with(&rename.ident), line_of(&rename.ident)),
            UseTree::Glob(glob) => {
                let line = glob.star_token.span.start().line;
                self.reading.names.scope(self.scope).globs.push(before.to_vec());
                return self.mention([before, &["*".to_owned()]].concat(), line, kind);
            }
        };
        let name = name.or_else(|| path.last().cloned()).unwrap_or_default();
        self.reading.names.scope(self.scope).imports.push((name, path.clone()));
        self.mention(path, line, kind);
    }

    /// Paths among a macro's tokens, which nobody but the macro can parse.
    fn tokens(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let is = |at: Option<usize>, mark: char| {
            let token = at.and_then(|at| tokens.get(at));
            matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == mark)
        };
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            let before = at.checked_sub(1);
            let before_that = at.checked_sub(2);
            at += 1;
            let first = match token {
                TokenTree::Group(group) => {
                    self.tokens(group.stream());
                    continue;
                }
                TokenTree::Ident(ident) => ident,
                TokenTree::Punct(_) | TokenTree::Literal(_) => continue,
            };
            let mut path = vec![name_of(first)];
            while is(Some(at), ':')
                && is(Some(at + 1), ':')
                && let Some(TokenTree::Ident(next)) = tokens.get(at + 2)
            {
                path.push(name_of(next));
                at += 3;
            }
            let is_member = is(before, '.') && !is(before_that, '.');
            let is_parameter = is(before, '$') && first != "crate";
            let is_tail = is(before, ':') && is(before_that, ':');
            if !(is_member || is_parameter || is_tail) {
                self.mention(path, line_of(first), Kind::Code);
            }
        }
    }

    fn function(&mut self, variables: Variables, visit: impl FnOnce(&mut Self)) {
        self.bound.push(variables.0);
        visit(self);
        self.bound.pop();
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_attribute(&mut self, _: &'ast Attribute) {}

    fn visit_item(&mut self, item: &'ast Item) {
        if is_for_tests(attributes_of(item)) {
            return;
        }
        if self.blocks == 0 {
            let name = defined_by(item).map(name_of);
            self.reading.names.scope(self.scope).defined.extend(name);
        }
        visit::visit_item(self, item);
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        self.inside.push(name_of(&item.ident));
        if let Some((_, items)) = &item.content {
            let module = self.reading.names.module_of(self.scope);
            let inner = self.reading.names.add(module, Some(self.scope));
            self.reading.names.scope(self.scope).children.insert(name_of(&item.ident), inner);
            let outer = std::mem::replace(&mut self.scope, inner);
            items.iter().for_each(|item| self.visit_item(item));
            self.scope = outer;
        } else {
            let line = line_of(&item.ident);
            self.declared.push(Declared { scope: self.scope, path: self.inside.clone(), line });
        }
        self.inside.pop();
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        let kind = match &item.vis {
            Visibility::Inherited => Kind::Import,
            Visibility::Restricted(to) if to.path.is_ident("self") => Kind::Import,
            _ => Kind::ReExport,
        };
        // After a leading `::` comes another crate.
        if item.leading_colon.is_none() {
            self.import(&item.tree, &[], kind);
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.function(Variables::of(|names| names.visit_item_fn(item)), |reader| visit::visit_item_fn(reader, item));
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        let variables = Variables::of(|names| names.visit_impl_item_fn(item));
        self.function(variables, |reader| visit::visit_impl_item_fn(reader, item));
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        let variables = Variables::of(|names| names.visit_trait_item_fn(item));
        self.function(variables, |reader| visit::visit_trait_item_fn(reader, item));
    }

    fn visit_block(&mut self, block: &'ast syn::Block) {
        self.blocks += 1;
        visit::visit_block(self, block);
        self.blocks -= 1;
    }

    fn visit_impl_item(&mut self, item: &'ast syn::ImplItem) {
        let attributes: &[Attribute] = match item {
            syn::ImplItem::Const(item) => &item.attrs,
            syn::ImplItem::Fn(item) => &item.attrs,
            syn::ImplItem::Type(item) => &item.attrs,
            _ => &[],
        };
        if !is_for_tests(attributes) {
            visit::visit_impl_item(self, item);
        }
    }

    fn visit_local(&mut self, local: &'ast syn::Local) {
        if !is_for_tests(&local.attrs) {
            visit::visit_local(self, local);
        }
    }

    fn visit_field(&mut self, field: &'ast syn::Field) {
        if !is_for_tests(&field.attrs) {
            visit::visit_field(self, field);
        }
    }

    fn visit_field_value(&mut self, field: &'ast syn::FieldValue) {
        if !is_for_tests(&field.attrs) {
            visit::visit_field_value(self, field);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.leading_colon.is_none() {
            let names = path.segments.iter().map(|segment| name_of(&segment.ident)).collect();
            let line = path.segments.first().map_or(0, |segment| line_of(&segment.ident));
            self.mention(names, line, Kind::Code);
        }
        visit::visit_path(self, path);
    }

    fn visit_token_stream(&mut self, tokens: &'ast TokenStream) {
        self.tokens(tokens.clone());
    }
}

/// Names of a function's arguments, variables and own items, which may hide others.
struct Variables(BTreeSet<String>);

impl Variables {
    fn of(visit: impl FnOnce(&mut Self)) -> Self {
        let mut variables = Self(BTreeSet::new());
        visit(&mut variables);
        variables
    }
}

impl<'ast> Visit<'ast> for Variables {
    fn visit_pat_ident(&mut self, pattern: &'ast syn::PatIdent) {
        let name = name_of(&pattern.ident);
        // A constant in a pattern looks the same.
        if !name.starts_with(char::is_uppercase) {
            self.0.insert(name);
        }
        visit::visit_pat_ident(self, pattern);
    }

    fn visit_item(&mut self, item: &'ast Item) {
        self.0.extend(defined_by(item).map(name_of));
    }
}

fn name_of(ident: &Ident) -> String {
    ident.unraw().to_string()
}

fn line_of(ident: &Ident) -> usize {
    ident.span().start().line
}

/// `#[test]`, `#[cfg(test)]` or `#[cfg(all(test, …))]`.
fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::Path(path) => path.is_ident("test"),
        Meta::List(list) if list.path.is_ident("cfg") => {
            let condition = list.tokens.to_string().replace(' ', "");
            condition == "test" || condition.starts_with("all(test")
        }
        _ => false,
    })
}

fn defined_by(item: &Item) -> Option<&Ident> {
    Some(match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::TraitAlias(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    })
}

fn attributes_of(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}
