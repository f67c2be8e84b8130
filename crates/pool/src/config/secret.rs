//! Passwords: text that no `Debug` output shows, and where the configuration has it from.
//!
//! Settings, pool keys and what the user typed are printed by `{:?}` in tests and may be in
//! logs one day; a password in them must not be. A password may stand in the configuration itself,
//! in a file, or in the environment; [`Typed::take`] makes one of the three.

use std::fmt;
use std::ops::Deref;
use std::path::Path;
use wire::dsn::password;

/// A password in clear.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(String);

impl Deref for Secret {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Secret {
        Secret(text)
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Secret {
        Secret(text.to_owned())
    }
}

impl PartialEq<&str> for Secret {
    fn eq(&self, other: &&str) -> bool {
        self.0 == *other
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// The three keys of one password, as typed.
pub(crate) struct Typed<'a> {
    /// What stands in front of `password`, `password_file` and `password_env`.
    pub prefix: &'static str,
    pub text: &'a mut Option<Secret>,
    pub file: &'a mut Option<String>,
    pub env: &'a mut Option<String>,
}

impl Typed<'_> {
    /// Leaves the password in `text`, from wherever it came, with what is to be warned of.
    ///
    /// # Errors
    /// One sentence that names the key, without the password.
    pub(crate) fn take(self, warnings: &mut Vec<String>) -> Result<(), String> {
        let Typed {
            prefix,
            text,
            file,
            env,
        } = self;
        let found = match (&text, file.take(), env.take()) {
            (_, None, None) => return Ok(()),
            (None, Some(path), None) => {
                let found = password::of_file(&path);
                warnings.extend(password::seen_by_others(Path::new(&path), "a password"));
                found
            }
            (None, None, Some(name)) => password::of_env(&name),
            _ => {
                return Err(format!(
                    "expected one of {prefix}password, {prefix}password_file and \
                     {prefix}password_env"
                ));
            }
        };
        *text = Some(found.map_err(|error| format!("{prefix}{error}"))?.into());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_not_shown() {
        let secret = Secret::from("hush");
        assert_eq!(format!("{secret:?} {:?}", Some(&secret)), "*** Some(***)");
        assert_eq!(secret, "hush");
    }
}
