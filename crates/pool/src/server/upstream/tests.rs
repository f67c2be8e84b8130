//! Places, look-ups and outages, without a network; and the first address that answers, with one.
use super::*;
use std::net::TcpListener;

const SECOND: Duration = Duration::from_secs(1);

fn at(text: &str) -> Address {
    Address::parse(text).unwrap()
}

fn named() -> Upstream {
    Upstream::new(Place::parse("db.example:3306").unwrap())
}

#[test]
fn a_place_is_read_without_looking_it_up() {
    let fixed = |text: &str| Place::Fixed(at(text));
    assert_eq!(Place::parse("10.0.0.1:3306"), Ok(fixed("10.0.0.1:3306")));
    assert_eq!(Place::parse("[::1]:3306"), Ok(fixed("[::1]:3306")));
    assert_eq!(Place::parse("/run/m.sock"), Ok(fixed("/run/m.sock")));
    let name = Place::parse("no.such.host.invalid:3306").unwrap();
    assert_eq!(name.to_string(), "no.such.host.invalid:3306");
    for wrong in [
        "nowhere", ":3306", "a:0", "a:99999", "a b:1", "[::1:1", "a:b:1", "",
    ] {
        let why = Place::parse(wrong).unwrap_err();
        assert!(why.contains("expected HOST:PORT"), "{why}");
    }
}

#[test]
fn a_name_is_looked_up_at_most_once_a_second_and_waited_for_briefly() {
    let upstream = named();
    let begun = Time(1);
    assert_eq!(upstream.address(begun), Err(begun + PATIENCE));
    assert_eq!(upstream.lock().wanted, Some(begun));
    upstream.looked_up(begun + PATIENCE, Ok(vec![at("10.0.0.1:3306")]));
    let one = Ok(Arc::new(at("10.0.0.1:3306")));
    assert_eq!(upstream.address(begun + PATIENCE), one);
    assert_eq!(upstream.lock().wanted, None, "it is fresh");
    let later = begun + PATIENCE + SECOND;
    assert_eq!(upstream.address(later), Err(later + PATIENCE));
    assert_eq!(
        upstream.address(later + PATIENCE),
        one,
        "no answer: as known"
    );
    upstream.looked_up(later + SECOND, Err("try again".into()));
    assert_eq!(upstream.address(later + SECOND), one, "failed: as known");
    assert_eq!(upstream.lock().wanted, None, "nor again at once");
}

#[test]
fn a_name_that_moves_is_followed_and_one_that_grows_is_not() {
    let upstream = named();
    let (one, two) = (at("10.0.0.1:3306"), at("10.0.0.2:3306"));
    upstream.looked_up(Time(1), Ok(vec![one.clone()]));
    upstream.looked_up(Time(2), Ok(vec![two.clone(), one.clone()]));
    assert_eq!(upstream.moves.load(SeqCst), 0);
    assert_eq!(
        upstream.address(Time(2)),
        Ok(Arc::new(one.clone())),
        "it works"
    );
    upstream.looked_up(Time(3), Ok(vec![two.clone()]));
    assert_eq!(upstream.moves.load(SeqCst), 1);
    assert!(upstream.means(&two) && !upstream.means(&one));
    let many = (0..100).map(|n| at(&format!("10.0.1.{n}:3306"))).collect();
    upstream.looked_up(Time(4), Ok(many));
    assert_eq!(upstream.lock().addresses.len(), ADDRESSES_MAX);
}

#[test]
fn the_next_address_follows_one_that_fails_and_an_answer_ends_the_outage() {
    let upstream = named();
    let (one, two) = (at("10.0.0.1:3306"), at("10.0.0.2:3306"));
    upstream.looked_up(Time(1), Ok(vec![one.clone(), two.clone()]));
    assert_eq!(upstream.failing_since(), None);
    assert!(upstream.failed(&one, Time(5), "refused"));
    assert!(!upstream.failed(&one, Time(6), "refused"), "it has begun");
    assert_eq!(upstream.address(Time(6)), Ok(Arc::new(two.clone())));
    assert!(!upstream.failed(&two, Time(7), "refused"));
    assert_eq!(upstream.address(Time(7)), Ok(Arc::new(one)));
    assert_eq!(upstream.failing_since(), Some(Time(5)));
    assert!(upstream.reached(&two, Time(9)));
    assert!(!upstream.reached(&two, Time(9)), "it has ended");
    assert_eq!(upstream.failing_since(), None);
    assert_eq!(upstream.address(Time(7)), Ok(Arc::new(two)));
}

#[test]
fn the_first_address_that_answers_is_used() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let good = Arc::new(Address::Tcp(listener.local_addr().unwrap()));
    let free = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let bad = Arc::new(Address::Tcp(free));
    let (found, _) = connect_first(&[bad.clone(), good.clone()], None, 10 * SECOND).unwrap();
    assert_eq!(found, good);
    let (who, error) = connect_first(std::slice::from_ref(&bad), None, 10 * SECOND).unwrap_err();
    assert_eq!((who, error.kind()), (bad, ErrorKind::ConnectionRefused));
}

#[test]
fn nobody_there_is_said_with_address_and_reason() {
    let upstream = Upstream::new(Place::parse("/nowhere/s.sock").unwrap());
    let why = upstream.connect(None, SECOND).unwrap_err();
    assert!(
        why.starts_with("cannot connect to /nowhere/s.sock: No such file"),
        "{why}"
    );
    assert!(upstream.failing_since().is_some());
    let why = named().connect(None, Duration::from_millis(1)).unwrap_err();
    assert_eq!(why, "cannot look up db.example:3306: no answer yet");
}

#[test]
fn a_server_is_silent_that_leaves_a_connection_that_stood_unanswered() {
    let place = at("10.0.0.1:3306");
    let upstream = Upstream::new(Place::Fixed(place.clone()));
    let long = 5 * SECOND;
    upstream.failed(&place, Time(1), "no answer to a login");
    upstream.answers_nobody(false);
    assert!(!upstream.is_silent(), "those that stand may be answered");
    upstream.answers_nobody(true);
    assert!(upstream.is_silent());
    assert_eq!(upstream.silent_for(Time(1) + SECOND, long), None);
    assert_eq!(upstream.silent_for(Time(1) + long, long), Some(long));
    upstream.heard();
    assert_eq!(upstream.silent_for(Time(1) + long, long), None);
    upstream.answers_nobody(false);
    assert!(upstream.is_silent(), "it was an answer from before");
    upstream.reached(&place, Time(1) + long);
    assert!(!upstream.is_silent());
    upstream.failed(&place, Time(1), "refused");
    upstream.answers_nobody(false);
    assert!(!upstream.is_silent(), "another outage");
}

#[test]
fn a_writer_is_dialled_once_the_watch_has_asked_it() {
    let upstream = Upstream::new(Place::Writer);
    let writer = |name: &str, address: &str| Writer {
        id: ServerId(0),
        name: name.into(),
        at: Arc::new(at(address)),
    };
    let (one, two) = (
        writer("one", "10.0.0.1:3306"),
        writer("two", "10.0.0.2:3306"),
    );
    assert!(upstream.address(Time(1)).is_err(), "none is known");
    assert!(upstream.follow_writer(Some(one.clone()), "it takes writes"));
    assert!(!upstream.follow_writer(Some(one.clone()), "it still does"));
    assert!(
        upstream.address(Time(1)).is_err(),
        "nobody has asked it yet"
    );
    assert_eq!(
        upstream.addresses(SECOND),
        Ok(vec![one.at.clone()]),
        "the watch may"
    );
    upstream.opened(&two.at);
    assert!(upstream.address(Time(1)).is_err(), "another one was asked");
    upstream.opened(&one.at);
    assert_eq!(upstream.address(Time(1)), Ok(one.at.clone()));
    assert_eq!(upstream.words(&one.at), "'one' (10.0.0.1:3306)");

    let moves = upstream.moves();
    assert!(upstream.follow_writer(Some(two.clone()), "it was promoted"));
    assert_eq!(upstream.moves(), moves + 1);
    assert!(upstream.address(Time(1)).is_err() && !upstream.means(&one.at));
    assert!(
        !upstream.failed(&one.at, Time(5), "refused"),
        "it concerns nobody"
    );
    assert!(upstream.failed(&two.at, Time(5), "refused"));
    assert!(!upstream.reached(&one.at, Time(6)) && upstream.reached(&two.at, Time(6)));
    assert!(upstream.follow_writer(None, "nobody takes writes"));
    upstream.opened(&two.at);
    assert!(upstream.address(Time(1)).is_err());
}
