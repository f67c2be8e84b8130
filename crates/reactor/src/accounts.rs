//! Numbers of users and groups by their names.
//!
//! Files belong to numbers, and settings name accounts. The C library looks names up as other
//! programs do (nsswitch: files, LDAP and the like), so it may wait for a network: this is for the
//! start of a program. A number stands for itself.

use std::ffi::CString;
use std::io;

/// Bytes for one entry; a group with very many members needs many.
const ENTRY_BYTES: usize = 16 << 10;
const ENTRY_BYTES_MAX: usize = 16 << 20;

/// The number of a user.
///
/// # Errors
/// NotFound when there is no such user; the system's error otherwise.
pub fn user_id(name: &str) -> io::Result<u32> {
    if let Ok(number) = name.parse() {
        return Ok(number);
    }
    look_up(name, |name, buffer| {
        let mut found = std::ptr::null_mut();
        let mut entry = std::mem::MaybeUninit::<libc::passwd>::uninit();
        // SAFETY: the name ends with a NUL; entry, buffer and result live through the call, and the
        // length is the buffer's. The entry is read only if the call says that it has filled it.
        // JUSTIFICATION: the standard library does not look accounts up.
        #[expect(unsafe_code)]
        unsafe {
            let status = libc::getpwnam_r(
                name.as_ptr(),
                entry.as_mut_ptr(),
                buffer.as_mut_ptr().cast(),
                buffer.len(),
                &raw mut found,
            );
            (status, (!found.is_null()).then(|| (*found).pw_uid))
        }
    })
}

/// The number of the group that a user logs in with.
///
/// # Errors
/// NotFound when no user has this number; the system's error otherwise.
pub fn group_of_user(user: u32) -> io::Result<u32> {
    look_up("", |_, buffer| {
        let mut found = std::ptr::null_mut();
        let mut entry = std::mem::MaybeUninit::<libc::passwd>::uninit();
        // SAFETY: entry, buffer and result live through the call, and the length is the buffer's.
        // The entry is read only if the call says that it has filled it.
        // JUSTIFICATION: the standard library does not look accounts up.
        #[expect(unsafe_code)]
        unsafe {
            let status = libc::getpwuid_r(
                user,
                entry.as_mut_ptr(),
                buffer.as_mut_ptr().cast(),
                buffer.len(),
                &raw mut found,
            );
            (status, (!found.is_null()).then(|| (*found).pw_gid))
        }
    })
}

/// The number of a group.
///
/// # Errors
/// As [`user_id`].
pub fn group_id(name: &str) -> io::Result<u32> {
    if let Ok(number) = name.parse() {
        return Ok(number);
    }
    look_up(name, |name, buffer| {
        let mut found = std::ptr::null_mut();
        let mut entry = std::mem::MaybeUninit::<libc::group>::uninit();
        // SAFETY: as in `user_id`.
        // JUSTIFICATION: the standard library does not look groups up.
        #[expect(unsafe_code)]
        unsafe {
            let status = libc::getgrnam_r(
                name.as_ptr(),
                entry.as_mut_ptr(),
                buffer.as_mut_ptr().cast(),
                buffer.len(),
                &raw mut found,
            );
            (status, (!found.is_null()).then(|| (*found).gr_gid))
        }
    })
}

/// Asks with a buffer that is large enough.
fn look_up(
    name: &str,
    ask: impl Fn(&CString, &mut [u8]) -> (libc::c_int, Option<u32>),
) -> io::Result<u32> {
    let name = CString::new(name).map_err(|_| io::Error::from(io::ErrorKind::NotFound))?;
    let mut bytes = ENTRY_BYTES;
    loop {
        let mut buffer = vec![0; bytes];
        match ask(&name, &mut buffer) {
            (_, Some(number)) => return Ok(number),
            (libc::ERANGE, None) if bytes < ENTRY_BYTES_MAX => bytes *= 2,
            // What a system says of a name that it does not know differs.
            (0 | libc::ENOENT | libc::ESRCH | libc::EBADF | libc::EPERM, None) => {
                return Err(io::ErrorKind::NotFound.into());
            }
            (error, None) => return Err(io::Error::from_raw_os_error(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_are_accounts() {
        assert_eq!(user_id("root").unwrap(), 0);
        assert_eq!(group_id("root").unwrap(), 0);
        assert_eq!(user_id("4711").unwrap(), 4711);
        assert_eq!(group_id("4711").unwrap(), 4711);
        assert_eq!(group_of_user(0).unwrap(), 0);
        assert!(group_of_user(4_000_000_000).is_err());
    }

    #[test]
    fn an_unknown_name_is_not_found() {
        for name in ["no such account", "", "a\0b"] {
            let error = user_id(name).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::NotFound, "{name:?}");
            let error = group_id(name).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::NotFound, "{name:?}");
        }
    }
}
