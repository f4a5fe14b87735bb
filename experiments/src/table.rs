//! Tables for people and programs.

use serde_json::{Value, json};

/// A cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    text: String,
    value: Value,
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self {
            text: text.into(),
            value: text.into(),
        }
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::from(text.as_str())
    }
}

impl From<u64> for Cell {
    fn from(number: u64) -> Self {
        Self {
            text: number.to_string(),
            value: number.into(),
        }
    }
}

/// A number with so many decimals; no value is a dash.
pub fn number(value: impl Into<Option<f64>>, decimals: usize) -> Cell {
    match value.into().filter(|value| value.is_finite()) {
        Some(value) => Cell {
            text: format!("{value:.decimals$}"),
            value: value.into(),
        },
        None => Cell {
            text: "-".into(),
            value: Value::Null,
        },
    }
}

/// A number with its sign.
pub fn signed(value: impl Into<Option<f64>>, decimals: usize) -> Cell {
    let mut cell = number(value, decimals);
    if cell.value.as_f64().is_some_and(|value| value >= 0.0) {
        cell.text.insert(0, '+');
    }
    cell
}

/// A table with remarks below it.
#[derive(Clone, Debug)]
pub struct Table {
    title: String,
    columns: Vec<String>,
    rows: Vec<Vec<Cell>>,
    remarks: Vec<String>,
}

impl Table {
    /// An empty table. A column of the paper's numbers says so in its name.
    pub fn new(title: impl Into<String>, columns: &[&str]) -> Self {
        Self {
            title: title.into(),
            columns: columns.iter().map(|&column| column.into()).collect(),
            rows: Vec::new(),
            remarks: Vec::new(),
        }
    }

    /// Appends a row.
    pub fn row(&mut self, cells: Vec<Cell>) {
        assert_eq!(
            cells.len(),
            self.columns.len(),
            "a cell for every column of {:?}",
            self.title
        );
        self.rows.push(cells);
    }

    /// Appends a remark.
    pub fn remark(&mut self, text: impl Into<String>) {
        self.remarks.push(text.into());
    }

    /// For programs.
    pub fn json(&self) -> Value {
        let rows: Vec<Vec<&Value>> = self
            .rows
            .iter()
            .map(|row| row.iter().map(|cell| &cell.value).collect())
            .collect();
        json!({"title": self.title, "columns": self.columns, "rows": rows, "remarks": self.remarks})
    }

    /// For people: names to the left, numbers to the right.
    pub fn text(&self) -> String {
        let width = |column: usize| {
            let cells = self.rows.iter().map(|row| row[column].text.chars().count());
            cells
                .chain([self.columns[column].chars().count()])
                .max()
                .unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        let line = |texts: Vec<&str>| {
            let cells: Vec<String> = texts
                .iter()
                .zip(&widths)
                .enumerate()
                .map(|(i, (text, &width))| match i {
                    0 => format!("{text:<width$}"),
                    _ => format!("{text:>width$}"),
                })
                .collect();
            cells.join("  ").trim_end().to_string()
        };
        let mut out = format!(
            "{}\n{}\n",
            self.title,
            line(self.columns.iter().map(String::as_str).collect())
        );
        out.push_str(&format!(
            "{}\n",
            "-".repeat(widths.iter().sum::<usize>() + 2 * (widths.len() - 1))
        ));
        for row in &self.rows {
            out.push_str(&line(row.iter().map(|cell| cell.text.as_str()).collect()));
            out.push('\n');
        }
        for remark in &self.remarks {
            out.push_str(&format!("* {remark}\n"));
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut table = Table::new("t", &["scheme", "paper's"]);
        table.row(vec!["a".into(), signed(12.345, 1)]);
        table.row(vec!["b".into(), number(None, 1)]);
        table.remark("r");
        assert_eq!(
            table.text(),
            "t\nscheme  paper's\n---------------\na         +12.3\nb             -\n* r\n"
        );
        assert_eq!(table.json()["rows"][0][1], 12.345);
    }
}
