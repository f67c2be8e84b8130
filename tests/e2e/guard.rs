//! What guards the pool: limits by address and network.

use crate::metrics::until;
use crate::proxy_header::{connected, packet};
use crate::world::{app, binary, config, config_file, direct, login, server, start_pool};
use reactor::Address;
use std::io::Write;
use std::net::TcpStream;
use testkit::onramp::Pool;
use testkit::real::{Real, skipped};

/// What a connection hears first: the greeting, or the words of an error.
fn knock_with(pool: &Address, last: u8, header: &[u8]) -> Result<TcpStream, String> {
    let mut stream = connected(pool, last);
    if !header.is_empty() {
        stream.write_all(header).unwrap();
    }
    let (_, payload) = packet(&mut stream).unwrap();
    match payload[0] {
        10 => Ok(stream),
        _ => {
            assert_eq!(payload[..3], [0xff, 0x10, 0x04], "error 1040");
            Err(String::from_utf8_lossy(&payload[3..]).into_owned())
        }
    }
}

/// The same from 127.0.0.`last`.
fn knock(pool: &Address, last: u8) -> Result<TcpStream, String> {
    knock_with(pool, last, b"")
}

/// A refusal that names this setting.
fn refused(knocked: Result<TcpStream, String>, setting: &str) {
    let why = knocked.expect_err("one too many was greeted");
    assert!(why.contains(setting), "{why}");
}

fn pool_of(test: &str, name: &str, extra: &str) -> Option<(&'static Real, Pool)> {
    let real = server(test)?;
    if direct() {
        skipped(test, "it is about the pool");
        return None;
    }
    Some((real, start_pool(real, name, extra)))
}

#[test]
fn an_address_has_as_many_connections_as_it_may() {
    let test = "an_address_has_as_many_connections_as_it_may";
    let extra = "groups = 4\nbackends_max = 32\nclients_per_address_max = 5\n\
                 clients_per_network_max = 8\n\
                 unlimited_networks = [\"127.0.1.0/24\", \"127.0.0.9\"]";
    let Some((_, pool)) = pool_of(test, "per-address.toml", extra) else {
        return;
    };
    let address = &pool.address;
    // The kernel deals them to all groups: what counts is the sum.
    let mut first: Vec<TcpStream> = (0..5).map(|_| knock(address, 2).unwrap()).collect();
    for _ in 0..8 {
        refused(knock(address, 2), "clients_per_address_max");
    }
    let _second: Vec<TcpStream> = (0..3).map(|_| knock(address, 3).unwrap()).collect();
    refused(knock(address, 4), "clients_per_network_max");
    let exempt: Vec<TcpStream> = (0..9).map(|_| knock(address, 9).unwrap()).collect();
    assert_eq!(exempt.len(), 9);
    // Who leaves makes room for one, and one only.
    first.pop();
    let _again = until(|| knock(address, 2));
    refused(knock(address, 2), "clients_per_address_max");
    // One that was greeted can log in.
    first.clear();
    let mut client = until(|| match knock(address, 1) {
        Ok(_) => Ok(login(address, &app())),
        Err(why) => Err(why),
    });
    assert_eq!(client.value("SELECT 1"), "1");
    // Counted by reason, and logged.
    pool.wait_for("reason=address-clients").unwrap();
    pool.wait_for("reason=network-clients").unwrap();
    pool.wait_for_census("\"address-clients\": ").unwrap();
}

#[test]
fn as_many_logins_begin_in_a_second_as_may() {
    let test = "as_many_logins_begin_in_a_second_as_may";
    let extra = "groups = 2\nlogins_per_s_per_address_max = 1";
    let Some((_, pool)) = pool_of(test, "per-second.toml", extra) else {
        return;
    };
    let mut refusals = 0;
    // However slow the machine is, two of so many come within a second.
    let tried = (0..10_000).find_map(|_| knock(&pool.address, 2).err());
    refused(Err(tried.unwrap()), "logins_per_s_per_address_max");
    // Another address is not held up by it, and this one gets in again, while it tries on.
    knock(&pool.address, 3).unwrap();
    let _in = until(|| {
        knock(&pool.address, 2).inspect_err(|why| {
            refusals += 1;
            assert!(why.contains("logins_per_s_per_address_max"), "{why}");
        })
    });
    pool.wait_for("reason=address-logins").unwrap();
}

#[test]
fn behind_a_proxy_the_headers_address_counts() {
    let test = "behind_a_proxy_the_headers_address_counts";
    let extra = "groups = 2\nclients_per_address_max = 2\n\
                 proxy_protocol_networks = [\"127.0.0.1\"]";
    let Some((_, pool)) = pool_of(test, "per-proxied.toml", extra) else {
        return;
    };
    let from = |header: &str| knock_with(&pool.address, 1, header.as_bytes());
    let one = "PROXY TCP4 192.0.2.1 192.0.2.9 4660 3306\r\n";
    // The same address, in the form that it has behind a listener of IPv6.
    let same = "PROXY TCP6 ::ffff:192.0.2.1 ::1 4660 3306\r\n";
    let other = "PROXY TCP4 192.0.2.2 192.0.2.9 4660 3306\r\n";
    let mut held = vec![from(one).unwrap(), from(same).unwrap()];
    refused(from(one), "clients_per_address_max");
    refused(from(same), "clients_per_address_max");
    held.push(from(other).unwrap());
    // The proxy's own connections, its health checks, have no limit; nor do those whose header
    // is still to come.
    let own: Vec<TcpStream> = (0..4).map(|_| from("PROXY UNKNOWN\r\n").unwrap()).collect();
    let silent: Vec<TcpStream> = (0..4).map(|_| connected(&pool.address, 1)).collect();
    held.push(from(other).unwrap());
    assert_eq!((own.len(), silent.len(), held.len()), (4, 4, 4));
    held.remove(0);
    until(|| from(one));
}

#[test]
fn a_limit_that_comes_by_reload_counts_who_is_here() {
    let test = "a_limit_that_comes_by_reload_counts_who_is_here";
    let Some(real) = server(test) else { return };
    if direct() {
        return skipped(test, "it is about the pool");
    }
    let name = "per-reload.toml";
    let write = |extra: &str| {
        let text = config(&real.address(), &format!("groups = 2\n{extra}"));
        config_file(real, name, &text)
    };
    let file = write("");
    let pool = Pool::start(binary(), &["--config", file.to_str().unwrap()]).unwrap();
    let mut held: Vec<TcpStream> = (0..4).map(|_| knock(&pool.address, 2).unwrap()).collect();
    write("clients_per_address_max = 3");
    pool.hang_up().unwrap();
    pool.wait_for("clients_per_address_max (no limit, now 3)")
        .unwrap();
    // Each group takes the settings in its next turn; nobody is closed for them.
    until(|| match knock(&pool.address, 2) {
        Ok(_) => Err("the limit does not hold yet".to_owned()),
        Err(_) => Ok(()),
    });
    held.truncate(2);
    held.push(until(|| knock(&pool.address, 2)));
    refused(knock(&pool.address, 2), "clients_per_address_max");
    // Without the limit there is none.
    write("");
    pool.hang_up().unwrap();
    held.push(until(|| knock(&pool.address, 2)));
}

#[test]
fn who_comes_along_in_an_upgrade_counts() {
    let test = "who_comes_along_in_an_upgrade_counts";
    let Some(real) = server(test) else { return };
    if direct() {
        return skipped(test, "it is about the pool");
    }
    let text = config(&real.address(), "groups = 2\nclients_per_address_max = 3");
    let file = config_file(real, "per-upgrade.toml", &text);
    let arguments = ["--config", file.to_str().unwrap()];
    let old = Pool::start(binary(), &arguments).unwrap();
    let mut clients: Vec<_> = (0..3).map(|_| login(&old.address, &app())).collect();
    refused(knock(&old.address, 1), "clients_per_address_max");
    let new = old.succeed(binary(), &arguments).unwrap();
    let (status, said) = old.wait();
    assert!(status.success(), "{said}");
    for client in &mut clients {
        assert_eq!(client.value("SELECT 1"), "1");
    }
    refused(knock(&new.address, 1), "clients_per_address_max");
    clients.pop();
    until(|| knock(&new.address, 1));
}
