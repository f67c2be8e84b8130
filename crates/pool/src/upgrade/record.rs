//! A client as a record: what of it goes to another process, beside its socket.
//!
//! The problem: a client that has gone to another process must find everything there that it has
//! left behind: who it is, what it negotiated, its session, its prepared statements under their
//! ids, what it may ask about its last statement, what it has half said. The mechanism: only a
//! client between two commands goes ([`Client::stays`]); what is left of it is a value, written
//! here and read here. If it holds a backend (a transaction, a pin), that goes along, in a record
//! of its own beside ([`bytes_of_bound`]), or it stays.
//!
//! Invariants: a record that cannot be read whole makes no client; a field that does not fit makes
//! its client stay where it is; passwords are not in it. What its backends log in with is, of an
//! account of the server, and so are the keys of TLS: a client under TLS is sealed for by one
//! process at a time.

use crate::auth::credential::Credential;
use crate::backend::Backend;
use crate::backend::recorded::BackendRecord;
use crate::backend::relay::PendingChanges;
use crate::client::buffers::packing::Compression;
use crate::client::command::Ended;
use crate::client::identity::Carried;
use crate::client::modified::Modified;
use crate::client::{Client, ClientState};
use crate::scheduler::priority::Priority;
use handover::{Record, RecordError};
use reactor::{Time, Tls};
use serde::{Deserialize, Serialize};
use session::last_gtid::LastGtid;
use session::last_statement::{LastStatement, OnItsBackend};
use session::pins::Pins;
use session::prepared::Statements;
use session::record::{EntryRecord, HeldRecord, Here, NotCarried, SessionRecord};
use session::state::Session;
use std::net::SocketAddr;
use std::rc::Rc;
use wire::compressed::Algorithm;

/// A client that this process cannot have: words for the log of the other one.
pub(crate) type NotHere = String;

/// A client whose record would be longer stays where it is.
pub(crate) const RECORD_BYTES_MAX: usize = 8 << 20;

/// Reason why a client does not go to another process now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stays {
    /// End of its TLS.
    Tls,
    /// Login or change of user under way.
    LoggingIn,
    /// Its command runs, waits or is being answered.
    Busy,
    /// Backend that cannot go along: a cursor is open, something is read back.
    Holding,
    /// Pin to a backend that cannot go along.
    Pinned,
    /// Last reply that it has not taken.
    Unsent,
    /// Question to its last backend for what that alone knows.
    Asks,
    /// Compressed frame of which a part is unpacked.
    AmidFrame,
    /// Move under way.
    Moving,
    /// Refusal by the other process, or a record that is too long.
    Refused,
}

impl Stays {
    /// Word of the log.
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
    /// Reason for which it does not go to another process now; `None`: it may. `goes_along`: so can
    /// the backend that it has ([`crate::backend::Backend::goes_with`]).
    pub(crate) fn stays(&self, goes_along: bool) -> Option<Stays> {
        match self.state() {
            ClientState::Moving => return Some(Stays::Moving),
            _ if self.is_logging_in() || !self.identity.is_known() => {
                return Some(Stays::LoggingIn);
            }
            ClientState::Idle => {}
            _ => return Some(Stays::Busy),
        }
        if self.output.is_some() || self.transport.has_unsent() {
            return Some(Stays::Unsent);
        }
        if self.transport.is_tls() && !self.transport.tls_may_go() {
            return Some(Stays::Tls);
        }
        if self.session.pins.is_pinned() && !goes_along {
            return Some(Stays::Pinned);
        }
        let has_backend = self.backend().is_some();
        let prepares = self.session.prepared.as_ref();
        if has_backend && !goes_along || prepares.is_some_and(|prepared| prepared.holds()) {
            return Some(Stays::Holding);
        }
        // What it has set and is not read back goes along with the backend that knows it.
        let unread = self.session.modified.as_ref();
        let unread = unread.is_some_and(|modified| !(has_backend && modified.goes_along()));
        let under_way = prepares.is_some_and(|prepared| prepared.under_way.is_some())
            || self.session.effects.retracking().is_some()
            || self.session.effects.modifying().is_some()
            || unread
            || self.session.pins.is_under_way();
        let ended = self.ended != Ended::Nothing;
        if under_way || ended || self.input.is_being_read() {
            return Some(Stays::Busy);
        }
        match has_backend {
            true if !self.session.last.goes_with_backend() => return Some(Stays::Holding),
            false if !self.session.last.is_settled() => return Some(Stays::Asks),
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AccountThere {
    pub(crate) user: String,
    pub(crate) host: String,
    pub(crate) credential: Credential,
}

/// A client as it goes; `L` is what its last statement has left, or a reference to that.
#[derive(Debug, Serialize, Deserialize)]
struct ClientRecord<L> {
    user: String,
    account: Option<AccountThere>,
    /// `@@last_gtid`; empty: not known.
    gtid: Option<Vec<u8>>,
    carried: Carried,
    capabilities: u32,
    priority: Option<Priority>,
    is_local: bool,
    /// Facts of a PROXY header.
    address: Option<SocketAddr>,
    tls: Option<Vec<u8>>,
    compression: Option<CompressionRecord>,
    session: SessionRecord,
    last: L,
    pending_changes: Vec<u8>,
    input: Vec<u8>,
    begin_deferred: bool,
    statements: Vec<HeldRecord>,
    last_prepared: Option<u32>,
    program: String,
    /// Moment since which it is connected, by the clock that both processes read.
    connected: u64,
}

/// Compression of a client's bytes; level 0 is zlib.
#[derive(Debug, Serialize, Deserialize)]
struct CompressionRecord {
    level: u8,
    seq: u8,
    raw: Vec<u8>,
}

/// Record beside that of a client that has a backend; `P` and `M` are its pins and its changes, or
/// references to them.
#[derive(Debug, Serialize, Deserialize)]
struct BoundRecord<P, M> {
    last: OnItsBackend,
    tickets: u32,
    pins: P,
    modified: Option<M>,
    backend: BackendRecord,
}

/// A client that another process has sent.
#[derive(Debug)]
pub(crate) struct Arrived {
    pub(crate) user: String,
    pub(crate) account: Option<AccountThere>,
    pub(crate) gtid: Option<LastGtid>,
    pub(crate) carried: Carried,
    pub(crate) capabilities: u32,
    pub(crate) priority: Option<Priority>,
    pub(crate) is_local: bool,
    pub(crate) address: Option<SocketAddr>,
    pub(crate) tls: Option<Tls>,
    pub(crate) compression: Option<Box<Compression>>,
    pub(crate) session: Session,
    pub(crate) last: LastStatement,
    pub(crate) pending_changes: PendingChanges,
    pub(crate) input: Vec<u8>,
    pub(crate) begin_deferred: bool,
    /// Prepared statements, each with the session in which it was prepared.
    pub(crate) statements: Vec<(HeldRecord, Rc<Session>)>,
    pub(crate) last_prepared: Option<u32>,
    pub(crate) program: String,
    /// Moment since which it is connected.
    pub(crate) connected: Time,
}

/// A client, which may go, as bytes.
///
/// # Errors
/// It has no form as bytes.
pub(crate) fn bytes_of<S>(client: &Client<S>, beside: &Beside<'_>) -> Result<Vec<u8>, RecordError> {
    let compression = |compression: &Compression| CompressionRecord {
        level: match compression.algorithm {
            Algorithm::Zlib => 0,
            Algorithm::Zstd(level) => level,
        },
        seq: compression.seq,
        raw: compression.raw.clone(),
    };
    let prepared = client.session.prepared.as_deref();
    let record = ClientRecord {
        user: beside.user.to_owned(),
        account: beside.account.clone(),
        gtid: (beside.gtid).map(|gtid| gtid.get().unwrap_or_default().into()),
        carried: client.identity.carried(),
        capabilities: client.capabilities,
        priority: client.place.priority,
        is_local: client.transport.is_local(),
        address: client.transport.client_address(),
        tls: client.transport.tls_record(),
        compression: client.transport.compression().map(compression),
        session: SessionRecord::from(&*client.session.state),
        last: &client.session.last,
        pending_changes: client.session.pending_changes.bytes().to_vec(),
        input: (client.input.bytes()).map_or_else(Vec::new, |input| input.to_vec()),
        begin_deferred: client.command.is_begin_deferred(),
        statements: prepared.map(Statements::records).unwrap_or_default(),
        last_prepared: prepared.and_then(|prepared| prepared.last),
        program: beside.program.to_owned(),
        connected: client.place.arrival.time().0,
    };
    record.to_bytes()
}

/// Backend of a client, which goes along with it, as bytes.
///
/// # Errors
/// It has no form as bytes.
pub(crate) fn bytes_of_bound<S>(
    client: &Client<S>,
    backend: &Backend<S>,
    now: Time,
) -> Result<Vec<u8>, RecordError> {
    let record = BoundRecord {
        last: client.session.last.on_its_backend(),
        tickets: client.place.tickets(),
        pins: &client.session.pins,
        modified: client.session.modified.as_deref(),
        backend: backend.record(now),
    };
    record.to_bytes()
}

/// Backend that came along with a client.
#[derive(Debug)]
pub(crate) struct BoundBackend {
    pub(crate) tickets: u32,
    pub(crate) pins: Pins,
    pub(crate) modified: Option<Modified>,
    pub(crate) backend: BackendRecord,
    pub(crate) session: Session,
    /// Statements prepared on it, each with the session in which it was prepared.
    pub(crate) prepared: Vec<(EntryRecord, Session)>,
}

/// Reads it, of a client that has been read.
///
/// # Errors
/// The fault of its record, or the reason for which there can be no such backend here.
pub(crate) fn read_bound_backend(
    bytes: &[u8],
    arrived: &mut Arrived,
    here: Here<'_>,
) -> Result<BoundBackend, NotHere> {
    let record = BoundRecord::<Pins, Modified>::from_bytes(bytes);
    let record = record.map_err(|error| error.to_string())?;
    arrived.last.came_with_backend(record.last);
    let mut backend = record.backend;
    let session = std::mem::take(&mut backend.session).into_session(here);
    let prepared = EntryRecord::with_sessions(std::mem::take(&mut backend.prepared), here);
    Ok(BoundBackend {
        tickets: record.tickets,
        pins: record.pins,
        modified: record.modified,
        session: session.map_err(|error| error.to_string())?,
        prepared: prepared.map_err(|error| error.to_string())?,
        backend,
    })
}

/// Reads a client.
///
/// # Errors
/// The fault of its record, or the reason for which there can be no such client here.
pub(crate) fn read(bytes: &[u8], here: Here<'_>) -> Result<Arrived, NotHere> {
    let record = ClientRecord::<LastStatement>::from_bytes(bytes);
    let record = record.map_err(|error| error.to_string())?;
    let tls = (record.tls).map(|tls| Tls::read_record(&tls).ok_or("its TLS cannot be read"));
    let gtid = |known: Vec<u8>| {
        let mut gtid = LastGtid::default();
        if !known.is_empty() {
            gtid.set(&known);
        }
        gtid
    };
    let compression = |record: CompressionRecord| {
        let algorithm = match record.level {
            0 => Algorithm::Zlib,
            level => Algorithm::Zstd(level),
        };
        Compression::going_on(algorithm, record.seq, record.raw)
    };
    let mut pending_changes = PendingChanges::default();
    let changes = pending_changes.add(&record.pending_changes);
    changes.map_err(|error| format!("its changes of the session cannot be read: {error}"))?;
    let mut last = record.last;
    last.charge(here.conditions);
    let words = |error: NotCarried| error.to_string();
    Ok(Arrived {
        user: record.user,
        account: record.account,
        gtid: record.gtid.map(gtid),
        carried: record.carried,
        capabilities: record.capabilities,
        priority: record.priority,
        is_local: record.is_local,
        address: record.address,
        tls: tls.transpose()?,
        compression: record.compression.map(compression),
        session: record.session.into_session(here).map_err(words)?,
        last,
        pending_changes,
        input: record.input,
        begin_deferred: record.begin_deferred,
        statements: HeldRecord::with_sessions(record.statements, here).map_err(words)?,
        last_prepared: record.last_prepared,
        program: record.program,
        connected: Time(record.connected),
    })
}

#[cfg(test)]
mod tests;
