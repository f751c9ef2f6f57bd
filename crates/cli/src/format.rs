//! `--format`: the form in which a report is printed.

use clap::{Args, ValueEnum};
use pushlab_analysis::render::{json, junit, markdown};
use pushlab_analysis::report::model::Report;

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
