//! Rust, TypeScript and Markdown from the table of codes.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::codes::{Code, Subscriber, TABLE, Table};
use crate::tree::Tree;

/// Paths of everything that is generated.
pub const PATHS: [&str; 4] =
    ["crates/wire/src/codes.rs", "web/console/src/generated/codes.ts", "web/client/src/codes.ts", "docs/codes.md"];

/// A generated file as it must be.
#[derive(Debug)]
pub struct Output {
    pub path: &'static str,
    pub text: String,
}

/// Everything that follows from `schema/`. Runs `rustfmt`, so that what is written passes `cargo fmt --check`.
pub fn outputs(root: &Path, tree: &Tree) -> Result<Vec<Output>, String> {
    let text = tree.text(TABLE).ok_or(format!("{TABLE} is missing"))?;
    let table = Table::parse(text)?;
    let texts = [rustfmt(root, &rust(&table))?, typescript(&table), client(&table), markdown(&table)];
    let output = |(path, text)| Output { path, text };
    Ok(PATHS.into_iter().zip(texts).map(output).collect())
}

fn rustfmt(root: &Path, text: &str) -> Result<String, String> {
    let failed =
        |error: std::io::Error| format!("cannot run rustfmt: {error}; install it with `rustup component add rustfmt`");
    let mut child = Command::new("rustfmt")
        .args(["--edition", "2024", "--emit", "stdout", "--config-path"])
        .arg(root)
        .current_dir(root)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    // rustfmt reads all of its input before it writes, so this cannot block on a full pipe.
    let mut input = child.stdin.take().expect("stdin is piped");
    input.write_all(text.as_bytes()).map_err(failed)?;
    drop(input);
    let done = child.wait_with_output().map_err(failed)?;
    if !done.status.success() {
        return Err("rustfmt refused the generated Rust; correct the generator".to_owned());
    }
    String::from_utf8(done.stdout).map_err(|error| format!("rustfmt's output: {error}"))
}

struct Kind<'a> {
    rust: &'static str,
    typescript: &'static str,
    doc: &'static str,
    number: (&'static str, &'static str, &'static str),
    number_doc: &'static str,
    codes: &'a [Code],
}

fn kinds(table: &Table) -> [Kind<'_>; 3] {
    [
        Kind {
            rust: "ErrorCode",
            typescript: "error",
            doc: "Why a request or a frame was refused: `[\"error\",name,text]` on a connection, `{\"error\":name,\"message\":text}` in an HTTP body.",
            number: ("http_status", "u16", "httpStatus"),
            number_doc: "HTTP status of a response that carries it (RFC 9110 section 15).",
            codes: &table.error,
        },
        Kind {
            rust: "CloseCode",
            typescript: "close",
            doc: "Status of a WebSocket close frame (RFC 6455 section 7.4; 4000 to 4999 are private).",
            number: ("number", "u16", "number"),
            number_doc: "The status in the close frame.",
            codes: &table.close,
        },
        Kind {
            rust: "ExitCode",
            typescript: "exit",
            doc: "Status with which the `pushlab` process ends.",
            number: ("number", "u8", "number"),
            number_doc: "The status of the process.",
            codes: &table.exit,
        },
    ]
}

fn rust(table: &Table) -> String {
    let mut out = format!(
        "//! Error, close and exit codes.\n//!\n//! Generated from `{TABLE}`: change that and run `make generate`.\n\nuse std::fmt;\n\n\
         struct Row {{ name: &'static str, number: u16, retry: bool, meaning: &'static str, action: &'static str }}\n"
    );
    for kind in kinds(table) {
        rust_enum(&mut out, &kind);
    }
    out
}

fn rust_enum(out: &mut String, kind: &Kind<'_>) {
    let Kind { rust, doc, number_doc, codes, .. } = kind;
    let (number, width, _) = kind.number;
    let rows = format!("{}S", rust.replace("Code", "_CODE").to_uppercase());
    let mut variants = String::new();
    let mut all = String::new();
    let mut table = String::new();
    for code in *codes {
        let variant = code.variant();
        let Code { name, number, retry, meaning, action, .. } = code;
        let _ = writeln!(variants, "/// `{name}`, {number}: {meaning}\n{variant},");
        let _ = writeln!(all, "Self::{variant},");
        let _ = writeln!(
            table,
            "Row {{ name: {name:?}, number: {number}, retry: {retry}, meaning: {meaning:?}, action: {action:?} }},"
        );
    }
    let count = codes.len();
    let cast = if width == "u8" { " as u8" } else { "" };
    let _ = write!(
        out,
        "
/// {doc}
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum {rust} {{ {variants} }}

const {rows}: [Row; {count}] = [{table}];

impl {rust} {{
    /// Every code, in the table's order.
    pub const ALL: [Self; {count}] = [{all}];

    const fn row(self) -> &'static Row {{ &{rows}[self as usize] }}

    /// Its name, kebab-case: what goes over the wire and into results.
    pub const fn name(self) -> &'static str {{ self.row().name }}

    /// {number_doc}
    pub const fn {number}(self) -> {width} {{ self.row().number{cast} }}

    /// Whether trying the same again later may succeed.
    pub const fn may_retry(self) -> bool {{ self.row().retry }}

    /// What it means, one sentence.
    pub const fn meaning(self) -> &'static str {{ self.row().meaning }}

    /// What to do about it, one sentence.
    pub const fn action(self) -> &'static str {{ self.row().action }}
"
    );
    rust_lookups(out, rust, number, width);
}

fn rust_lookups(out: &mut String, rust: &str, number: &str, width: &str) {
    let by_number = if number == "number" {
        format!(
            "
    /// The code of this number.
    pub fn from_number(number: {width}) -> Option<Self> {{
        Self::ALL.into_iter().find(|code| code.number() == number)
    }}"
        )
    } else {
        String::new()
    };
    let _ = write!(
        out,
        "
    /// The code of this name.
    pub fn from_name(name: &str) -> Option<Self> {{
        Self::ALL.into_iter().find(|code| code.name() == name)
    }}
{by_number}
}}

impl fmt::Display for {rust} {{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {{ f.write_str(self.name()) }}
}}
"
    );
}

fn typescript(table: &Table) -> String {
    let mut out = format!("// Generated from {TABLE}: change that and run `make generate`.\n");
    for kind in kinds(table) {
        let name = kind.typescript;
        let _ = writeln!(out, "\n/** {} */\nexport const {name}Codes = {{", kind.doc);
        for code in kind.codes {
            let Code { number, retry, meaning, action, .. } = code;
            let _ = writeln!(
                out,
                "  {:?}: {{\n    {}: {number},\n    mayRetry: {retry},\n    meaning: {meaning:?},\n    action: {action:?},\n  }},",
                code.name, kind.number.2
            );
        }
        let _ = writeln!(
            out,
            "}} as const;\n\n/** Name of a row of {{@link {name}Codes}}. */\nexport type {} = keyof typeof {name}Codes;",
            kind.rust
        );
    }
    out
}

/// What the client library needs of the table: as little as that, because its size counts.
fn client(table: &Table) -> String {
    fn of(codes: &[Code], what: Subscriber) -> impl Iterator<Item = &Code> {
        codes.iter().filter(move |code| !code.retry && code.subscriber == what)
    }
    let lines = |codes: &mut dyn Iterator<Item = &Code>| {
        codes.fold(String::new(), |out, code| format!("{out}  {:?},\n", code.name))
    };
    let names = table.error.iter().fold(String::new(), |out, code| format!("{out}\n  | {:?}", code.name));
    let closes = of(&table.close, Subscriber::Stops)
        .fold(String::new(), |out, code| format!("{out}  {}: {:?},\n", code.number, code.name));
    format!(
        "// Generated from {TABLE}: change that and run `make generate`.

/** An error that the server names. */
export type ServerCode ={names};

/** Refusals that would come again, close codes among them: what was asked for is wrong, not the moment or the way. */
export const FINAL_CODES: readonly unknown[] = [
{}];

/** Refusals that another transport may not meet. */
export const WAY_CODES: readonly unknown[] = [
{}];

/** The names of those that are close codes of a WebSocket. */
export const FINAL_CLOSES: Readonly<Record<number, string>> = {{
{closes}}};
",
        lines(&mut of(&table.error, Subscriber::Stops).chain(of(&table.close, Subscriber::Stops))),
        lines(&mut of(&table.error, Subscriber::OtherTransport)),
    )
}

fn markdown(table: &Table) -> String {
    let mut out = format!(
        "# Codes\n\n<!-- Generated from {TABLE}: change that and run `make generate`. -->\n\n\
         Every error, close and exit code, what it means and what to do. *Retry* says that the same may succeed later.\n"
    );
    let titles = [("Errors", "HTTP"), ("WebSocket close codes", "code"), ("Exit codes of `pushlab`", "code")];
    for (kind, (title, number)) in kinds(table).into_iter().zip(titles) {
        let _ = writeln!(
            out,
            "\n## {title}\n\n{}\n\n| {number} | name | retry | meaning | what to do |\n|---|---|---|---|---|",
            kind.doc
        );
        for code in kind.codes {
            let retry = if code.retry { "yes" } else { "no" };
            let cell = |text: &str| text.replace('|', "\\|");
            let _ = writeln!(
                out,
                "| {} | `{}` | {retry} | {} | {} |",
                code.number,
                code.name,
                cell(&code.meaning),
                cell(&code.action)
            );
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codes::tests::SMALL;

    #[test]
    fn every_output_carries_every_code() {
        let table = Table::parse(SMALL).expect("a good table");
        let rust = rust(&table);
        assert!(rust.contains("BadRequest,") && rust.contains("pub enum ExitCode"));
        assert!(rust.contains(r#"meaning: "No \"HTTP\".""#));
        assert!(typescript(&table).contains("\"bad-request\": {\n    httpStatus: 400,"));
        let client = client(&table);
        assert!(client.contains("\n  | \"bad-request\";"));
        assert!(client.contains("FINAL_CODES: readonly unknown[] = [\n  \"bad-request\",\n  \"normal\",\n];"));
        assert!(client.contains("= {\n  1000: \"normal\",\n};"));
        assert!(markdown(&table).contains("| 400 | `bad-request` | no | No \"HTTP\". | Correct it \\| now. |"));
    }
}
