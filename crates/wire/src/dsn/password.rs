//! Passwords beside a DSN: in a file or in the environment, and where one stands in a word.
//!
//! A password in a command line is seen by every account of the host (`ps`), so a DSN may name a
//! file or a variable of the environment instead. This module reads them, says who else may read
//! the file, and finds passwords in words that are about to be shown or kept.
//!
//! Invariant: no error shows what was read.

use std::ops::Range;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// The longest password of a file, in bytes, its end of line included.
pub const FILE_BYTES_MAX: u64 = 4096;
/// Permission bits with which everybody can read a file, and with which its group can.
const READABLE_BY_ALL: u32 = 0o004;
const READABLE_BY_GROUP: u32 = 0o040;

/// Place of a DSN's password.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Source {
    /// No password here: the account has none, or it is known from elsewhere.
    #[default]
    Nowhere,
    /// DSN itself; its password may be empty.
    Text,
    /// File of this name.
    File(String),
    /// Variable of the environment.
    Env(String),
}

/// The password that a file holds: its only line.
///
/// # Errors
/// A sentence that names the file.
pub fn of_file(path: &str) -> Result<String, String> {
    let bytes = files::bytes(Path::new(path), FILE_BYTES_MAX)
        .map_err(|why| format!("password_file {path}: {why}"))?;
    let wrong = |what: &str| Err(format!("password_file {path}: expected one line, {what}"));
    let Ok(mut text) = String::from_utf8(bytes) else {
        return wrong("in UTF-8; it is not");
    };
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    match text.as_str() {
        "" => wrong("the password; it is empty"),
        text if text.contains('\n') => wrong("the password; it has several"),
        text if text.contains('\0') => wrong("without a NUL byte; it has one"),
        _ => Ok(text),
    }
}

/// The password that a variable of the environment holds.
///
/// # Errors
/// A sentence that names the variable.
pub fn of_env(name: &str) -> Result<String, String> {
    match std::env::var(name) {
        Ok(text) if text.is_empty() => Err(format!(
            "password_env {name}: the variable of the environment is empty"
        )),
        Ok(text) => Ok(text),
        Err(std::env::VarError::NotPresent) => Err(format!(
            "password_env {name}: there is no such variable in the environment"
        )),
        Err(std::env::VarError::NotUnicode(_)) => Err(format!(
            "password_env {name}: the variable of the environment is not UTF-8"
        )),
    }
}

/// A sentence about a file with secrets that others than its owner can read; None where nobody can,
/// or where it is no regular file.
#[must_use]
pub fn seen_by_others(path: &Path, what: &str) -> Option<String> {
    let file = std::fs::metadata(path).ok()?;
    seen(file.is_file(), file.uid(), file.mode() & 0o777, path, what)
}

/// Complaint about a file that others can read. One of root is read by the account that needs it
/// through its group, so its group is that account's: the rule of PostgreSQL for the file of a
/// private key.
fn seen(is_file: bool, owner: u32, mode: u32, path: &Path, what: &str) -> Option<String> {
    let (readers, bits, better) = match owner {
        0 => ("everybody", READABLE_BY_ALL, "o-r"),
        _ => (
            "its group or everybody",
            READABLE_BY_ALL | READABLE_BY_GROUP,
            "600",
        ),
    };
    (is_file && mode & bits != 0).then(|| {
        let path = path.display();
        format!(
            "{path} has {what}, and {readers} can read it (mode {mode:04o}): chmod {better} {path}"
        )
    })
}

/// Range of a password in a word of a command line: in a DSN, wherever that begins in the word, or
/// in sysbench's `--mysql-password=`. A word that cannot be read as a DSN is judged for safety's
/// sake: everything between a first `:` and a last `@` counts.
#[must_use]
pub fn place_in(word: &[u8]) -> Option<Range<usize>> {
    const OPTION: &[u8] = b"--mysql-password=";
    if let Some(password) = word.strip_prefix(OPTION) {
        return (!password.is_empty()).then_some(OPTION.len()..word.len());
    }
    let scheme = super::SCHEME.as_bytes();
    let start = word
        .windows(scheme.len())
        .position(|part| part.eq_ignore_ascii_case(scheme))?
        + scheme.len();
    let rest = &word[start..];
    let login_end = rest.iter().position(|byte| b"/?".contains(byte));
    let authority = &rest[..login_end.unwrap_or(rest.len())];
    let last_at = |text: &[u8]| text.iter().rposition(|byte| *byte == b'@');
    let end = last_at(authority).or_else(|| last_at(rest))?;
    let colon = rest[..end].iter().position(|byte| *byte == b':')?;
    (colon + 1 < end).then_some(start + colon + 1..start + end)
}

/// The word with its password left out, fit to be shown.
#[must_use]
pub fn without(word: &str) -> String {
    let Some(place) = place_in(word.as_bytes()) else {
        return word.to_owned();
    };
    // Both ends are ASCII marks, so they do not cut a letter.
    format!("{}***{}", &word[..place.start], &word[place.end..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;

    fn file(name: &str, bytes: &[u8]) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("onramp-password-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }

    #[test]
    fn a_file_holds_a_password_in_one_line() {
        let read = |bytes: &[u8]| of_file(file("one", bytes).to_str().unwrap());
        assert_eq!(read(b"p@ss w:rd").unwrap(), "p@ss w:rd");
        assert_eq!(read(b"secret\n").unwrap(), "secret");
        assert_eq!(read(b"secret\r\n").unwrap(), "secret");
        assert_eq!(read(b" secret \n").unwrap(), " secret ");
        let longest = vec![b'x'; usize::try_from(FILE_BYTES_MAX).unwrap()];
        assert_eq!(read(&longest).unwrap().len() as u64, FILE_BYTES_MAX);
        for (bytes, expected) in [
            (&b""[..], "is empty"),
            (b"\n", "is empty"),
            (b"secret\nsecret\n", "several"),
            (b"secret\n\n", "several"),
            (b"secret\xff", "UTF-8"),
            (b"secret\0", "NUL"),
            (&[longest, b"x".to_vec()].concat(), "at most 4096 bytes"),
        ] {
            let error = read(bytes).unwrap_err();
            assert!(error.contains(expected), "{error}");
            assert!(error.starts_with("password_file /"), "{error}");
            assert!(!error.contains("secret"), "{error}");
        }
        let error = of_file("/nowhere/password").unwrap_err();
        assert!(error.contains("/nowhere/password: No such file"), "{error}");
        let error = of_file("/dev/zero").unwrap_err();
        assert!(
            error.contains("/dev/zero: expected a regular file"),
            "{error}"
        );
    }

    #[test]
    fn a_variable_of_the_environment_holds_a_password() {
        assert!(!of_env("PATH").unwrap().is_empty());
        let error = of_env("ONRAMP_NO_SUCH_VARIABLE").unwrap_err();
        assert!(error.contains("no such variable"), "{error}");
    }

    #[test]
    fn a_file_that_others_can_read_is_named() {
        let with = |owner, mode| seen(true, owner, mode, "/etc/pool.toml".as_ref(), "passwords");
        for (owner, modes) in [
            (7, &[0o600, 0o400, 0o711][..]),
            (0, &[0o600, 0o640, 0o660, 0o751]),
        ] {
            for mode in modes {
                assert_eq!(with(owner, *mode), None, "{owner} {mode:04o}");
            }
        }
        for (owner, modes, advice) in [
            (
                7,
                &[0o640, 0o604, 0o644, 0o664][..],
                "chmod 600 /etc/pool.toml",
            ),
            (0, &[0o604, 0o644], "chmod o-r /etc/pool.toml"),
        ] {
            for mode in modes {
                let said = with(owner, *mode).unwrap();
                assert!(said.contains(&format!("mode {mode:04o}")), "{said}");
                assert!(
                    said.contains("has passwords") && said.ends_with(advice),
                    "{said}"
                );
            }
        }
        let path = file("open", b"secret");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
        assert!(seen_by_others(&path, "passwords").is_some());
        assert_eq!(seen_by_others("/dev/null".as_ref(), "passwords"), None);
    }

    #[test]
    fn a_password_is_found_in_a_word() {
        for (word, shown) in [
            ("mysql://app:secret@h:1/db", "mysql://app:***@h:1/db"),
            (
                "--backend=mysql://app:secret@h",
                "--backend=mysql://app:***@h",
            ),
            ("mysql://a:se:cr@et@[::1]:3306", "mysql://a:***@[::1]:3306"),
            (
                "mysql://a:s@h?socket=/x@y:z",
                "mysql://a:***@h?socket=/x@y:z",
            ),
            ("mysql://a:se/cret@h/db", "mysql://a:***@h/db"),
            ("mysql://a:secr?et@h/db", "mysql://a:***@h/db"),
            ("MySQL://a:secret@h", "MySQL://a:***@h"),
            ("--mysql-password=secret", "--mysql-password=***"),
            ("mysql://a:sécret@h", "mysql://a:***@h"),
        ] {
            assert_eq!(without(word), shown);
        }
        for word in [
            "mysql://app@h:3306/db",
            "mysql://app:@h:3306/db",
            "mysql://app@[::1]:3306",
            "mysql://h:3306/db",
            "app:secret@h",
            "--mysql-password=",
            "pool",
        ] {
            assert_eq!(place_in(word.as_bytes()), None, "{word}");
        }
    }
}
