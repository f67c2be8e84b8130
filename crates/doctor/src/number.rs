//! Numbers as people read and set them.
//!
//! Every text of the doctor takes its numbers from here, so that the same one looks the same in
//! the table, in a sentence and in a fragment.

/// A count with thousands separators: `13900` is `13,900`.
#[must_use]
pub(crate) fn thousands(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The next number with two digits in front of its zeros: `200400` is `210000`.
#[must_use]
pub(crate) fn round_up(count: u64) -> u64 {
    let mut scale = 1;
    while count / scale >= 100 {
        scale *= 10;
    }
    count.div_ceil(scale) * scale
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_for_people() {
        assert_eq!(thousands(0), "0");
        assert_eq!(thousands(999), "999");
        assert_eq!(thousands(1_000_000), "1,000,000");
        assert_eq!(round_up(7), 7);
        assert_eq!(round_up(200_400), 210_000);
        assert_eq!(round_up(210_000), 210_000);
    }
}
