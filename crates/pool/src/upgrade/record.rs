//! A client as a record: what of it goes to another process, beside its socket.
//!
//! The problem: a client that has gone to another process must find everything there that it has
//! left behind: who it is, what it negotiated, its session, its prepared statements under their
//! ids, what it may ask about its last statement, what it has half said. The mechanism: only a
//! client between two commands goes ([`Client::stays`]); what is left of it is a value, written
//! here and read here. If it holds a backend (a transaction, a pin), that goes along, in a record
//! of its own beside ([`put_bound_backend`]), or it stays.
//!
//! Invariants: a record that cannot be read whole makes no client; a field that does not fit makes
//! its client stay where it is; passwords are not in it. What its backends log in with is, of an
//! account of the server, and so are the keys of TLS: a client under TLS is sealed for by one
//! process at a time.

use crate::auth::credential::Credential;
use crate::auth::secret::Secret;
use crate::backend::Backend;
use crate::backend::recorded::BackendRecord;
use crate::backend::relay::PendingChanges;
use crate::buffers::packing::Compression;
use crate::client::modified::Modified;
use crate::client::{Client, ClientState};
use crate::scheduler::priority::Priority;
use reactor::{Time, Tls};
use session::global_defaults::GlobalDefaults;
use session::last_gtid::LastGtid;
use session::last_statement::LastStatement;
use session::meter::Meter;
use session::pins::Pins;
use session::prepared::{HeldRecord, Statements};
use session::record::{
    PeerDefaults, Read, RecordError, put_bool, put_list, put_one_of, put_option, read_bool,
    read_list, read_number, read_one_of, read_option, read_text,
};
use session::state::Session;
use std::net::SocketAddr;
use std::rc::Rc;
use wire::compressed::Algorithm;
use wire::packet::{Reader, put_lenenc, put_lenenc_bytes};

/// A client whose record would be longer stays where it is.
pub(crate) const RECORD_BYTES_MAX: usize = 8 << 20;

/// Priorities by their number in a record.
const PRIORITIES: [Priority; 3] = [Priority::High, Priority::Low, Priority::Auto];

/// Why a client does not go to another process now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stays {
    /// Its TLS has ended.
    Tls,
    /// It is logging in, or changes its user.
    LoggingIn,
    /// Its command runs, waits or is being answered.
    Busy,
    /// It holds a backend that cannot go along: a cursor is open, something is read back.
    Holding,
    /// It is pinned to a backend that cannot go along.
    Pinned,
    /// It has not taken its last reply.
    Unsent,
    /// Its last backend is to be asked what that alone knows.
    Asks,
    /// A part of a compressed frame is unpacked.
    AmidFrame,
    /// It is on its way.
    Moving,
    /// The other process does not take it, or its record is too long.
    Refused,
}

impl Stays {
    /// As a word of the log.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Stays::Tls => "tls",
            Stays::LoggingIn => "logging-in",
            Stays::Busy => "busy",
            Stays::Holding => "holding",
            Stays::Pinned => "pinned",
            Stays::Unsent => "unsent",
            Stays::Asks => "asked-about",
            Stays::AmidFrame => "amid-frame",
            Stays::Moving => "moving",
            Stays::Refused => "refused",
        }
    }
}

impl<S> Client<S> {
    /// Why it does not go to another process now; `None`: it may. `goes_along`: so can the backend
    /// that it has ([`crate::backend::Backend::goes_with`]).
    pub(crate) fn stays(&self, goes_along: bool) -> Option<Stays> {
        match self.state() {
            ClientState::Moving => return Some(Stays::Moving),
            _ if self.is_logging_in() || !self.is_known() => return Some(Stays::LoggingIn),
            ClientState::Idle => {}
            _ => return Some(Stays::Busy),
        }
        if self.output.is_some() || self.transport.has_unsent() {
            return Some(Stays::Unsent);
        }
        if self.transport.is_tls() && !self.transport.tls_may_go() {
            return Some(Stays::Tls);
        }
        if self.is_pinned() && !goes_along {
            return Some(Stays::Pinned);
        }
        let has_backend = self.backend().is_some();
        let prepares = self.prepared.as_ref();
        if has_backend && !goes_along || prepares.is_some_and(|prepared| prepared.holds()) {
            return Some(Stays::Holding);
        }
        // What it has set and is not read back goes along with the backend that knows it.
        let unread = self.modified.as_ref();
        let unread = unread.is_some_and(|modified| !(has_backend && modified.goes_along()));
        let under_way = prepares.is_some_and(|prepared| prepared.under_way.is_some())
            || self.retracking.is_some()
            || self.modifying.is_some()
            || unread
            || self.pins.is_under_way();
        let ended = self.is_closing() || self.is_interrupted() || self.has_lost_transaction();
        if under_way || ended || self.is_being_read() {
            return Some(Stays::Busy);
        }
        match has_backend {
            true if !self.last.goes_with_backend() => return Some(Stays::Holding),
            false if !self.last.is_settled() => return Some(Stays::Asks),
            _ => {}
        }
        let compression = self.transport.compression();
        if compression.is_some_and(|compression| compression.is_unpacking()) {
            return Some(Stays::AmidFrame);
        }
        None
    }
}

/// Knowledge of a client's group about it.
#[derive(Debug)]
pub(crate) struct Beside<'a> {
    /// Its user in the settings, whose limits hold.
    pub(crate) user: &'a str,
    /// Its account on the server, if that is what it has proven.
    pub(crate) account: Option<AccountThere>,
    pub(crate) gtid: Option<&'a LastGtid>,
    /// Its program.
    pub(crate) program: &'a str,
}

/// An account of the server, with what its backends prove it with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AccountThere {
    pub(crate) user: String,
    pub(crate) host: String,
    pub(crate) credential: Credential,
}

/// A client that another process has sent.
#[derive(Debug)]
pub(crate) struct Arrived {
    pub(crate) user: String,
    pub(crate) account: Option<AccountThere>,
    pub(crate) gtid: Option<LastGtid>,
    pub(crate) id: u32,
    pub(crate) capabilities: u32,
    pub(crate) extended: u8,
    pub(crate) collation: u16,
    pub(crate) seq: u8,
    pub(crate) changes_failed: u8,
    pub(crate) priority: Option<Priority>,
    pub(crate) is_local: bool,
    /// Facts of a PROXY header.
    pub(crate) address: Option<SocketAddr>,
    pub(crate) tls: Option<Tls>,
    pub(crate) compression: Option<Box<Compression>>,
    pub(crate) session: Session,
    pub(crate) last: LastStatement,
    pub(crate) pending_changes: PendingChanges,
    pub(crate) input: Vec<u8>,
    pub(crate) begin_deferred: bool,
    pub(crate) statements_made: u32,
    pub(crate) statements: Vec<HeldRecord>,
    pub(crate) last_prepared: Option<u32>,
    pub(crate) program: String,
    /// Since when it is connected.
    pub(crate) connected: Time,
}

/// Appends a client, which may go.
pub(crate) fn put<S>(out: &mut Vec<u8>, client: &Client<S>, beside: &Beside<'_>) {
    put_lenenc_bytes(out, beside.user.as_bytes());
    put_option(out, beside.account.as_ref(), put_account);
    put_option(out, beside.gtid, |out, gtid| {
        put_lenenc_bytes(out, gtid.get().unwrap_or_default().as_bytes());
    });
    put_lenenc(out, u64::from(client.id));
    put_lenenc(out, u64::from(client.capabilities));
    put_lenenc(out, u64::from(client.collation));
    out.extend_from_slice(&[client.extended, client.seq, client.changes_failed]);
    let priority = client.place.priority;
    put_option(out, priority, |out, priority| {
        put_one_of(out, PRIORITIES, &priority);
    });
    put_bool(out, client.transport.is_local());
    put_option(out, client.transport.client_address(), |out, address| {
        put_lenenc_bytes(out, address.to_string().as_bytes());
    });
    put_option(out, client.transport.tls_record(), |out, tls| {
        put_lenenc_bytes(out, &tls);
    });
    put_option(out, client.transport.compression(), |out, compression| {
        let level = match compression.algorithm {
            Algorithm::Zlib => 0,
            Algorithm::Zstd(level) => level,
        };
        out.extend_from_slice(&[level, compression.seq]);
        put_lenenc_bytes(out, &compression.raw);
    });
    client.session.put_record(out);
    client.last.put_record(out);
    put_lenenc_bytes(out, client.pending_changes.bytes());
    put_lenenc_bytes(out, client.input.as_deref().map_or(&[][..], |input| input));
    put_bool(out, client.is_begin_deferred());
    put_lenenc(out, u64::from(client.statements_made));
    let none = Statements::default();
    let prepared = client.prepared.as_deref().unwrap_or(&none);
    let mut before = None;
    put_list(out, prepared.held().iter(), |out, held| {
        held.put_record(out, before.replace(held));
    });
    put_option(out, prepared.last.map(u64::from), put_lenenc);
    put_lenenc_bytes(out, beside.program.as_bytes());
    // Both processes read one clock.
    put_lenenc(out, client.place.arrival.time().0);
}

/// Appends what goes along with a client that has a backend, beside its own record.
pub(crate) fn put_bound_backend<S>(
    out: &mut Vec<u8>,
    client: &Client<S>,
    backend: &Backend<S>,
    now: Time,
) {
    client.last.put_beside(out);
    put_lenenc(out, u64::from(client.place.tickets()));
    client.pins.put_record(out, now.0);
    put_option(out, client.modified.as_deref(), put_modified);
    backend.put_record(out, now);
}

/// Backend that came along with a client.
#[derive(Debug)]
pub(crate) struct BoundBackend {
    pub(crate) tickets: u32,
    pub(crate) pins: Pins,
    pub(crate) modified: Option<Modified>,
    pub(crate) backend: BackendRecord,
}

/// Reads it, of a client that has been read.
///
/// # Errors
/// What is wrong with it, or why there can be no such backend here.
pub(crate) fn read_bound_backend(
    bytes: &[u8],
    arrived: &mut Arrived,
    here: Here<'_>,
    now: Time,
) -> Read<BoundBackend> {
    let reader = &mut Reader::new(bytes);
    arrived.last.read_beside(reader)?;
    let bound = BoundBackend {
        tickets: read_number(reader, "tickets")?,
        pins: Pins::read_record(reader, now.0)?,
        modified: read_option(reader, "what is not read back", read_modified)?,
        backend: BackendRecord::read_record(reader, |reader| here.session(reader))?,
    };
    match reader.is_empty() {
        true => Ok(bound),
        false => Err(reader.malformed("the end of a record").into()),
    }
}

/// Inputs of reading a record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Here<'a> {
    /// Global values under which sessions of the other process began.
    pub(crate) peer_defaults: &'a [PeerDefaults],
    /// With which sessions begin here.
    pub(crate) defaults: &'a GlobalDefaults,
    /// Meters of user variables and of conditions.
    pub(crate) meters: (&'a Meter, &'a Meter),
}

impl Here<'_> {
    fn session(&self, reader: &mut Reader<'_>) -> Read<Session> {
        Session::read_record(reader, self.peer_defaults, self.defaults, self.meters.0)
    }
}

/// Reads a record to its end.
///
/// # Errors
/// What is wrong with it, or why there can be no such client here.
pub(crate) fn read(bytes: &[u8], here: Here<'_>) -> Read<Arrived> {
    let warnings = here.meters.1;
    let session = |reader: &mut Reader<'_>| here.session(reader);
    let reader = &mut Reader::new(bytes);
    let arrived = Arrived {
        user: read_string(reader, "a user")?,
        account: read_option(reader, "an account", read_account)?,
        gtid: read_option(reader, "@@last_gtid", |reader| {
            let mut gtid = LastGtid::default();
            match reader.lenenc_bytes("@@last_gtid")? {
                b"" => {}
                known => gtid.set(known),
            }
            Ok(gtid)
        })?,
        id: read_number(reader, "CONNECTION_ID()")?,
        capabilities: read_number(reader, "capabilities")?,
        collation: read_number(reader, "a collation")?,
        extended: reader.u8("extended capabilities")?,
        seq: reader.u8("a packet's number")?,
        changes_failed: reader.u8("a number of changes of user")?,
        priority: read_option(reader, "a priority", |reader| {
            read_one_of(reader, PRIORITIES, "a priority")
        })?,
        is_local: read_bool(reader, "whether its socket is a Unix socket")?,
        address: read_option(reader, "an address", |reader| {
            let address = read_string(reader, "an address")?.parse();
            address.map_err(|_| reader.malformed("an address").into())
        })?,
        tls: read_option(reader, "TLS", |reader| {
            let tls = Tls::read_record(reader.lenenc_bytes("TLS")?);
            tls.ok_or_else(|| reader.malformed("TLS").into())
        })?,
        compression: read_option(reader, "how bytes are compressed", |reader| {
            let algorithm = match reader.u8("a level")? {
                0 => Algorithm::Zlib,
                level => Algorithm::Zstd(level),
            };
            let seq = reader.u8("a frame's number")?;
            let raw = reader.lenenc_bytes("the front of a frame")?.to_vec();
            Ok(Compression::going_on(algorithm, seq, raw))
        })?,
        session: session(reader)?,
        last: LastStatement::read_record(reader, warnings)?,
        pending_changes: {
            let bytes = reader.lenenc_bytes("changes of the session")?;
            let mut changes = PendingChanges::default();
            changes.add(bytes)?;
            changes
        },
        input: reader.lenenc_bytes("the front of a command")?.to_vec(),
        begin_deferred: read_bool(reader, "whether a transaction is to begin")?,
        statements_made: read_number(reader, "the number of a statement")?,
        statements: {
            let mut before: Option<Rc<Session>> = None;
            read_list(reader, "prepared statements", |reader| {
                let held = HeldRecord::read_record(reader, before.as_ref(), session)?;
                before = Some(held.session.clone());
                Ok(held)
            })?
        },
        last_prepared: read_option(reader, "the last prepared statement", |reader| {
            read_number(reader, "the number of a statement")
        })?,
        program: read_string(reader, "a program's name")?,
        connected: Time(read_number(reader, "since when it is connected")?),
    };
    let ids = arrived.statements.iter().map(|held| held.id);
    if !ids.is_sorted_by(|one, two| one < two) {
        return Err(reader.malformed("statements in order").into());
    }
    match reader.is_empty() {
        true => Ok(arrived),
        false => Err(reader.malformed("the end of a record").into()),
    }
}

fn read_string(reader: &mut Reader<'_>, what: &'static str) -> Read<String> {
    let text = reader.lenenc_bytes(what)?;
    let text = std::str::from_utf8(text).map_err(|_| reader.malformed(what))?;
    Ok(text.to_owned())
}

/// Appends what a client has set on its backend and is not read back ([`Modified::goes_along`]).
fn put_modified(out: &mut Vec<u8>, modified: &Modified) {
    put_list(out, modified.names.iter(), |out, name| {
        put_lenenc_bytes(out, name);
    });
    put_bool(out, modified.fresh);
    put_bool(out, modified.failed);
    out.push(modified.clock);
}

fn read_modified(reader: &mut Reader<'_>) -> Read<Modified> {
    Ok(Modified {
        names: read_list(reader, "user variables", |reader| {
            read_text(reader, "a user variable")
        })?,
        fresh: read_bool(reader, "whether user variables are read back")?,
        failed: read_bool(reader, "whether a SET has failed")?,
        clock: reader.u8("readings of the clock")?,
        ..Modified::default()
    })
}

fn put_account(out: &mut Vec<u8>, account: &AccountThere) {
    put_lenenc_bytes(out, account.user.as_bytes());
    put_lenenc_bytes(out, account.host.as_bytes());
    let (kind, once): (u8, &[u8]) = match &account.credential {
        // Of an account of the server it is the empty one.
        Credential::Password(_) => (0, &[]),
        Credential::Native(once) => (1, once),
        Credential::CachingSha2(once) => (2, once),
    };
    out.push(kind);
    put_lenenc_bytes(out, once);
}

fn read_account(reader: &mut Reader<'_>) -> Read<AccountThere> {
    let user = read_string(reader, "an account's name")?;
    let host = read_string(reader, "an account's host")?;
    let kind = reader.u8("what proves an account")?;
    let once = reader.lenenc_bytes("what proves an account")?;
    let wrong = || RecordError::from(reader.malformed("what proves an account"));
    let credential = match kind {
        0 => Credential::Password(Secret::default()),
        1 => Credential::Native(once.try_into().map_err(|_| wrong())?),
        2 => Credential::CachingSha2(once.try_into().map_err(|_| wrong())?),
        _ => return Err(wrong()),
    };
    Ok(AccountThere {
        user,
        host,
        credential,
    })
}

#[cfg(test)]
mod tests;
