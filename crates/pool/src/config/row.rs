//! A row of the table of settings, and how a value becomes what the pool runs on.
//!
//! The problem: a setting has a key in the file, perhaps an option, bounds, a default, a line in
//! `--help` and a place on the page of settings. Written down one by one they differ sooner or
//! later. The mechanism: [`table`] turns rows into a struct with a field for each row and into the
//! list of [`Row`]s, from which everything else is made: the reading of the file
//! ([`crate::config`]), the options ([`crate::config::options`]) and docs/pool/settings.md
//! (`page.rs`).
//!
//! A value keeps the place where it was written ([`At`]), so that an error about it can name the
//! line or the option. Invariant: no error and no `Debug` text shows a password.

use crate::auth::secret::Secret;
use reactor::Address;
use std::collections::BTreeMap;
use std::fmt;
use std::num::ParseIntError;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Milliseconds of a day, the most that a time in milliseconds may be.
pub(crate) const DAY_MS: u64 = 86_400_000;
/// Seconds of a year, the most that a time in seconds may be.
pub(crate) const YEAR_S: u64 = 31_536_000;
/// The most that a number of bytes or things may be that has no other bound.
pub(crate) const MANY: u64 = 1 << 50;

/// Unit of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Milliseconds,
    Seconds,
    Of(&'static str),
}

impl Unit {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Unit::Milliseconds => "milliseconds",
            Unit::Seconds => "seconds",
            Unit::Of(name) => name,
        }
    }
}

/// Values that may be written for a setting.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Number {
        unit: Unit,
        min: u64,
        max: u64,
    },
    Switch,
    OneOf(&'static [&'static str]),
    /// Text; says what is expected.
    Text(&'static str),
    /// Texts; one text alone stands for a list of one.
    List(&'static str),
    Password,
    /// A password, or two of them.
    Passwords,
}

/// Value in force where nothing is written.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Absent {
    Number(u64),
    Text(&'static str),
    Switch(bool),
    /// `None`; says what that means.
    Nothing(&'static str),
    /// Something has to be written; what is expected.
    Needed(&'static str),
}

/// A setting.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    /// The heading on the page under which it stands.
    #[cfg_attr(not(test), expect(dead_code, reason = "shown by the page alone"))]
    pub(crate) section: &'static str,
    /// The name of its field in the struct.
    pub(crate) field: &'static str,
    pub(crate) key: &'static str,
    /// Description: the first paragraph is its help too.
    pub(crate) text: &'static str,
    pub(crate) kind: Kind,
    pub(crate) default: Absent,
    /// Value's name in `--help` where it is an option too.
    pub(crate) option: Option<&'static str>,
    /// Meaning of 0, where that is no number like the others.
    pub(crate) zero: Option<&'static str>,
    /// A word that may stand in place of a number, and what it means.
    pub(crate) word: Option<(&'static str, &'static str)>,
    /// The words for the least value and the default, where a number does not say it all.
    pub(crate) min_words: Option<&'static str>,
    pub(crate) default_words: Option<&'static str>,
    /// True if it is read at start only.
    pub(crate) is_fixed: bool,
    /// A user's setting that is also one of the whole pool, for users that do not set it; the
    /// heading under which it stands there.
    pub(crate) for_all: Option<&'static str>,
}

impl Row {
    pub(crate) const fn new(section: &'static str, field: &'static str, text: &'static str) -> Row {
        Row {
            section,
            field,
            key: field,
            text,
            kind: Kind::Switch,
            default: Absent::Nothing(""),
            option: None,
            zero: None,
            word: None,
            min_words: None,
            default_words: None,
            is_fixed: false,
            for_all: None,
        }
    }

    /// The key, where it is not the name of the field.
    pub(crate) const fn key(mut self, key: &'static str) -> Row {
        self.key = key;
        self
    }

    pub(crate) const fn number(self, unit: &'static str, min: u64, max: u64) -> Row {
        self.of(Kind::Number {
            unit: Unit::Of(unit),
            min,
            max,
        })
    }

    /// A time, up to a day.
    /// It is read at start only.
    pub(crate) const fn fixed(mut self) -> Row {
        self.is_fixed = true;
        self
    }

    pub(crate) const fn milliseconds(self, min: u64) -> Row {
        self.of(Kind::Number {
            unit: Unit::Milliseconds,
            min,
            max: DAY_MS,
        })
    }

    pub(crate) const fn seconds(self, min: u64, max: u64) -> Row {
        self.of(Kind::Number {
            unit: Unit::Seconds,
            min,
            max,
        })
    }

    pub(crate) const fn of(mut self, kind: Kind) -> Row {
        self.kind = kind;
        self
    }

    pub(crate) const fn or(mut self, default: Absent) -> Row {
        self.default = default;
        self
    }

    pub(crate) const fn or_number(self, default: u64) -> Row {
        self.or(Absent::Number(default))
    }

    /// `None` where nothing is written, which means this.
    pub(crate) const fn or_nothing(self, means: &'static str) -> Row {
        self.or(Absent::Nothing(means))
    }

    pub(crate) const fn needed(self, expected: &'static str) -> Row {
        self.or(Absent::Needed(expected))
    }

    pub(crate) const fn option(mut self, value_name: &'static str) -> Row {
        self.option = Some(value_name);
        self
    }

    pub(crate) const fn zero(mut self, means: &'static str) -> Row {
        self.zero = Some(means);
        self
    }

    /// Allows a word in place of the number.
    pub(crate) const fn or_word(mut self, word: &'static str, means: &'static str) -> Row {
        self.word = Some((word, means));
        self
    }

    pub(crate) const fn min_words(mut self, words: &'static str) -> Row {
        self.min_words = Some(words);
        self
    }

    pub(crate) const fn default_words(mut self, words: &'static str) -> Row {
        self.default_words = Some(words);
        self
    }

    pub(crate) const fn for_all(mut self, section: &'static str) -> Row {
        self.for_all = Some(section);
        self
    }

    /// The name of its option.
    pub(crate) fn option_name(&self) -> String {
        self.key.replace('_', "-")
    }

    /// True if it is the word that may stand in place of its number.
    pub(crate) fn is_word(&self, text: &str) -> bool {
        self.word.is_some_and(|(word, _)| word == text)
    }

    /// Its value as a text has it: a number, or the word that may stand in its place.
    pub(crate) fn number_from(&self, text: &str) -> Result<Value, ParseIntError> {
        match self.is_word(text) {
            true => Ok(Value::Text(text.to_owned())),
            false => text.parse().map(Value::Number),
        }
    }

    /// True if a text is what is shown of it where nothing is written ("no limit").
    pub(crate) fn is_default_shown(&self, text: &str) -> bool {
        let default = self.default_shown();
        !default.is_empty() && default.eq_ignore_ascii_case(text)
    }

    /// Value that a text stands for, if any: names of a list have commas between them.
    pub(crate) fn value_from(&self, text: &str) -> Option<Value> {
        match self.kind {
            Kind::Number { .. } => self.number_from(text).ok(),
            Kind::Switch => match text.to_ascii_lowercase().as_str() {
                "true" | "on" | "1" => Some(Value::Switch(true)),
                "false" | "off" | "0" => Some(Value::Switch(false)),
                _ => None,
            },
            Kind::OneOf(_) | Kind::Text(_) => Some(Value::Text(text.to_owned())),
            Kind::List(_) => {
                let names = text.split(',').map(str::trim);
                let names = names.filter(|name| !name.is_empty());
                Some(Value::List(names.map(str::to_owned).collect()))
            }
            Kind::Password | Kind::Passwords => None,
        }
    }

    /// Expected values, in the words of an error.
    pub(crate) fn expected(&self) -> String {
        match self.kind {
            Kind::Number { min, max, .. } => {
                let word = self.word.map(|(word, _)| format!(", or \"{word}\""));
                format!("a number from {min} to {max}{}", word.unwrap_or_default())
            }
            Kind::Switch => "true or false".into(),
            Kind::OneOf(names) => match names.split_last() {
                Some((last, others)) => format!("{} or {last}", others.join(", ")),
                None => String::new(),
            },
            Kind::Text(form) | Kind::List(form) => form.into(),
            Kind::Password => "a password".into(),
            Kind::Passwords => "a password, or a list of two".into(),
        }
    }

    /// The first paragraph of its description with its bounds and default, for `--help`.
    pub(crate) fn help(&self) -> String {
        let first = self.text.split("\n\n").next().unwrap_or_default();
        let words: Vec<&str> = first.split_whitespace().collect();
        let text = words.join(" ");
        let text = text.strip_suffix('.').unwrap_or(&text);
        let bounds = match self.kind {
            Kind::Number { unit, min, max } => {
                let (min, max) = (grouped(min), grouped(max));
                let word = (self.word).map(|(word, means)| format!(", or {word}: {means}"));
                let word = word.unwrap_or_default();
                Some(format!("{min} to {max} {}{word}", unit.name()))
            }
            _ => None,
        };
        let default = match self.default {
            Absent::Needed(_) => None,
            _ => Some(format!("default: {}", self.default_shown())),
        };
        let facts: Vec<String> = bounds.into_iter().chain(default).collect();
        match facts.is_empty() {
            true => text.to_owned(),
            false => format!("{text} [{}]", facts.join("; ")),
        }
    }

    /// The default in words.
    pub(crate) fn default_shown(&self) -> String {
        match (self.default_words, self.default) {
            (Some(words), _) => words.into(),
            (None, Absent::Number(number)) => grouped(number),
            (None, Absent::Text(text) | Absent::Nothing(text)) => text.into(),
            (None, Absent::Switch(on)) => on.to_string(),
            (None, Absent::Needed(_)) => "none: needed".into(),
        }
    }

    /// The default as it is written: its number without separators.
    pub(crate) fn default_plain(&self) -> String {
        match (self.default_words, self.default) {
            (None, Absent::Number(number)) => number.to_string(),
            _ => self.default_shown(),
        }
    }

    fn bounded(&self, number: u64) -> Result<u64, String> {
        let Kind::Number { min, max, .. } = self.kind else {
            return Ok(number);
        };
        if (min..=max).contains(&number) {
            return Ok(number);
        }
        let zero = match self.zero {
            Some(means) if min > 0 => format!(" (0: {means})"),
            _ => String::new(),
        };
        Err(format!("expected {}, got {number}{zero}", self.expected()))
    }
}

/// A number with commas between its thousands; a large power of two as that.
pub(crate) fn grouped(number: u64) -> String {
    if number.is_power_of_two() && number >= 1 << 40 {
        return format!("2^{}", number.trailing_zeros());
    }
    measure::number::thousands(number)
}

/// A value as it was written.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Number(u64),
    Text(String),
    Switch(bool),
    List(Vec<String>),
    Secret(Secret),
    Secrets(Vec<Secret>),
}

/// Place where something is written.
#[derive(Clone, Debug)]
pub(crate) enum At {
    Line {
        file: Option<Arc<str>>,
        number: usize,
        /// Column in characters, from 1.
        column: usize,
    },
    Option(String),
    /// SET at the console.
    Console,
}

impl At {
    /// An error about what is written there under this name.
    pub(crate) fn error(&self, name: &str, why: &str) -> String {
        match self {
            At::Line { .. } => format!("{self}: {name}: {why}"),
            At::Option(_) => format!("{self}: {why}"),
            At::Console => format!("SET {name}: {why}"),
        }
    }
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            At::Line {
                file,
                number,
                column,
            } => {
                if let Some(file) = file {
                    write!(f, "{file}: ")?;
                }
                write!(f, "line {number}, column {column}")
            }
            At::Option(name) => write!(f, "{name}"),
            At::Console => f.write_str("console"),
        }
    }
}

/// Text shown in place of a password.
const HIDDEN: &str = "***";

/// Settings written in one place: values by key.
#[derive(Clone, Debug, Default)]
pub(crate) struct Keys {
    /// Prefix of a key in errors: `backend.`, or the name of its user.
    pub(crate) prefix: String,
    /// Place where it begins.
    pub(crate) at: Option<At>,
    values: BTreeMap<&'static str, (Value, At)>,
    /// Earlier values of those that the console has changed: a value, or nothing.
    replaced: BTreeMap<&'static str, Option<(Value, At)>>,
}

impl Keys {
    pub(crate) fn of(prefix: &str) -> Keys {
        Keys {
            prefix: prefix.into(),
            ..Keys::default()
        }
    }

    pub(crate) fn set(&mut self, key: &'static str, value: Value, at: At) {
        self.values.insert(key, (value, at));
    }

    /// Puts another value in place of what is written; none is the default.
    pub(crate) fn replace(&mut self, key: &'static str, value: Option<(Value, At)>) {
        let before = match value {
            Some(value) => self.values.insert(key, value),
            None => self.values.remove(key),
        };
        self.replaced.entry(key).or_insert(before);
    }

    /// Puts back what was written.
    pub(crate) fn put_back(&mut self, key: &'static str) {
        match self.replaced.remove(key) {
            Some(Some(written)) => self.values.insert(key, written),
            Some(None) => self.values.remove(key),
            None => None,
        };
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Value> {
        self.values.get(key).map(|(value, _)| value)
    }

    /// Takes the values of `others` in place of its own.
    pub(crate) fn override_with(&mut self, others: Keys) {
        self.values.extend(others.values);
    }

    /// A row's value as written here, and where; no password.
    pub(crate) fn shown(&self, row: &Row) -> Option<(String, String)> {
        let (value, at) = self.values.get(row.key)?;
        let value = match value {
            Value::Number(number) => number.to_string(),
            Value::Switch(on) => on.to_string(),
            Value::Text(text) => text.clone(),
            Value::List(texts) => texts.join(", "),
            Value::Secret(_) | Value::Secrets(_) => HIDDEN.to_owned(),
        };
        let value = match row.key {
            "password_hash" => HIDDEN.to_owned(),
            _ => value,
        };
        Some((value, at.to_string()))
    }

    /// An error about what is written here, with the place of the key that it begins with, or else
    /// of the whole table.
    pub(crate) fn placed(&self, error: impl Into<String>) -> String {
        let error = error.into();
        let named = error.strip_prefix(&self.prefix).unwrap_or_default();
        let is_of_key = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let end = named.find(|c| !is_of_key(c)).unwrap_or(named.len());
        let written = self.values.get(&named[..end]).map(|(_, at)| at);
        match written.or(self.at.as_ref()) {
            Some(at) => format!("{at}: {error}"),
            None => error,
        }
    }

    /// The key's name in errors.
    pub(crate) fn name_of(&self, key: &str) -> String {
        format!("{}{key}", self.prefix)
    }
}

/// The value of a row: as written in `keys`, for a row that is also one of the whole pool as
/// written in `above`, or the default.
pub(crate) fn take<T: FromValue>(
    row: &Row,
    keys: &Keys,
    above: Option<&Keys>,
) -> Result<T, String> {
    let above = above.filter(|_| row.for_all.is_some());
    let written = [Some(keys), above]
        .into_iter()
        .flatten()
        .find_map(|k| Some((k, k.values.get(row.key)?)));
    if let Some((keys, (value, at))) = written {
        return T::from_value(row, value).map_err(|why| at.error(&keys.name_of(row.key), &why));
    }
    let default = match row.default {
        Absent::Number(number) => T::from_value(row, &Value::Number(number)),
        Absent::Text(text) => T::from_value(row, &Value::Text(text.into())),
        Absent::Switch(on) => T::from_value(row, &Value::Switch(on)),
        Absent::Nothing(_) => T::nothing().ok_or_else(|| format!("expected {}", row.expected())),
        Absent::Needed(expected) => Err(format!("expected {expected}")),
    };
    let name = keys.name_of(row.key);
    default.map_err(|why| match &keys.at {
        Some(at) => at.error(&name, &why),
        None => format!("{name}: {why}"),
    })
}

/// Type that a value can become. Errors say what was expected, without the key.
pub(crate) trait FromValue: Sized {
    fn from_value(row: &Row, value: &Value) -> Result<Self, String>;

    /// Value where nothing is written and there is no default.
    fn nothing() -> Option<Self> {
        None
    }
}

/// Refuses a value of another type than the row's: cannot be, since types are checked when a file
/// is read.
pub(crate) fn wrong_type<T>(row: &Row) -> Result<T, String> {
    Err(format!("expected {}", row.expected()))
}

impl<T: FromValue> FromValue for Option<T> {
    fn from_value(row: &Row, value: &Value) -> Result<Self, String> {
        if matches!(value, Value::Number(0)) && row.zero.is_some() {
            return Ok(None);
        }
        T::from_value(row, value).map(Some)
    }

    fn nothing() -> Option<Self> {
        Some(None)
    }
}

macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl FromValue for $number {
            fn from_value(row: &Row, value: &Value) -> Result<Self, String> {
                let Value::Number(number) = value else {
                    return wrong_type(row);
                };
                let number = row.bounded(*number)?;
                let fits = <$number>::try_from(number);
                fits.map_err(|_| format!("{number} is too large for this machine"))
            }
        }
    )*};
}

numbers!(usize, u64, u32, i32);

impl FromValue for Duration {
    fn from_value(row: &Row, value: &Value) -> Result<Self, String> {
        let number = u64::from_value(row, value)?;
        Ok(match row.kind {
            Kind::Number {
                unit: Unit::Seconds,
                ..
            } => Duration::from_secs(number),
            _ => Duration::from_millis(number),
        })
    }
}

impl FromValue for bool {
    fn from_value(row: &Row, value: &Value) -> Result<Self, String> {
        match value {
            Value::Switch(on) => Ok(*on),
            _ => wrong_type(row),
        }
    }
}

impl FromValue for String {
    fn from_value(row: &Row, value: &Value) -> Result<Self, String> {
        match value {
            Value::Text(text) => Ok(text.clone()),
            _ => wrong_type(row),
        }
    }
}

impl FromValue for PathBuf {
    fn from_value(row: &Row, value: &Value) -> Result<Self, String> {
        String::from_value(row, value).map(PathBuf::from)
    }
}

impl FromValue for Secret {
    fn from_value(row: &Row, value: &Value) -> Result<Self, String> {
        match value {
            Value::Secret(secret) => Ok(secret.clone()),
            _ => wrong_type(row),
        }
    }
}

/// One value of a user, two during a rotation: passwords, or the places they stand in.
#[derive(Clone, Debug)]
pub(crate) struct UpToTwo<T>(pub(crate) Vec<T>);

/// Passwords that open the pool for one user at most.
const PASSWORDS_MAX: usize = 2;

impl FromValue for UpToTwo<Secret> {
    fn from_value(row: &Row, value: &Value) -> Result<Self, String> {
        match value {
            Value::Secret(secret) => Ok(UpToTwo(vec![secret.clone()])),
            Value::Secrets(secrets) if secrets.len() == PASSWORDS_MAX => {
                Ok(UpToTwo(secrets.clone()))
            }
            _ => wrong_type(row),
        }
    }

    fn nothing() -> Option<Self> {
        Some(UpToTwo(Vec::new()))
    }
}

impl FromValue for UpToTwo<String> {
    fn from_value(row: &Row, value: &Value) -> Result<Self, String> {
        match value {
            Value::List(texts) if (1..=PASSWORDS_MAX).contains(&texts.len()) => {
                Ok(UpToTwo(texts.clone()))
            }
            _ => wrong_type(row),
        }
    }

    fn nothing() -> Option<Self> {
        Some(UpToTwo(Vec::new()))
    }
}

impl FromValue for Vec<Address> {
    fn from_value(row: &Row, value: &Value) -> Result<Self, String> {
        match (value, row.default) {
            (Value::List(texts), Absent::Needed(expected)) if texts.is_empty() => {
                Err(format!("expected {expected}"))
            }
            (Value::List(texts), _) => texts.iter().map(|text| Address::parse(text)).collect(),
            _ => wrong_type(row),
        }
    }
}

/// A value that is one of a few names.
pub(crate) fn named<T>(
    row: &Row,
    value: &Value,
    from_name: impl Fn(&str) -> Option<T>,
) -> Result<T, String> {
    match value {
        Value::Text(text) => {
            from_name(text).ok_or_else(|| format!("expected {}, got '{text}'", row.expected()))
        }
        _ => wrong_type(row),
    }
}

/// Makes a struct with a field for each row, the list of the rows, and `from_keys`, which fills the
/// one by the other. Fields under `made` have no row of their own and are handed to `from_keys`.
macro_rules! table {
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident, $rows:ident {
            $( made { $( $(#[$made_doc:meta])* $made:ident: $made_type:ty, )* } )?
            $( section $section:literal {
                $( $(#[doc = $doc:literal])+ $field:ident: $type:ty { $($row:tt)+ } )*
            } )*
        }
    ) => {
        $(#[$meta])*
        $vis struct $name {
            $( $( $(#[$made_doc])* pub $made: $made_type, )* )?
            $( $( $(#[doc = $doc])+ pub $field: $type, )* )*
        }

        pub(crate) static $rows: &[Row] = &[
            $( $(
                Row::new($section, stringify!($field), concat!($($doc, "\n"),+)) $($row)+,
            )* )*
        ];

        impl $name {
            /// Puts the values of others in place of those that are read at start only.
            #[allow(dead_code, reason = "one struct of several needs it")]
            pub(crate) fn keep_what_is_fixed(&mut self, others: &$name) {
                let is_fixed = |field| row_of($rows, field).is_ok_and(|row| row.is_fixed);
                $( $(
                    if is_fixed(stringify!($field)) {
                        self.$field = others.$field.clone();
                    }
                )* )*
            }

            /// Notes what is wrong with each value by itself.
            pub(crate) fn note_mistakes(
                keys: &Keys,
                above: Option<&Keys>,
                note: &mut dyn FnMut(String),
            ) {
                $( $(
                    let row = row_of($rows, stringify!($field));
                    if let Err(why) = row.and_then(|row| take::<$type>(row, keys, above)) {
                        note(why);
                    }
                )* )*
            }

            #[allow(clippy::too_many_arguments, reason = "one for each field that is made")]
            /// Reads the settings that are written in `keys`, and, where a row says so, in `above`.
            pub(crate) fn from_keys(
                keys: &Keys,
                above: Option<&Keys>,
                $( $( $made: $made_type, )* )?
            ) -> Result<$name, String> {
                let row = |field| row_of($rows, field);
                Ok($name {
                    $( $( $made, )* )?
                    $( $( $field: take(row(stringify!($field))?, keys, above)?, )* )*
                })
            }
        }
    };
}
pub(crate) use table;

/// The row of a field.
pub(crate) fn row_of(rows: &'static [Row], field: &str) -> Result<&'static Row, String> {
    let row = rows.iter().find(|row| row.field == field);
    row.ok_or_else(|| format!("{field}: there is no such setting"))
}
