//! Sources of a password in the configuration.
//!
//! A password may stand in the configuration itself, in a file, or in the environment;
//! [`Typed::take`] makes one of the three.

use crate::auth::secret::Secret;
use std::path::Path;
use wire::dsn::password;

/// The three keys of one password, as typed.
pub(crate) struct Typed<'a> {
    /// Prefix of `password`, `password_file` and `password_env`.
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
                    "{prefix}password: expected one of {prefix}password, {prefix}password_file \
                     and {prefix}password_env"
                ));
            }
        };
        *text = Some(found.map_err(|error| format!("{prefix}{error}"))?.into());
        Ok(())
    }
}
