//! Memory that nobody uses any more, given back to the kernel.
//!
//! The problem: the allocator keeps freed memory for the next use, so a process that is told to
//! hold less may free all it likes and stay as large. The mechanism: glibc is asked to give back
//! every page that is free. It takes milliseconds, in which other threads wait for the allocator,
//! so it is for those who lack memory.

/// Gives freed memory back to the kernel, where the allocator can.
pub fn give_back_memory() {
    #[cfg(target_env = "gnu")]
    {
        // SAFETY: the function locks what it looks at, and moves nothing that is in use.
        // JUSTIFICATION: the standard library has no safe call for it.
        #[expect(unsafe_code)]
        unsafe {
            libc::malloc_trim(0);
        }
    }
}
