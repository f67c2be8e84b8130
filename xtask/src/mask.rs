//! Splits Rust text into its code and its comments.
//!
//! The rules look for words and braces, and those mean something in code only: not in `"a string"`,
//! not in `'{'`, not in a comment. So the text is laid out twice, once with everything but the code
//! blanked and once with everything but the comments. Both keep the lines of the original, so that
//! a line number found in one is a line number of the file.
//!
//! It knows line and nested block comments, strings with escapes, raw, byte and C strings, and how
//! to tell the character `'a'` from the lifetime `'a`. It does not expand macros or parse.

/// A text twice, line by line as the original.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Masked {
    /// Comments and literals are blanks.
    pub(crate) code: String,
    /// Everything but comments is blanks.
    pub(crate) comments: String,
}

/// Splits `text`. A comment or literal that never ends runs to the end of the text.
pub(crate) fn mask(text: &str) -> Masked {
    let mut scanner = Scanner {
        chars: text.chars().collect(),
        at: 0,
        masked: Masked::default(),
    };
    while let Some(next) = scanner.peek(0) {
        match (next, scanner.peek(1)) {
            ('/', Some('/')) => scanner.line_comment(),
            ('/', Some('*')) => scanner.block_comment(),
            ('"', _) => scanner.string(),
            ('\'', _) => scanner.quote(),
            _ if is_word(next) => scanner.word(),
            _ => scanner.take(Kind::Code),
        }
    }
    scanner.masked
}

/// True for what an identifier or a number is made of.
pub(crate) fn is_word(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

#[derive(Clone, Copy)]
enum Kind {
    Code,
    Comment,
    Literal,
}

struct Scanner {
    chars: Vec<char>,
    at: usize,
    masked: Masked,
}

impl Scanner {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    /// Moves one character on; both texts grow by one, so that they stay aligned.
    fn take(&mut self, kind: Kind) {
        let Some(c) = self.peek(0) else { return };
        self.at += 1;
        let blank = if c == '\n' { '\n' } else { ' ' };
        let (code, comment) = match kind {
            Kind::Code => (c, blank),
            Kind::Comment => (blank, c),
            Kind::Literal => (blank, blank),
        };
        self.masked.code.push(code);
        self.masked.comments.push(comment);
    }

    fn take_many(&mut self, count: usize, kind: Kind) {
        for _ in 0..count {
            self.take(kind);
        }
    }

    fn line_comment(&mut self) {
        while self.peek(0).is_some_and(|c| c != '\n') {
            self.take(Kind::Comment);
        }
    }

    fn block_comment(&mut self) {
        let mut depth = 0;
        loop {
            match (self.peek(0), self.peek(1)) {
                (Some('/'), Some('*')) => depth += 1,
                (Some('*'), Some('/')) => depth -= 1,
                (None, _) => return,
                _ => {
                    self.take(Kind::Comment);
                    continue;
                }
            }
            self.take_many(2, Kind::Comment);
            if depth == 0 {
                return;
            }
        }
    }

    fn string(&mut self) {
        self.take(Kind::Literal);
        while let Some(c) = self.peek(0) {
            self.take_many(if c == '\\' { 2 } else { 1 }, Kind::Literal);
            if c == '"' {
                return;
            }
        }
    }

    /// Takes a raw string whose `#`s, or whose opening quote, come next.
    fn raw_string(&mut self, hashes: usize) {
        self.take_many(hashes + 1, Kind::Literal);
        while let Some(c) = self.peek(0) {
            self.take(Kind::Literal);
            if c == '"' && (0..hashes).all(|ahead| self.peek(ahead) == Some('#')) {
                self.take_many(hashes, Kind::Literal);
                return;
            }
        }
    }

    /// Takes a character, or the quote of a lifetime or a label.
    fn quote(&mut self) {
        if self.peek(1) == Some('\\') {
            self.take_many(3, Kind::Literal);
            while self.peek(0).is_some_and(|c| c != '\'') {
                self.take(Kind::Literal);
            }
            self.take(Kind::Literal);
        } else if self.peek(2) == Some('\'') {
            self.take_many(3, Kind::Literal);
        } else {
            self.take(Kind::Code);
        }
    }

    /// Takes an identifier or a number; or the prefix of a raw string, and that string.
    fn word(&mut self) {
        let start = self.at;
        while self.peek(0).is_some_and(is_word) {
            self.take(Kind::Code);
        }
        let word: String = self.chars[start..self.at].iter().collect();
        if !matches!(word.as_str(), "r" | "br" | "cr") {
            return;
        }
        let hashes = self.chars[self.at..]
            .iter()
            .take_while(|&&c| c == '#')
            .count();
        // `r#type` is an identifier: no quote after the hash.
        if self.peek(hashes) == Some('"') {
            self.raw_string(hashes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The code of `text`, with its runs of blanks made one.
    fn code(text: &str) -> String {
        mask(text)
            .code
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    }

    #[test]
    fn keeps_code_and_blanks_comments() {
        let masked = mask("let a = 1; // {\n/* } */ b();\n");
        assert_eq!(masked.code, "let a = 1;     \n        b();\n");
        assert_eq!(masked.comments, "           // {\n/* } */     \n");
    }

    #[test]
    fn nests_block_comments() {
        assert_eq!(code("a /* 1 /* 2 */ 3 */ b"), "a b");
    }

    #[test]
    fn blanks_strings_with_escapes() {
        assert_eq!(code(r#"f("a \" // { b", x)"#), "f( , x)");
        assert_eq!(code(r#"f("\\", x)"#), "f( , x)");
        assert_eq!(code(r#"f(b"{", c"}")"#), "f(b , c )");
    }

    #[test]
    fn blanks_raw_strings_and_keeps_raw_identifiers() {
        assert_eq!(code("f(r\"\\\", x)"), "f(r , x)");
        assert_eq!(code("f(br##\"a \"# {\"##, x)"), "f(br , x)");
        assert_eq!(code("let r#type = r#fn;"), "let r#type = r#fn;");
    }

    #[test]
    fn tells_characters_from_lifetimes() {
        assert_eq!(
            code("f::<'a>('{', '\\'', '\\u{7d}', b'\"', 'é')"),
            "f::<'a>( , , , b , )"
        );
        assert_eq!(
            code("fn f<'a, 'b>(x: &'a str) {}"),
            "fn f<'a, 'b>(x: &'a str) {}"
        );
        assert_eq!(
            code("'outer: loop { break 'outer }"),
            "'outer: loop { break 'outer }"
        );
    }

    #[test]
    fn keeps_the_lines() {
        let text = "let s = \"a\n{\nb\"; /* c\nd */ e\n";
        let masked = mask(text);
        assert_eq!(masked.code.lines().count(), text.lines().count());
        assert_eq!(masked.comments.lines().count(), text.lines().count());
        assert_eq!(masked.code.lines().nth(3).map(str::trim), Some("e"));
    }

    #[test]
    fn ends_with_the_text() {
        for text in ["\"open", "/* open", "r#\"open", "'\\", "'"] {
            assert_eq!(
                mask(text).code.chars().count(),
                text.chars().count(),
                "{text}"
            );
        }
    }
}
