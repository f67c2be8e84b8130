//! Texts of several statements whose ends are hard to find, from a seed.
//!
//! The problem: the pool must cut a text as its server does, and what the servers do is written
//! nowhere in full. The mechanism: SELECTs of a few columns are put together from pieces that look
//! like ends of something: semicolons, quotes and marks of comments inside of strings, names and
//! comments, in the character sets in which a byte may be half of a character. A server that runs
//! such a text tells by its results where each statement ended and how many columns it had.
//!
//! Most of the texts are good ones. Some are not, on purpose: a quote without its end, a comment
//! inside of another, a zero byte. Invariant: the same seed gives the same texts.

use crate::sim::random::Random;

/// A character set of clients, with letters of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Letters {
    /// Character set of SET NAMES.
    pub charset: &'static str,
    /// Letters that a name may have without quotes.
    plain: &'static [&'static [u8]],
    /// Letters whose last byte looks like a backslash or a backtick.
    tricky: &'static [&'static [u8]],
}

/// The character sets.
pub const LETTERS: [Letters; 5] = [
    Letters {
        charset: "utf8mb4",
        plain: &["é".as_bytes(), "表".as_bytes()],
        tricky: &["\u{1F600}".as_bytes()],
    },
    Letters {
        charset: "latin1",
        plain: &[b"\xe9", b"\xdf"],
        tricky: &[b"\xe9"],
    },
    Letters {
        charset: "gbk",
        plain: &[b"\xb1\xed", b"\xd6\xd0"],
        tricky: &[b"\xbf\x5c", b"\x95\x5c", b"\x81\x60"],
    },
    Letters {
        charset: "sjis",
        plain: &[b"\x95\xb6", b"\x8a\xbf"],
        tricky: &[b"\x83\x5c", b"\x95\x5c", b"\x83\x60"],
    },
    Letters {
        charset: "big5",
        plain: &[b"\xa4\xa4", b"\xa4\xe5"],
        tricky: &[b"\xa5\x5c", b"\xb3\x5c", b"\xa6\x60"],
    },
];

/// Pieces that look like an end, or like the beginning of something.
const PIECES: [&str; 26] = [
    ";",
    ", 7",
    "a",
    "b c",
    "/*",
    "*/",
    "/*!",
    "/*!50000 ",
    "/*M!",
    "-- ",
    "--",
    "#",
    "'",
    "\"",
    "`",
    "(",
    ")",
    "\\",
    "\\\\",
    "\n",
    "/",
    "*",
    "@",
    "$",
    " ; SELECT ",
    "/**/",
];

/// Marks of comments that run, or do not, by the server.
const MARKS: [&str; 12] = [
    "/*!",
    "/*!40101",
    "/*!50699 ",
    "/*!50700 ",
    "/*!80000 ",
    "/*!080000 ",
    "/*!99999 ",
    "/*!100300 ",
    "/*!999999 ",
    "/*M!",
    "/*M!100300 ",
    "/*M!999999 ",
];

/// Makes texts.
#[derive(Clone, Debug)]
pub struct Texts {
    random: Random,
    letters: Letters,
    ansi_quotes: bool,
    no_backslash_escapes: bool,
}

impl Texts {
    /// Texts for a session in this character set, with or without ANSI_QUOTES and
    /// NO_BACKSLASH_ESCAPES in its `sql_mode`.
    #[must_use]
    pub fn new(seed: u64, letters: Letters, ansi_quotes: bool, no_backslash_escapes: bool) -> Self {
        Self {
            random: Random::new(seed),
            letters,
            ansi_quotes,
            no_backslash_escapes,
        }
    }

    /// The next text.
    pub fn text(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        for number in 0..self.random.between(1, 4) {
            if number > 0 {
                out.push(b';');
            }
            self.gap(&mut out);
            self.statement(&mut out);
        }
        if self.random.chance(60) {
            self.oddity(&mut out);
        }
        out
    }

    fn statement(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"SELECT ");
        for number in 0..self.random.between(1, 4) {
            if number > 0 {
                out.push(b',');
            }
            self.gap(out);
            self.column(out);
            self.gap(out);
        }
    }

    /// Appends an expression, perhaps with a name.
    fn column(&mut self, out: &mut Vec<u8>) {
        match self.random.below(8) {
            0 => out.extend_from_slice(self.random.pick(&NUMBERS).as_bytes()),
            1 => {
                out.extend_from_slice(b"IF(1,");
                self.string(out);
                out.extend_from_slice(b",2)");
            }
            2 => {
                out.push(b'@');
                let quote = self.byte(b"'\"`");
                self.quoted(out, quote);
            }
            3 => {
                out.extend_from_slice(b"3 ");
                let mark = *self.random.pick(&MARKS);
                self.runs(out, mark);
            }
            _ => self.string(out),
        }
        if self.random.chance(300) {
            out.extend_from_slice(b" AS ");
            self.name(out);
        }
    }

    fn letter(&mut self, of: &[&'static [u8]]) -> &'static [u8] {
        let letter: &&[u8] = self.random.pick(of);
        letter
    }

    fn byte(&mut self, of: &[u8]) -> u8 {
        *self.random.pick(of)
    }

    fn string(&mut self, out: &mut Vec<u8>) {
        let quote = match self.random.chance(400) && !self.ansi_quotes {
            true => b'"',
            false => b'\'',
        };
        self.quoted(out, quote);
    }

    fn name(&mut self, out: &mut Vec<u8>) {
        match self.random.below(4) {
            0 => {
                out.extend_from_slice(b"n");
                out.extend_from_slice(self.letter(self.letters.plain));
            }
            1 if self.ansi_quotes => self.quoted(out, b'"'),
            _ => self.quoted(out, b'`'),
        }
    }

    /// Writes a text in quotes that ends where it is to end.
    fn quoted(&mut self, out: &mut Vec<u8>, quote: u8) {
        let is_name = quote == b'`' || (quote == b'"' && self.ansi_quotes);
        let escapes = !is_name && !self.no_backslash_escapes;
        out.push(quote);
        for _ in 0..self.random.below(5) {
            if self.random.chance(250) {
                let letters = match self.random.chance(500) {
                    true => self.letters.tricky,
                    false => self.letters.plain,
                };
                out.extend_from_slice(self.letter(letters));
                continue;
            }
            for &byte in self.random.pick(&PIECES).as_bytes() {
                if byte == b'\\' && escapes {
                    // In front of anything, its own quote among it.
                    out.push(byte);
                    out.push(self.byte(b"\\'\"`n"));
                } else if byte == quote {
                    out.extend_from_slice(&[byte, byte]);
                } else {
                    out.push(byte);
                }
            }
        }
        // No name ends with a space.
        out.push(b'x');
        out.push(quote);
    }

    /// Appends white space and comments.
    fn gap(&mut self, out: &mut Vec<u8>) {
        match self.random.below(12) {
            0 => self.comment(out),
            1 => self.line(out),
            2 => {
                // Nothing but other comments inside of one that runs.
                out.extend_from_slice(b"/*! ");
                self.comment(out);
                out.extend_from_slice(b" */");
            }
            3 => out.extend_from_slice(b" \t\n"),
            _ => out.push(b' '),
        }
    }

    fn line(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.random.pick(&["-- ", "#", "--\t"]).as_bytes());
        for _ in 0..self.random.below(4) {
            let piece = *self.random.pick(&PIECES);
            out.extend_from_slice(piece.replace('\n', " ").as_bytes());
        }
        out.push(b'\n');
    }

    fn comment(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"/* ");
        for _ in 0..self.random.below(4) {
            let piece = *self.random.pick(&PIECES);
            // Neither its own end, nor half of one.
            if !piece.contains(['*', '/']) || piece == "/*" {
                out.extend_from_slice(piece.as_bytes());
                out.push(b' ');
            }
        }
        out.extend_from_slice(b"*/");
    }

    /// Appends another column in a comment that some server runs.
    fn runs(&mut self, out: &mut Vec<u8>, mark: &str) {
        out.extend_from_slice(mark.as_bytes());
        out.extend_from_slice(b", ");
        if self.random.chance(300) {
            self.comment(out);
        }
        if self.random.chance(150) {
            self.line(out);
        }
        if self.random.chance(300) {
            self.string(out);
        } else {
            out.extend_from_slice(b"4");
        }
        if self.random.chance(100) {
            let mark = *self.random.pick(&MARKS);
            out.extend_from_slice(mark.as_bytes());
            out.extend_from_slice(b" , 5 */");
        }
        out.extend_from_slice(b" */");
    }

    /// Writes what no client means, anywhere.
    fn oddity(&mut self, out: &mut Vec<u8>) {
        const ODD: [&str; 12] = [
            "'", "`", "\"", "/*", "*/", "/*!", "\0", ";", "--", "\\", "/*M!", "1.e(",
        ];
        let at = self.random.index(out.len() + 1);
        let odd = self.random.pick(&ODD).as_bytes();
        out.splice(at..at, odd.iter().copied());
    }
}

const NUMBERS: [&str; 10] = [
    "1", ".5", "1.", "1e5", "0x1F", "1--1", "2 /1", "-3", "1 * 2", "\\N",
];
