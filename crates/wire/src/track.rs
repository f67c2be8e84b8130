//! Session trackers: the blocks in an OK packet that say what a statement changed.
//!
//! A server sends them when both ends set CLIENT_SESSION_TRACK and the status carries
//! SESSION_STATE_CHANGED. Each block is a type byte and a length-encoded body; an unknown type is
//! skipped by its length. [`changes`] iterates over them; [`keep`] writes again only those that a
//! client asked for, because a pool switches on more trackers than its clients did.
//!
//! Facts: block layouts from the MySQL manual ("OK_Packet") and both servers' sources; a
//! STATE_CHANGE body is one raw byte, `'1'`.

use crate::packet::{Malformed, Reader, put_lenenc_bytes};
use serde::{Deserialize, Serialize};

/// One change that a server reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change<'a> {
    /// New value of a session variable. NULL comes as an empty value.
    Variable {
        /// Its name, in lower case as the servers send it.
        name: &'a [u8],
        /// Its value as text.
        value: &'a [u8],
    },
    /// New default schema; empty when there is none.
    Schema(&'a [u8]),
    /// Some session state changed: variables, schema, user variables, temporary tables, prepared
    /// statements. It does not say which.
    State,
    /// SQL that restores the open transaction's characteristics; empty when there are none.
    TransactionCharacteristics(&'a [u8]),
    /// Eight characters on the open transaction; `________` is none.
    TransactionState(&'a [u8]),
    /// GTIDs of what was committed, as the block carries them.
    Gtids(&'a [u8]),
    /// Block for which this crate has no use (later types).
    Other(u8),
}

const SYSTEM_VARIABLES: u8 = 0;
const SCHEMA: u8 = 1;
const STATE_CHANGE: u8 = 2;
/// The block that says that some state has changed.
pub const STATE_CHANGED: [u8; 3] = [STATE_CHANGE, 1, b'1'];
const GTIDS: u8 = 3;
const TRX_CHARACTERISTICS: u8 = 4;
const TRX_STATE: u8 = 5;

/// Calls `each` for every change in the tracker blocks of an OK packet.
///
/// # Errors
/// [`Malformed`] when a block reaches past the end; changes before it have been reported.
pub fn changes<'a>(blocks: &'a [u8], mut each: impl FnMut(Change<'a>)) -> Result<(), Malformed> {
    let mut reader = Reader::new(blocks);
    while !reader.is_empty() {
        let kind = reader.u8("a tracker type")?;
        let body = reader.lenenc_bytes("a tracker block")?;
        let mut body = Reader::new(body);
        match kind {
            SYSTEM_VARIABLES => {
                while !body.is_empty() {
                    let name = body.lenenc_bytes("a variable's name")?;
                    let value = body.lenenc_bytes("a variable's value")?;
                    each(Change::Variable { name, value });
                }
            }
            SCHEMA => each(Change::Schema(body.lenenc_bytes("a schema name")?)),
            STATE_CHANGE => each(Change::State),
            GTIDS => each(Change::Gtids(body.rest())),
            TRX_CHARACTERISTICS => {
                each(Change::TransactionCharacteristics(
                    body.lenenc_bytes("characteristics")?,
                ));
            }
            TRX_STATE => each(Change::TransactionState(body.lenenc_bytes("a state")?)),
            other => each(Change::Other(other)),
        }
    }
    Ok(())
}

/// True if blocks say no more than that there was a statement: with all variables tracked, MySQL 9
/// numbers each one in `statement_id`. Blocks that cannot be read say something.
#[must_use]
pub fn says_nothing(blocks: &[u8]) -> bool {
    let mut nothing = true;
    let read = changes(blocks, |change| {
        nothing &= matches!(change, Change::Variable { name, .. } if name == b"statement_id");
    });
    nothing && read.is_ok()
}

/// Variables that stored routines have for themselves: at its end a routine gives back those of
/// before, which MySQL does not report.
const GIVEN_BACK: [&[u8]; 7] = [
    b"character_set_client",
    b"character_set_connection",
    b"character_set_database",
    b"collation_connection",
    b"collation_database",
    b"sql_log_off",
    b"sql_mode",
];

/// Appends `blocks` without the variables that a stored routine gives back at its end. Blocks that
/// cannot be read are appended as they are.
pub fn add_lasting(blocks: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    if put_lasting(blocks, out).is_err() {
        out.truncate(start);
        out.extend_from_slice(blocks);
    }
}

fn put_lasting(blocks: &[u8], out: &mut Vec<u8>) -> Result<(), Malformed> {
    let mut reader = Reader::new(blocks);
    while !reader.is_empty() {
        let kind = reader.u8("a tracker type")?;
        let body = reader.lenenc_bytes("a tracker block")?;
        if kind != SYSTEM_VARIABLES {
            out.push(kind);
            put_lenenc_bytes(out, body);
            continue;
        }
        let mut body = Reader::new(body);
        let mut lasting = Vec::new();
        while !body.is_empty() {
            let name = body.lenenc_bytes("a variable's name")?;
            let value = body.lenenc_bytes("a variable's value")?;
            if !GIVEN_BACK.contains(&name) {
                put_lenenc_bytes(&mut lasting, name);
                put_lenenc_bytes(&mut lasting, value);
            }
        }
        if !lasting.is_empty() {
            out.push(SYSTEM_VARIABLES);
            put_lenenc_bytes(out, &lasting);
        }
    }
    Ok(())
}

/// Appends the block that reports a schema.
pub fn put_schema(out: &mut Vec<u8>, schema: &[u8]) {
    out.push(SCHEMA);
    let mut body = Vec::with_capacity(schema.len() + 3);
    put_lenenc_bytes(&mut body, schema);
    put_lenenc_bytes(out, &body);
}

/// Appends the block that tells of a transaction's beginning or end, as a server does under
/// [`Transactions::Bounds`].
pub fn put_bound(out: &mut Vec<u8>, bound: Bound) {
    let text = bound.text();
    out.push(TRX_STATE);
    let mut body = Vec::with_capacity(text.len() + 1);
    put_lenenc_bytes(&mut body, text);
    put_lenenc_bytes(out, &body);
}

/// Takes `block` out of `blocks`; whether it was among them.
fn take_out(blocks: &mut Vec<u8>, block: &[u8]) -> Result<bool, Malformed> {
    let mut start = 0;
    while start < blocks.len() {
        let mut reader = Reader::new(&blocks[start..]);
        reader.u8("a tracker type")?;
        reader.lenenc_bytes("a tracker block")?;
        let end = blocks.len() - reader.rest().len();
        if blocks[start..end] == *block {
            blocks.drain(start..end);
            return Ok(true);
        }
        start = end;
    }
    Ok(false)
}

/// Takes the report of a schema out of `blocks`; empty where there is none. That of a dropped
/// schema stays: no other statement reports it.
///
/// # Errors
/// [`Malformed`] as from [`changes`].
pub fn take_schema(blocks: &mut Vec<u8>) -> Result<Vec<u8>, Malformed> {
    let mut block = Vec::new();
    changes(blocks, |change| {
        if let Change::Schema(schema) = change
            && !schema.is_empty()
        {
            block.clear();
            put_schema(&mut block, schema);
        }
    })?;
    take_out(blocks, &block)?;
    Ok(block)
}

/// Joins two transactions for a client of [`Transactions::Bounds`]: takes the end of one out of the
/// `older` blocks, which it has not been told of yet, and the beginning of the next one out of
/// `blocks`. It was told of the first beginning, so that nothing has changed for it (seen on MySQL
/// 9.7). True if there were both.
///
/// # Errors
/// [`Malformed`] as from [`changes`].
pub fn join_transactions(older: &mut Vec<u8>, blocks: &mut Vec<u8>) -> Result<bool, Malformed> {
    let (mut end, mut beginning) = (Vec::new(), Vec::new());
    put_bound(&mut end, Bound::Outside);
    put_bound(&mut beginning, Bound::Inside);
    let joined = take_out(blocks, &beginning)?;
    if joined && !take_out(older, &end)? {
        blocks.extend_from_slice(&beginning);
        return Ok(false);
    }
    Ok(joined)
}

/// True if these blocks say which schema is the default.
///
/// # Errors
/// [`Malformed`] when they cannot be read.
pub fn names_schema(blocks: &[u8]) -> Result<bool, Malformed> {
    let mut names = false;
    changes(blocks, |change| {
        names |= matches!(change, Change::Schema(_))
    })?;
    Ok(names)
}

/// Trackers that a client receives: those that a server has on by default, unless the client set
/// others.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Wanted {
    /// Names of tracked variables, lower case; `*` stands for all.
    pub variables: Vec<Box<[u8]>>,
    /// Schema changes.
    pub schema: bool,
    /// Report that some state changed.
    pub state: bool,
    /// Reports of transactions.
    pub transactions: Transactions,
}

/// Level of the reports of transactions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Transactions {
    /// Nothing: MariaDB with `session_track_transaction_info=OFF`.
    #[default]
    Nothing,
    /// Begin and end of explicit transactions alone, and nothing of what is done in them: MySQL
    /// with OFF (seen on 9.7).
    Bounds,
    /// Every state.
    State,
    /// The characteristics too.
    Characteristics,
}

impl Transactions {
    /// True if every state is told.
    #[must_use]
    pub fn has_states(self) -> bool {
        matches!(self, Transactions::State | Transactions::Characteristics)
    }

    /// Reads `session_track_transaction_info` as the server shows it; `mysql` says whose OFF it is.
    #[must_use]
    pub fn from_setting(value: &[u8], mysql: bool) -> Transactions {
        match value {
            b"STATE" | b"1" => Transactions::State,
            b"CHARACTERISTICS" | b"2" => Transactions::Characteristics,
            _ if mysql => Transactions::Bounds,
            _ => Transactions::Nothing,
        }
    }
}

/// The explicit transaction that [`Transactions::Bounds`] has told of last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Bound {
    /// None is open.
    #[default]
    Outside,
    /// Open transaction.
    Inside,
    /// Open transaction that began with a consistent snapshot.
    Snapshot,
}

impl Bound {
    /// The bound after blocks of a server that reports characteristics, which come with each
    /// beginning and end; `true` with a beginning.
    fn after(self, blocks: &[u8]) -> Result<(Bound, bool), Malformed> {
        const SNAPSHOT: &[u8] = b"WITH CONSISTENT SNAPSHOT";
        let mut open = self != Bound::Outside;
        let mut begun = None;
        changes(blocks, |change| match change {
            Change::TransactionState(state) => open = state.first() == Some(&b'T'),
            Change::TransactionCharacteristics(sql) if !sql.is_empty() => {
                let snapshot = sql.windows(SNAPSHOT.len()).any(|part| part == SNAPSHOT);
                begun = Some(if snapshot {
                    Bound::Snapshot
                } else {
                    Bound::Inside
                });
            }
            _ => {}
        })?;
        let before = match self {
            Bound::Outside => Bound::Inside,
            before => before,
        };
        Ok(match (open, begun) {
            (false, _) => (Bound::Outside, false),
            (true, None) => (before, false),
            (true, Some(begun)) => (begun, true),
        })
    }

    /// The level as a server's variable has it.
    fn text(self) -> &'static [u8] {
        match self {
            Bound::Outside => b"________",
            Bound::Inside => b"T_______",
            Bound::Snapshot => b"T_R_____",
        }
    }
}

impl Wanted {
    /// Reads `session_track_system_variables` as the server shows it.
    #[must_use]
    pub fn from_setting(variables: &str, schema: bool) -> Wanted {
        let names = variables
            .split(',')
            .map(|name| name.trim().to_ascii_lowercase());
        let names = names.filter(|name| !name.is_empty());
        Wanted {
            variables: names.map(|name| name.into_bytes().into()).collect(),
            schema,
            state: false,
            transactions: Transactions::Nothing,
        }
    }

    /// True if it is told of this variable.
    #[must_use]
    pub fn tells_of(&self, name: &[u8]) -> bool {
        self.variables
            .iter()
            .any(|wanted| &**wanted == b"*" || **wanted == *name)
    }
}

/// Appends those of `blocks` that the client wants; true when it is told of a change. That may be
/// without a block: a transaction has ended and the next one has begun. `hides_gtids`: the server
/// reports the numbers of transactions for the pool alone. `bound` is what the client
/// has been told last of transactions, or would have been if it were told of bounds: its next
/// setting, or the backend's next client, may be such a one.
///
/// # Errors
/// [`Malformed`] as from [`changes`].
pub fn keep(
    blocks: &[u8],
    wanted: &Wanted,
    hides_gtids: bool,
    bound: &mut Bound,
    out: &mut Vec<u8>,
) -> Result<bool, Malformed> {
    let start = out.len();
    let mut fresh = false;
    let put = |out: &mut Vec<u8>, kind: u8, text: &[u8]| {
        out.push(kind);
        let mut body = Vec::with_capacity(text.len() + 3);
        put_lenenc_bytes(&mut body, text);
        put_lenenc_bytes(out, &body);
    };
    changes(blocks, |change| match change {
        Change::Variable { name, value } if wanted.tells_of(name) => {
            out.push(SYSTEM_VARIABLES);
            let mut body = Vec::with_capacity(name.len() + value.len() + 6);
            put_lenenc_bytes(&mut body, name);
            put_lenenc_bytes(&mut body, value);
            put_lenenc_bytes(out, &body);
        }
        Change::Schema(schema) if wanted.schema => {
            put_schema(out, schema);
        }
        Change::State if wanted.state => out.extend_from_slice(&STATE_CHANGED),
        // A backend sends them only where `session_track_gtids` of its present client says so.
        Change::Gtids(body) if !hides_gtids => {
            out.push(GTIDS);
            put_lenenc_bytes(out, body);
        }
        Change::TransactionCharacteristics(sql)
            if wanted.transactions == Transactions::Characteristics =>
        {
            put(out, TRX_CHARACTERISTICS, sql);
        }
        Change::TransactionState(state) => match wanted.transactions {
            Transactions::Nothing | Transactions::Bounds => {}
            _ => put(out, TRX_STATE, state),
        },
        _ => {}
    })?;
    let (now, begun) = bound.after(blocks)?;
    let before = std::mem::replace(bound, now);
    if wanted.transactions == Transactions::Bounds {
        fresh = begun;
        if before != now {
            put_bound(out, now);
        }
    }
    Ok(fresh || out.len() > start)
}

/// Subject of a block: its type and, for a variable, its name.
fn subject(kind: u8, body: &[u8]) -> Result<(u8, &[u8]), Malformed> {
    let name = match kind {
        SYSTEM_VARIABLES => Reader::new(body).lenenc_bytes("a variable's name")?,
        _ => b"",
    };
    Ok((kind, name))
}

/// Appends those of the `older` blocks that `blocks` say nothing about; both as [`keep`] writes
/// them, a block for each variable.
///
/// # Errors
/// [`Malformed`] as from [`changes`].
pub fn add_older(older: &[u8], blocks: &mut Vec<u8>) -> Result<(), Malformed> {
    let mut told = Vec::new();
    let mut reader = Reader::new(&blocks[..]);
    while !reader.is_empty() {
        let kind = reader.u8("a tracker type")?;
        told.push(subject(kind, reader.lenenc_bytes("a tracker block")?)?);
    }
    let mut added = Vec::new();
    let mut reader = Reader::new(older);
    while !reader.is_empty() {
        let kind = reader.u8("a tracker type")?;
        let body = reader.lenenc_bytes("a tracker block")?;
        if !told.contains(&subject(kind, body)?) {
            added.push(kind);
            put_lenenc_bytes(&mut added, body);
        }
    }
    blocks.extend_from_slice(&added);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks that MariaDB sends after `SET autocommit=0` with every tracker on, and a schema
    /// change.
    const BLOCKS: &[u8] =
        b"\x00\x0f\x0aautocommit\x03OFF\x02\x011\x01\x05\x04test\x05\x09\x08T_______";

    #[test]
    fn every_block_is_reported_in_order() {
        let mut seen = Vec::new();
        changes(BLOCKS, |change| seen.push(change)).unwrap();
        assert_eq!(
            seen,
            [
                Change::Variable {
                    name: b"autocommit",
                    value: b"OFF"
                },
                Change::State,
                Change::Schema(b"test"),
                Change::TransactionState(b"T_______"),
            ]
        );
    }

    #[test]
    fn an_end_that_was_not_told_and_a_beginning_are_no_change() {
        const END: &[u8] = b"\x05\x09\x08________";
        const BEGINNING: &[u8] = b"\x05\x09\x08T_______";
        const SCHEMA: &[u8] = b"\x01\x05\x04test";
        let join = |older: &[&[u8]], blocks: &[&[u8]]| {
            let (mut older, mut blocks) = (older.concat(), blocks.concat());
            let joined = join_transactions(&mut older, &mut blocks).unwrap();
            (joined, older, blocks)
        };
        let none = Vec::new;
        assert_eq!(join(&[END], &[BEGINNING]), (true, none(), none()));
        assert_eq!(
            join(&[SCHEMA, END], &[BEGINNING, SCHEMA]),
            (true, SCHEMA.to_vec(), SCHEMA.to_vec())
        );
        for (older, blocks) in [
            (&[SCHEMA][..], &[BEGINNING][..]),
            (&[END], &[SCHEMA]),
            (&[END], &[END]),
            (&[BEGINNING], &[END]),
            (&[], &[BEGINNING]),
        ] {
            assert_eq!(
                join(older, blocks),
                (false, older.concat(), blocks.concat())
            );
        }
        assert!(join_transactions(&mut none(), &mut vec![5, 9, 8]).is_err());
    }

    #[test]
    fn what_a_routine_gives_back_at_its_end_does_not_last() {
        let mut out = b"before".to_vec();
        let blocks = b"\x00\x0e\x08sql_mode\x04ANSI\x00\x0f\x0aautocommit\x03OFF\x02\x011";
        add_lasting(blocks, &mut out);
        assert_eq!(out, b"before\x00\x0f\x0aautocommit\x03OFF\x02\x011");
        out.clear();
        add_lasting(b"\x00\x0e\x08sql_mode", &mut out);
        assert_eq!(out, b"\x00\x0e\x08sql_mode", "cannot be read");
    }

    #[test]
    fn gtids_reach_whoever_has_asked_for_them() {
        let blocks = b"\x03\x06\x00\x04a:12\x02\x011";
        let mut out = Vec::new();
        let wanted = Wanted::from_setting("", false);
        let told = keep(blocks, &wanted, false, &mut Bound::default(), &mut out);
        assert_eq!((told, &out[..]), (Ok(true), &blocks[..8]));
        out.clear();
        let told = keep(blocks, &wanted, true, &mut Bound::default(), &mut out);
        assert_eq!((told, &out[..]), (Ok(false), &b""[..]), "the pool's own");
        let cut = keep(&blocks[..5], &wanted, true, &mut Bound::default(), &mut out);
        assert!(cut.is_err());
    }

    #[test]
    fn a_client_gets_only_what_it_asked_for() {
        let mut out = Vec::new();
        let wanted = Wanted::from_setting("time_zone, Autocommit", false);
        assert_eq!(
            keep(BLOCKS, &wanted, false, &mut Bound::default(), &mut out),
            Ok(true)
        );
        assert_eq!(out, b"\x00\x0f\x0aautocommit\x03OFF");
        out.clear();
        assert_eq!(
            keep(
                BLOCKS,
                &Wanted::from_setting("", false),
                false,
                &mut Bound::default(),
                &mut out
            ),
            Ok(false)
        );
        assert_eq!(
            keep(
                BLOCKS,
                &Wanted::from_setting("", true),
                false,
                &mut Bound::default(),
                &mut out
            ),
            Ok(true)
        );
        assert_eq!(out, b"\x01\x05\x04test");
    }

    #[test]
    fn transactions_are_told_as_the_setting_says() {
        // MySQL's reports, of BEGIN, of the first write in it, and of its end.
        let begin = b"\x05\x09\x08T_______\x04\x13\x12START TRANSACTION;";
        let write = b"\x05\x09\x08T___W___";
        let end = b"\x05\x09\x08________\x04\x01\x00";
        let told = |blocks: &[u8], setting: &[u8], mysql: bool| {
            let mut bound = match blocks.starts_with(b"\x05\x09\x08____") {
                true => Bound::Inside,
                false => Bound::Outside,
            };
            let mut wanted = Wanted::from_setting("", false);
            wanted.transactions = Transactions::from_setting(setting, mysql);
            let mut out = Vec::new();
            keep(blocks, &wanted, false, &mut bound, &mut out).unwrap();
            out
        };
        for blocks in [&begin[..], write, end] {
            assert_eq!(told(blocks, b"OFF", false), b"");
            assert_eq!(told(blocks, b"STATE", true), blocks[..11]);
            assert_eq!(told(blocks, b"CHARACTERISTICS", false), blocks);
        }
        assert_eq!(told(begin, b"OFF", true), begin[..11]);
        assert_eq!(told(b"\x05\x09\x08I__W____", b"OFF", true), b"");
        assert_eq!(told(end, b"OFF", true), end[..11]);
    }

    #[test]
    fn bounds_are_told_once() {
        // MySQL's reports with CHARACTERISTICS, and what it says with OFF instead.
        let story: [(&[u8], &[u8]); 8] = [
            (
                b"\x05\x09\x08T_______\x04\x13\x12START TRANSACTION;",
                b"T_______",
            ),
            (b"\x05\x09\x08T_____S_", b""),
            (b"\x05\x09\x08T_______\x04\x13\x12START TRANSACTION;", b""),
            (b"\x04\x13\x12START TRANSACTION;", b""),
            (
                b"\x05\x09\x08T_R_____\x04\x2c\x2bSTART TRANSACTION WITH CONSISTENT SNAPSHOT;",
                b"T_R_____",
            ),
            (b"\x05\x09\x08T_RW____", b""),
            (b"\x05\x09\x08_______L\x04\x01\x00", b"________"),
            (b"\x05\x09\x08________", b""),
        ];
        let mut wanted = Wanted::from_setting("", false);
        wanted.transactions = Transactions::Bounds;
        let mut bound = Bound::default();
        for (blocks, told) in story {
            let mut out = Vec::new();
            keep(blocks, &wanted, false, &mut bound, &mut out).unwrap();
            assert_eq!(out.get(3..).unwrap_or_default(), told, "{blocks:?}");
        }
    }

    #[test]
    fn a_transaction_that_ends_under_another_setting_is_over_for_the_next_client() {
        let begins = b"\x05\x09\x08T_______\x04\x13\x12START TRANSACTION;";
        let ends = b"\x05\x09\x08________\x04\x01\0";
        let mut wanted = Wanted::from_setting("", false);
        let mut bound = Bound::default();
        let mut out = Vec::new();
        wanted.transactions = Transactions::Bounds;
        keep(begins, &wanted, false, &mut bound, &mut out).unwrap();
        wanted.transactions = Transactions::from_setting(b"STATE", true);
        keep(ends, &wanted, false, &mut bound, &mut out).unwrap();
        out.clear();
        // Somebody else, whose statement touches no transaction.
        wanted.transactions = Transactions::Bounds;
        keep(b"\x02\x02\x011", &wanted, false, &mut bound, &mut out).unwrap();
        assert_eq!(out, b"");
    }

    #[test]
    fn older_reports_are_added_unless_there_are_newer_ones() {
        let older = b"\x00\x08\x04zone\x02+1\x00\x06\x04mode\x00\x01\x03\x02db";
        let mut blocks = b"\x00\x08\x04zone\x02+2\x01\x03\x02ab".to_vec();
        add_older(older, &mut blocks).unwrap();
        assert_eq!(
            blocks,
            b"\x00\x08\x04zone\x02+2\x01\x03\x02ab\x00\x06\x04mode\x00"
        );
        let mut blocks = Vec::new();
        add_older(older, &mut blocks).unwrap();
        assert_eq!(blocks, older);
        assert!(add_older(b"\x01\x03\x02d", &mut blocks).is_err(), "cut");
    }

    #[test]
    fn any_change_of_state_is_told_to_who_asked() {
        let mut wanted = Wanted::from_setting("", false);
        wanted.state = true;
        let mut out = Vec::new();
        assert_eq!(
            keep(BLOCKS, &wanted, false, &mut Bound::default(), &mut out),
            Ok(true)
        );
        assert_eq!(out, b"\x02\x011");
    }

    #[test]
    fn the_number_of_a_statement_says_nothing() {
        assert!(says_nothing(b""));
        let block = |pairs: &[&[u8]]| {
            let body = pairs.concat();
            let len = u8::try_from(body.len()).unwrap();
            [&[0, len][..], &body].concat()
        };
        assert!(says_nothing(&block(&[b"\x0cstatement_id\x0277"])));
        let two: [&[u8]; 2] = [b"\x0cstatement_id\x0277", b"\x09time_zone\x03UTC"];
        assert!(!says_nothing(&block(&two)));
        assert!(!says_nothing(b"\x02\x011"), "some state changed");
        assert!(!says_nothing(b"\x00\x0f\x0cstate"), "a cut block");
    }

    #[test]
    fn an_unknown_block_is_skipped_by_its_length() {
        let mut seen = Vec::new();
        changes(b"\x63\x02ab\x02\x011", |change| seen.push(change)).unwrap();
        assert_eq!(seen, [Change::Other(0x63), Change::State]);
    }

    #[test]
    fn a_schema_is_taken_out_of_what_else_is_reported() {
        let mut variable = vec![SYSTEM_VARIABLES];
        put_lenenc_bytes(&mut variable, b"\x01a\x01b");
        let mut schema = Vec::new();
        put_schema(&mut schema, b"shop");
        let mut dropped = Vec::new();
        put_schema(&mut dropped, b"");
        for (blocks, left, taken) in [
            (dropped.clone(), &dropped[..], &b""[..]),
            (schema.clone(), &b""[..], &schema[..]),
            ([&schema[..], &variable].concat(), &variable, &schema),
            ([&variable[..], &schema].concat(), &variable, &schema),
            (variable.clone(), &variable, b""),
            (Vec::new(), b"", b""),
        ] {
            let mut rest = blocks;
            assert_eq!(take_schema(&mut rest).unwrap(), taken);
            assert_eq!(rest, left);
        }
        assert!(take_schema(&mut vec![SCHEMA, 9]).is_err());
    }

    #[test]
    fn a_cut_block_is_malformed() {
        for cut in [1, 2, 10, BLOCKS.len() - 1] {
            assert!(changes(&BLOCKS[..cut], |_| {}).is_err(), "cut at {cut}");
        }
    }
}
