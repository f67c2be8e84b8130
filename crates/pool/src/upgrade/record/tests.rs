//! Records from values, values from records, and bytes that are none.
use super::*;
use crate::auth::login::Login;
use crate::backend::prepared_statements::{Definition, HeldRecord, Statements};
use crate::buffers::transport::Transport;
use crate::client::pins::Pins;
use crate::errors::reasons::PinReason;
use reactor::{Key, Time};
use session::last_gtid::LastGtid;
use sql::classify::{PinCause, classify};
use sql::lex::LexMode;
use std::rc::Rc;
use wire::compressed::{Body, FrameHeader};

const SERVER: Server = Server::MariaDb(101_100);

fn idle() -> Client<()> {
    let mut client = Client::moving(Transport::plain((), false), Time(1), Rc::default());
    assert!(client.change_state(ClientState::Idle, Time(2)));
    client.proof = crate::client::Proof::Given;
    client
}

fn full() -> Client<()> {
    let mut client = idle();
    let meter = Meter::default();
    let mut session = Session::default();
    session.schema = Some(b"shop"[..].into());
    session.put(b"sql_mode", b"ANSI");
    let user = [(b"a"[..].into(), b"1".to_vec())];
    session.set_user_variables(session.user_variables().with(&user, &meter));
    client.session = Rc::new(session);
    (client.id, client.capabilities, client.extended) = (1 << 30 | 7, 0xF0F0, 3);
    (client.collation, client.seq, client.changes_failed) = (45, 1, 2);
    client.place.priority = Some(Priority::Low);
    client
        .transport
        .set_client_address("[::1]:7".parse().unwrap());
    let compression = Compression::going_on(Algorithm::Zstd(3), 9, vec![7, 0]);
    client.transport.set_compression(Some(compression));
    client.keep_input(b"\x05\0\0\0\x03DO");
    client.last.insert_id = 77;
    client.statements_made = 12;
    let define = |sql: &[u8]| {
        Rc::new(Definition {
            sql: sql.into(),
            session: Rc::default(),
            class: classify(sql, LexMode::default()),
            digest: std::cell::OnceCell::new(),
        })
    };
    let mut prepared = Statements::default();
    for id in [3, 12] {
        let mut bytes = Vec::new();
        put_lenenc(&mut bytes, id);
        bytes.extend_from_slice(&[2, 1, 0]);
        put_lenenc_bytes(&mut bytes, b"SELECT ?");
        put_bool(&mut bytes, false);
        Session::default().put_record(&mut bytes);
        put_option(&mut bytes, Some(&b"\x03\0"[..]), put_lenenc_bytes);
        put_option(&mut bytes, Some(&b"long"[..]), put_lenenc_bytes);
        let held = HeldRecord::read_record(&mut Reader::new(&bytes), None, |reader| {
            let there = [BegunThere::default()];
            Session::read_record(reader, &there, &Begun::default(), &Meter::default())
        });
        prepared.take_record(held.unwrap(), define(b"SELECT ?"));
    }
    prepared.named.push((b"p"[..].into(), define(b"SELECT 2")));
    prepared.last = Some(12);
    client.prepared = Some(Box::new(prepared));
    client
}

fn beside(gtid: Option<&LastGtid>) -> Beside<'_> {
    Beside {
        user: "app",
        account: Some(AccountThere {
            user: "app".into(),
            host: "%".into(),
            credential: Credential::Native([9; 20]),
        }),
        gtid,
    }
}

fn read_it(bytes: &[u8]) -> Read<Arrived> {
    read(
        bytes,
        Here {
            begun_there: &[BegunThere::default()],
            begun: &Begun::default(),
            meters: (&Meter::default(), &Meter::default()),
        },
    )
}

#[test]
fn a_client_is_read_as_it_was_written() {
    let client = full();
    let mut gtid = LastGtid::default();
    gtid.set(b"0-1-7");
    let mut out = Vec::new();
    put(&mut out, &client, &beside(Some(&gtid)));
    let arrived = read_it(&out).unwrap();
    assert_eq!(arrived.user, "app");
    assert_eq!(arrived.account, beside(None).account);
    assert_eq!(arrived.gtid, Some(gtid));
    assert_eq!((arrived.id, arrived.capabilities), (1 << 30 | 7, 0xF0F0));
    assert_eq!((arrived.extended, arrived.collation), (3, 45));
    assert_eq!((arrived.seq, arrived.changes_failed), (1, 2));
    assert_eq!(arrived.priority, Some(Priority::Low));
    assert_eq!(arrived.address, "[::1]:7".parse().ok());
    let compression = arrived.compression.unwrap();
    assert_eq!(compression.algorithm, Algorithm::Zstd(3));
    assert_eq!((compression.on, compression.seq), (true, 9));
    assert_eq!(compression.raw, [7, 0]);
    assert_eq!(arrived.session, *client.session);
    assert_eq!(arrived.last.insert_id, 77);
    assert_eq!(arrived.input, b"\x05\0\0\0\x03DO");
    assert_eq!(
        (arrived.statements_made, arrived.last_prepared),
        (12, Some(12))
    );
    let ids: Vec<u32> = arrived.statements.iter().map(|held| held.id).collect();
    assert_eq!(ids, [3, 12]);
    assert_eq!(*arrived.statements[0].sql, *b"SELECT ?");
    assert_eq!(arrived.named.len(), 1);
}

#[test]
fn a_record_that_is_cut_off_or_garbled_makes_no_client() {
    let mut out = Vec::new();
    put(&mut out, &full(), &beside(None));
    for len in 0..out.len() {
        let error = read_it(&out[..len]).unwrap_err();
        assert!(
            error.to_string().contains("cannot be read"),
            "{len}: {error}"
        );
    }
    for at in 0..out.len() {
        let mut garbled = out.clone();
        garbled[at] ^= 0x55;
        let _ = read_it(&garbled);
    }
    out.push(0);
    assert!(read_it(&out).is_err());
}

#[test]
fn only_who_is_between_two_commands_and_holds_nothing_may_go() {
    assert_eq!(full().stays(SERVER), Some(Stays::Unsent).filter(|_| false));
    let stays = |change: &dyn Fn(&mut Client<()>)| {
        let mut client = full();
        change(&mut client);
        client.stays(SERVER)
    };
    let state = |to| move |client: &mut Client<()>| assert!(client.change_state(to, Time(3)));
    assert_eq!(stays(&state(ClientState::Running)), Some(Stays::Busy));
    assert_eq!(stays(&state(ClientState::Waiting)), Some(Stays::Busy));
    assert_eq!(stays(&state(ClientState::Moving)), Some(Stays::Moving));
    let login = |client: &mut Client<()>| client.login = Some(Box::new(Login::new([0; 20], false)));
    assert_eq!(stays(&login), Some(Stays::LoggingIn));
    let unsent = |client: &mut Client<()>| client.output = Some(Box::default());
    assert_eq!(stays(&unsent), Some(Stays::Unsent));
    let pin = |client: &mut Client<()>| {
        let mut pins = Pins::default();
        let reason = PinReason::Text(PinCause::UserLock);
        pins.add(reason, None, &b"".to_vec().into(), Time(1));
        client.pins = Some(Box::new(pins));
    };
    assert_eq!(stays(&pin), Some(Stays::Pinned));
    let lease = |client: &mut Client<()>| client.binding.join(Key::from_parts(1, 0));
    assert_eq!(stays(&lease), Some(Stays::Holding));
    let cursor = |client: &mut Client<()>| {
        let prepared = client.prepared.as_mut().unwrap();
        let definition = prepared.get(3).unwrap().definition.clone();
        prepared.set_cursor(3, Some(&definition));
    };
    assert_eq!(stays(&cursor), Some(Stays::Holding));
    let owed = |client: &mut Client<()>| client.last.owed.warnings = true;
    assert_eq!(stays(&owed), Some(Stays::Asks));
    let frame = |client: &mut Client<()>| {
        let header = FrameHeader {
            sent: 9,
            seq: 0,
            unpacked: 0,
        };
        let compression = client.transport.compression_mut().unwrap();
        compression.body = Some(Box::new(Body::new(header, None)));
    };
    assert_eq!(stays(&frame), Some(Stays::AmidFrame));
    let killed = |client: &mut Client<()>| client.interrupted = true;
    assert_eq!(stays(&killed), Some(Stays::Busy));
}
