//! Openings `/*`: by the server that reads it, a comment or a part of the statement.
//!
//! `/*! ... */` runs; with a version behind the mark it runs where the server is as new. Which
//! digits are the version, and which versions are another product's, differs:
//!
//! - MariaDB takes five digits or six. It skips 5.7.0 to 9.99.99, which are MySQL's, unless the
//!   mark is its own, `/*M!`.
//! - MySQL takes five digits; six where white space follows, in its later releases. `/*M!` is a
//!   plain comment to it.
//!
//! Fewer than five digits are content. A comment that is skipped may have others inside, one level
//! of them; a plain one ends at the first `*/`, also an optimizer's hint, whatever its quotes say.
//! One that runs ends at the first `*/` outside of quotes and of what is skipped inside of it, even
//! where another that runs was opened in it (seen on MariaDB 10.11, MySQL 8.0 and 9.7).

use super::Server;

/// MySQL's releases that may read six digits, or five: it is not known which was the first.
const SIX_DIGITS: std::ops::Range<u32> = 80_016..80_400;
/// The first version that MariaDB takes for MySQL's, and the last.
const MYSQL_OWN: std::ops::RangeInclusive<u32> = 50_700..=99_999;

/// Kind of a comment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comment {
    /// Skipped, with nothing nested.
    Plain,
    /// Skipped, with one level nested.
    Skipped,
    /// Comment whose content is a part of the statement.
    Runs,
    /// Some servers run it, and which one reads it is not known.
    Versioned { mariadb: bool, version: u32 },
}

/// Front of a comment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Opening {
    pub(super) comment: Comment,
    /// Bytes behind `/*` that belong to the mark and the version.
    pub(super) content: usize,
    /// Servers that may be meant take other digits for the version.
    pub(super) doubt: bool,
}

impl Comment {
    /// Reads what stands behind `/*`.
    pub(super) fn read(text: &[u8], server: Server) -> Opening {
        let opening = |comment, content| Opening {
            comment,
            content,
            doubt: false,
        };
        let mysql = server.is_mysql();
        let mark = match text {
            [b'!', ..] => 1,
            [b'M', b'!', ..] if !mysql => 2,
            _ => return opening(Comment::Plain, 0),
        };
        let text = text.get(mark..).unwrap_or_default();
        let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let spaced = text.get(6).is_some_and(|b| matches!(b, 9..=13 | b' '));
        let (length, doubt) = match (digits, server) {
            (0..5, _) => (0, false),
            (5, _) => (5, false),
            (_, Server::MariaDb(_)) => (6, false),
            (_, Server::MySql(release)) if SIX_DIGITS.contains(&release) => (5, spaced),
            (6, Server::MySql(80_400..)) if spaced => (6, false),
            (_, Server::MySql(_)) => (5, false),
            (_, Server::Unknown) => (6, digits > 6),
        };
        let version = text.iter().take(length);
        let version = version.fold(0, |all, digit| all * 10 + u32::from(digit - b'0'));
        let own = mark == 2;
        let runs = match server {
            _ if length == 0 && (!own || server != Server::Unknown) => Some(true),
            Server::MariaDb(release) => {
                Some(version <= release && (own || !MYSQL_OWN.contains(&version)))
            }
            Server::MySql(release) => Some(version <= release),
            Server::Unknown if length == 5 && !own && version < *MYSQL_OWN.start() => Some(true),
            Server::Unknown => None,
        };
        let comment = match runs {
            Some(true) => Comment::Runs,
            Some(false) => Comment::Skipped,
            None => Comment::Versioned {
                mariadb: own,
                version,
            },
        };
        Opening {
            doubt,
            ..opening(comment, mark + length)
        }
    }
}
