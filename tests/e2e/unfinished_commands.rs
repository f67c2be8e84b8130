//! Commands that are begun and not ended: what they may take, and who is closed for them.

use crate::world::*;
use testkit::talk::Happened;
use wire::compressed::{Algorithm, Packer};

const MIB: usize = 1 << 20;
/// Memory of a debug build besides what is counted: tables, heaps of its threads.
const MEMORY_BESIDES: u64 = 48 << 20;

/// A frame of 11 MiB that begins a command of 12 MiB and does not end it.
fn unfinished(algorithm: Algorithm) -> Vec<u8> {
    let command = part_of_query(12 * MIB, 11 * MIB);
    let mut frame = Vec::new();
    Packer::default().pack_as(algorithm, 0, &command, &mut frame);
    assert!(frame.len() < 80_000, "{}", frame.len());
    frame
}

/// Beginning of a query of `len` bytes, `sent` of them.
fn part_of_query(len: usize, sent: usize) -> Vec<u8> {
    let mut bytes = u32::try_from(len).unwrap().to_le_bytes().to_vec();
    bytes[3] = 0;
    bytes.push(3);
    bytes.extend_from_slice(b"SELECT '");
    bytes.resize(sent, b'x');
    bytes
}

fn refused(client: &mut Client) -> Failure {
    match client.wait().unwrap() {
        Happened::Refused(failure) => failure,
        other => panic!("{other:?}"),
    }
}

/// Bytes of input that are counted now.
fn counted(pool: &Pool) -> u64 {
    number_of(
        &pool.wait_for_census("input_bytes: ").unwrap(),
        "input_bytes",
    )
}

fn frames_take_no_more_than_their_bound(real: &Real, algorithm: Algorithm, more: u32) {
    const CLIENTS: u64 = 100;
    const INPUT_MAX: u64 = 32 << 20;
    let pool = fresh_pool(real, "groups = 2\ninput_bytes_max = 33554432");
    let account = app().with(more);
    let mut good = login(&pool.address, &app());
    assert_eq!(good.value("SELECT 1"), "1");
    let frame = unfinished(algorithm);
    let mut bad: Vec<Client> = (0..CLIENTS)
        .map(|_| login(&pool.address, &account))
        .collect();
    let before = memory_of(&pool, "VmRSS");
    for client in &mut bad {
        client.send_unframed(&frame).unwrap();
        assert_eq!(good.value("SELECT 2"), "2");
    }
    // Somebody has found no room: all of it is in use.
    pool.wait_for_census("input-stalled: ").unwrap();
    for i in 0..20 {
        assert_eq!(good.value(&format!("SELECT {i}")), i.to_string());
    }
    // Each may have the first bytes of its command and what unpacks them.
    let each = 256 * 1024;
    assert!(counted(&pool) <= INPUT_MAX + CLIENTS * each);
    let more = memory_of(&pool, "VmRSS").saturating_sub(before);
    let bound = INPUT_MAX + CLIENTS * each + MEMORY_BESIDES;
    assert!(more <= bound, "{more} bytes more than {before}");
    drop(bad);
    assert_eq!(good.value("SELECT 3"), "3");
}

#[test]
fn unfinished_frames_of_zlib_take_no_more_than_their_bound() {
    let Some(real) = pooled(server) else { return };
    frames_take_no_more_than_their_bound(real, Algorithm::Zlib, cap::COMPRESS);
}

#[test]
fn unfinished_frames_of_zstd_take_no_more_than_their_bound() {
    let Some(real) = pooled(mysql) else { return };
    frames_take_no_more_than_their_bound(real, Algorithm::Zstd(3), cap::ZSTD);
}

#[test]
fn a_command_longer_than_half_of_the_room_is_refused_and_others_are_not() {
    let (_, pool) = or_return!(shared_pool("input_bytes_max = 2097152"));
    let mut good = login(&pool.address, &app());
    for more in [0, cap::COMPRESS] {
        let mut long = login(&pool.address, &app().with(more));
        let query = part_of_query(3 * MIB, 100_000);
        if more == 0 {
            long.send_raw(&query).unwrap();
        } else {
            let mut frame = Vec::new();
            Packer::default().pack(&query, &mut frame);
            long.send_unframed(&frame).unwrap();
        }
        let failure = refused(&mut long);
        assert_eq!(failure.code, 1153, "{failure}");
        assert!(failure.message.contains("'input_bytes_max'"), "{failure}");
        assert!(long.wait().is_err(), "the connection is over");
        let text = "y".repeat(900_000);
        assert_eq!(good.value(&format!("SELECT '{text}'")), text);
    }
    pool.wait_for_census("input_bytes: 0,").unwrap();
}

#[test]
fn the_users_limit_is_for_its_clients_alone() {
    let Some(real) = pooled(server) else { return };
    let text = config(&real.address(), "").replace(
        "name = \"other\"",
        "name = \"other\"\ninput_bytes_max = 1048576",
    );
    let pool = pool_from(real, &text);
    let account = testkit::talk::Account::new("other", "other's");
    let mut first = login(&pool.address, &account);
    first.send_raw(&part_of_query(800_000, 700_000)).unwrap();
    let mut good = login(&pool.address, &app());
    let text = "y".repeat(3_000_000);
    assert_eq!(good.value(&format!("SELECT '{text}'")), text);
    let mut small = login(&pool.address, &account);
    assert_eq!(small.value("SELECT 'small'"), "small");
    // Its bytes may be on their way.
    wait_while(|| counted(&pool) < 700_000);
    let mut second = login(&pool.address, &account);
    second.send_raw(&part_of_query(MIB, 700_000)).unwrap();
    let failure = refused(&mut second);
    assert_eq!(failure.code, 1153, "{failure}");
    assert!(failure.message.contains("user 'other'"), "{failure}");
    assert_eq!(small.value("SELECT 'still'"), "still");
    let mut rest = part_of_query(800_000, 800_004)[700_000..].to_vec();
    let end = rest.len() - 1;
    rest[end] = b'\'';
    first.send_raw(&rest).unwrap();
    let reply = format!("{:?}", first.wait());
    says(&reply, "nobody asked for");
}

#[test]
fn who_holds_room_and_does_not_go_on_makes_way_for_who_waits() {
    let (_, pool) = or_return!(shared_pool("groups = 2\ninput_bytes_max = 4194304"));
    let mut stalled: Vec<Client> = (0..3).map(|_| login(&pool.address, &app())).collect();
    for client in &mut stalled {
        client
            .send_raw(&part_of_query(1_900_000, 1_800_000))
            .unwrap();
    }
    let mut slow = login(&pool.address, &app());
    slow.send_raw(&part_of_query(1_000, 500)).unwrap();
    let mut good = login(&pool.address, &app());
    assert_eq!(good.value("SELECT 'small'"), "small");
    let text = "y".repeat(1_500_000);
    assert_eq!(good.value(&format!("SELECT '{text}'")), text);
    let closed = pool.wait_for_census("input-stalled: ").unwrap();
    assert!(!closed.contains("too_slow: 1"), "{closed}");
    let mut ended = 0;
    for client in &mut stalled {
        if client.has_answer().unwrap() {
            let failure = refused(client);
            assert_eq!(failure.code, 1153, "{failure}");
            assert!(failure.message.contains("did not come on"), "{failure}");
            ended += 1;
        }
    }
    assert!(ended >= 1, "{closed}");
    // What is small is nobody's way.
    let mut rest = part_of_query(1_000, 1_004)[500..].to_vec();
    let end = rest.len() - 1;
    rest[end] = b'\'';
    slow.send_raw(&rest).unwrap();
    let reply = format!("{:?}", slow.wait());
    assert!(reply.contains("nobody asked for"), "{reply}");
}
