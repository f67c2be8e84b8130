//! The command line as other processes see it: taking secrets out of it.
//!
//! Every account of a host may read the arguments of every process (`/proc/PID/cmdline`, `ps`). The
//! kernel reads them from the memory of the process, from where it has put them at its start, so a
//! process can overwrite them there; only the addresses are needed, and `/proc/self/stat` has them.
//! Executing the program a second time, with the secret in a pipe, would show it just as long and
//! takes more that can fail; changing the addresses (prctl) takes a privilege.
//!
//! Invariant: nothing is written before the kernel has confirmed that what stands at those
//! addresses are the arguments that the standard library reports.

use std::ops::Range;
use std::os::unix::ffi::OsStringExt;
use std::{fs, io};

/// Byte that stands in place of a secret's bytes. Their number cannot be hidden: the words behind
/// must stay where they are.
const MARK: u8 = b'*';
/// `arg_start` and `arg_end` in /proc/PID/stat, counted from the field behind the name.
const FIELDS: [usize; 2] = [45, 46];

/// Overwrites the parts of the arguments that `secret_in` finds, one in each word. True if there
/// was any. From then on `std::env::args` reports them overwritten too, so read them before.
///
/// Call it while the process has one thread.
///
/// # Errors
/// The arguments cannot be found for certain, or the system's error; nothing is overwritten then.
pub fn conceal(secret_in: impl Fn(&[u8]) -> Option<Range<usize>>) -> io::Result<bool> {
    let mut secrets = Vec::new();
    let mut arguments = Vec::new();
    for word in std::env::args_os().map(OsStringExt::into_vec) {
        if let Some(place) = secret_in(&word) {
            let start = arguments.len();
            secrets.push(start + place.start..start + place.end);
        }
        arguments.extend_from_slice(&word);
        arguments.push(0);
    }
    if secrets.is_empty() {
        return Ok(false);
    }
    let [start, end] = addresses(&fs::read_to_string("/proc/self/stat")?)
        .ok_or_else(|| io::Error::other("/proc/self/stat does not say where the arguments are"))?;
    let is_there = end.checked_sub(start) == Some(arguments.len())
        && fs::read("/proc/self/cmdline")? == arguments;
    if !is_there {
        return Err(io::Error::other(
            "the kernel has other arguments than the program",
        ));
    }
    for index in secrets.into_iter().flatten() {
        let byte = std::ptr::with_exposed_provenance_mut::<u8>(start + index);
        // SAFETY: the address is inside arg_start..arg_end, which the kernel has filled when it
        // made the first thread's stack, writable and there as long as the process is; the length
        // and the content have just been compared. No other thread runs, and no reference to these
        // bytes lives: the standard library copies arguments each time.
        // JUSTIFICATION: there is no call of the kernel that does it without a privilege.
        #[expect(unsafe_code)]
        unsafe {
            byte.write_volatile(MARK);
        }
    }
    Ok(true)
}

/// `arg_start` and `arg_end`. The name of the program may hold blanks and brackets.
fn addresses(stat: &str) -> Option<[usize; 2]> {
    let (_, fields) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let address = |index: usize| fields.get(index)?.parse().ok().filter(|n| *n != 0);
    Some([address(FIELDS[0])?, address(FIELDS[1])?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_addresses_are_read_behind_any_name() {
        let fields: Vec<String> = (3..=52).map(|field| format!("{field}00")).collect();
        let stat = format!("7 (a) b (c)) {}\n", fields.join(" "));
        assert_eq!(addresses(&stat), Some([4800, 4900]));
        assert_eq!(addresses(&stat.replace(" 4900", " 0")), None);
        assert_eq!(addresses("7 (short) S 1"), None);
        let own = fs::read_to_string("/proc/self/stat").unwrap();
        let [start, end] = addresses(&own).unwrap();
        let words: usize = std::env::args_os().map(|word| word.len() + 1).sum();
        assert_eq!(end - start, words);
    }

    #[test]
    fn without_a_secret_nothing_is_written() {
        let before: Vec<_> = std::env::args_os().collect();
        assert!(!conceal(|_| None).unwrap());
        assert!(std::env::args_os().eq(before));
    }
}
