//! The accounts of the server, as its tables have them: what is asked, and what the answers mean.
//!
//! The problem: accounts change in many ways (GRANT, SET PASSWORD, a restored table), and not all
//! of them are counted by the server. The mechanism: the watch asks once a second for a checksum of
//! the table of accounts ([`Question::checksum`]), which the server computes; where it has changed,
//! or a password's time is up, the table itself follows ([`Question::table`]).
//!
//! Sources: the manuals on `mysql.user` and `mysql.global_priv`; what stands there was tried on
//! MySQL 9.7 and MariaDB 10.11. Texts are asked for as hexadecimal digits, because stored hashes
//! and names are bytes.

use crate::auth::account::ClientsMax;
use crate::auth::requirement::Requirement;
use crate::auth::server_accounts::{ACCOUNTS_MAX, Read};
use serde_json::Value;
use session::text::Text;
use sql::lex::Server;

/// An account, and when its password expires, in the server's seconds.
type Expiring = (Read, Option<u64>);

/// Question to one kind of server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Question {
    /// A row: how many accounts, a checksum of them, the server's time in seconds, the lifetime of
    /// passwords in days, and connections for each account.
    pub(crate) checksum: &'static str,
    /// A row for each account.
    pub(crate) table: &'static str,
    /// Privileges that the pool's own account needs for both.
    pub(crate) needs: &'static str,
    read: fn(&[Text], &Facts) -> Option<Expiring>,
}

const MARIADB: Question = Question {
    checksum: "SELECT COUNT(*),IFNULL(BIT_XOR(CAST(CONV(LEFT(MD5(CONCAT(HEX(User),':',HEX(Host),\
               ':',HEX(Priv))),16),16,10) AS UNSIGNED)),0),UNIX_TIMESTAMP(),\
               @@global.default_password_lifetime,@@global.max_user_connections \
               FROM mysql.global_priv",
    table: "SELECT HEX(User),HEX(Host),HEX(Priv) FROM mysql.global_priv",
    needs: "SELECT ON mysql.global_priv",
    read: of_mariadb,
};

const MYSQL: Question = Question {
    checksum: "SELECT COUNT(*),IFNULL(BIT_XOR(CAST(CONV(LEFT(SHA2(CONCAT_WS(':',HEX(User),\
               HEX(Host),plugin,HEX(authentication_string),ssl_type,HEX(ssl_cipher),\
               HEX(x509_issuer),HEX(x509_subject),account_locked,password_expired,\
               UNIX_TIMESTAMP(password_last_changed),IFNULL(password_lifetime,''),\
               max_user_connections),256),16),16,10) AS UNSIGNED)),0),UNIX_TIMESTAMP(),\
               @@global.default_password_lifetime,@@global.max_user_connections FROM mysql.user",
    table: "SELECT HEX(User),HEX(Host),plugin,HEX(authentication_string),ssl_type,HEX(ssl_cipher),\
            HEX(x509_issuer),HEX(x509_subject),account_locked,password_expired,\
            IFNULL(UNIX_TIMESTAMP(password_last_changed),''),IFNULL(password_lifetime,''),\
            max_user_connections FROM mysql.user",
    needs: "SELECT ON mysql.user",
    read: of_mysql,
};

impl Question {
    pub(crate) fn of(server: Server) -> &'static Question {
        match server.is_mysql() {
            true => &MYSQL,
            false => &MARIADB,
        }
    }

    /// The accounts of a table's rows, and when the next password expires, in the server's seconds.
    /// Roles are none, and what cannot be read is left out.
    pub(crate) fn read(&self, rows: &[Vec<Text>], facts: &Facts) -> (Vec<Read>, Option<u64>) {
        let mut next: Option<u64> = None;
        let mut accounts = Vec::with_capacity(rows.len());
        for (mut account, expires) in rows.iter().filter_map(|row| (self.read)(row, facts)) {
            match expires {
                Some(at) if at <= facts.now => account.is_expired = true,
                Some(at) => next = Some(next.map_or(at, |next| next.min(at))),
                None => {}
            }
            accounts.push(account);
        }
        (accounts, next)
    }
}

/// Facts that the checksum tells, and those that go for all accounts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    accounts: usize,
    checksum: Text,
    /// The server's time, in seconds.
    pub(crate) now: u64,
    /// Days that a password lives, where its account does not say; 0: for ever.
    lifetime: u64,
    /// Connections for each account, where it does not say; 0: no limit.
    clients_max: usize,
}

impl Facts {
    pub(crate) fn read(rows: &[Vec<Text>]) -> Option<Facts> {
        let [accounts, checksum, now, lifetime, clients_max] = &rows.first()?[..] else {
            return None;
        };
        Some(Facts {
            accounts: number(accounts)?,
            checksum: checksum.clone(),
            now: number(now)?,
            lifetime: number(lifetime)?,
            clients_max: number(clients_max)?,
        })
    }

    /// True if there are few enough of them.
    pub(crate) fn check(&self) -> Result<(), String> {
        match self.accounts {
            0..=ACCOUNTS_MAX => Ok(()),
            accounts => Err(format!(
                "it has {accounts} accounts, and the pool reads at most {ACCOUNTS_MAX}"
            )),
        }
    }

    /// True if the accounts are the same, the time apart.
    pub(crate) fn is_of_same(&self, other: &Facts) -> bool {
        let timeless = |facts: &Facts| Facts {
            now: 0,
            ..facts.clone()
        };
        timeless(self) == timeless(other)
    }

    fn clients_max(&self, of_account: i64) -> Option<ClientsMax> {
        match (usize::try_from(of_account), self.clients_max) {
            (Ok(0), 0) => None,
            (Ok(0), max) => Some(ClientsMax::OfServer(max)),
            (Ok(max), _) => Some(ClientsMax::OfAccount(max)),
            // MariaDB: none may log in.
            (Err(_), _) => Some(ClientsMax::OfAccount(0)),
        }
    }

    /// Moment at which a password expires that was changed at `changed`. `lifetime` is its
    /// account's, in days.
    fn expires(&self, changed: Option<u64>, lifetime: Option<u64>) -> Option<u64> {
        let days = lifetime.unwrap_or(self.lifetime);
        let seconds = (days.checked_mul(24 * 60 * 60)).filter(|seconds| *seconds > 0)?;
        changed?.checked_add(seconds)
    }
}

fn number<T: std::str::FromStr>(text: &[u8]) -> Option<T> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// The bytes of hexadecimal digits.
fn bytes(digits: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: u8| {
        char::from(byte)
            .to_digit(16)
            .and_then(|d| u8::try_from(d).ok())
    };
    let (pairs, []) = digits.as_chunks::<2>() else {
        return None;
    };
    (pairs
        .iter()
        .map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)))
    .collect()
}

fn text(digits: &[u8]) -> Option<String> {
    String::from_utf8(bytes(digits)?).ok()
}

/// Requirement of an account; `cipher` is the name of one, or empty.
fn requirement(kind: Kind, cipher: &str, issuer: String, subject: String) -> Requirement {
    let given = |text: String| (kind == Kind::Specified && !text.is_empty()).then_some(text);
    let (issuer, subject) = (given(issuer), given(subject));
    let is_named = issuer.is_some() || subject.is_some();
    Requirement {
        tls: kind != Kind::None,
        certificate: kind == Kind::X509 || is_named,
        cipher: kind == Kind::Specified && !cipher.is_empty(),
        subject,
        issuer,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    None,
    Tls,
    X509,
    Specified,
}

fn of_mysql(row: &[Text], facts: &Facts) -> Option<Expiring> {
    let row = <&[Text; 13]>::try_from(row).ok()?;
    let [
        user,
        host,
        plugin,
        stored,
        kind,
        cipher,
        issuer,
        subject,
        locked,
        expired,
        rest @ ..,
    ] = row;
    let [changed, lifetime, clients_max] = rest;
    let kind = match &**kind {
        b"ANY" => Kind::Tls,
        b"X509" => Kind::X509,
        b"SPECIFIED" => Kind::Specified,
        _ => Kind::None,
    };
    let account = Read {
        user: text(user)?,
        host: text(host)?,
        plugin: String::from_utf8_lossy(plugin).into_owned(),
        stored: bytes(stored)?,
        is_locked: **locked == *b"Y",
        is_expired: **expired == *b"Y",
        require: requirement(kind, &text(cipher)?, text(issuer)?, text(subject)?),
        clients_max: facts.clients_max(number(clients_max)?),
    };
    Some((account, facts.expires(number(changed), number(lifetime))))
}

fn of_mariadb(row: &[Text], facts: &Facts) -> Option<Expiring> {
    let [user, host, privileges] = row else {
        return None;
    };
    let privileges: Value = serde_json::from_slice(&bytes(privileges)?).ok()?;
    let is = |name: &str| privileges.get(name).and_then(Value::as_bool) == Some(true);
    let integer = |name: &str| privileges.get(name).and_then(Value::as_i64);
    let of_text = |name: &str| (privileges.get(name).and_then(Value::as_str)).unwrap_or_default();
    if is("is_role") {
        return None;
    }
    let (plugin, stored) = method_of(&privileges);
    let kind = match integer("ssl_type") {
        Some(1) => Kind::Tls,
        Some(2) => Kind::X509,
        Some(3) => Kind::Specified,
        _ => Kind::None,
    };
    let changed = integer("password_last_changed");
    let changed = changed.and_then(|changed| u64::try_from(changed).ok());
    // Negative: as the server has it for all.
    let lifetime = integer("password_lifetime").and_then(|days| u64::try_from(days).ok());
    let account = Read {
        user: text(user)?,
        host: text(host)?,
        plugin,
        stored,
        is_locked: is("account_locked"),
        is_expired: changed == Some(0),
        require: requirement(
            kind,
            of_text("ssl_cipher"),
            of_text("x509_issuer").into(),
            of_text("x509_subject").into(),
        ),
        clients_max: facts.clients_max(integer("max_user_connections").unwrap_or(0)),
    };
    let expires = facts.expires(changed.filter(|changed| *changed > 0), lifetime);
    Some((account, expires))
}

/// Authentication of a MariaDB account: of several ways (`auth_or`, in which `{}` means the
/// account's own) the first that the pool speaks, else the first.
fn method_of(privileges: &Value) -> (String, Vec<u8>) {
    let read = |way: &Value| {
        let of = |name: &str| way.get(name).and_then(Value::as_str).unwrap_or_default();
        let plugin = match of("plugin") {
            "" => wire::auth::Plugin::Native.name(),
            plugin => plugin,
        };
        (
            plugin.to_owned(),
            of("authentication_string").as_bytes().to_vec(),
        )
    };
    let own = read(privileges);
    let Some(ways) = privileges.get("auth_or").and_then(Value::as_array) else {
        return own;
    };
    let is_own = |way: &Value| way.as_object().is_some_and(serde_json::Map::is_empty);
    let ways = ways.iter().map(|way| match is_own(way) {
        true => own.clone(),
        false => read(way),
    });
    let ways: Vec<_> = ways.collect();
    let spoken = |(plugin, _): &&(String, Vec<u8>)| {
        wire::auth::Plugin::from_name(plugin.as_bytes()).is_some()
    };
    let first = ways.iter().find(spoken).or(ways.first());
    first.cloned().unwrap_or(own)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write as _;

    fn hex(text: &str) -> String {
        text.bytes().fold(String::new(), |mut hex, byte| {
            write!(hex, "{byte:02X}").unwrap();
            hex
        })
    }

    fn row(values: &[&str]) -> Vec<Text> {
        values
            .iter()
            .map(|value| Text::from(value.as_bytes()))
            .collect()
    }

    fn facts(lifetime: &str, clients_max: &str) -> Facts {
        Facts::read(&[row(&["3", "77", "1000000", lifetime, clients_max])]).unwrap()
    }

    fn mariadb(privileges: &str, facts: &Facts) -> Option<Expiring> {
        of_mariadb(&row(&[&hex("app"), &hex("10.%"), &hex(privileges)]), facts)
    }

    #[test]
    fn an_account_of_mariadb_is_read_out_of_its_json() {
        let none = facts("0", "0");
        let (plain, expires) = mariadb(
            r#"{"access":0,"plugin":"mysql_native_password","authentication_string":"*AB",
                "password_last_changed":5}"#,
            &none,
        )
        .unwrap();
        assert_eq!((&*plain.user, &*plain.host), ("app", "10.%"));
        assert_eq!(
            (&*plain.plugin, &*plain.stored),
            ("mysql_native_password", &b"*AB"[..])
        );
        assert!(!plain.is_locked && !plain.is_expired && plain.clients_max.is_none());
        assert_eq!((plain.require, expires), (Requirement::default(), None));
        assert!(mariadb(r#"{"is_role":true}"#, &none).is_none());
        assert!(mariadb("no JSON", &none).is_none());
        let of = |text: &str, facts: &Facts| mariadb(text, facts).unwrap();
        assert!(of(r#"{"account_locked":true}"#, &none).0.is_locked);
        assert!(of(r#"{"password_last_changed":0}"#, &none).0.is_expired);
        let changed = r#"{"password_last_changed":86400,"password_lifetime":-1}"#;
        assert_eq!(of(changed, &none).1, None);
        assert_eq!(of(changed, &facts("2", "0")).1, Some(3 * 86400));
        let own = r#"{"password_last_changed":86400,"password_lifetime":0}"#;
        assert_eq!(of(own, &facts("2", "0")).1, None);
        let limited = r#"{"max_user_connections":7}"#;
        assert_eq!(
            of(limited, &none).0.clients_max,
            Some(ClientsMax::OfAccount(7))
        );
        assert_eq!(
            of("{}", &facts("0", "9")).0.clients_max,
            Some(ClientsMax::OfServer(9))
        );
        let named = r#"{"ssl_type":3,"x509_subject":"/CN=x"}"#;
        let require = of(named, &none).0.require;
        assert!(require.tls && require.certificate);
        assert_eq!(require.subject.as_deref(), Some("/CN=x"));
        let cipher = of(r#"{"ssl_type":3,"ssl_cipher":"X"}"#, &none).0.require;
        assert!(cipher.tls && cipher.cipher && !cipher.certificate);
    }

    #[test]
    fn of_several_ways_the_first_that_is_spoken_counts() {
        let none = facts("0", "0");
        let plugin = |text: &str| mariadb(text, &none).unwrap().0.plugin;
        let own = r#""plugin":"mysql_native_password","authentication_string":"invalid""#;
        let first = format!(r#"{{{own},"auth_or":[{{}},{{"plugin":"unix_socket"}}]}}"#);
        let last = format!(r#"{{{own},"auth_or":[{{"plugin":"unix_socket"}},{{}}]}}"#);
        assert_eq!(plugin(&first), "mysql_native_password");
        assert_eq!(plugin(&last), "mysql_native_password");
        let none = r#"{"plugin":"ed25519","auth_or":[{"plugin":"gssapi"},{}]}"#;
        assert_eq!(plugin(none), "gssapi");
    }

    #[test]
    fn an_account_of_mysql_is_read_out_of_its_row() {
        let mut values = [
            &*hex("app"),
            &hex("%"),
            "caching_sha2_password",
            "244124",
            "SPECIFIED",
            "",
            &hex("/CN=ca"),
            "",
            "N",
            "N",
            "86400",
            "1",
            "0",
        ]
        .map(str::to_owned);
        let of = |values: &[String; 13]| {
            let values = values.each_ref().map(|value| &**value);
            of_mysql(&row(&values), &facts("0", "5")).unwrap()
        };
        let (read, expires) = of(&values);
        assert_eq!(
            (&*read.plugin, &*read.stored),
            ("caching_sha2_password", &b"$A$"[..])
        );
        assert_eq!(read.require.issuer.as_deref(), Some("/CN=ca"));
        assert_eq!(
            (expires, read.clients_max),
            (Some(2 * 86400), Some(ClientsMax::OfServer(5)))
        );
        values[8] = "Y".into();
        values[11] = String::new();
        let (read, expires) = of(&values);
        assert!(read.is_locked && !read.is_expired);
        assert_eq!(expires, None);
        values[9] = "Y".into();
        assert!(of(&values).0.is_expired);
    }

    #[test]
    fn what_has_expired_is_known_and_the_next_to_expire_too() {
        let text =
            |days: u32| format!(r#"{{"password_last_changed":86400,"password_lifetime":{days}}}"#);
        let rows: Vec<_> = [1, 20, 30]
            .iter()
            .map(|days| row(&[&hex("app"), &hex("%"), &hex(&text(*days))]))
            .collect();
        let (accounts, next) = MARIADB.read(&rows, &facts("0", "0"));
        let expired: Vec<bool> = accounts.iter().map(|account| account.is_expired).collect();
        assert_eq!(expired, [true, false, false]);
        assert_eq!(next, Some(21 * 86400));
    }

    #[test]
    fn a_checksum_is_of_the_same_accounts_at_another_time() {
        let at = |now: &str, sum: &str| Facts::read(&[row(&["3", sum, now, "0", "0"])]).unwrap();
        assert!(at("1", "7").is_of_same(&at("2", "7")));
        assert!(!at("1", "7").is_of_same(&at("1", "8")));
        assert!(Facts::read(&[row(&["3", "7"])]).is_none());
    }

    #[test]
    fn so_many_accounts_are_read_and_no_more() {
        let of = |accounts: usize| {
            let accounts = accounts.to_string();
            Facts::read(&[row(&[&accounts, "7", "1", "0", "0"])]).unwrap()
        };
        assert!(of(ACCOUNTS_MAX).check().is_ok());
        let why = of(ACCOUNTS_MAX + 1).check().unwrap_err();
        assert!(why.contains("at most 100000"), "{why}");
    }
}
