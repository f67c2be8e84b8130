//! Numbers for people: one form in reports, pages, messages and documents.
//!
//! Counts have a comma between their thousands, so that a million is told from a hundred thousand
//! at a glance. Lines of the log, tables of the console and JSON, which programs read, have plain
//! ones.

/// A count with commas between its thousands: `13900` is `13,900`.
#[must_use]
pub fn thousands(count: u64) -> String {
    separated(&count.to_string())
}

/// Digits, perhaps behind a sign, with commas between their thousands.
#[must_use]
pub fn separated(digits: &str) -> String {
    let (sign, digits) = digits.split_at(usize::from(digits.starts_with('-')));
    let mut text = String::from(sign);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_separators() {
        let texts = [0, 999, 1_000, 1_000_000].map(thousands);
        assert_eq!(texts, ["0", "999", "1,000", "1,000,000"]);
        assert_eq!(separated("-13900"), "-13,900");
    }
}
