//! Files in the grammar of libconfig, which ProxySQL reads.
//!
//! The problem: settings that somebody has in such a file are to be read, nothing else. The
//! mechanism: a text is cut into tokens that know their file and line, an `@include` is replaced by
//! the tokens of its file, and one function for each rule of the grammar takes them
//! (<http://www.hyperrealm.com/libconfig/libconfig_manual.html>, Configuration File Grammar).
//!
//! Invariants: what is wrong is told with its file and line; files are read to [`FILE_BYTES_MAX`],
//! includes go [`INCLUDES_MAX`] deep, as in libconfig, and values [`DEPTH_MAX`].

use std::io::Read as _;
use std::iter::Peekable;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::str::Chars;

/// Bytes of a file, and of all that it includes.
pub(crate) const FILE_BYTES_MAX: u64 = 16 << 20;
/// Files inside of files.
const INCLUDES_MAX: usize = 10;
/// Values inside of values.
const DEPTH_MAX: usize = 64;

/// The settings of a group, in their order.
pub(crate) type Group = Vec<(String, Value)>;

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Flag(bool),
    Integer(i64),
    Real(f64),
    Text(String),
    /// A list or an array.
    List(Vec<Value>),
    Group(Group),
}

impl Value {
    /// The value as it would be written, where it is one that has no parts. Programs write numbers
    /// as texts, and flags as numbers.
    pub(crate) fn scalar(&self) -> Option<String> {
        match self {
            Value::Flag(flag) => Some(flag.to_string()),
            Value::Integer(number) => Some(number.to_string()),
            Value::Real(number) => Some(number.to_string()),
            Value::Text(text) => Some(text.clone()),
            Value::List(_) | Value::Group(_) => None,
        }
    }
}

/// The setting of this name in a group.
pub(crate) fn find<'a>(group: &'a [(String, Value)], name: &str) -> Option<&'a Value> {
    let found = group.iter().find(|(other, _)| other == name);
    found.map(|(_, value)| value)
}

/// Reads a file.
///
/// # Errors
/// A sentence with the file, the line, what was expected and what came.
pub(crate) fn read(path: &Path) -> Result<Group, String> {
    let mut source = Source {
        left: FILE_BYTES_MAX,
        tokens: Vec::new(),
    };
    source.add_file(path, 0)?;
    parse(source.tokens)
}

/// The text of a file of at most `left` bytes, which become fewer by its length.
pub(crate) fn text_of(path: &Path, left: &mut u64) -> Result<String, String> {
    let words = |error: std::io::Error| format!("{}: {error}", path.display());
    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(words)?;
    let read = file.take(*left + 1).read_to_string(&mut text);
    let len = read.map_err(words)? as u64;
    *left = left.checked_sub(len).ok_or_else(|| {
        format!(
            "{}: expected at most {FILE_BYTES_MAX} bytes with all that is included",
            path.display()
        )
    })?;
    Ok(text)
}

#[derive(Clone, Debug, PartialEq)]
enum Kind {
    /// A name, or a word such as `true`.
    Word(String),
    Text(String),
    Number(String),
    Mark(char),
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Kind::Word(word) | Kind::Number(word) => write!(f, "'{word}'"),
            // It may be a password.
            Kind::Text(_) => f.write_str("a string"),
            Kind::Mark(mark) => write!(f, "'{mark}'"),
        }
    }
}

#[derive(Clone, Debug)]
struct Token {
    kind: Kind,
    file: Rc<Path>,
    line: usize,
}

/// Cuts files into tokens.
struct Source {
    left: u64,
    tokens: Vec<Token>,
}

impl Source {
    fn add_file(&mut self, path: &Path, depth: usize) -> Result<(), String> {
        let text = text_of(path, &mut self.left)?;
        self.add_text(&text, path, depth)
    }

    fn add_text(&mut self, text: &str, path: &Path, depth: usize) -> Result<(), String> {
        let file: Rc<Path> = path.into();
        let mut cursor = Cursor {
            chars: text.chars().peekable(),
            line: 1,
        };
        loop {
            let place = |line: usize| format!("{}:{line}", path.display());
            let found = cursor.next();
            let line = cursor.line;
            match found.map_err(|why| format!("{}: {why}", place(line)))? {
                Found::End => return Ok(()),
                Found::Token(kind, line) => self.tokens.push(Token {
                    kind,
                    file: file.clone(),
                    line,
                }),
                Found::Include(_) if depth == INCLUDES_MAX => {
                    return Err(format!(
                        "{}: expected files to include each other {INCLUDES_MAX} deep at most",
                        place(line)
                    ));
                }
                Found::Include(name) => {
                    let mut included = PathBuf::from(path);
                    included.pop();
                    self.add_file(&included.join(name), depth + 1)
                        .map_err(|why| format!("{}: {why}", place(line)))?;
                }
            }
        }
    }
}

enum Found {
    Token(Kind, usize),
    Include(String),
    End,
}

/// Position up to which a text has been read.
struct Cursor<'a> {
    chars: Peekable<Chars<'a>>,
    line: usize,
}

impl Cursor<'_> {
    fn take(&mut self) -> Option<char> {
        let next = self.chars.next();
        self.line += usize::from(next == Some('\n'));
        next
    }

    fn take_while(&mut self, mut take: impl FnMut(char) -> bool) -> String {
        let mut taken = String::new();
        while let Some(next) = self.chars.next_if(|next| take(*next)) {
            self.line += usize::from(next == '\n');
            taken.push(next);
        }
        taken
    }

    fn next(&mut self) -> Result<Found, String> {
        loop {
            self.take_while(char::is_whitespace);
            let Some(&next) = self.chars.peek() else {
                return Ok(Found::End);
            };
            let line = self.line;
            match next {
                '#' => drop(self.take_while(|next| next != '\n')),
                '/' => self.comment()?,
                '"' => return Ok(Found::Token(Kind::Text(self.text()?), line)),
                '@' => return self.include(),
                '{' | '}' | '(' | ')' | '[' | ']' | '=' | ':' | ',' | ';' => {
                    self.take();
                    return Ok(Found::Token(Kind::Mark(next), line));
                }
                '0'..='9' | '-' | '+' | '.' => {
                    let number = self.take_while(|next| {
                        next.is_ascii_alphanumeric() || matches!(next, '-' | '+' | '.')
                    });
                    return Ok(Found::Token(Kind::Number(number), line));
                }
                _ if next.is_alphabetic() || matches!(next, '_' | '*') => {
                    let word = self.take_while(|next| {
                        next.is_alphanumeric() || matches!(next, '_' | '*' | '-')
                    });
                    return Ok(Found::Token(Kind::Word(word), line));
                }
                _ => return Err(format!("expected a setting, got '{next}'")),
            }
        }
    }

    fn comment(&mut self) -> Result<(), String> {
        self.take();
        match self.take() {
            Some('/') => drop(self.take_while(|next| next != '\n')),
            Some('*') => {
                let mut star = false;
                loop {
                    match self.take() {
                        Some('/') if star => break,
                        Some(next) => star = next == '*',
                        None => return Err("the file ends in a comment".into()),
                    }
                }
            }
            _ => return Err("expected a setting, got '/'".into()),
        }
        Ok(())
    }

    /// A string, and those that stand behind it: they are one.
    fn text(&mut self) -> Result<String, String> {
        let begin = self.line;
        self.take();
        let mut text = String::new();
        loop {
            match self.take() {
                Some('"') => return Ok(text),
                Some('\\') => match self.take() {
                    Some('n') => text.push('\n'),
                    Some('r') => text.push('\r'),
                    Some('t') => text.push('\t'),
                    Some('f') => text.push('\x0c'),
                    Some('x') => {
                        let digits: String = self.chars.by_ref().take(2).collect();
                        let byte = u8::from_str_radix(&digits, 16);
                        text.push(char::from(byte.map_err(|_| {
                            format!("expected two hexadecimal digits behind \\x, got '{digits}'")
                        })?));
                    }
                    Some(other) => text.push(other),
                    None => break,
                },
                Some(next) => text.push(next),
                None => break,
            }
        }
        Err(format!("the string that begins in line {begin} has no end"))
    }

    fn include(&mut self) -> Result<Found, String> {
        self.take();
        let word = self.take_while(char::is_alphanumeric);
        self.take_while(char::is_whitespace);
        if word != "include" || self.chars.peek() != Some(&'"') {
            return Err(format!("expected @include \"FILE\", got @{word}"));
        }
        Ok(Found::Include(self.text()?))
    }
}

fn parse(tokens: Vec<Token>) -> Result<Group, String> {
    let mut parser = Parser {
        last: tokens.last().cloned(),
        tokens: tokens.into_iter().peekable(),
        depth: 0,
    };
    let group = parser.settings()?;
    match parser.tokens.next() {
        None => Ok(group),
        Some(token) => Err(wrong(&token, "a setting")),
    }
}

fn wrong(token: &Token, expected: &str) -> String {
    format!(
        "{}:{}: expected {expected}, got {}",
        token.file.display(),
        token.line,
        token.kind
    )
}

struct Parser {
    tokens: Peekable<std::vec::IntoIter<Token>>,
    last: Option<Token>,
    depth: usize,
}

impl Parser {
    fn next(&mut self, expected: &str) -> Result<Token, String> {
        self.tokens.next().ok_or_else(|| match &self.last {
            Some(last) => format!(
                "{}:{}: expected {expected} behind {}, and the file ends",
                last.file.display(),
                last.line,
                last.kind
            ),
            None => format!("expected {expected}, and the file is empty"),
        })
    }

    fn is_next(&mut self, marks: &[char]) -> bool {
        let next = self.tokens.peek().map(|token| &token.kind);
        matches!(next, Some(Kind::Mark(mark)) if marks.contains(mark))
    }

    fn take(&mut self, marks: &[char]) -> bool {
        let is_next = self.is_next(marks);
        if is_next {
            self.tokens.next();
        }
        is_next
    }

    fn settings(&mut self) -> Result<Group, String> {
        let mut group = Group::new();
        while let Some(Token {
            kind: Kind::Word(name),
            ..
        }) = self
            .tokens
            .next_if(|token| matches!(token.kind, Kind::Word(_)))
        {
            let sign = self.next("'='")?;
            if !matches!(sign.kind, Kind::Mark('=' | ':')) {
                return Err(wrong(&sign, "'='"));
            }
            let value = self.value()?;
            self.take(&[';', ',']);
            group.push((name, value));
        }
        Ok(group)
    }

    fn value(&mut self) -> Result<Value, String> {
        let token = self.next("a value")?;
        if self.depth == DEPTH_MAX {
            return Err(wrong(&token, "values at most 64 deep"));
        }
        self.depth += 1;
        let value = match &token.kind {
            Kind::Mark('{') => self.settings().map(Value::Group),
            Kind::Mark('(') => self.list(')').map(Value::List),
            Kind::Mark('[') => self.list(']').map(Value::List),
            Kind::Text(text) => {
                let mut text = text.clone();
                while let Some(more) = self
                    .tokens
                    .next_if(|token| matches!(token.kind, Kind::Text(_)))
                {
                    if let Kind::Text(more) = more.kind {
                        text.push_str(&more);
                    }
                }
                Ok(Value::Text(text))
            }
            Kind::Word(word) if word.eq_ignore_ascii_case("true") => Ok(Value::Flag(true)),
            Kind::Word(word) if word.eq_ignore_ascii_case("false") => Ok(Value::Flag(false)),
            Kind::Number(number) => number_of(number).ok_or_else(|| wrong(&token, "a number")),
            _ => Err(wrong(&token, "a value")),
        };
        self.depth -= 1;
        let value = value?;
        if matches!(value, Value::Group(_)) {
            let end = self.next("'}'")?;
            if end.kind != Kind::Mark('}') {
                return Err(wrong(&end, "a setting or '}'"));
            }
        }
        Ok(value)
    }

    fn list(&mut self, end: char) -> Result<Vec<Value>, String> {
        let mut list = Vec::new();
        let expected = format!("',' or '{end}'");
        while !self.take(&[end]) {
            list.push(self.value()?);
            if !self.take(&[',']) && !self.is_next(&[end]) {
                let token = self.next(&expected)?;
                return Err(wrong(&token, &expected));
            }
        }
        Ok(list)
    }
}

fn number_of(text: &str) -> Option<Value> {
    let digits = text.trim_end_matches('L');
    let hex = digits.strip_prefix("0x").or(digits.strip_prefix("0X"));
    let integer = match hex {
        Some(hex) => i64::from_str_radix(hex, 16).ok(),
        None => digits.parse().ok(),
    };
    integer
        .map(Value::Integer)
        .or_else(|| text.parse().ok().map(Value::Real))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Group, String> {
        let mut source = Source {
            left: FILE_BYTES_MAX,
            tokens: Vec::new(),
        };
        source.add_text(text, Path::new("a.cnf"), 0)?;
        parse(source.tokens)
    }

    #[test]
    fn values_of_all_kinds_are_read() {
        let text = "a=1 b: -2; c = 0x10, d = 1.5\ne = true f = FALSE // to the end\n\
                    g = \"x\\\"y\" \"\\x41\\n\" /* a\ncomment */ h = [1, 2] # more\n\
                    i = ({ j = 10L }, ()) k = {}";
        let text_of = |text: &str| Value::Text(text.to_owned());
        let expected = [
            ("a", Value::Integer(1)),
            ("b", Value::Integer(-2)),
            ("c", Value::Integer(16)),
            ("d", Value::Real(1.5)),
            ("e", Value::Flag(true)),
            ("f", Value::Flag(false)),
            ("g", text_of("x\"yA\n")),
            ("h", Value::List(vec![Value::Integer(1), Value::Integer(2)])),
            (
                "i",
                Value::List(vec![
                    Value::Group(vec![("j".into(), Value::Integer(10))]),
                    Value::List(Vec::new()),
                ]),
            ),
            ("k", Value::Group(Group::new())),
        ];
        let expected: Group = expected.map(|(name, value)| (name.into(), value)).into();
        assert_eq!(of(text).unwrap(), expected);
        assert_eq!(of("").unwrap(), Group::new());
        assert_eq!(
            of("a = (1, 2,)").unwrap().len(),
            1,
            "a comma may end a list"
        );
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        for (text, why) in [
            (
                "a = 1\nb",
                "a.cnf:2: expected '=' behind 'b', and the file ends",
            ),
            ("a = 1\nb 2", "a.cnf:2: expected '=', got '2'"),
            (
                "a = ({x=1}\n{x=2})",
                "a.cnf:2: expected ',' or ')', got '{'",
            ),
            (
                "a = {\nx = 1\n",
                "a.cnf:2: expected '}' behind '1', and the file ends",
            ),
            ("a = {\n= 1}", "a.cnf:2: expected a setting or '}', got '='"),
            ("a = maybe", "a.cnf:1: expected a value, got 'maybe'"),
            ("a = 1.x", "a.cnf:1: expected a number, got '1.x'"),
            ("a = 1\n}", "a.cnf:2: expected a setting, got '}'"),
            ("p = \"secret\" : 1", "a.cnf:1: expected a setting, got ':'"),
            (
                "\"secret\" = 1",
                "a.cnf:1: expected a setting, got a string",
            ),
            (
                "a = \"x\n\n",
                "a.cnf:3: the string that begins in line 1 has no end",
            ),
            (
                "a = \"\\xZZ\"",
                "a.cnf:1: expected two hexadecimal digits behind \\x, got 'ZZ'",
            ),
            ("/* x", "a.cnf:1: the file ends in a comment"),
            ("a = 1 / 2", "a.cnf:1: expected a setting, got '/'"),
            (
                "@load \"x\"",
                "a.cnf:1: expected @include \"FILE\", got @load",
            ),
            ("a = 1 $", "a.cnf:1: expected a setting, got '$'"),
        ] {
            assert_eq!(of(text).unwrap_err(), why, "{text}");
        }
        let deep = |depth: usize| format!("a = {}{}", "(".repeat(depth), ")".repeat(depth));
        assert!(of(&deep(DEPTH_MAX)).is_ok());
        assert!(of(&deep(DEPTH_MAX + 1)).unwrap_err().contains("64 deep"));
    }

    #[test]
    fn a_text_that_ends_anywhere_is_read_or_refused() {
        let text = "a = { b: [1, 0x1F, \"x\\\"\" \"y\"], c = ({ d = true; }, (1.5)) } // e\n";
        assert!(of(text).is_ok());
        for len in 0..text.len() {
            let _ = of(&text[..len]);
        }
    }

    #[test]
    fn files_are_included_and_the_end_of_that_is_told() {
        let folder = std::env::temp_dir().join(format!("onramp-libconfig-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = |name: &str| folder.join(name);
        std::fs::write(file("a"), "x = 1\n@include \"b\"\nz = 3").unwrap();
        std::fs::write(file("b"), "y = 2").unwrap();
        std::fs::write(file("c"), "@include \"c\"").unwrap();
        std::fs::write(file("d"), "\n@include \"none\"").unwrap();
        let names: Vec<String> = (read(&file("a")).unwrap().into_iter())
            .map(|(name, _)| name)
            .collect();
        assert_eq!(names, ["x", "y", "z"]);
        assert!(read(&file("c")).unwrap_err().contains("10 deep at most"));
        assert!(read(&file("d")).unwrap_err().contains("d:2: "));
        std::fs::File::create(file("e"))
            .unwrap()
            .set_len(FILE_BYTES_MAX + 1)
            .unwrap();
        assert!(
            read(&file("e"))
                .unwrap_err()
                .contains("at most 16777216 bytes")
        );
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
