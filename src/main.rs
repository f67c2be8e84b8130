//! onramp
fn main() {}
