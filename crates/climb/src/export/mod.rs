//! The page of a climb: one file, self-contained.
//!
//! `html` turns the evidence into the words and numbers of the page, `chart` draws a figure as
//! inline SVG, and `page.html` is the page's text and form.
//! No script and nothing from the network: the file can be mailed, printed and kept.

mod chart;
pub(crate) mod html;
