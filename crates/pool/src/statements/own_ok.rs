//! OKs of the pool's own, as the server would send them to this client.
//!
//! What a client is told with an OK depends on what it negotiated: whether there is an EOF instead,
//! whether changes of the session stand in it, which flags it shows. What is still to be told of
//! the session stands in the pool's OKs as in those of the server.

use crate::client::{Client, ClientSession};
use crate::pair::trackers::wanted_by;
use crate::server::facts::ServerFacts;
use wire::packet::put_short;
use wire::reply::{END, OK, OkPacket};
use wire::track::put_schema;
use wire::{capabilities, status};

/// An OK of the pool's own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnOk<'a> {
    /// Packets that belong before it.
    pub(crate) front: &'a [u8],
    /// [`OK`], or [`END`] where the protocol has an EOF.
    pub(crate) first: u8,
    /// True if it leaves the warnings before it; MySQL counts those of the last statement in it.
    pub(crate) keeps_warnings: bool,
    pub(crate) info: &'a [u8],
    /// Reports of what has changed.
    pub(crate) reports: &'a [u8],
}

impl OwnOk<'_> {
    /// OK that says no more than that.
    pub(crate) const PLAIN: OwnOk<'static> = OwnOk {
        front: b"",
        first: OK,
        keeps_warnings: false,
        info: b"",
        reports: b"",
    };
    /// OK that leaves the warnings before it.
    pub(crate) const WARNED: OwnOk<'static> = OwnOk {
        keeps_warnings: true,
        ..OwnOk::PLAIN
    };
    /// The same where the protocol has an EOF.
    pub(crate) const WARNED_END: OwnOk<'static> = OwnOk {
        first: END,
        ..OwnOk::WARNED
    };
}

/// Error of changes of a session that are still to be reported and cannot be read.
#[derive(Debug)]
pub(crate) struct Unreadable;

impl<S> Client<S> {
    /// Writes an OK for this client, which shows these status flags.
    ///
    /// # Errors
    /// What is still to be told cannot be read.
    pub(crate) fn put_ok(
        &mut self,
        out: &mut Vec<u8>,
        ok: &OwnOk<'_>,
        mut status: u16,
        server: &ServerFacts,
    ) -> Result<(), Unreadable> {
        out.extend_from_slice(ok.front);
        let mysql = server.flavour.is_mysql();
        let modern = self.capabilities & capabilities::DEPRECATE_EOF != 0;
        let tracks = self.capabilities & capabilities::SESSION_TRACK != 0;
        let mut changes = match tracks {
            true => ok.reports.to_vec(),
            false => Vec::new(),
        };
        if tracks && (ok.first == OK || modern) {
            let told = wanted_by(&self.session, server).transactions;
            let put = (self.session.pending_changes).put(&mut changes, told, mysql);
            put.map_err(|_| Unreadable)?;
        }
        if !changes.is_empty() {
            status |= status::SESSION_STATE_CHANGED;
        }
        let packet = OkPacket {
            affected_rows: 0,
            insert_id: 0,
            status,
            warnings: match ok.keeps_warnings && mysql {
                true => self.session.last.conditions,
                false => 0,
            },
            info: ok.info,
            changes: &changes,
        };
        put_short(out, self.identity.seq, |out| {
            if ok.first == OK || modern {
                packet.put(out, ok.first, tracks);
            } else {
                packet.put_eof(out);
            }
        });
        Ok(())
    }
}

impl ClientSession {
    /// The report of its default schema, which the OK of a login carries.
    pub(crate) fn schema_report(&self, server: &ServerFacts) -> Vec<u8> {
        let mut report = Vec::new();
        if let Some(schema) = &self.state.schema
            && wanted_by(self, server).schema
        {
            put_schema(&mut report, schema);
        }
        report
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use reactor::Time;
    use sql::lex::Server;
    use std::rc::Rc;

    fn client(capabilities: u32) -> Client<()> {
        let mut client = Client::of_tests(Time(1), Rc::default());
        client.capabilities = capabilities;
        client.identity.seq = 1;
        client
    }

    fn put(client: &mut Client<()>, ok: &OwnOk<'_>, server: &ServerFacts) -> Vec<u8> {
        let mut out = Vec::new();
        client.put_ok(&mut out, ok, 2, server).unwrap();
        out
    }

    #[test]
    fn an_end_is_an_eof_for_who_knows_no_other() {
        let server = ServerFacts::of_tests();
        let eof = put(&mut client(0), &OwnOk::WARNED_END, &server);
        assert_eq!(eof, [5, 0, 0, 1, 0xFE, 0, 0, 2, 0]);
        let end = put(
            &mut client(capabilities::DEPRECATE_EOF),
            &OwnOk::WARNED_END,
            &server,
        );
        assert_eq!(end, [7, 0, 0, 1, 0xFE, 0, 0, 2, 0, 0, 0]);
    }

    #[test]
    fn mysql_counts_the_warnings_that_are_left() {
        let mut server = ServerFacts::of_tests();
        let mut client = client(0);
        client.session.last.conditions = 3;
        let warnings = |ok: Vec<u8>| ok[9];
        assert_eq!(warnings(put(&mut client, &OwnOk::WARNED, &server)), 0);
        server.flavour = Server::MySql(90_704);
        assert_eq!(warnings(put(&mut client, &OwnOk::WARNED, &server)), 3);
        assert_eq!(warnings(put(&mut client, &OwnOk::PLAIN, &server)), 0);
    }

    #[test]
    fn reports_go_to_who_tracks_behind_the_packets_in_front() {
        let server = ServerFacts::of_tests();
        let mut report = Vec::new();
        put_schema(&mut report, b"shop");
        let ok = OwnOk {
            front: b"front",
            reports: &report,
            ..OwnOk::PLAIN
        };
        let told = put(&mut client(capabilities::SESSION_TRACK), &ok, &server);
        assert!(
            told.starts_with(b"front") && told.ends_with(b"shop"),
            "{told:?}"
        );
        let plain = put(&mut client(0), &ok, &server);
        assert!(!plain.ends_with(b"shop"), "{plain:?}");
    }
}
