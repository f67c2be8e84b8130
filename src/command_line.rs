//! The command line: read once, with the passwords in it taken out of everybody else's sight.
//!
//! Every account of the host can read the arguments of every process. So a password in a DSN is
//! overwritten where the kernel reads it, before anything else is done, and a warning says how to
//! do without. It is also kept out of the errors about arguments, which repeat what they are about.

use clap::error::{ContextValue, Error};
use reactor::arguments;
use std::ffi::OsString;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use wire::dsn::password;

/// Advice in place of a password in a DSN.
const INSTEAD: &str = "name a file with ?password_file=FILE at the DSN's end, or a variable of the \
     environment with ?password_env=NAME";

/// The arguments as they were typed; others no longer see passwords in them.
pub(crate) fn read() -> Vec<OsString> {
    let words: Vec<OsString> = std::env::args_os().collect();
    let concealed = arguments::conceal(password::place_in);
    // sysbench's own option stays as it is in sysbench's scripts.
    let is_in_dsn = |word: &OsString| {
        let word = word.as_bytes();
        password::place_in(word).is_some() && !word.starts_with(b"--mysql-password=")
    };
    let name = words.get(1).and_then(|word| word.to_str());
    let name = name.unwrap_or_default();
    match concealed {
        Ok(_) if words.iter().any(is_in_dsn) => warn(
            name,
            &format!(
                "a password in the command line stays in the shell's history, and every account \
                 of this host could read it until now; {INSTEAD}"
            ),
        ),
        Ok(_) => {}
        Err(error) => warn(
            name,
            &format!(
                "every account of this host can read the password in the command line, which \
                 cannot be overwritten ({error}); {INSTEAD}"
            ),
        ),
    }
    words
}

/// Writes a warning to standard error.
pub(crate) fn warn(name: &str, text: &str) {
    let _ = writeln!(std::io::stderr(), "onramp {name}: warning: {text}");
}

/// The error without the passwords that the arguments held.
pub(crate) fn without_passwords(mut error: Error) -> Error {
    let masked: Vec<_> = error
        .context()
        .filter_map(|(kind, value)| match value {
            ContextValue::String(text) => {
                Some((kind, ContextValue::String(password::without(text))))
            }
            ContextValue::Strings(texts) => {
                let texts = texts.iter().map(|text| password::without(text)).collect();
                Some((kind, ContextValue::Strings(texts)))
            }
            _ => None,
        })
        .collect();
    for (kind, value) in masked {
        error.insert(kind, value);
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser as _;

    #[test]
    fn an_error_does_not_repeat_a_password() {
        for words in [
            &[
                "onramp",
                "load",
                "select",
                "run",
                "--target",
                "mysql://a:hush@h:0/t",
            ][..],
            &[
                "onramp",
                "load",
                "select",
                "run",
                "--target=mysql://a:hush@h:0/t",
            ],
            &["onramp", "load", "select", "run", "mysql://a:hush@h/t"],
            &["onramp", "doctor", "--target=mysql://a:hush@h?sock=1"],
            &["onramp", "mysql://a:hush@h"],
            &["onramp", "pool", "--groups", "mysql://a:hush@h"],
        ] {
            let error = crate::Cli::try_parse_from(words).err().unwrap();
            let text = without_passwords(error).render().to_string();
            assert!(!text.contains("hush"), "{text}");
            assert!(text.starts_with("error: "), "{text}");
        }
    }
}
