//! Ports for many connections: more source addresses, or more ports of the server.
//!
//! Each test has a network of its own with a hundred local ports, so that a few hundred connections
//! meet what otherwise takes tens of thousands.

use crate::walls::{has, is_root};
use crate::world::*;
use serde_json::Value;
use std::process::{Command, Output, Stdio};

/// Local ports of the network: 20000 to 20099.
const NETWORK: &str = r#"ip link set lo up &&
    echo "20000 20099" > /proc/sys/net/ipv4/ip_local_port_range && exec "$@""#;
/// A second port of the server.
const EXTRA_PORT: u16 = 3999;

/// A server that listens on two ports, in a network of its own.
struct Narrow {
    real: Real,
}

impl Narrow {
    fn new(_: &str) -> Option<Narrow> {
        if !is_root() || !has(&["unshare", "nsenter", "ip"]) {
            return None;
        }
        let prefix = ["unshare", "--net", "sh", "-c", NETWORK, "sh"];
        let extra_port = format!("--extra-port={EXTRA_PORT}");
        let more = [
            "--max-connections=500",
            "--extra-max-connections=500",
            &extra_port,
        ];
        own(Real::start_behind(&prefix, &more)).map(|real| Narrow { real })
    }

    /// Runs the program in this network.
    fn run(&self, words: &[&str]) -> Output {
        let pid = self.real.pid().to_string();
        Command::new("nsenter")
            .args(["--target", &pid, "--net", "--"])
            .arg(binary())
            .args(words)
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }

    /// The JSON of a load of so many connections, each of which does one event at least.
    fn load(&self, connections: u32, more: &[&str]) -> (Value, String) {
        let file = self.real.folder().join("load.json");
        let target = format!("mysql://app:app@127.0.0.1:{}/mysql", self.real.port());
        let connections = connections.to_string();
        let words = [
            &["load", "statements", "run", "--statement", "SELECT 1"][..],
            &["--target", &target, "--connections", &connections],
            &["--time", "1", "--json", file.to_str().unwrap()],
            more,
        ];
        let output = self.run(&words.concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{error}: {said}"));
        (serde_json::from_str(&text).unwrap(), said)
    }
}

/// That all of so many connections stood and nothing failed.
fn assert_all_stood(connections: u32, (report, said): &(Value, String)) {
    assert_eq!(report["connected"], connections, "{said}");
    assert_eq!(report["failed_connects"], 0, "{said}");
    assert_eq!(report["failed_statements"], 0, "{said}");
    assert_eq!(report["limit"], Value::Null, "{said}");
}

#[test]
fn source_addresses_give_the_ports_that_one_address_lacks() {
    let narrow = or_return!(pooled(Narrow::new));
    let (report, said) = narrow.load(150, &["--source-addresses", "127.0.0.1"]);
    let reached = report["connected"].as_u64().unwrap();
    assert!((80..=100).contains(&reached), "{reached}: {said}");
    says(&said, "1 source address x 100 local ports");

    // Two fifths of the ports of each address: four addresses for 150.
    let taken = narrow.load(150, &[]);
    assert_all_stood(150, &taken);
    let from = "; from 127.0.0.2 to 127.0.0.5: 4 source addresses x 100 local ports";
    assert!(taken.1.contains(from), "{}", taken.1);

    let given = narrow.load(150, &["--source-addresses", "127.0.0.7,127.0.0.9"]);
    assert_all_stood(150, &given);
}

#[test]
fn ports_of_the_target_serve_with_each_source_address() {
    let narrow = or_return!(pooled(Narrow::new));
    let extra = EXTRA_PORT.to_string();
    let two_ports = ["--target-ports", &extra];
    // One address, which the kernel takes by itself: 100 local ports, used twice.
    let both = narrow.load(150, &two_ports);
    assert_all_stood(150, &both);
    assert!(!both.1.contains("; from "), "{}", both.1);
    let sessions = "SELECT VARIABLE_VALUE FROM information_schema.global_status \
                    WHERE VARIABLE_NAME = 'Max_used_connections'";
    let used: u64 = narrow.real.admin().value(sessions).parse().unwrap();
    assert!(used >= 150, "{used}");

    // Two addresses and two ports: four times 100, of which more than half are wanted.
    let sources = ["--source-addresses", "127.0.0.7,127.0.0.9"];
    let all = narrow.load(300, &[&two_ports[..], &sources].concat());
    assert_all_stood(300, &all);

    let ports = format!("--mysql-port={},{extra}", narrow.real.port());
    let output = narrow.run(&[
        "sysbench",
        "select_random_points",
        "--mysql-host=127.0.0.1",
        "--mysql-user=app",
        "--mysql-password=app",
        "--mysql-db=mysql",
        &ports,
        "--table-size=100",
        "--threads=150",
        "--events=300",
        "run",
    ]);
    // The table is not there, which only a connection that stands can be told.
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("connected 150 of 150, 0 failed"), "{said}");
}
