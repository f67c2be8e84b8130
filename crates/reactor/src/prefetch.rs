//! Memory that is looked at soon, asked for early.
//!
//! The problem: among thousands of connections each one that comes up was last looked at thousands
//! of others ago, so it lies far from the processor, which waits for it. The mechanism: a hint that
//! an object is needed soon; fetching it overlaps with other work. Invariant: a hint changes no
//! value, and reads none.

/// Bytes that come from memory at once.
#[cfg(target_arch = "x86_64")]
const LINE: usize = 64;

/// Asks the processor to fetch an object that is looked at soon.
#[cfg(target_arch = "x86_64")]
#[inline]
pub fn prefetch<T: ?Sized>(object: &T) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    let first = std::ptr::from_ref(object).cast::<i8>();
    for at in (0..size_of_val(object)).step_by(LINE) {
        // SAFETY: the instruction is part of every x86-64 processor and is a hint: it reads no
        // value and cannot fault, whatever the address; this one lies within `object`.
        // JUSTIFICATION: the standard library has no safe call for it.
        #[expect(unsafe_code)]
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(first.add(at));
        }
    }
}

/// Does nothing: elsewhere the processor finds out by itself.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
pub fn prefetch<T: ?Sized>(_: &T) {}
