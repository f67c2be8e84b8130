//! Common parts of charts: the arithmetic of their axes, and pieces of SVG.
//!
//! The problem: a climb and a load each draw lines over something as inline SVG, with round ticks
//! and names that do not touch. What a line, a marker and a label look like is theirs; how values
//! become pixels is the same. The mechanism: pure functions of finite numbers, and a writer for
//! each piece that both draw alike.
#![forbid(unsafe_code)]

mod scale;

pub use scale::{Scale, linear_ticks, power_ticks, spread};
use std::fmt::Write;

/// Appends a straight line between two places in pixels, with a class of the page.
pub fn segment(svg: &mut String, class: &str, from: (f64, f64), to: (f64, f64)) {
    // Writing to a string does not fail.
    let _ = write!(
        svg,
        r#"<line class="{class}" x1="{:.1}" y1="{:.1}" x2="{:.1}" y2="{:.1}"/>"#,
        from.0, from.1, to.0, to.1
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_has_its_class_and_its_ends_in_tenths_of_pixels() {
        let mut svg = String::new();
        segment(&mut svg, "grid", (1.0, 2.04), (3.26, -4.0));
        assert_eq!(
            svg,
            r#"<line class="grid" x1="1.0" y1="2.0" x2="3.3" y2="-4.0"/>"#
        );
    }
}
