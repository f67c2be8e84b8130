//! Dates and times in UTC, as ISO 8601 has them, for logs and evidence.
//!
//! The clock is the caller's: what is given is the time since the beginning of 1970. Leap seconds
//! are not known here, as in the system's own clock.

use std::time::Duration;

/// The time to the millisecond, as `2026-01-31T12:00:00.123Z`.
#[must_use]
pub fn text(since_1970: Duration) -> String {
    format!(
        "{}.{:03}Z",
        date(since_1970.as_secs()),
        since_1970.subsec_millis()
    )
}

/// The time to the second, as `2026-01-31T12:00:00Z`.
#[must_use]
pub fn text_of_second(since_1970: Duration) -> String {
    format!("{}Z", date(since_1970.as_secs()))
}

/// Days to a date by Howard Hinnant's `civil_from_days`, in years that start in March.
fn date(seconds: u64) -> String {
    let (days, second) = (seconds / 86_400 + 719_468, seconds % 86_400);
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")
}

/// Seconds since 1970 of a date and time: year (to 9999), month, day, hour, minute, second. `None`
/// in front of 1970, and for a month 0.
#[must_use]
pub fn seconds([year, month, day, hour, minute, second]: [u64; 6]) -> Option<u64> {
    // As in `date`, the year begins in March: the days in front of a month are the same in each.
    let (year, month) = match month {
        1 | 2 => (year.checked_sub(1)?, month + 9),
        _ => (year, month.checked_sub(3)?),
    };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day;
    let days = days.checked_sub(719_469)?;
    Some(((days * 24 + hour) * 60 + minute) * 60 + second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_civil() {
        assert_eq!(
            text_of_second(Duration::from_secs(0)),
            "1970-01-01T00:00:00Z"
        );
        assert_eq!(
            text_of_second(Duration::from_secs(951_782_400)),
            "2000-02-29T00:00:00Z"
        );
        assert_eq!(
            text_of_second(Duration::from_secs(1_767_225_599)),
            "2025-12-31T23:59:59Z"
        );
    }

    #[test]
    fn a_date_is_the_seconds_that_it_was_made_of() {
        for (parts, expected) in [
            ([1970, 1, 1, 0, 0, 0], Some(0)),
            ([2000, 2, 29, 0, 0, 0], Some(951_782_400)),
            ([2025, 12, 31, 23, 59, 59], Some(1_767_225_599)),
            ([1969, 12, 31, 23, 59, 59], None),
            ([2026, 0, 1, 0, 0, 0], None),
        ] {
            assert_eq!(seconds(parts), expected, "{parts:?}");
        }
    }

    #[test]
    fn a_line_of_a_log_has_milliseconds() {
        let time = Duration::from_millis(951_782_399_007);
        assert_eq!(text(time), "2000-02-28T23:59:59.007Z");
    }
}
