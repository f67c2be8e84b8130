//! Addresses as users write them.
//!
//! A DSN holds a password: what is said about it must not. What was understood can be written
//! again, with everything escaped, and means the same.

use wire::dsn::Dsn;
use wire::dsn::password::Source;

fn escaped(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'-' | b'_' => char::from(byte).into(),
        other => format!("%{other:02X}"),
    };
    text.bytes().map(byte).collect()
}

/// Reads a target as text.
pub(super) fn dsn(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let dsn = match Dsn::parse(&text) {
        Ok(dsn) => dsn,
        Err(why) => return assert!(!why.is_empty()),
    };
    assert!(!dsn.user.is_empty() && dsn.port != 0);
    let host = match dsn.host.contains(':') {
        true => format!("[{}]", escaped(&dsn.host).replace("%3A", ":")),
        false => escaped(&dsn.host),
    };
    let mut query = match &dsn.socket {
        Some(path) => format!("?socket={}", escaped(path)),
        None => "?".to_owned(),
    };
    let user = escaped(&dsn.user);
    let mut password = String::new();
    match &dsn.password_source {
        Source::Nowhere => {}
        Source::Text => password = format!(":{}", escaped(&dsn.password)),
        Source::File(path) => query += &format!("&password_file={}", escaped(path)),
        Source::Env(name) => query += &format!("&password_env={}", escaped(name)),
    }
    if let Some(mode) = dsn.ssl_mode {
        query += &format!("&ssl-mode={}", mode.name());
    }
    let (port, schema) = (dsn.port, escaped(&dsn.schema));
    let again = format!("mysql://{user}{password}@{host}:{port}/{schema}{query}");
    assert!(Dsn::parse(&again).as_ref() == Ok(&dsn), "{again}: {dsn}");
    // With a password that stands nowhere else, it must not be seen anywhere.
    const SECRET: &str = "unheard-of";
    let secret = Dsn {
        password: SECRET.into(),
        ..dsn.clone()
    };
    let shown = format!("{secret} {secret:?} {}", secret.place());
    let elsewhere = format!(
        "{} {} {} {:?} {:?}",
        dsn.user, dsn.host, dsn.schema, dsn.socket, dsn.password_source
    );
    assert!(elsewhere.contains(SECRET) || !shown.contains(SECRET));
    assert_eq!(format!("{dsn}"), format!("{secret}"));
}
