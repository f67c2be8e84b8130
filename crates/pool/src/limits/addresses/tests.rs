//! Connections that are let in or refused, and a full table.

use super::*;

const SECOND: u64 = 1_000_000_000;
const OFF: Limit = Limit {
    clients: None,
    logins_per_s: None,
};

/// One connection, and one a second.
const ONE: Limit = Limit {
    clients: Some(1),
    logins_per_s: Some(1),
};

fn open(max: u32) -> Limit {
    Limit {
        clients: Some(max),
        ..OFF
    }
}

fn begin(max: u32) -> Limit {
    Limit {
        logins_per_s: Some(max),
        ..OFF
    }
}

fn limits(address: Limit, network: Limit) -> AddressRules<'static> {
    AddressRules {
        address,
        network,
        network_bits: (24, 48),
        exempt: &[],
    }
}

/// Limit that a connection from here meets at this second.
fn from(
    table: &AddressLimits,
    limits: &AddressRules<'_>,
    address: &str,
    at: u64,
) -> Result<CountedAddress, &'static str> {
    let address = address.parse().unwrap();
    let entered = table.enter(Some(address), limits, Time(at));
    entered.map_err(|met| met.name())
}

#[test]
fn as_many_are_open_as_may_and_who_leaves_makes_room() {
    let table = AddressLimits::default();
    let limits = limits(open(2), OFF);
    let first = from(&table, &limits, "192.0.2.1", 0).unwrap();
    let _second = from(&table, &limits, "::ffff:192.0.2.1", 0).unwrap();
    for _ in 0..3 {
        let third = from(&table, &limits, "192.0.2.1", 0);
        assert_eq!(third, Err("address-clients"));
    }
    from(&table, &limits, "192.0.2.2", 0).unwrap();
    table.leave(first);
    from(&table, &limits, "192.0.2.1", 0).unwrap();
    assert!(from(&table, &limits, "192.0.2.1", 9 * SECOND).is_err());
}

#[test]
fn a_64_of_ipv6_is_one_address_and_its_front_is_a_network() {
    let table = AddressLimits::default();
    let limits = limits(open(1), open(2));
    from(&table, &limits, "2001:db8:1::1", 0).unwrap();
    let same = from(&table, &limits, "2001:db8:1::ffff:1", 0);
    assert_eq!(same, Err("address-clients"));
    from(&table, &limits, "2001:db8:1:1::1", 0).unwrap();
    let third = from(&table, &limits, "2001:db8:1:2::1", 0);
    assert_eq!(third, Err("network-clients"));
    from(&table, &limits, "2001:db8:2::1", 0).unwrap();
}

#[test]
fn as_many_begin_at_once_as_in_a_second_and_then_evenly() {
    let table = AddressLimits::default();
    let limits = limits(begin(4), OFF);
    let at = 7 * SECOND;
    for _ in 0..4 {
        table.leave(from(&table, &limits, "192.0.2.1", at).unwrap());
    }
    // Whoever is refused is no further from its turn.
    for _ in 0..100 {
        let fifth = from(&table, &limits, "192.0.2.1", at + SECOND / 4 - 1);
        assert_eq!(fifth, Err("address-logins"));
    }
    from(&table, &limits, "192.0.2.1", at + SECOND / 4).unwrap();
    assert!(from(&table, &limits, "192.0.2.1", at + SECOND / 4).is_err());
    for _ in 0..4 {
        from(&table, &limits, "192.0.2.1", at + 9 * SECOND).unwrap();
    }
    assert!(from(&table, &limits, "192.0.2.1", at + 9 * SECOND).is_err());
}

#[test]
fn what_the_network_refuses_does_not_count_for_the_address() {
    let table = AddressLimits::default();
    let both = limits(begin(3), begin(2));
    for _ in 0..2 {
        from(&table, &both, "192.0.2.1", SECOND).unwrap();
    }
    for _ in 0..9 {
        let met = from(&table, &both, "192.0.2.1", SECOND);
        assert_eq!(met, Err("network-logins"));
        let met = from(&table, &both, "192.0.2.9", SECOND);
        assert_eq!(met, Err("network-logins"));
    }
    // Of the address, one more may begin.
    let alone = limits(begin(3), OFF);
    from(&table, &alone, "192.0.2.1", SECOND).unwrap();
    let met = from(&table, &alone, "192.0.2.1", SECOND);
    assert_eq!(met, Err("address-logins"));
}

#[test]
fn exempt_networks_and_unix_sockets_have_no_limit() {
    let table = AddressLimits::default();
    let exempt = [Network::parse("10.0.0.0/8").unwrap()];
    let limits = AddressRules {
        exempt: &exempt,
        ..limits(open(1), open(1))
    };
    for address in ["10.1.2.3", "::ffff:10.1.2.3"] {
        for _ in 0..3 {
            let counted = from(&table, &limits, address, 0);
            assert_eq!(counted, Ok(CountedAddress::default()));
        }
    }
    for _ in 0..3 {
        assert_eq!(
            table.enter(None, &limits, Time(0)),
            Ok(CountedAddress::default())
        );
    }
}

#[test]
fn without_a_limit_there_is_no_table() {
    let table = AddressLimits::default();
    let counted = from(&table, &limits(OFF, OFF), "192.0.2.1", 0).unwrap();
    table.leave(counted);
    assert!(counted == CountedAddress::default() && table.sets.get().is_none());
}

#[test]
fn who_comes_from_another_process_counts_and_is_let_in() {
    let table = AddressLimits::default();
    let limits = limits(ONE, OFF);
    let address = Some("192.0.2.1".parse().unwrap());
    let counted = [(); 2].map(|()| table.admit(address, &limits, Time(0)));
    let met = from(&table, &limits, "192.0.2.1", SECOND);
    assert_eq!(met, Err("address-clients"));
    for entry in counted {
        table.leave(entry);
    }
    from(&table, &limits, "192.0.2.1", SECOND).unwrap();
}

/// Addresses that are all in networks of their own.
fn address(number: u32) -> String {
    let [a, b, c, d] = number.to_be_bytes();
    format!("2001:{a:x}{b:02x}:{c:x}{d:02x}::1")
}

#[test]
fn a_full_table_locks_nobody_out_and_keeps_what_it_has() {
    let table = AddressLimits::default();
    let limits = limits(open(1), OFF);
    let first = from(&table, &limits, &address(0), 0).unwrap();
    // Each holds one connection: far more than there are cells.
    let others = 3 * u32::try_from(CELLS).unwrap();
    for number in 1..=others {
        from(&table, &limits, &address(number), 0).unwrap();
    }
    let sets = table.sets.get().unwrap();
    assert_eq!(sets.len() * WAYS, CELLS, "the table has not grown");
    let open = |set: &Mutex<Set>| set.lock().unwrap().iter().filter(|c| c.open > 0).count();
    let counted: usize = sets.iter().map(open).sum();
    let uncounted = usize::try_from(table.uncounted()).unwrap();
    assert!(counted > CELLS * 9 / 10 && counted <= CELLS, "{counted}");
    // Each that is counted takes two cells.
    assert!(uncounted >= others as usize - CELLS / 2, "{uncounted}");
    // A cell with an open connection was not given away.
    assert_eq!(
        from(&table, &limits, &address(0), 0),
        Err("address-clients")
    );
    // Newcomers are let in, and nobody loses a place for it.
    for number in others + 1..others + 1000 {
        assert!(from(&table, &limits, &address(number), 0).is_ok());
    }
    table.leave(first);
    from(&table, &limits, &address(0), 0).unwrap();
}

#[test]
fn who_only_begins_takes_no_room_from_who_is_open() {
    let table = AddressLimits::default();
    let limits = limits(ONE, OFF);
    from(&table, &limits, "192.0.2.1", 0).unwrap();
    for number in 0..4 * u32::try_from(CELLS).unwrap() {
        table.leave(from(&table, &limits, &address(number), 0).unwrap());
    }
    assert_eq!(table.uncounted(), 0, "quiet cells are given to newcomers");
    assert_eq!(
        from(&table, &limits, "192.0.2.1", 9 * SECOND),
        Err("address-clients")
    );
}

#[test]
fn the_words_name_who_the_limit_and_the_setting() {
    let table = AddressLimits::default();
    let limits = limits(open(1), OFF);
    let said = |limits: &AddressRules<'_>, address: &str| {
        let address = Some(address.parse().unwrap());
        let _ = table.enter(address, limits, Time(0));
        table
            .enter(address, limits, Time(0))
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        said(&limits, "192.0.2.1"),
        "1 connections from 192.0.2.1 are open already, as many as may be \
         (clients_per_address_max)"
    );
    let networks = AddressRules {
        address: OFF,
        network: begin(1),
        ..limits
    };
    assert_eq!(
        said(&networks, "2001:db8::1"),
        "1 connections a second may begin from 2001:db8::/48 (logins_per_s_per_network_max); try \
         again in a second"
    );
}
