//! Records from values, values from records, and bytes that are none.
use super::*;
use crate::auth::login::Login;
use crate::auth::secret::Secret;
use crate::backend::{BackendState, Endpoint, ForBackend, InFlight, Reports};
use crate::client::buffers::transport::Transport;
use crate::client::place::Arrival;
use crate::errors::reasons::PinReason;
use crate::group::scripted::tls_record;
use crate::group::tokens::{BackendId, ClientId};
use reactor::Address;
use session::global_defaults::GlobalDefaults;
use session::meter::Meter;
use session::prepared::{Definition, LongData, OnBackend};
use session::record::PeerDefaults;
use session::transaction::Doubt;
use sql::classify::{PinCause, classify};
use sql::lex::LexMode;
use std::sync::Arc;
use wire::command::ReplyShape;
use wire::compressed::{Body, FrameHeader};
use wire::execution::{TypeList, Types};
use wire::track::Bound;

fn idle() -> Client<()> {
    let mut client = Client::moving(Transport::plain((), false), Time(1), Rc::default());
    assert!(client.change_state(ClientState::Idle, Time(2)));
    client
        .identity
        .set_proof(crate::client::identity::Proof::Given);
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
    client.session.state = Rc::new(session);
    client.capabilities = 0xF0F0;
    client.identity.take_carried(Carried {
        id: 1 << 30 | 7,
        collation: 45,
        seq: 1,
        changes_failed: 2,
        extended: 3,
        statements_made: 12,
    });
    client.place.priority = Some(Priority::Low);
    client
        .transport
        .set_client_address("[::1]:7".parse().unwrap());
    let compression = Compression::going_on(Algorithm::Zstd(3), 9, vec![7, 0]);
    client.transport.set_compression(Some(compression));
    client.keep_input(b"\x05\0\0\0\x03DO");
    client.session.last.insert_id = 77;
    client.command.defer_begin();
    client.place.arrival = Arrival::at(Time(9_000_000_000));
    let define = |sql: &[u8]| {
        let class = classify(sql, LexMode::default());
        Rc::new(Definition::new(sql.into(), Rc::default(), class))
    };
    let mut prepared = Statements::default();
    for id in [3, 12] {
        let header = wire::reply::Prepared {
            id,
            columns: 2,
            params: 1,
            warnings: 0,
        };
        prepared.note_new(id, define(b"SELECT ?"), Some(header));
        prepared.remember(id, Types::Sent(TypeList::plain(&[3, 0])));
        prepared.get_mut(id).unwrap().long =
            Some(Box::new(LongData::new(b"long".to_vec(), &Meter::default())));
    }
    prepared.last = Some(12);
    *client.session.prepared = Some(Box::new(prepared));
    client
}

#[test]
fn tls_goes_along_and_nobody_loses_it_on_the_way() {
    let mut client = idle();
    let put_it = |client: &Client<()>| bytes_of(client, &beside(None)).unwrap();
    assert!(read_it(&put_it(&client)).unwrap().tls.is_none());
    let tls = Tls::read_record(&tls_record(1)).unwrap();
    client.transport.set_tls(tls);
    assert!(client.transport.is_readable(), "what has come with it");
    assert_eq!(client.stays(false), None);
    let out = put_it(&client);
    let arrived = read_it(&out).unwrap().tls.unwrap();
    let mut again = Vec::new();
    arrived.put_record(&mut again);
    assert_eq!(again, tls_record(1));
    // A cipher that nobody knows here, or a length that is none: no client, rather than one whose
    // bytes are taken for clear text.
    let at = out
        .windows(again.len())
        .position(|window| window == again)
        .unwrap();
    for suite in [0, 4, 255] {
        let mut unknown = out.clone();
        unknown[at + 2] = suite;
        assert!(read_it(&unknown).is_err(), "{suite}");
    }
    // One whose TLS cannot go has no record, and is refused as well.
    let config = rustls::ServerConfig::builder_with_provider(
        rustls::crypto::aws_lc_rs::default_provider().into(),
    )
    .with_safe_default_protocol_versions()
    .unwrap()
    .with_no_client_auth()
    .with_cert_resolver(Arc::new(rustls::server::ResolvesServerCertUsingSni::new()));
    client.transport.set_tls(Tls::server(&config).unwrap());
    assert_eq!(client.stays(false), Some(Stays::Tls));
    assert!(read_it(&put_it(&client)).is_err());
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
        program: "shop",
    }
}

fn read_it(bytes: &[u8]) -> Result<Arrived, NotHere> {
    read(
        bytes,
        Here {
            peer_defaults: &[PeerDefaults::default()],
            defaults: &GlobalDefaults::default(),
            variables: &Meter::default(),
            conditions: &Meter::default(),
        },
    )
}

#[test]
fn a_client_is_read_as_it_was_written() {
    let client = full();
    let mut gtid = LastGtid::default();
    gtid.set(b"0-1-7");
    let out = bytes_of(&client, &beside(Some(&gtid))).unwrap();
    let arrived = read_it(&out).unwrap();
    assert_eq!(arrived.user, "app");
    assert_eq!(arrived.account, beside(None).account);
    assert_eq!(arrived.gtid, Some(gtid));
    let carried = arrived.carried;
    assert_eq!((carried.id, arrived.capabilities), (1 << 30 | 7, 0xF0F0));
    assert_eq!((carried.extended, carried.collation), (3, 45));
    assert_eq!((carried.seq, carried.changes_failed), (1, 2));
    assert_eq!(arrived.priority, Some(Priority::Low));
    assert_eq!(arrived.address, "[::1]:7".parse().ok());
    let compression = arrived.compression.unwrap();
    assert_eq!(compression.algorithm, Algorithm::Zstd(3));
    assert_eq!((compression.on, compression.seq), (true, 9));
    assert_eq!(compression.raw, [7, 0]);
    assert_eq!(arrived.session, *client.session.state);
    assert_eq!(arrived.last.insert_id, 77);
    assert_eq!(arrived.input, b"\x05\0\0\0\x03DO");
    assert!(arrived.begin_deferred);
    assert_eq!(
        (carried.statements_made, arrived.last_prepared),
        (12, Some(12))
    );
    assert_eq!(
        (&*arrived.program, arrived.connected),
        ("shop", Time(9_000_000_000))
    );
    let ids: Vec<u32> = arrived.statements.iter().map(|(held, _)| held.id).collect();
    assert_eq!(ids, [3, 12]);
    assert_eq!(*arrived.statements[0].0.sql, *b"SELECT ?");
}

#[test]
fn a_password_is_in_no_record() {
    let password = Credential::Password(Secret::from("secret"));
    let bytes = password.to_bytes().unwrap();
    assert_eq!(bytes, [0]);
    assert!(Credential::from_bytes(&bytes) == Ok(Credential::Password(Secret::default())));
}

#[test]
fn a_record_that_is_cut_off_or_garbled_makes_no_client() {
    let mut out = bytes_of(&full(), &beside(None)).unwrap();
    for len in 0..out.len() {
        let error = read_it(&out[..len]).unwrap_err();
        assert!(error.contains("cannot be read"), "{len}: {error}");
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
fn a_backend_goes_with_its_client_and_is_read_as_it_was_written() {
    let (of, backend_id) = (ClientId::from_parts(4, 1), BackendId::from_parts(7, 0));
    let at = Arc::new(Address::Tcp("127.0.0.1:3306".parse().unwrap()));
    let mut backend: Backend<()> = Backend::dialling(
        Endpoint::new((), at.clone(), 0),
        Time(100),
        Rc::default(),
        None,
    );
    backend.end_dial();
    assert!(!backend.goes_with(of), "it is not the client's");
    for to in [
        BackendState::Preparing,
        BackendState::Idle,
        BackendState::CheckedOut,
    ] {
        assert!(backend.change_state(to, Time(200)));
    }
    let mut client = full();
    client.bind(&mut backend, (of, backend_id));
    backend.thread = 77;
    backend.session.forget_insert_id();
    (backend.session.transaction).note_status(wire::status::IN_TRANS);
    backend.session.transaction.note_failed(true);
    backend.session.see_transaction(Time(150));
    backend.session.note_leftover();
    backend.session.conditions_of = Some(of);
    *backend.session.bound_mut() = Bound::Inside;
    backend.note_served();
    let define = |sql: &[u8], session: &Session| {
        let class = classify(sql, LexMode::default());
        Rc::new(Definition::new(sql.into(), Rc::new(session.clone()), class))
    };
    let two = define(b"SELECT 2", &Session::default());
    backend.session.prepared.add(two, 12);
    assert!(backend.goes_with(of));
    client.session.last.pending.warnings = true;
    client.place.give_tickets(5);
    let lock = PinReason::Text(PinCause::UserLock);
    client.session.pins.add(lock, Some(b"l".to_vec().into()), 5);
    client.session.pins.add(PinReason::WideCharset, None, 9);
    client.session.modified = Some(Box::new(Modified {
        names: vec![b"mine".to_vec().into()],
        fresh: true,
        clock: 1,
        ..Modified::default()
    }));
    let record = bytes_of(&client, &beside(None)).unwrap();
    let beside_it = bytes_of_bound(&client, &backend, Time(200)).unwrap();
    let here_is = |bytes: &[u8]| {
        let here = Here {
            peer_defaults: &[PeerDefaults::default()],
            defaults: &GlobalDefaults::default(),
            variables: &Meter::default(),
            conditions: &Meter::default(),
        };
        let mut arrived = read(&record, here)?;
        let backend_id = read_bound_backend(bytes, &mut arrived, here)?;
        Ok::<_, NotHere>((arrived, backend_id))
    };
    let (arrived, read) = here_is(&beside_it).unwrap();
    assert!(arrived.last.pending.warnings && !arrived.last.is_settled());
    assert_eq!(read.tickets, 5);
    let (lock, reason) = (PinCause::UserLock, PinReason::WideCharset);
    assert!(read.pins.has(lock, b"l") && read.pins.is_pinned_for(reason));
    assert_eq!(read.pins.list()[0].since, 5);
    let modified = read.modified.unwrap();
    assert_eq!(modified.names, [b"mine".to_vec().into()]);
    assert!(modified.fresh && !modified.failed && modified.asks_clock() && modified.goes_along());
    assert_eq!(read.backend.at, at.to_string());
    let again: Backend<()> = Backend::arrived(
        Endpoint::new((), at, 3),
        &read.backend,
        of,
        Time(1000),
        Rc::default(),
    );
    assert_eq!((again.thread, again.pool), (77, 3));
    assert_eq!(again.session.insert_id(), None);
    assert_eq!(again.session.transaction, backend.session.transaction);
    let doubt = again.session.transaction.doubt();
    assert_eq!(
        doubt,
        Doubt::MayBeCommitted,
        "its loss is not without effect"
    );
    assert_eq!(again.session.transaction_seen().unwrap().since, Time(950));
    assert!(again.session.has_leftovers());
    assert_eq!(again.session.conditions_of, Some(of));
    assert!(
        *again.session.bound() == Bound::Inside
            && again.has_served()
            && !again.reuse.is_for_others()
    );
    assert_eq!(again.state(), BackendState::CheckedOut);
    let prepared = OnBackend::of_records(read.prepared, define);
    assert_eq!(prepared.count(), 1);
    for len in 0..beside_it.len() {
        assert!(here_is(&beside_it[..len]).is_err(), "{len}");
    }
    for at in 0..beside_it.len() {
        let mut garbled = beside_it.clone();
        garbled[at] ^= 0x55;
        let _ = here_is(&garbled);
    }
    // What is under way there, or not known, keeps it where it is.
    type Keep<'a> = &'a dyn Fn(&mut Backend<()>);
    let keeps: [Keep<'_>; 6] = [
        &|b| b.session.reports = Reports::Due(session::statement::Explanation::None),
        &|b| b.reuse.freeze(),
        &|b| b.session.note_another_schema(),
        &|b| b.give_back_input(&[1]),
        &|b| b.session.conditions_of = Some(ClientId::from_parts(5, 0)),
        &|b| {
            b.flight.expect(InFlight::own(
                None,
                ForBackend::Clearing,
                ReplyShape::Results,
            ))
        },
    ];
    for keep in keeps {
        let mut one: Backend<()> = Backend::dialling(
            Endpoint::new((), Arc::new(Address::Unix("/s".into())), 0),
            Time(1),
            Rc::default(),
            None,
        );
        for to in [
            BackendState::Preparing,
            BackendState::Idle,
            BackendState::CheckedOut,
        ] {
            assert!(one.change_state(to, Time(2)));
        }
        full().bind(&mut one, (of, backend_id));
        assert!(one.goes_with(of) && !one.goes_with(ClientId::from_parts(5, 0)));
        keep(&mut one);
        assert!(!one.goes_with(of));
    }
}

#[test]
fn only_who_is_between_two_commands_and_holds_nothing_may_go() {
    assert_eq!(full().stays(false), Some(Stays::Unsent).filter(|_| false));
    let stays = |change: &dyn Fn(&mut Client<()>)| {
        let mut client = full();
        change(&mut client);
        client.stays(false)
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
        let reason = PinReason::Text(PinCause::UserLock);
        client.session.pins.add(reason, None, 1);
    };
    assert_eq!(stays(&pin), Some(Stays::Pinned));
    let backend = |client: &mut Client<()>| client.join(BackendId::from_parts(1, 0));
    assert_eq!(stays(&backend), Some(Stays::Holding));
    // What it holds can go along.
    let along = |change: &dyn Fn(&mut Client<()>)| {
        let mut client = full();
        backend(&mut client);
        change(&mut client);
        client.stays(true)
    };
    assert_eq!(along(&|_| {}), None);
    assert_eq!(along(&pin), None);
    assert_eq!(
        along(&|client| client.session.last.pending.warnings = true),
        None
    );
    let modified = |modified: fn(&mut Modified)| {
        move |client: &mut Client<()>| modified(client.session.modified.get_or_insert_default())
    };
    assert_eq!(stays(&modified(|_| {})), Some(Stays::Busy));
    assert_eq!(along(&modified(|modified| modified.fresh = true)), None);
    let awaited = modified(|modified| modified.awaited = 1);
    assert_eq!(along(&awaited), Some(Stays::Busy));
    let untold = modified(|modified| modified.sets.push(b"SET a = 1".to_vec()));
    assert_eq!(along(&untold), Some(Stays::Busy));
    let failed = |client: &mut Client<()>| client.session.last.pending.failed = true;
    assert_eq!(along(&failed), Some(Stays::Holding));
    let cursor = |client: &mut Client<()>| {
        let prepared = client.session.prepared.as_mut().unwrap();
        let definition = prepared.get(3).unwrap().definition.clone();
        prepared.set_cursor(3, Some(&definition));
    };
    assert_eq!(stays(&cursor), Some(Stays::Holding));
    assert_eq!(along(&cursor), Some(Stays::Holding));
    let pending = |client: &mut Client<()>| client.session.last.pending.warnings = true;
    assert_eq!(stays(&pending), Some(Stays::Asks));
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
    let killed = |client: &mut Client<()>| client.ended.interrupt();
    assert_eq!(stays(&killed), Some(Stays::Busy));
}
