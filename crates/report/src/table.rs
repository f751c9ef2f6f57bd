//! Tables beside the charts.

use super::estimate::Estimate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A table beside the charts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DataTable {
    /// E.g. `Performance factors`.
    pub title: String,
    /// What it shows and how it was computed, in a sentence or two.
    pub note: String,
    /// Columns.
    pub columns: Vec<Column>,
    /// Rows, each as long as `columns`.
    pub rows: Vec<Vec<DataCell>>,
    /// How its rows can be drawn as bars, where their figures are parts of a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack: Option<Stack>,
}

/// A table's rows as bars, each stacked of its parts; what a bar is called stands in the first column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Stack {
    /// The column whose texts put rows into groups, such as places on the axis; absent with one group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<u32>,
    /// The parts, from the inside of a message outwards.
    pub parts: Vec<StackPart>,
    /// Columns with the whole; in each row the first that has a figure counts.
    pub wholes: Vec<u32>,
}

/// A part of a stack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StackPart {
    /// Stable name, e.g. `payload`: the same part looks the same everywhere.
    pub name: String,
    /// The column with its figures.
    pub column: u32,
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Column {
    /// Heading.
    pub title: String,
    /// Unit; empty for text and for numbers of things.
    pub unit: String,
}

impl Column {
    /// A column with this heading and unit.
    pub fn new(title: &str, unit: &str) -> Self {
        Self { title: title.to_owned(), unit: unit.to_owned() }
    }
}

/// A cell of a table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum DataCell {
    /// Text.
    Text(String),
    /// A value with its interval.
    Estimate(Estimate),
    /// Nothing was measured.
    Nothing(()),
}

impl DataCell {
    /// A cell with a text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// A cell with a figure, if there is one.
    pub fn figure(figure: Option<Estimate>) -> Self {
        figure.map_or(Self::Nothing(()), Self::Estimate)
    }
}
