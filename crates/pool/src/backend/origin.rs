//! Origin of a backend: how it was dialled, and what its login has made of it.
//!
//! The group sets it when it dials a backend, or takes one over from another process; afterwards
//! only the login changes it.
//!
//! Invariant: the address, the form of commands and the kind of result sets stay for as long as the
//! backend lives.

use super::Backend;
use crate::backend::pools::PoolKey;
use reactor::{Address, Time};
use std::sync::Arc;
use wire::attributes::Form;

impl<S> Backend<S> {
    /// The server's address at which it was dialled.
    pub(crate) fn at(&self) -> &Arc<Address> {
        &self.at
    }

    /// Moment at which it was dialled.
    pub(crate) fn born(&self) -> Time {
        self.born
    }

    /// Moment at which it entered its state.
    pub(crate) fn since(&self) -> Time {
        self.since
    }

    /// Form of commands on it.
    pub(crate) fn form(&self) -> Form {
        self.form
    }

    /// Puts a PROXY header in front of its login; `epoch` is the group's at its dial.
    pub(crate) fn begin_dial(&mut self, header: Vec<u8>, epoch: u64) {
        self.dial = self.dial.take().map(|dial| Box::new(dial.behind(header)));
        self.session.epoch = epoch;
    }

    /// Takes over how clients of this kind are spoken for.
    pub(crate) fn take_kind(&mut self, kind: &PoolKey) {
        self.form = kind.form();
        self.flight.set_eofs(kind.sends_eofs());
        self.is_reader = kind.reader.is_some();
    }

    /// True if it is on a server that is read, of several.
    pub(crate) fn is_reader(&self) -> bool {
        self.is_reader
    }

    /// Bytes that go out as soon as the connection is there: once, and mostly none.
    pub(crate) fn take_header(&mut self) -> Vec<u8> {
        let dial = self.dial.as_mut();
        dial.map_or_else(Vec::new, |dial| dial.take_header())
    }
}

#[cfg(test)]
impl<S> Backend<S> {
    pub(crate) fn set_since(&mut self, since: Time) {
        self.since = since;
    }

    pub(crate) fn end_dial(&mut self) {
        self.dial = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::rc::Rc;

    #[test]
    fn a_header_goes_out_once() {
        let mut backend = Backend::of_tests(Time(1), Rc::default());
        assert!(backend.take_header().is_empty());
        backend.begin_dial(b"PROXY".to_vec(), 3);
        assert_eq!(backend.take_header(), b"PROXY");
        assert!(backend.take_header().is_empty());
        assert_eq!((backend.born(), backend.since()), (Time(1), Time(1)));
    }
}
