//! The series as CSV: a line of names, then a line for each second.
//!
//! The names and their order are those of the JSON, because they are taken from it.

use load_core::series::Point;
use serde_json::{Map, Value};

/// The file's text.
///
/// # Errors
/// Never in practice: a point always becomes an object.
pub(super) fn text(series: &[Point]) -> Result<String, String> {
    let names = fields(&Point::default())?;
    let names: Vec<&str> = names.keys().map(String::as_str).collect();
    let mut out = names.join(",");
    out.push('\n');
    for point in series {
        let fields = fields(point)?;
        let cells: Vec<String> = fields.values().map(cell).collect();
        out.push_str(&cells.join(","));
        out.push('\n');
    }
    Ok(out)
}

fn fields(point: &Point) -> Result<Map<String, Value>, String> {
    match serde_json::to_value(point) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Err("a point is no object".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// Whole numbers as they are, others with three decimals: nobody wants more in a table.
fn cell(value: &Value) -> String {
    match value.as_f64() {
        Some(number) if value.is_f64() => {
            let text = format!("{number:.3}");
            let text = text.trim_end_matches('0').trim_end_matches('.');
            text.to_owned()
        }
        _ => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_line_of_names_and_one_for_each_second() {
        let series = [1.0, 2.0].map(|t_s| Point {
            t_s,
            statements_per_s: 1_234.567_89,
            failed: 7,
            ..Point::default()
        });
        let text = text(&series).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("t_s,statements_per_s,p95_ms,failed,goodput_per_s,"));
        assert!(lines[0].ends_with(",cpu_share"));
        assert!(lines[1].starts_with("1,1234.568,0,7,0,"), "{}", lines[1]);
        assert_eq!(lines.len(), 3);
        let commas = |line: &str| line.matches(',').count();
        assert!(lines.iter().all(|line| commas(line) == commas(lines[0])));
    }
}
