//! Numbers as people read and set them.
//!
//! Every text of the doctor takes its numbers from here, so that the same one looks the same in
//! the table, in a sentence and in a fragment.

pub(crate) use measure::number::thousands;

/// Bytes in the largest binary unit that leaves three digits: `1536` is `1.5 KiB`.
#[must_use]
pub(crate) fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut unit = 0;
    let mut scale = 1;
    while unit + 1 < UNITS.len() && count / scale >= 1024 {
        scale *= 1024;
        unit += 1;
    }
    let (whole, tenth) = (count / scale, count % scale * 10 / scale);
    if whole >= 100 || tenth == 0 {
        format!("{whole} {}", UNITS[unit])
    } else {
        format!("{whole}.{tenth} {}", UNITS[unit])
    }
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
        assert_eq!(bytes(512), "512 B");
        assert_eq!(bytes(1536), "1.5 KiB");
        assert_eq!(bytes(24 << 30), "24 GiB");
        assert_eq!(round_up(7), 7);
        assert_eq!(round_up(200_400), 210_000);
        assert_eq!(round_up(210_000), 210_000);
    }
}
