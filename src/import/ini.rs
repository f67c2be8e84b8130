//! Settings of MaxScale and of MySQL Router's bootstrap in this pool's terms: servers, cluster,
//! listeners and the account that asks.
//!
//! Both have sections with keys. What has a counterpart is taken, and every other key is told with
//! the page that says what it is here.

use super::libconfig::text_of;
use super::settings::{Section, Settings, number, with_port};
use serde_json::Value;
use std::path::Path;

/// Standard port of a server.
const PORT: &str = "3306";
/// Bytes of Router's file of servers that are read.
const STATE_BYTES_MAX: u64 = 1 << 20;

/// A section: its name, and its keys.
type Part = (String, Vec<(String, String)>);

fn parts(text: &str) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    for line in text.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix('[').and_then(|it| it.strip_suffix(']')) {
            parts.push((name.trim().to_owned(), Vec::new()));
        } else if !line.starts_with(['#', ';'])
            && let (Some((key, value)), Some((_, keys))) = (line.split_once('='), parts.last_mut())
        {
            keys.push((key.trim().to_ascii_lowercase(), value.trim().to_owned()));
        }
    }
    parts
}

fn of<'a>(part: &'a Part, key: &str) -> Option<&'a str> {
    let found = part.1.iter().find(|(name, _)| name == key);
    found.map(|(_, value)| value.as_str())
}

/// Settings made of a file of one of the two; `None`: it is another program's.
pub(super) fn convert(text: &str) -> Option<Settings> {
    let parts = parts(text);
    let mut settings = Settings::default();
    let is = |key, value: &str| {
        let mut parts = parts.iter();
        parts.any(|part| of(part, key).is_some_and(|it| it.eq_ignore_ascii_case(value)))
    };
    if is("type", "server") {
        maxscale(&parts, &mut settings);
    } else if parts.iter().any(|(name, _)| name.starts_with("routing")) {
        router(&parts, &mut settings);
    } else {
        return None;
    }
    settings.put(Section::Top, "auth", "server");
    Some(settings)
}

/// A server by its name, with its address and what else is known of it.
type Server = (String, Vec<(&'static str, toml::Value)>);

/// Puts the servers: one is the backend, several are a cluster.
fn servers(all: Vec<Server>, kind: &str, settings: &mut Settings) {
    let is_alone = all.len() == 1;
    if !is_alone {
        settings.put(Section::Cluster, "kind", kind);
    }
    for (name, values) in all {
        if !is_alone {
            settings.begin_server();
            settings.put(Section::Server, "name", name);
        }
        for (key, value) in values {
            let section = match (is_alone, key) {
                (true, "backends_max") => Section::Top,
                (true, _) => Section::Backend,
                (false, _) => Section::Server,
            };
            settings.put(section, key, value);
        }
    }
}

/// TLS to a server of `MaxScale`, and the limit on its connections.
fn of_server(part: &Part) -> Vec<(&'static str, toml::Value)> {
    let is_on = |key| of(part, key).is_some_and(|it| ["true", "1", "yes", "on"].contains(&it));
    let mut values = Vec::new();
    if is_on("ssl") {
        let (mode, verifies) = match () {
            () if is_on("ssl_verify_peer_host") => ("verify_identity", true),
            () if is_on("ssl_verify_peer_certificate") => ("verify_ca", true),
            () => ("required", false),
        };
        values.push(("tls", mode.into()));
        let files = [
            ("ssl_ca", "tls_ca"),
            ("ssl_cert", "tls_cert"),
            ("ssl_key", "tls_key"),
        ];
        for (key, own) in files.into_iter().filter(|it| verifies || it.1 != "tls_ca") {
            values.extend(of(part, key).map(|file| (own, file.to_owned().into())));
        }
    }
    let max = of(part, "max_routing_connections").and_then(|max| max.parse().ok());
    let max = max.filter(|max| *max > 0);
    values.extend(max.map(|max| ("backends_max", number(max))));
    values
}

fn left(part: &Part, taken: &[&str], page: &str, settings: &mut Settings) {
    let keys = part.1.iter().map(|(key, _)| key.as_str());
    let keys: Vec<&str> = keys.filter(|key| !taken.contains(key)).collect();
    if !keys.is_empty() {
        let (name, keys) = (&part.0, keys.join(", "));
        settings.note(format!("[{name}] {keys}: see docs/pool/migrating.md{page}"));
    }
}

fn maxscale(parts: &[Part], settings: &mut Settings) {
    let (mut all, mut kind, mut listen) = (Vec::new(), "replication", Vec::new());
    for part in parts {
        let get = |key| of(part, key);
        let mut taken = vec!["type", "module", "router", "servers", "protocol", "service"];
        match get("type")
            .unwrap_or_default()
            .to_ascii_lowercase()
            .as_str()
        {
            "server" => {
                let host = get("address").or(get("socket")).unwrap_or_default();
                let port = get("port").unwrap_or(PORT);
                let address = match host.starts_with('/') {
                    true => host.into(),
                    false => with_port(host, port),
                };
                let mut values = vec![("address", address.into())];
                values.extend(of_server(part));
                all.push((part.0.clone(), values));
                taken.extend(["address", "socket", "port", "max_routing_connections"]);
                taken.extend(["ssl", "ssl_ca", "ssl_cert", "ssl_key"]);
                taken.extend(["ssl_verify_peer_certificate", "ssl_verify_peer_host"]);
            }
            "monitor" => {
                if get("module").is_some_and(|it| it.eq_ignore_ascii_case("galeramon")) {
                    kind = "galera";
                }
                for (key, own) in [("user", "monitor_user"), ("password", "monitor_password")] {
                    if let Some(value) = get(key) {
                        settings.put(Section::Backend, own, value.to_owned());
                    }
                }
                taken.extend(["user", "password"]);
            }
            "listener" => {
                let host = get("address").unwrap_or("0.0.0.0");
                listen.push(with_port(host, get("port").unwrap_or(PORT)));
                taken.extend(["address", "port"]);
            }
            "service"
                if get("router").is_some_and(|it| it.eq_ignore_ascii_case("readwritesplit")) =>
            {
                settings.note(format!(
                    "[{}] reads go to the writer too, unless asked for",
                    part.0
                ));
            }
            _ => {}
        }
        left(part, &taken, "#from-maxscale", settings);
    }
    settings.put(Section::Top, "listen", listen);
    servers(all, kind, settings);
}

fn router(parts: &[Part], settings: &mut Settings) {
    let (mut all, mut listen) = (Vec::new(), Vec::new());
    for part in parts {
        let get = |key| of(part, key);
        let mut taken = vec![
            "destinations",
            "routing_strategy",
            "protocol",
            "cluster_type",
        ];
        if let Some(known) = get("bootstrap_server_addresses") {
            all.extend(addresses(known));
        }
        if let Some(file) = get("dynamic_state") {
            all.extend(known_servers(Path::new(file), settings));
        }
        let wanted = get("destinations").unwrap_or_default();
        let writes = !wanted.contains("role=SECONDARY") && !wanted.contains("role=PRIMARY_AND");
        let is_classic = get("protocol").is_none_or(|it| it == "classic");
        if part.0.starts_with("routing") && writes && is_classic {
            let host = get("bind_address").unwrap_or("127.0.0.1");
            listen.push(with_port(host, get("bind_port").unwrap_or("6446")));
            if !wanted.starts_with("metadata-cache:") {
                all.extend(addresses(wanted));
            }
        }
        taken.extend([
            "bootstrap_server_addresses",
            "dynamic_state",
            "bind_address",
            "bind_port",
        ]);
        left(part, &taken, "#from-mysql-router", settings);
    }
    all.sort();
    all.dedup();
    let named = (all.into_iter()).map(|it| (it.clone(), vec![("address", it.into())]));
    settings.put(Section::Top, "listen", listen);
    servers(named.collect(), "group_replication", settings);
}

/// Addresses of a list with commas.
fn addresses(list: &str) -> impl Iterator<Item = String> {
    let texts = list.split(',').filter(|text| !text.trim().is_empty());
    texts.map(address_of)
}

/// `mysql://host:port` and its like as `host:port`.
fn address_of(text: &str) -> String {
    let text = text.trim();
    let text = text.split_once("://").map_or(text, |(_, rest)| rest);
    match text.contains(':') {
        true => text.to_owned(),
        false => format!("{text}:{PORT}"),
    }
}

/// Servers in the file that Router keeps beside its settings.
fn known_servers(file: &Path, settings: &mut Settings) -> Vec<String> {
    let read = text_of(file, &mut { STATE_BYTES_MAX }).ok();
    let known: Option<Value> = read.and_then(|text| serde_json::from_str(&text).ok());
    let known = known.unwrap_or_default();
    let list = known["metadata-cache"]["cluster-metadata-servers"].as_array();
    if list.is_none() {
        let file = file.display();
        settings.note(format!(
            "{file} could not be read: write a [[server]] for each member"
        ));
    }
    let list = list.into_iter().flatten();
    list.filter_map(Value::as_str).map(address_of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tls_to_a_server_is_as_strict_as_it_was() {
        for (lines, mode, ca) in [
            ("ssl=true\nssl_ca=/ca", "required", None),
            (
                "ssl=true\nssl_verify_peer_certificate=true\nssl_ca=/ca",
                "verify_ca",
                Some("/ca"),
            ),
            ("ssl=on\nssl_verify_peer_host=true", "verify_identity", None),
        ] {
            let values = of_server(&parts(&format!("[one]\n{lines}"))[0]);
            let of = |key| {
                values
                    .iter()
                    .find(|it| it.0 == key)
                    .and_then(|it| it.1.as_str())
            };
            assert_eq!((of("tls"), of("tls_ca")), (Some(mode), ca), "{lines}");
        }
        assert!(of_server(&parts("[one]\nssl=false\nssl_ca=/ca")[0]).is_empty());
    }

    #[test]
    fn maxscale_s_servers_and_monitor_make_a_cluster() {
        let text = "[maxscale]\nthreads=auto\n[one]\ntype=server\naddress=10.0.0.1\nport=3307\n\
                    [two]\ntype=server\naddress=10.0.0.2\nssl=true\n\
                    max_routing_connections=40\n[watch]\ntype=monitor\n\
                    module=galeramon\nservers=one,two\nuser=mon\npassword=secret\n\
                    [rw]\ntype=service\nrouter=readwritesplit\nservers=one,two\nuser=x\n\
                    [in]\ntype=listener\nservice=rw\nport=4006\n";
        let made = convert(text).unwrap();
        let said = made.text("x");
        for part in [
            "listen = [\"0.0.0.0:4006\"]",
            "auth = \"server\"",
            "monitor_user = \"mon\"",
            "kind = \"galera\"",
            "[[server]]\nname = \"one\"\naddress = \"10.0.0.1:3307\"",
            "[[server]]\nname = \"two\"\naddress = \"10.0.0.2:3306\"\ntls = \"required\"\n\
             backends_max = 40\n",
            "# - [rw] reads go to the writer too",
            "# - [maxscale] threads: see",
        ] {
            assert!(said.contains(part), "no {part} in {said}");
        }
        pool::Raw::parse(&said).and_then(pool::Raw::check).unwrap();
    }

    #[test]
    fn addresses_of_ipv6_are_read_by_the_pool() {
        let text =
            "[one]\ntype=server\naddress=fd00::1\n[in]\ntype=listener\naddress=::1\nport=4006\n";
        let said = convert(text).unwrap().text("x");
        assert!(said.contains("address = \"[fd00::1]:3306\""), "{said}");
        assert!(said.contains("listen = [\"[::1]:4006\"]"), "{said}");
        let text = "[routing:rw]\nbind_address=::\ndestinations=10.0.0.1,\n";
        let said = convert(text).unwrap().text("x");
        assert!(said.contains("listen = [\"[::]:6446\"]"), "{said}");
        assert!(said.contains("address = \"10.0.0.1:3306\""), "{said}");
    }

    #[test]
    fn a_bootstrap_of_router_makes_a_group() {
        let state = std::env::temp_dir().join(format!("onramp-state-{}.json", std::process::id()));
        let members = r#"{"metadata-cache": {"cluster-metadata-servers":
            ["mysql://10.0.0.1:3306", "mysql://10.0.0.2:3306"]}}"#;
        std::fs::write(&state, members).unwrap();
        let text = format!(
            "[DEFAULT]\ndynamic_state={}\n[metadata_cache:c]\ncluster_type=gr\nuser=r\n\
             [routing:rw]\nbind_address=0.0.0.0\nbind_port=6446\n\
             destinations=metadata-cache://c/?role=PRIMARY\nprotocol=classic\n\
             [routing:ro]\nbind_port=6447\n\
             destinations=metadata-cache://c/?role=SECONDARY\nprotocol=classic\n\
             [routing:x_rw]\nbind_port=6448\nprotocol=x\n\
             destinations=metadata-cache://c/?role=PRIMARY\n",
            state.display()
        );
        let said = convert(&text).unwrap().text("x");
        std::fs::remove_file(state).unwrap();
        for part in [
            "listen = [\"0.0.0.0:6446\"]",
            "kind = \"group_replication\"",
            "[[server]]\nname = \"10.0.0.2:3306\"\naddress = \"10.0.0.2:3306\"",
            "# - [metadata_cache:c] user: see",
        ] {
            assert!(said.contains(part), "no {part} in {said}");
        }
        let lacks = pool::Raw::parse(&said)
            .and_then(pool::Raw::check)
            .unwrap_err();
        assert!(lacks.contains("monitor_user"), "{lacks}");
        assert!(convert("global\n maxconn 5\n").is_none());
    }
}
