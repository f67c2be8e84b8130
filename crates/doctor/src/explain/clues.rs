//! Clues in a line: a number of MySQL's, an errno, its words.
//!
//! The problem: every program writes the same error in its own way: `ERROR 2003 (HY000): ... (99)`,
//! `SQLSTATE[HY000] [2002] Cannot assign requested address`, `(1040, 'Too many connections')`,
//! `errno = 12`, `[Errno 24]`, `(os error 24)`. The mechanism: each number in the line is judged by
//! the word in front of it and the mark behind it. A number that stands nowhere near such a word (a
//! port, a pid, a time) is none.
//!
//! Invariant: an errno that only stands in brackets at the end is unsure
//! ([`Clues::errno_is_sure`]); alone it is no evidence in a log.

use super::errno;

/// The smallest number of MySQL's own.
const NUMBER_MIN: u32 = 1000;
/// Numbers from here on are something else.
const NUMBER_MAX: u32 = 9999;

/// The first number of a storage engine's own errors.
const ENGINE_ERROR_MIN: i32 = 120;

/// Words in front of a number that say that it is an error's.
const ERROR_WORDS: &[&str] = &[
    "error",
    "errno",
    "code",
    "err",
    "errcode",
    "errorcode",
    "no",
    "number",
];
/// Words in front of a number that say that it is the system's.
const ERRNO_WORDS: &[&str] = &[
    "errno",
    "errcode",
    "os error",
    "system error",
    "os errno",
    "os { code",
];
/// Words that systems and runtimes write instead of a number.
const ERRNO_TEXTS: &[(&str, i32)] = &[
    ("resource temporarily unavailable", 11),
    ("cannot allocate memory", 12),
    ("permission denied", 13),
    ("too many open files in system", 23),
    ("too many open files", 24),
    ("no space left on device", 28),
    ("broken pipe", 32),
    ("address already in use", 98),
    ("cannot assign requested address", 99),
    ("network is unreachable", 101),
    ("connection reset by peer", 104),
    ("no buffer space available", 105),
    ("connection timed out", 110),
    ("operation now in progress", 110),
    ("connect timed out", 110),
    ("(timed out)", 110),
    ("operation timed out", 110),
    ("i/o timeout", 110),
    ("connection refused", 111),
    ("no route to host", 113),
];

/// Words of lines that are about MySQL and what speaks its protocol.
const MYSQL_WORDS: &[&str] = &[
    "mysql", "maria", "innodb", "sqlstate", "hy000", "08s01", "3306", "java.sql", "proxysql",
    "maxscale", "sysbench", "onramp", "[my-0",
];
/// Words of lines that are about any database.
const DATABASE_WORDS: &[&str] = &[
    "sql",
    "database",
    "datasource",
    "jdbc",
    "dbcp",
    "wsrep",
    "innodb",
    "maria",
    "connection pool",
    "mydumper",
    "myloader",
    "gh-ost",
    "binlog",
];
/// Words of lines that are other databases' and services', whose numbers and words mean other
/// things.
const FOREIGN_WORDS: &[&str] = &[
    "ora-0",
    "ora-1",
    "oracle",
    "sql server",
    "sqlserver",
    "sqlcmd",
    "postgres",
    "psycopg",
    "psql",
    "pq: ",
    "libpq",
    "npgsql",
    "redis",
    "mongo",
    "cassandra",
    "kafka",
    "rabbitmq",
    "amqp",
    "elasticsearch",
    "memcache",
    "etcd",
    "sqlite",
    "clickhouse",
    "smtp",
    "imap",
    "ftp",
];

/// Clues in a line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Clues {
    /// A number of MySQL's servers or clients.
    pub(crate) number: Option<u32>,
    /// A number of the system.
    pub(crate) errno: Option<i32>,
    /// True if the line says that it is one.
    pub(crate) errno_is_sure: bool,
    /// True for words of MySQL's world: a server, a client, a driver, or a name of one.
    pub(crate) is_mysql: bool,
    /// True for words of any database.
    pub(crate) is_database: bool,
    /// True for words of another database or service.
    pub(crate) is_foreign: bool,
    /// HAProxy's code of a connection's end: the side that ended it, and the phase.
    pub(crate) termination: Option<[char; 2]>,
    /// The line in lower case; of dmesg's with the kernel's name behind it.
    pub(crate) text: String,
}

/// A number and what stands around it.
struct Digits<'a> {
    value: u32,
    before: &'a str,
    after: &'a str,
}

impl Clues {
    /// Reads one line.
    pub(crate) fn of(line: &str) -> Clues {
        let text = line.to_lowercase();
        let mut clues = Clues::default();
        for digits in numbers(&text) {
            if clues.number.is_none() && digits.is_mysql() {
                clues.number = Some(digits.value);
            } else if let Some(sure) = digits.is_errno()
                && (sure || clues.errno.is_none())
                && !clues.errno_is_sure
            {
                clues.errno = i32::try_from(digits.value).ok();
                clues.errno_is_sure = sure;
            }
        }
        let named = line
            .split(|c: char| !c.is_ascii_alphanumeric())
            .find_map(|word| {
                Some(word)
                    .filter(|word| word.len() > 3)
                    .and_then(errno::number)
            });
        let told = ERRNO_TEXTS.iter().find(|(words, _)| text.contains(words));
        if let Some(errno) = named.or(told.map(|(_, errno)| *errno))
            && !clues.errno_is_sure
        {
            (clues.errno, clues.errno_is_sure) = (Some(errno), true);
        }
        let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
        clues.is_mysql = has(MYSQL_WORDS) || clues.number.is_some();
        clues.is_database = clues.is_mysql || has(DATABASE_WORDS);
        clues.is_foreign = has(FOREIGN_WORDS) && !has(MYSQL_WORDS);
        if clues.is_foreign {
            clues.number = None;
        }
        clues.termination = termination(line);
        clues.text = text;
        if is_of_dmesg(line) {
            clues.text.push_str(" (kernel:)");
        }
        clues
    }
}

/// True if it begins with the kernel's time since its start: `[  279.665875] `.
fn is_of_dmesg(line: &str) -> bool {
    let inside = line.trim_start().strip_prefix('[');
    let time = inside.and_then(|rest| rest.split_once("] ")?.0.split_once('.'));
    let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    time.is_some_and(|(seconds, rest)| {
        is_number(seconds.trim_start()) && rest.len() == 6 && is_number(rest)
    })
}

impl Digits<'_> {
    fn is_mysql(&self) -> bool {
        if !(NUMBER_MIN..=NUMBER_MAX).contains(&self.value) {
            return false;
        }
        // A process of nginx, and its thread: "[error] 1179#0".
        if self.after.starts_with('#') {
            return false;
        }
        let front = trimmed(self.before);
        // InnoDB's count of bytes of its log is no error's.
        if front.ends_with("sequence number") {
            return false;
        }
        // "(2003, \"Can't connect\")", as Python shows it.
        let is_pair = self.before.ends_with('(')
            && (self.after.starts_with(", \"") || self.after.starts_with(", '"));
        is_pair
            || ends_with_word(front, ERROR_WORDS)
            || front.ends_with("my-00")
            || front.ends_with("hy000")
            || front.contains("sqlstate[") && self.before.ends_with('[')
            || is_sqlstate(self.after)
    }

    /// Some(true) if the line says that it is an errno, Some(false) if it only may be.
    fn is_errno(&self) -> Option<bool> {
        let value = i32::try_from(self.value).ok()?;
        errno::name(value)?;
        // A resolver's -2 is no errno; a dash in a name (`my-000011`) is no minus.
        let sign = self.before.strip_suffix('-').unwrap_or_default();
        if sign.ends_with([' ', '(', '[']) {
            return None;
        }
        // What a fault of memory was about, and a number of a storage engine's own.
        let is_state = self.after.starts_with(" (hy000)");
        let is_of_engine = is_state || self.after.starts_with(" from storage engine");
        if self.before.contains("segfault at") || value >= ENGINE_ERROR_MIN && is_of_engine {
            return None;
        }
        let front = trimmed(self.before);
        if ERRNO_WORDS.iter().any(|word| front.ends_with(word)) {
            return Some(true);
        }
        let in_brackets = self.before.ends_with('(')
            && (self.after.trim_end() == ")"
                || self.after.starts_with(" \"")
                || self.after.starts_with(" - "));
        let is_named = !self.before.ends_with('(') && ends_with_word(front, &["error", "err"]);
        (in_brackets || is_named).then_some(false)
    }
}

/// The termination state in a line of HAProxy's log: two characters (four with cookies), in front
/// of the five counts of connections. Also alone, as somebody types it. None for a connection that
/// has ended in order.
fn termination(line: &str) -> Option<[char; 2]> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let counts = |word: &str| {
        let parts: Vec<&str> = word.split('/').collect();
        let is_count = |part: &&str| {
            let digits = part.trim_start_matches('+');
            !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
        };
        parts.len() == 5 && parts.iter().all(is_count)
    };
    let word = match words.as_slice() {
        [word] => Some(*word),
        words => words
            .windows(2)
            .find(|pair| state(pair[0]).is_some() && counts(pair[1]))
            .map(|pair| pair[0]),
    };
    state(word?)
        .filter(|state| state.iter().all(|part| *part != '-') || words.len() > 1 && state[0] != '-')
}

/// A word that is a termination state.
fn state(word: &str) -> Option<[char; 2]> {
    let parts: Vec<char> = word.chars().collect();
    let (by, phase) = match parts.as_slice() {
        [by, phase] => (*by, *phase),
        // What became of the cookies stands behind it.
        [by, phase, asked, given] if "-NIDVEOU".contains(*asked) && "-NUPRDIO".contains(*given) => {
            (*by, *phase)
        }
        _ => return None,
    };
    ("CSPLRIDUKcs-".contains(by) && "RQCHDLT-".contains(phase)).then_some([by, phase])
}

/// Without the marks between a word and its number: `errno = 12`, `"code":1040`, `error #1040`.
fn trimmed(before: &str) -> &str {
    before.trim_end_matches([' ', ')', ':', '=', '#', '(', '[', ']', '"', '\'', '/', '-'])
}

fn ends_with_word(text: &str, words: &[&str]) -> bool {
    words.iter().any(|word| {
        text.strip_suffix(word)
            .is_some_and(|rest| !rest.ends_with(|c: char| c.is_ascii_alphanumeric()))
    })
}

/// "1040 (08004)": five characters of SQL state behind it.
fn is_sqlstate(after: &str) -> bool {
    let Some(rest) = after.strip_prefix(" (") else {
        return false;
    };
    let Some((state, _)) = rest.split_once(')') else {
        return false;
    };
    state.len() == 5 && state.chars().all(|c| c.is_ascii_alphanumeric())
}

/// All runs of at most six digits that are no part of a word or a number with a point.
fn numbers(text: &str) -> Vec<Digits<'_>> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(start) = text[from..].find(|c: char| c.is_ascii_digit()) {
        let start = from + start;
        let len = text[start..]
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(text.len() - start);
        let end = start + len;
        let (before, after) = (&text[..start], &text[end..]);
        let is_word = before.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '.')
            || after.starts_with(|c: char| c.is_ascii_alphabetic());
        // "my-001040" is written with zeroes in front.
        let zeroes = text[start..end].len() - text[start..end].trim_start_matches('0').len();
        let cut = if before.ends_with("my-") { zeroes } else { 0 };
        if !is_word && len <= 6 {
            found.extend(text[start..end].parse().ok().map(|value| Digits {
                value,
                before: &text[..start + cut],
                after,
            }));
        }
        from = end;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `(number, errno, sure)` of a line.
    fn of(line: &str) -> (Option<u32>, Option<i32>, bool) {
        let clues = Clues::of(line);
        (clues.number, clues.errno, clues.errno_is_sure)
    }

    #[test]
    fn numbers_are_found_in_each_programs_words() {
        let lines = [
            "ERROR 1040 (08004): Too many connections",
            "ERROR 1040 (HY000) at line 1: Too many connections",
            "FATAL: error 1040: Too many connections",
            "FATAL: MySQL error: 1040 \"Too many connections\"",
            "SQL error, errno = 1040, state = '08004': Too many connections",
            "pymysql.err.OperationalError: (1040, 'Too many connections')",
            "(1040, \"Too many connections\")",
            "PDOException: SQLSTATE[08004] [1040] Too many connections",
            "mysqli: (HY000/1040): Too many connections",
            "Error 1040 (08004): Too many connections",
            "Error 1040: Too many connections",
            "#1040 - Error: too many; mysql_errno() = 1040",
            "  errno: 1040,",
            "SQLState: 08004 ErrorCode: 1040",
            "2026-11-21T09:00:00Z 8 [Warning] [MY-001040] [Server] Too many connections",
            "load: 12 times error 1040 (08004): Too many connections",
            "{\"code\":1040,\"sqlstate\":\"08004\"}",
        ];
        for line in lines {
            assert_eq!(Clues::of(line).number, Some(1040), "{line}");
        }
    }

    #[test]
    fn errnos_are_found_in_each_programs_words() {
        let lines = [
            ("Can't connect to MySQL server on 'db' (99)", 99, false),
            (
                "Can't create a new thread (errno 11); if you are not",
                11,
                true,
            ),
            (
                "Can't create a new thread (errno 11 \"Resource tempor",
                11,
                true,
            ),
            (
                "thread #32352 failed. errno = 12 (Cannot allocate memory)",
                12,
                true,
            ),
            ("[Errno 24] Too many open files", 24, true),
            ("EMFILE: Too many open files (os error 24)", 24, true),
            (
                "Can't open file: './a.ibd' (errno: 24 - Too many open files)",
                24,
                true,
            ),
            ("server at 'reading', system error: 104", 104, true),
            ("(Errcode: 13 \"Permission denied\")", 13, true),
            ("connect ECONNREFUSED 127.0.0.1:3306", 111, true),
            ("accept4: too many open files; retrying in 5ms", 24, true),
        ];
        for (line, errno, sure) in lines {
            assert_eq!(of(line), (None, Some(errno), sure), "{line}");
        }
    }

    #[test]
    fn other_numbers_are_no_evidence() {
        for line in [
            "2026-11-21 09:33:34 0 [Note] InnoDB: 10.11.19 started; log sequence number 45502",
            "GET /items/1040 HTTP/1.1 200 2003",
            "connected to 127.0.0.1:1040 from port 2003",
            "thread 11 took 24 ms",
            "ERROR",
            "",
        ] {
            assert_eq!(of(line), (None, None, false), "{line}");
        }
    }

    #[test]
    fn a_number_and_an_errno_stand_in_one_line() {
        let line = "ERROR 2003 (HY000): Can't connect to MySQL server on 'db' (99)";
        assert_eq!(of(line), (Some(2003), Some(99), false));
        let line = "SQLSTATE[HY000] [2002] Cannot assign requested address";
        assert_eq!(of(line), (Some(2002), Some(99), true));
    }
}
