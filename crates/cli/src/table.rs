//! Aligned tables and numbers for people.

/// On which side the cells of a column stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// A table whose columns line up.
#[derive(Clone, Debug, Default)]
pub struct Table {
    columns: Vec<(String, Align)>,
    rows: Vec<Row>,
}

#[derive(Clone, Debug)]
enum Row {
    Cells(Vec<String>),
    /// The first cells, and a text across all others.
    Across(Vec<String>, String),
}

impl Table {
    /// A table with these columns: `<name` stands left, others right.
    pub fn new(columns: &[&str]) -> Self {
        let column = |name: &&str| match name.strip_prefix('<') {
            Some(name) => (name.to_string(), Align::Left),
            None => (name.to_string(), Align::Right),
        };
        Self {
            columns: columns.iter().map(column).collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = impl Into<String>>) {
        self.rows
            .push(Row::Cells(cells.into_iter().map(Into::into).collect()));
    }

    /// Adds a row of a first cell and a text across the rest.
    pub fn across(&mut self, first: impl Into<String>, text: impl Into<String>) {
        self.across_after([first], text);
    }

    /// Adds a row of some first cells and a text across the rest.
    pub fn across_after(
        &mut self,
        first: impl IntoIterator<Item = impl Into<String>>,
        text: impl Into<String>,
    ) {
        let first = first.into_iter().map(Into::into).collect();
        self.rows.push(Row::Across(first, text.into()));
    }

    fn widths(&self) -> Vec<usize> {
        let mut widths: Vec<usize> = self.columns.iter().map(|(name, _)| width(name)).collect();
        for row in &self.rows {
            let (Row::Cells(cells) | Row::Across(cells, _)) = row;
            let cells = cells.iter().zip(&mut widths);
            cells.for_each(|(cell, w)| *w = (*w).max(width(cell)));
        }
        widths
    }

    /// The table as text, two spaces between columns, with a line under the head if the columns have names.
    pub fn render(&self) -> String {
        let widths = self.widths();
        let mut out = String::new();
        if self.columns.iter().any(|(name, _)| !name.is_empty()) {
            let names: Vec<String> = self.columns.iter().map(|(name, _)| name.clone()).collect();
            self.line(&mut out, &names, &widths);
            let total = widths.iter().sum::<usize>() + 2 * (widths.len() - 1);
            out.push_str(&"─".repeat(total));
            out.push('\n');
        }
        for row in &self.rows {
            match row {
                Row::Cells(cells) => self.line(&mut out, cells, &widths),
                Row::Across(first, text) => {
                    let cells = self.line_of(first, &widths);
                    out.push_str(&format!("{cells}  {text}\n"));
                }
            }
        }
        out
    }

    fn line(&self, out: &mut String, cells: &[String], widths: &[usize]) {
        out.push_str(self.line_of(cells, widths).trim_end());
        out.push('\n');
    }

    fn line_of(&self, cells: &[String], widths: &[usize]) -> String {
        let mut line = String::new();
        for (i, ((cell, w), (_, align))) in cells.iter().zip(widths).zip(&self.columns).enumerate()
        {
            let pad = " ".repeat(w - width(cell));
            let gap = if i == 0 { "" } else { "  " };
            match align {
                Align::Left => line.push_str(&format!("{gap}{cell}{pad}")),
                Align::Right => line.push_str(&format!("{gap}{pad}{cell}")),
            }
        }
        line
    }
}

fn width(text: &str) -> usize {
    text.chars().count()
}

/// A whole number with thousands apart: `12,345`.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A number of things: `1 request`, `2 requests`.
pub fn some(n: u64, thing: &str) -> String {
    format!("{} {thing}{}", count(n), if n == 1 { "" } else { "s" })
}

/// Three significant digits, without an exponent; whole above 100.
pub fn short(x: f64) -> String {
    match x.abs() {
        a if !a.is_finite() => "-".into(),
        a if a >= 99.95 && x < 0.0 => format!("-{}", count(a.round() as u64)),
        a if a >= 99.95 => count(a.round() as u64),
        a if a >= 9.995 => format!("{x:.1}"),
        a if a >= 0.9995 || a == 0.0 => format!("{x:.2}"),
        _ => format!("{x:.3}"),
    }
}

/// A number that may have no value.
pub fn short_or_dash(x: Option<f64>) -> String {
    x.map_or_else(|| "-".into(), short)
}

/// Bytes in the largest binary unit that leaves at least 1.
pub fn bytes(n: f64) -> String {
    scaled(n, 1024.0, &["B", "KiB", "MiB", "GiB", "TiB"])
}

/// Microseconds in the largest unit that leaves at least 1.
pub fn micros(us: f64) -> String {
    if us < 1e6 {
        scaled(us, 1000.0, &["us", "ms"])
    } else {
        format!("{} s", short(us / 1e6))
    }
}

/// Microjoules in the largest unit that leaves at least 1.
pub fn energy(uj: f64) -> String {
    scaled(uj, 1000.0, &["uJ", "mJ", "J", "kJ"])
}

fn scaled(mut x: f64, base: f64, units: &[&str]) -> String {
    let mut unit = 0;
    while x >= base && unit + 1 < units.len() {
        x /= base;
        unit += 1;
    }
    if unit == 0 && x.fract() == 0.0 {
        format!("{x:.0} {}", units[0])
    } else {
        format!("{} {}", short(x), units[unit])
    }
}

/// A share in percent.
pub fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "-".into(), |share| format!("{:.1} %", share * 100.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut table = Table::new(&["<name", "n"]);
        table.row(["a", "1,000"]);
        table.across("long", "refused: too small");
        assert_eq!(
            table.render(),
            "name      n\n───────────\na     1,000\nlong  refused: too small\n"
        );
    }

    #[test]
    fn numbers_for_people() {
        assert_eq!(
            [count(0), count(999), count(1_234_567)],
            ["0", "999", "1,234,567"]
        );
        assert_eq!(
            [
                short(0.0),
                short(0.0123),
                short(1.0),
                short(12.34),
                short(99.96),
                short(12_345.6),
                short(-146.5),
            ],
            ["0.00", "0.012", "1.00", "12.3", "100", "12,346", "-147"]
        );
        assert_eq!(
            [bytes(12.0), bytes(1536.0), bytes(3e9)],
            ["12 B", "1.50 KiB", "2.79 GiB"]
        );
        assert_eq!(
            [micros(250.0), micros(1500.0), micros(2.5e6)],
            ["250 us", "1.50 ms", "2.50 s"]
        );
    }
}
