//! The handshake: greeting, login, and what may be said between them.
//!
//! Protocol 10 only. The server greets with its version, a nonce and its capabilities; the client
//! answers with its own, its name and its proof. The server may then ask for another plugin
//! ([`AuthSwitch`]) or send more data for the present one, before OK or ERR.
//!
//! Facts: field order from the MySQL manual ("Protocol::HandshakeV10", "HandshakeResponse41").
//! A NUL in the nonce would end it early in old clients, so nonces have none
//! ([`nonce_from_random`]).

use crate::auth::{NONCE_LEN, Nonce};
use crate::capabilities as cap;
use crate::packet::{Malformed, Reader, put_lenenc, put_lenenc_bytes, put_short};
use aws_lc_rs::hmac;

/// First byte of a request to use another plugin.
pub const AUTH_SWITCH: u8 = 0xFE;
/// The level of zstd that MySQL's clients ask for by themselves.
pub const ZSTD_LEVEL_USUAL: u8 = 3;
/// First byte of further data of the present plugin.
pub const AUTH_MORE: u8 = 0x01;

/// The server's first packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Greeting {
    /// The server's version text.
    pub version: Vec<u8>,
    /// The connection's id.
    pub connection_id: u32,
    /// The challenge.
    pub nonce: Nonce,
    /// Capabilities of the server.
    pub capabilities: u32,
    /// MariaDB's extended capabilities; there are none where LONG_PASSWORD is set.
    pub extended: u32,
    /// The server's default collation (low byte of its id).
    pub collation: u8,
    /// Status flags.
    pub status: u16,
    /// Name of the plugin that the nonce is for; empty for none.
    pub plugin: Vec<u8>,
}

impl Greeting {
    /// Takes a greeting apart.
    ///
    /// # Errors
    /// [`Malformed`] when it is not protocol 10 or a field is cut.
    pub fn read(payload: &[u8]) -> Result<Greeting, Malformed> {
        let mut reader = Reader::new(payload);
        if reader.u8("a protocol version")? != 10 {
            return Err(Malformed {
                what: "protocol version 10",
                at: 0,
                len: payload.len(),
            });
        }
        let version = reader.nul_bytes("a server version")?.to_vec();
        let connection_id = reader.u32("a connection id")?;
        let mut nonce = [0; NONCE_LEN];
        nonce[..8].copy_from_slice(reader.bytes(8, "a nonce")?);
        reader.u8("a filler")?;
        let low = reader.u16("capabilities")?;
        let collation = reader.u8("a collation")?;
        let status = reader.u16("status flags")?;
        let high = reader.u16("upper capabilities")?;
        let capabilities = u32::from(low) | u32::from(high) << 16;
        let nonce_len = usize::from(reader.u8("a nonce length")?);
        reader.bytes(6, "reserved bytes")?;
        let extended = reader.u32("extended capabilities")?;
        let extended = if_extended(capabilities, extended);
        let second = reader.bytes(nonce_len.saturating_sub(8).max(13), "the rest of a nonce")?;
        nonce[8..].copy_from_slice(&second[..NONCE_LEN - 8]);
        let plugin = if capabilities & cap::PLUGIN_AUTH != 0 {
            // Some servers end the name with a NUL, some with the packet.
            let rest = reader.rest();
            rest.split(|&b| b == 0).next().unwrap_or_default().to_vec()
        } else {
            Vec::new()
        };
        Ok(Greeting {
            version,
            connection_id,
            nonce,
            capabilities,
            extended,
            collation,
            status,
            plugin,
        })
    }

    /// Appends the greeting as a packet numbered 0.
    pub fn put(&self, out: &mut Vec<u8>) {
        let [low, low2, high, high2] = self.capabilities.to_le_bytes();
        put_short(out, 0, |out| {
            out.push(10);
            out.extend_from_slice(&self.version);
            out.push(0);
            out.extend_from_slice(&self.connection_id.to_le_bytes());
            out.extend_from_slice(&self.nonce[..8]);
            out.push(0);
            out.extend_from_slice(&[low, low2, self.collation]);
            out.extend_from_slice(&self.status.to_le_bytes());
            out.extend_from_slice(&[high, high2, 21]);
            out.extend_from_slice(&[0; 6]);
            let extended = if_extended(self.capabilities, self.extended);
            out.extend_from_slice(&extended.to_le_bytes());
            out.extend_from_slice(&self.nonce[8..]);
            out.push(0);
            out.extend_from_slice(&self.plugin);
            out.push(0);
        });
    }
}

/// Extended capabilities, where their bytes mean that.
fn if_extended(capabilities: u32, extended: u32) -> u32 {
    match capabilities & cap::LONG_PASSWORD {
        0 => extended,
        _ => 0,
    }
}

/// A nonce out of random bytes: printable, so that no client can trip over a NUL or a `$`.
#[must_use]
pub fn nonce_from_random(random: [u8; NONCE_LEN]) -> Nonce {
    // 6 bits of each byte: 120 bits of challenge.
    random.map(|byte| b'0' + (byte & 0x3F))
}

/// The nonce of the connection with this id, in no need to be kept: only who knows the key can tell
/// it beforehand, and it is another for each id.
#[must_use]
pub fn nonce_of_connection(key: &[u8; 32], id: u32) -> Nonce {
    let key = hmac::Key::new(hmac::HMAC_SHA256, key);
    let tag = hmac::sign(&key, &id.to_le_bytes());
    let mut random = [0; NONCE_LEN];
    random.copy_from_slice(&tag.as_ref()[..NONCE_LEN]);
    nonce_from_random(random)
}

/// The client's answer to the greeting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Login<'a> {
    /// Capabilities that the client has chosen of those that were offered.
    pub capabilities: u32,
    /// MariaDB's extended capabilities that the client has chosen; none where LONG_PASSWORD is set.
    pub extended: u32,
    /// The client's collation (low byte of its id).
    pub collation: u8,
    /// Name of the account.
    pub user: &'a [u8],
    /// The proof, in the form of `plugin`.
    pub answer: &'a [u8],
    /// The default schema; empty for none.
    pub schema: &'a [u8],
    /// Name of the plugin of `answer`; empty when the client named none.
    pub plugin: &'a [u8],
    /// Level of compression that the client wants with [`cap::ZSTD`], 1 to 22.
    pub zstd_level: u8,
}

impl<'a> Login<'a> {
    /// Takes a login apart. Connection attributes are passed over. A client that agreed on zstd and
    /// ends its login before the level gets level 3, which is MySQL's default.
    ///
    /// # Errors
    /// [`Malformed`] when a field is cut, or the client speaks the protocol of before 4.1.
    pub fn read(payload: &'a [u8]) -> Result<Login<'a>, Malformed> {
        let mut reader = Reader::new(payload);
        let capabilities = reader.u32("capabilities")?;
        if capabilities & cap::PROTOCOL_41 == 0 {
            let what = "CLIENT_PROTOCOL_41 among the client's capabilities";
            return Err(Malformed {
                what,
                at: 0,
                len: payload.len(),
            });
        }
        reader.u32("a packet size")?;
        let collation = reader.u8("a collation")?;
        reader.bytes(19, "reserved bytes")?;
        let extended = if_extended(capabilities, reader.u32("extended capabilities")?);
        let user = reader.nul_bytes("a user name")?;
        let answer = read_answer(&mut reader, capabilities)?;
        let schema = if capabilities & cap::CONNECT_WITH_DB != 0 && !reader.is_empty() {
            reader.nul_bytes("a schema name")?
        } else {
            b""
        };
        let plugin = if capabilities & cap::PLUGIN_AUTH != 0 && !reader.is_empty() {
            read_plugin_name(&mut reader)
        } else {
            b""
        };
        let mut zstd_level = ZSTD_LEVEL_USUAL;
        if capabilities & cap::ZSTD != 0 {
            if capabilities & cap::CONNECT_ATTRS != 0 && !reader.is_empty() {
                reader.lenenc_bytes("connection attributes")?;
            }
            if !reader.is_empty() {
                zstd_level = reader.u8("a level of compression")?;
            }
        }
        Ok(Login {
            capabilities,
            extended,
            collation,
            user,
            answer,
            schema,
            plugin,
            zstd_level,
        })
    }

    /// Appends the login as a packet numbered `seq`.
    pub fn put(&self, out: &mut Vec<u8>, seq: u8) {
        put_short(out, seq, |out| {
            put_login_start(out, self.capabilities, self.extended, self.collation);
            out.extend_from_slice(self.user);
            out.push(0);
            put_lenenc_bytes(out, self.answer);
            if self.capabilities & cap::CONNECT_WITH_DB != 0 {
                out.extend_from_slice(self.schema);
                out.push(0);
            }
            if self.capabilities & cap::PLUGIN_AUTH != 0 {
                out.extend_from_slice(self.plugin);
                out.push(0);
            }
            if self.capabilities & cap::CONNECT_ATTRS != 0 {
                put_attributes(out);
            }
            if self.capabilities & cap::ZSTD != 0 {
                out.push(self.zstd_level);
            }
        });
    }
}

/// The name of the program that logs in, as its connection attributes have it. Looked for in the
/// login's packet by itself: nothing else needs them.
#[must_use]
pub fn program_name(payload: &[u8]) -> Option<&[u8]> {
    let login = Login::read(payload).ok()?;
    if login.capabilities & cap::CONNECT_ATTRS == 0 {
        return None;
    }
    // They are the last field but for a level of compression.
    let mut reader = Reader::new(payload);
    reader.bytes(32, "what stands in front of the name").ok()?;
    reader.nul_bytes("a user name").ok()?;
    read_answer(&mut reader, login.capabilities).ok()?;
    if login.capabilities & cap::CONNECT_WITH_DB != 0 {
        reader.nul_bytes("a schema name").ok()?;
    }
    if login.capabilities & cap::PLUGIN_AUTH != 0 {
        read_plugin_name(&mut reader);
    }
    let mut pairs = Reader::new(reader.lenenc_bytes("connection attributes").ok()?);
    while !pairs.is_empty() {
        let name = pairs.lenenc_bytes("an attribute's name").ok()?;
        let value = pairs.lenenc_bytes("an attribute's value").ok()?;
        if name == b"program_name" {
            return Some(value);
        }
    }
    None
}

/// Reads a proof; its length takes one of three forms, by what was agreed.
fn read_answer<'a>(reader: &mut Reader<'a>, capabilities: u32) -> Result<&'a [u8], Malformed> {
    if capabilities & cap::PLUGIN_AUTH_LENENC_DATA != 0 {
        reader.lenenc_bytes("an authentication answer")
    } else if capabilities & cap::SECURE_CONNECTION != 0 {
        let len = usize::from(reader.u8("an answer's length")?);
        reader.bytes(len, "an authentication answer")
    } else {
        reader.nul_bytes("an authentication answer")
    }
}

/// A plugin's name; a client may leave its NUL out when nothing follows.
fn read_plugin_name<'a>(reader: &mut Reader<'a>) -> &'a [u8] {
    let mut probe = *reader;
    match probe.nul_bytes("a plugin name") {
        Ok(name) => {
            *reader = probe;
            name
        }
        Err(_) => reader.rest(),
    }
}

/// Tells the server's process list who holds the connection.
fn put_attributes(out: &mut Vec<u8>) {
    const NAME: &[u8] = b"program_name";
    const VALUE: &[u8] = b"onramp";
    put_lenenc(out, (NAME.len() + VALUE.len() + 2) as u64);
    put_lenenc_bytes(out, NAME);
    put_lenenc_bytes(out, VALUE);
}

/// The server's request to use another plugin, with a new nonce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuthSwitch<'a> {
    /// The plugin's name.
    pub plugin: &'a [u8],
    /// The new challenge; 20 bytes, maybe with a NUL behind.
    pub data: &'a [u8],
}

impl<'a> AuthSwitch<'a> {
    /// Takes a request apart.
    ///
    /// # Errors
    /// [`Malformed`] when it has no plugin name (the request of before 4.1, which we refuse).
    pub fn read(payload: &'a [u8]) -> Result<AuthSwitch<'a>, Malformed> {
        let mut reader = Reader::new(payload);
        reader.u8("an authentication switch")?;
        let plugin = reader.nul_bytes("a plugin name")?;
        Ok(AuthSwitch {
            plugin,
            data: reader.rest(),
        })
    }

    /// The nonce in `data`, when there is one.
    #[must_use]
    pub fn nonce(&self) -> Option<Nonce> {
        self.data.first_chunk::<NONCE_LEN>().copied()
    }
}

/// Appends the front that a login has in common with the request for TLS. `extended` counts without
/// LONG_PASSWORD alone.
pub(crate) fn put_login_start(out: &mut Vec<u8>, capabilities: u32, extended: u32, collation: u8) {
    out.extend_from_slice(&capabilities.to_le_bytes());
    out.extend_from_slice(&(1u32 << 30).to_le_bytes());
    out.push(collation);
    out.extend_from_slice(&[0; 19]);
    out.extend_from_slice(&if_extended(capabilities, extended).to_le_bytes());
}

/// Appends a request to use `plugin` with `nonce`.
pub fn put_auth_switch(out: &mut Vec<u8>, seq: u8, plugin: &str, nonce: &Nonce) {
    put_short(out, seq, |out| {
        out.push(AUTH_SWITCH);
        out.extend_from_slice(plugin.as_bytes());
        out.push(0);
        out.extend_from_slice(nonce);
        out.push(0);
    });
}

/// The body of COM_CHANGE_USER. Its authentication answer is not read: it was made for a nonce of
/// long ago, so whoever serves the command asks for a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangeUser<'a> {
    /// Name of the account that the client changes to.
    pub user: &'a [u8],
    /// The new default schema; empty for none.
    pub schema: &'a [u8],
    /// The id of the new collation, when given; all of it, unlike that of a login.
    pub collation: Option<u16>,
    /// The authentication plugin that the client would use; empty if it names none.
    pub plugin: &'a [u8],
}

impl<'a> ChangeUser<'a> {
    /// Takes the command's arguments apart (what follows the command byte).
    ///
    /// # Errors
    /// [`Malformed`] when a field is cut.
    pub fn read(arguments: &'a [u8]) -> Result<ChangeUser<'a>, Malformed> {
        let mut reader = Reader::new(arguments);
        let user = reader.nul_bytes("a user name")?;
        let len = usize::from(reader.u8("an answer's length")?);
        reader.bytes(len, "an authentication answer")?;
        let schema = reader.nul_bytes("a schema name")?;
        let collation = if reader.is_empty() {
            None
        } else {
            Some(reader.u16("a collation")?)
        };
        // Behind it stands what only some clients send.
        let plugin = reader.nul_bytes("a plugin's name").unwrap_or_default();
        Ok(ChangeUser {
            user,
            schema,
            collation,
            plugin,
        })
    }
}

/// A server's version as it is shown. MariaDB puts `5.5.5-` in front of its own in the greeting,
/// for replicas that expect a number below 10.
#[must_use]
pub fn own_version(greeted: &str) -> &str {
    greeted.strip_prefix("5.5.5-").unwrap_or(greeted)
}

/// True if a server's version, in its greeting or as it is shown, is that of MariaDB.
#[must_use]
pub fn is_of_mariadb(version: &str) -> bool {
    version.to_ascii_lowercase().contains("mariadb")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A greeting of MariaDB 10.11 as it came over the wire.
    const GREETING: &[u8] = b"\x0a5.5.5-10.11.6-MariaDB\0\x07\0\0\0abcdefgh\0\xfe\xf7\x21\x02\0\
        \xff\x81\x15\0\0\0\0\0\0\x1d\0\0\0ijklmnopqrst\0mysql_native_password\0";

    #[test]
    fn a_greeting_is_read() {
        let greeting = Greeting::read(GREETING).unwrap();
        assert_eq!(greeting.version, b"5.5.5-10.11.6-MariaDB");
        assert_eq!(greeting.connection_id, 7);
        assert_eq!(&greeting.nonce, b"abcdefghijklmnopqrst");
        assert_eq!(greeting.capabilities, 0x81FF_F7FE);
        assert_eq!(greeting.extended, 0x1D);
        assert_eq!((greeting.collation, greeting.status), (0x21, 2));
        assert_eq!(greeting.plugin, b"mysql_native_password");
    }

    #[test]
    fn a_greeting_is_written_as_it_is_read() {
        let greeting = Greeting::read(GREETING).unwrap();
        let mut out = Vec::new();
        greeting.put(&mut out);
        assert_eq!(out[3], 0);
        assert_eq!(Greeting::read(&out[4..]).unwrap(), greeting);
        for cut in 4..out.len() - 23 {
            assert!(Greeting::read(&out[4..cut]).is_err(), "cut at {cut}");
        }
        assert!(Greeting::read(b"\x09").is_err());
    }

    /// A login of PyMySQL, written out.
    const LOGIN: &[u8] =
        b"\x8d\xa6\x3a\0\0\0\0\x01\x2d\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\
        app\0\x03xyzshop\0mysql_native_password\0\x0d\x04_pid\x07someone";

    #[test]
    fn a_login_is_read() {
        let login = Login::read(LOGIN).unwrap();
        assert_eq!(login.user, b"app");
        assert_eq!(login.answer, b"xyz");
        assert_eq!(login.schema, b"shop");
        assert_eq!(login.plugin, b"mysql_native_password");
        assert_eq!(login.collation, 45);
    }

    #[test]
    fn a_login_is_written_as_it_is_read() {
        let login = Login {
            capabilities: cap::PROTOCOL_41
                | cap::PLUGIN_AUTH
                | cap::CONNECT_WITH_DB
                | cap::PLUGIN_AUTH_LENENC_DATA
                | cap::CONNECT_ATTRS,
            extended: cap::EXTENDED_BULK,
            collation: 45,
            user: b"app",
            answer: b"proof",
            schema: b"shop",
            plugin: b"caching_sha2_password",
            zstd_level: ZSTD_LEVEL_USUAL,
        };
        let mut out = Vec::new();
        login.put(&mut out, 1);
        assert_eq!(out[3], 1);
        assert_eq!(Login::read(&out[4..]).unwrap(), login);
        assert_eq!(program_name(&out[4..]), Some(&b"onramp"[..]));
        assert_eq!(program_name(LOGIN), None);
        assert_eq!(program_name(&out[4..out.len() - 1]), None, "cut off");
        for cut in 4..4 + 32 + 4 + 6 {
            assert!(Login::read(&out[4..cut]).is_err(), "cut at {cut}");
        }
    }

    #[test]
    fn a_login_with_zstd_ends_with_its_level() {
        let mut zstd = LOGIN.to_vec();
        zstd[3] |= 0x04;
        assert_eq!(Login::read(&zstd).unwrap().zstd_level, 3, "left out");
        zstd.push(19);
        assert_eq!(Login::read(&zstd).unwrap().zstd_level, 19);
        let login = Login::read(&zstd).unwrap();
        let mut out = Vec::new();
        login.put(&mut out, 1);
        assert_eq!(out.last(), Some(&19));
        assert_eq!(Login::read(&out[4..]).unwrap(), login);
    }

    #[test]
    fn extended_capabilities_are_mariadbs_only() {
        let mut mysql = GREETING.to_vec();
        let at = mysql.iter().position(|&b| b == 0xFE).unwrap();
        mysql[at] |= 1;
        assert_eq!(Greeting::read(&mysql).unwrap().extended, 0);
        let mut login = LOGIN.to_vec();
        login[28] = 0x0C;
        assert_eq!(
            Login::read(&login).unwrap().extended,
            0,
            "LONG_PASSWORD is set"
        );
        login[0] &= !1;
        let login = Login::read(&login).unwrap();
        assert_eq!(login.extended, cap::EXTENDED_OFFERED);
        let mut out = Vec::new();
        login.put(&mut out, 1);
        assert_eq!(Login::read(&out[4..]).unwrap(), login);
    }

    #[test]
    fn a_login_of_before_4_1_is_refused_with_its_reason() {
        let error = Login::read(&[0x85, 0x24, 0, 0, 0]).unwrap_err();
        assert!(error.to_string().contains("CLIENT_PROTOCOL_41"));
    }

    #[test]
    fn an_authentication_switch_carries_a_nonce() {
        let mut out = Vec::new();
        put_auth_switch(
            &mut out,
            2,
            "mysql_native_password",
            b"abcdefghijklmnopqrst",
        );
        let switch = AuthSwitch::read(&out[4..]).unwrap();
        assert_eq!(switch.plugin, b"mysql_native_password");
        assert_eq!(switch.nonce(), Some(*b"abcdefghijklmnopqrst"));
        assert!(AuthSwitch::read(&[0xFE]).is_err());
    }

    #[test]
    fn a_change_of_user_is_read() {
        let change = ChangeUser::read(b"app\0\x03xyzshop\0\x2d\0plugin\0").unwrap();
        assert_eq!((change.user, change.schema), (&b"app"[..], &b"shop"[..]));
        assert_eq!(
            (change.collation, change.plugin),
            (Some(45), &b"plugin"[..])
        );
        // utf8mb4_0900_bin of MySQL: both bytes count.
        let change = ChangeUser::read(b"app\0\0\0\x35\x01").unwrap();
        assert_eq!((change.collation, change.plugin), (Some(309), &b""[..]));
        assert!(ChangeUser::read(b"app\0\x09xyz").is_err());
    }

    #[test]
    fn a_nonce_is_printable() {
        let nonce = nonce_from_random(std::array::from_fn(|i| u8::try_from(i * 13).unwrap()));
        assert!(nonce.iter().all(|&b| (b'0'..b'0' + 64).contains(&b)));
    }
}
