//! `--format`, `--report` and `--summary`: the forms in which a report is printed and written.

use crate::failure::unwritable;
use clap::{Args, ValueEnum};
use pushlab_render::{json, junit, markdown};
use pushlab_report::Report;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// How a report is printed.
#[derive(Debug, Clone, Copy, Args)]
pub struct FormatArgs {
    /// How the report is printed.
    #[arg(long, value_enum, default_value = "text", value_name = "FORMAT")]
    format: Format,
    /// Short for --format json.
    #[arg(long, conflicts_with = "format")]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Tables for the terminal.
    Text,
    /// Everything, as schema/report.schema.json describes it.
    Json,
    /// Tables for an issue or a pull request.
    Markdown,
    /// Tests for GitHub, GitLab and Jenkins: a test for each cell and each assertion.
    Junit,
}

impl FormatArgs {
    /// A report for other programs; `None` where it is to be text, of which each command has its own.
    pub fn render(self, report: &Report) -> Option<String> {
        match self.format {
            _ if self.json => Some(json::text(report) + "\n"),
            Format::Text => None,
            Format::Json => Some(json::text(report) + "\n"),
            Format::Markdown => Some(markdown::text(report)),
            Format::Junit => Some(junit::text(report)),
        }
    }
}

/// What is written of a report beside its page.
#[derive(Debug, Clone, Args)]
pub struct FileArgs {
    /// Write the report in this form too, beside the page: report.md, report.xml or report.json; may be repeated.
    #[arg(long, value_enum, value_name = "FORMAT")]
    report: Vec<FileForm>,
    /// Append the answer to this file as Markdown, e.g. "$GITHUB_STEP_SUMMARY"; - is standard output.
    #[arg(long, value_name = "FILE")]
    summary: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FileForm {
    /// report.md: tables for an issue or a pull request.
    Markdown,
    /// report.xml: tests for GitHub, GitLab and Jenkins.
    Junit,
    /// report.json: everything, as schema/report.schema.json describes it.
    Json,
}

impl FileArgs {
    /// The files that are asked for, with their text.
    pub fn files(&self, report: &Report) -> Vec<(&'static str, String)> {
        let file = |form: &FileForm| match form {
            FileForm::Markdown => ("report.md", markdown::text(report)),
            FileForm::Junit => ("report.xml", junit::text(report)),
            FileForm::Json => ("report.json", json::text(report)),
        };
        self.report.iter().map(file).collect()
    }

    /// Appends the answer to the file that was named for it.
    pub fn summarize(&self, report: &Report) -> anyhow::Result<()> {
        let Some(path) = &self.summary else { return Ok(()) };
        let text = markdown::summary(report);
        if path == Path::new("-") {
            print!("{text}");
            return Ok(());
        }
        append(path, &text).map_err(|why| unwritable(format!("cannot write --summary {}: {why}", path.display())))
    }
}

fn append(path: &Path, text: &str) -> std::io::Result<()> {
    OpenOptions::new().create(true).append(true).open(path)?.write_all(text.as_bytes())
}
