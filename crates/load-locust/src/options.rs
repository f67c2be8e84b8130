//! Options of a run that belongs to a Locust master.
//!
//! They are the same for statements and for long connections. What the words of `--locust-class`
//! mean is left to whoever starts the runs; here they are only split as a shell splits them.

use super::custom::Listener;
use clap::Args;

/// User classes of one worker.
const CLASSES_MAX: usize = 64;

/// Options that name the Locust master of a run.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Locust")]
pub struct LocustArgs {
    /// Be a worker of this Locust master; its users are connections of the workload, at most
    /// --connections
    #[arg(long = "locust-master", value_name = "HOST[:PORT]")]
    pub master: Option<String>,

    /// Be so many workers of the master, for it gives each the same share of the users
    #[arg(long, value_name = "N", default_value_t = 1, requires = "master",
          value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub workers: u32,

    /// Another class of users and what its users run: the words of another onramp load, as in
    /// 'Hold=tcp-hold --target tcp://HOST:PORT'; may be given again
    #[arg(long = "locust-class", value_name = "CLASS=WORDS", value_parser = read_class)]
    pub classes: Vec<(String, Vec<String>)>,

    /// Run this program for each message of this type that the locustfile sends, with the data as
    /// JSON on its standard input; may be given again
    #[arg(long = "locust-on", value_name = "TYPE=PROGRAM", requires = "master",
          value_parser = Listener::read)]
    pub listeners: Vec<Listener>,

    /// Print the locustfile that a master for this workload is started with, and end
    #[arg(long)]
    pub print_locustfile: bool,
}

impl LocustArgs {
    /// Refuses what cannot be meant.
    ///
    /// # Errors
    /// A sentence that says what to change.
    pub fn check(&self) -> Result<(), String> {
        if self.classes.len() > CLASSES_MAX {
            return Err(format!(
                "--locust-class is given {} times; a worker has at most {CLASSES_MAX} more classes",
                self.classes.len()
            ));
        }
        if !self.classes.is_empty() && self.master.is_none() && !self.print_locustfile {
            return Err(
                "--locust-class goes with --locust-master or --print-locustfile".to_owned(),
            );
        }
        let mut names: Vec<_> = self.classes.iter().map(|(name, _)| name).collect();
        names.sort_unstable();
        match names.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(format!("--locust-class defines {} twice", pair[0])),
            None => Ok(()),
        }
    }
}

fn read_class(text: &str) -> Result<(String, Vec<String>), String> {
    let (class, words) = text
        .split_once('=')
        .ok_or("expected CLASS=WORDS, as in 'Hold=tcp-hold --target tcp://HOST:PORT'")?;
    let first = class.bytes().next().unwrap_or(b'0');
    let is_name = !first.is_ascii_digit()
        && class
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if !is_name {
        return Err(format!(
            "expected the name of a Python class in front of '=', not '{class}'"
        ));
    }
    Ok((class.to_owned(), split(words)?))
}

/// Words as a shell splits them: blanks, '...', "..." and \ are understood, nothing else.
fn split(text: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Some(open), letter) if letter == open => quote = None,
            (None | Some('"'), '\\') => {
                let next = letters.next().ok_or("a \\ at the end stands for nothing")?;
                word.get_or_insert_default().push(next);
            }
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, letter) if letter.is_whitespace() => words.extend(word.take()),
            (_, letter) => word.get_or_insert_default().push(letter),
        }
    }
    if let Some(open) = quote {
        return Err(format!("a {open} is not closed"));
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_as_a_shell_does() {
        let words = |text| split(text).unwrap();
        assert_eq!(words("a  b"), ["a", "b"]);
        assert_eq!(
            words("--payload 'a b' \"c'd\" e\\ f ''"),
            ["--payload", "a b", "c'd", "e f", ""]
        );
        assert!(split("'a").unwrap_err().contains("not closed"));
        assert!(split("a\\").is_err());
    }

    #[test]
    fn a_class_is_a_python_name_and_words() {
        let (class, words) = read_class("Hold=tcp-hold --target tcp://h:1?a=b").unwrap();
        assert_eq!((&*class, words.len()), ("Hold", 3));
        for bad in ["Hold", "=x", "1A=x", "a b=x"] {
            assert!(read_class(bad).is_err(), "{bad}");
        }
    }
}
