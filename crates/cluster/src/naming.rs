//! Members that the cluster names: for servers that are found, not written down.
//!
//! The problem: a name comes from a server, and whoever is taken for a server is sent accounts and
//! writes. The mechanism: names are gathered here from what the servers in use last said, at most
//! [`NAMED_MAX`], and only plain ones ([`plain_name`]); which addresses are allowed, and who may
//! be used, is the caller's to judge.

use crate::report::Report;
use crate::settings::{Kind, Role, Settings};
use crate::view::{ServerState, View};

/// Most names that are looked at.
const NAMED_MAX: usize = 64;
/// Longest name of a host.
const HOST_LEN_MAX: usize = 253;

/// Addresses that servers in use name as members of their cluster, each once. `None` while the
/// writer, which knows them best, has said nothing of late.
pub fn named(view: &View, settings: &Settings, now: u64) -> Option<Vec<String>> {
    let writer = view.servers.get(view.writer?.index())?;
    let is_fresh = |it: &ServerState| it.memory.reported_at.abs_diff(now) <= settings.stale_ms;
    if !is_fresh(writer) {
        return None;
    }
    let mut all = Vec::new();
    for (server, state) in settings.servers.iter().zip(&view.servers) {
        let report = state.report.as_ref().filter(|_| is_fresh(state));
        let Some(report) = report.filter(|_| server.role != Role::Off) else {
            continue;
        };
        for name in report.names(settings.kind, &server.address) {
            if all.len() < NAMED_MAX && !all.contains(&name) {
                all.push(name);
            }
        }
    }
    Some(all)
}

/// Checks that a name is a host of plain characters, or an address, and a port.
///
/// # Errors
/// Names the part that is missing or not allowed.
pub fn plain_name(name: &str) -> Result<(), String> {
    let (host, port) = name.rsplit_once(':').ok_or("it has no port")?;
    if !port.parse::<u16>().is_ok_and(|port| port > 0) {
        return Err("its port is no number".into());
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let is_host = (1..=HOST_LEN_MAX).contains(&host.len()) && host.chars().all(is_plain);
    match is_host || name.parse::<std::net::SocketAddrV6>().is_ok() {
        true => Ok(()),
        false => Err("it is no name of a host".into()),
    }
}

impl Report {
    /// Members that this server names; it has `address` itself.
    fn names(&self, kind: Kind, address: &str) -> Vec<String> {
        match kind {
            Kind::Replication => self.replicas.clone(),
            Kind::Rds => {
                let topology = self.topology.iter().map(|it| it.address.clone());
                self.replicas.iter().cloned().chain(topology).collect()
            }
            Kind::Galera => (self.galera.iter())
                .flat_map(|it| it.members.clone())
                .collect(),
            Kind::GroupReplication => (self.group.iter().flat_map(|it| &it.members))
                .filter(|it| ["ONLINE", "RECOVERING"].contains(&it.state.as_str()))
                .map(|it| it.address.clone())
                .collect(),
            Kind::Aurora => (self.aurora.iter())
                .filter_map(|it| instance_of(&it.id, address))
                .collect(),
        }
    }

    /// Name by which a server is known under whichever address, if it has one.
    pub fn identity(&self) -> Option<String> {
        let node = self.galera.as_ref().map(|it| &it.node);
        let names = [node, Some(&self.aurora_id), Some(&self.server_uuid)];
        let name = names.into_iter().flatten().find(|it| !it.is_empty());
        match (name, self.galera.is_some()) {
            (Some(name), _) => Some(name.clone()),
            // Servers that replicate from each other have numbers of their own.
            (None, false) if self.server_id != 0 => Some(self.server_id.to_string()),
            (None, _) => None,
        }
    }
}

/// Address of an instance of Aurora, beside that of another instance or of the cluster:
/// `one.abc.eu-west-1.rds.amazonaws.com:3306`, `shop.cluster-abc....`.
fn instance_of(id: &str, address: &str) -> Option<String> {
    let (_, domain) = address.split_once('.')?;
    let domain = domain.strip_prefix("cluster-").unwrap_or(domain);
    let domain = domain.strip_prefix("ro-").unwrap_or(domain);
    let is_address = address.parse::<std::net::SocketAddr>().is_ok();
    (!is_address).then(|| format!("{id}.{domain}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_names_are_none() {
        for good in ["db-2.internal:3306", "10.0.0.1:1", "[2001:db8::1]:3306"] {
            assert_eq!(plain_name(good), Ok(()), "{good}");
        }
        let long = format!("{}:3306", "a".repeat(HOST_LEN_MAX + 1));
        for bad in [
            "db2",
            "",
            ":3306",
            "db2:0",
            "db2:65536",
            "db2:",
            "db 2:3306",
            "db2\n:3306",
            "db2\0:3306",
            "\u{7f}:3306",
            "d\u{fffd}b:3306",
            "/run/sock:3306",
            "[::1:3306",
            "::1:3306",
            "a:b:3306",
            "<b>:3306",
            "\u{202e}db:3306",
            &long,
        ] {
            assert!(plain_name(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_instance_of_aurora_is_beside_another() {
        let expected = Some("two.abc.eu-west-1.rds.amazonaws.com:3306".to_owned());
        for beside in ["one.abc.", "shop.cluster-abc.", "shop.cluster-ro-abc."] {
            let beside = format!("{beside}eu-west-1.rds.amazonaws.com:3306");
            assert_eq!(instance_of("two", &beside), expected);
        }
        assert_eq!(instance_of("two", "10.0.0.1:3306"), None);
        assert_eq!(instance_of("two", "aurora:3306"), None);
    }
}
