//! Passwords: text that no `Debug` output shows, and that is overwritten when it is dropped.
//!
//! Settings, pool keys and what the user typed are printed by `{:?}` in tests and may be in
//! logs one day; a password in them must not be.

use std::fmt;
use std::ops::Deref;
use wire::wiped::Wiped;

/// A password in clear.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(String);

impl Drop for Secret {
    fn drop(&mut self) {
        drop(Wiped::from(std::mem::take(&mut self.0).into_bytes()));
    }
}

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
