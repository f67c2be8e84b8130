//! TLS records behind a handshake: sealed and opened with keys and counters alone.
//!
//! The problem: a library's connection keeps kilobytes for each client that says nothing, and its
//! state cannot go to another process. The mechanism: rustls makes the handshake and gives its
//! secrets away ([`Records::new`]); what is left of TLS then is small. A record is opened in the
//! buffer that it came in and sealed into one that is lent. The context of the cipher is made from
//! the key for one record, and wiped behind it: the raw key is a tenth of it. The secrets of TLS
//! 1.3 are kept beside the keys, since the next keys follow from them (KeyUpdate).
//!
//! It is the server's side of TLS 1.3 (RFC 8446) and of TLS 1.2 (RFC 5246) with AES-GCM (RFC 5288)
//! or ChaCha20-Poly1305 (RFC 7905). It has no socket: [`crate::Tls`] has.
//!
//! Invariants:
//! - a nonce is the key's vector and its counter; the counter moves before a record that was sealed
//!   can be seen by the caller, never goes back, and begins at 0 with a new key only;
//! - whatever does not open, is out of order or is not allowed here ends the connection: the reader
//!   hands out nothing behind it, and nothing but the alert is sealed;
//! - a key seals [`BLOCKS_PER_KEY_MAX`] blocks at most; then TLS 1.3 takes the next one, and TLS
//!   1.2 ends;
//! - a peer that sends records without data is left after [`FRUITLESS_MAX`] of them in a row;
//! - secrets are wiped when they are dropped, and are not in what `Debug` writes.

use aws_lc_rs::aead::{
    AES_128_GCM, AES_256_GCM, Aad, Algorithm, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey,
};
use aws_lc_rs::hkdf::{self, HKDF_SHA256, HKDF_SHA384, KeyType, Prk};
use rustls::{
    AlertDescription, ConnectionTrafficSecrets, ContentType, Error, ExtractedSecrets,
    InvalidMessage, PeerMisbehaved, ProtocolVersion,
};
use std::fmt;
use std::ops::Range;
use zeroize::Zeroize;

/// Bytes of a record's header.
pub const HEADER_LEN: usize = 5;
/// Bytes of plaintext in one record.
pub const PLAINTEXT_MAX: usize = 1 << 14;
/// Bytes that a record may have above its plaintext in TLS 1.3. Ciphers here add no more in TLS
/// 1.2.
const EXPANSION_MAX: usize = 256;
/// Bytes of the longest record, with its header.
pub const RECORD_MAX: usize = HEADER_LEN + PLAINTEXT_MAX + EXPANSION_MAX;
/// Bytes that a record sealed here has above its plaintext: the header, a part of the nonce in TLS
/// 1.2 or the type in 1.3, and the tag.
pub const OVERHEAD_MAX: usize = HEADER_LEN + EXPLICIT_LEN + TAG_LEN;
/// Records in a row that bring no data.
pub const FRUITLESS_MAX: u8 = 32;
/// Blocks of 16 bytes that a key of AES-GCM seals. RFC 8446, 5.5 gives 2^24.5 full records, which
/// are 2^34.5 blocks.
const BLOCKS_PER_KEY_MAX: u64 = 1 << 34;

const TAG_LEN: usize = 16;
/// The part of the nonce that stands in a record of TLS 1.2 with AES-GCM.
const EXPLICIT_LEN: usize = 8;
const IV_LEN: usize = 12;
const KEY_MAX: usize = 32;
const SECRET_MAX: usize = 48;
/// The version in the header of each record, whatever was agreed on.
const HEADER_VERSION: [u8; 2] = [3, 3];
/// A KeyUpdate without the byte that tells whether it asks for another.
const KEY_UPDATE: [u8; 4] = [24, 0, 0, 1];
const CLIENT_HELLO: u8 = 1;
/// Alert that TLS 1.3 carries through for the sake of those who look in from outside.
const USER_CANCELED: u8 = 90;
const NO_RENEGOTIATION: u8 = 100;
const CLOSE_NOTIFY: u8 = 0;
const WARNING: u8 = 1;
const FATAL: u8 = 2;

/// The form in which all of it is written for another process.
const FORM: u8 = 1;

/// Types of records.
const CHANGE_CIPHER_SPEC: u8 = 20;
const ALERT: u8 = 21;
const HANDSHAKE: u8 = 22;
const DATA: u8 = 23;

/// Versions of TLS with records of these kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// TLS 1.2.
    V12,
    /// TLS 1.3.
    V13,
}

/// Ciphers, each with the hash that TLS 1.3 joins to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suite {
    /// AES with 128 bits in GCM, and SHA-256.
    Aes128Gcm,
    /// AES with 256 bits in GCM, and SHA-384.
    Aes256Gcm,
    /// ChaCha20 with Poly1305, and SHA-256.
    ChaCha20Poly1305,
}

impl Suite {
    fn algorithm(self) -> &'static Algorithm {
        match self {
            Suite::Aes128Gcm => &AES_128_GCM,
            Suite::Aes256Gcm => &AES_256_GCM,
            Suite::ChaCha20Poly1305 => &CHACHA20_POLY1305,
        }
    }

    fn key_len(self) -> usize {
        self.algorithm().key_len()
    }

    fn hash(self) -> hkdf::Algorithm {
        match self {
            Suite::Aes256Gcm => HKDF_SHA384,
            Suite::Aes128Gcm | Suite::ChaCha20Poly1305 => HKDF_SHA256,
        }
    }

    fn secret_len(self) -> usize {
        self.hash().len()
    }

    /// Blocks that one key seals.
    fn blocks_max(self) -> u64 {
        match self {
            Suite::Aes128Gcm | Suite::Aes256Gcm => BLOCKS_PER_KEY_MAX,
            // The counter of records ends first.
            Suite::ChaCha20Poly1305 => u64::MAX,
        }
    }
}

/// Error that ends a connection: the alert for the peer, and the words for the caller.
#[derive(Debug)]
pub struct Fault {
    /// None where the peer has ended it.
    pub alert: Option<AlertDescription>,
    /// Reason.
    pub error: Error,
}

impl Fault {
    fn new(alert: AlertDescription, error: impl Into<Error>) -> Fault {
        Fault {
            alert: Some(alert),
            error: error.into(),
        }
    }

    fn unexpected(got: u8) -> Fault {
        let error = Error::InappropriateMessage {
            expect_types: vec![ContentType::ApplicationData],
            got_type: ContentType::from(got),
        };
        Fault::new(AlertDescription::UnexpectedMessage, error)
    }
}

/// Content of a record.
#[derive(Debug, PartialEq, Eq)]
pub enum Opened {
    /// Data, which stand here in the record; there may be none.
    Data(Range<usize>),
    /// A record that has been dealt with.
    Nothing,
    /// End: the peer will send no more.
    End,
}

/// The keys of one direction.
struct Keys {
    /// Secret that the next keys follow from; not used in TLS 1.2.
    secret: [u8; SECRET_MAX],
    key: [u8; KEY_MAX],
    iv: [u8; IV_LEN],
    /// The number of the next record.
    seq: u64,
}

impl Drop for Keys {
    fn drop(&mut self) {
        self.secret.zeroize();
        self.key.zeroize();
        self.iv.zeroize();
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Keys at record {}", self.seq)
    }
}

/// The length of what is derived from a secret.
#[derive(Clone, Copy, Debug)]
struct Length(usize);

impl KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

/// HKDF-Expand-Label of RFC 8446, 7.1, without a context.
fn expand(suite: Suite, secret: &[u8], label: &[u8], out: &mut [u8]) -> Result<(), Fault> {
    let label_len = [6 + u8::try_from(label.len()).unwrap_or(0)];
    let len = u16::try_from(out.len()).unwrap_or(0).to_be_bytes();
    let info = [&len[..], &label_len, b"tls13 ", label, &[0]];
    let prk = Prk::new_less_safe(suite.hash(), secret);
    let okm = prk.expand(&info, Length(out.len()));
    let filled = okm.and_then(|okm| okm.fill(out));
    filled.map_err(|_| internal("a key cannot be derived"))
}

fn internal(what: &str) -> Fault {
    Fault::new(
        AlertDescription::InternalError,
        Error::General(what.to_owned()),
    )
}

impl Keys {
    fn empty(seq: u64) -> Keys {
        Keys {
            secret: [0; SECRET_MAX],
            key: [0; KEY_MAX],
            iv: [0; IV_LEN],
            seq,
        }
    }

    /// The keys of TLS 1.3 that follow from a secret.
    fn of_secret(suite: Suite, secret: &[u8]) -> Result<Keys, Fault> {
        let mut keys = Keys::empty(0);
        let len = suite.secret_len();
        if secret.len() != len {
            return Err(internal("a secret's length is not that of its hash"));
        }
        keys.secret[..len].copy_from_slice(secret);
        expand(suite, secret, b"key", &mut keys.key[..suite.key_len()])?;
        expand(suite, secret, b"iv", &mut keys.iv)?;
        Ok(keys)
    }

    /// Keys behind a KeyUpdate.
    fn next(&self, suite: Suite) -> Result<Keys, Fault> {
        let len = suite.secret_len();
        let mut secret = [0; SECRET_MAX];
        let next = expand(
            suite,
            &self.secret[..len],
            b"traffic upd",
            &mut secret[..len],
        )
        .and_then(|()| Keys::of_secret(suite, &secret[..len]));
        secret.zeroize();
        next
    }

    /// Keys of one direction, as [`Records::put`] has written them.
    fn read(version: Version, suite: Suite, bytes: &mut &[u8]) -> Option<Keys> {
        let mut keys = match version {
            Version::V13 => Keys::of_secret(suite, take(bytes, suite.secret_len())?).ok()?,
            Version::V12 => {
                let mut keys = Keys::empty(0);
                let len = suite.key_len();
                keys.key[..len].copy_from_slice(take(bytes, len)?);
                keys.iv.copy_from_slice(take(bytes, IV_LEN)?);
                keys
            }
        };
        keys.seq = take_number(bytes)?;
        Some(keys)
    }

    fn cipher(&self, suite: Suite) -> Result<LessSafeKey, Fault> {
        let key = UnboundKey::new(suite.algorithm(), &self.key[..suite.key_len()]);
        key.map(LessSafeKey::new)
            .map_err(|_| internal("a key cannot be used"))
    }

    /// The nonce of the next record.
    fn nonce(&self) -> [u8; IV_LEN] {
        let mut nonce = self.iv;
        for (byte, of_seq) in nonce[IV_LEN - 8..].iter_mut().zip(self.seq.to_be_bytes()) {
            *byte ^= of_seq;
        }
        nonce
    }
}

/// The secrets of TLS 1.3 as rustls has told them.
#[derive(Clone, Copy)]
pub struct Secrets<'a> {
    /// Secret for what the client sends.
    pub client: &'a [u8],
    /// Secret for what the server sends.
    pub server: &'a [u8],
}

/// Both directions of a connection, behind its handshake.
pub struct Records {
    version: Version,
    suite: Suite,
    reading: Keys,
    writing: Keys,
    /// Blocks that were sealed with the key for writing.
    blocks: u64,
    /// Records in a row without data.
    fruitless: u8,
    /// Request of the peer for another handshake, made once and to be answered that there is none.
    renegotiation: Asked,
    /// True if the peer waits for a KeyUpdate.
    owes_update: bool,
    /// Bytes of a KeyUpdate that has not come whole.
    part_len: u8,
    /// True if nothing may be read or sealed any more.
    is_over: bool,
}

/// Result of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    Never,
    Unanswered,
    Answered,
}

impl Records {
    /// Names of its version and its cipher, as OpenSSL has them; where the name of a cipher says
    /// how certificates are signed (TLS 1.2), that is left out.
    #[must_use]
    pub fn names(&self) -> (&'static str, &'static str) {
        match (self.version, self.suite) {
            (Version::V12, Suite::Aes128Gcm) => ("TLSv1.2", "ECDHE-AES128-GCM-SHA256"),
            (Version::V12, Suite::Aes256Gcm) => ("TLSv1.2", "ECDHE-AES256-GCM-SHA384"),
            (Version::V12, Suite::ChaCha20Poly1305) => ("TLSv1.2", "ECDHE-CHACHA20-POLY1305"),
            (Version::V13, Suite::Aes128Gcm) => ("TLSv1.3", "TLS_AES_128_GCM_SHA256"),
            (Version::V13, Suite::Aes256Gcm) => ("TLSv1.3", "TLS_AES_256_GCM_SHA384"),
            (Version::V13, Suite::ChaCha20Poly1305) => ("TLSv1.3", "TLS_CHACHA20_POLY1305_SHA256"),
        }
    }
}

impl fmt::Debug for Records {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Records of {:?} {:?}: {:?}, {:?}",
            self.version, self.suite, self.reading, self.writing
        )
    }
}

/// Length of the record at the front of `bytes`, with its header; `None`: that has not come.
///
/// # Errors
/// It is none that could stand here.
pub fn len_of_record(bytes: &[u8]) -> Result<Option<usize>, Fault> {
    let Some(&[kind, major, minor, high, low]) = bytes.first_chunk() else {
        return Ok(None);
    };
    if !(CHANGE_CIPHER_SPEC..=DATA).contains(&kind) {
        let error = InvalidMessage::InvalidContentType;
        return Err(Fault::new(AlertDescription::UnexpectedMessage, error));
    }
    if [major, minor] != HEADER_VERSION {
        let error = InvalidMessage::UnknownProtocolVersion;
        return Err(Fault::new(AlertDescription::ProtocolVersion, error));
    }
    let len = HEADER_LEN + usize::from(u16::from_be_bytes([high, low]));
    if len > RECORD_MAX {
        let error = Error::PeerSentOversizedRecord;
        return Err(Fault::new(AlertDescription::RecordOverflow, error));
    }
    Ok(Some(len))
}

impl Records {
    /// Goes on behind a handshake. TLS 1.3 needs the secrets besides: that they belong to the keys
    /// is checked.
    ///
    /// # Errors
    /// The version or the cipher is none of these, or the secrets are not those of the keys.
    pub fn new(
        version: Option<ProtocolVersion>,
        keys: ExtractedSecrets,
        secrets: &Secrets<'_>,
    ) -> Result<Records, Fault> {
        let version = match version {
            Some(ProtocolVersion::TLSv1_2) => Version::V12,
            Some(ProtocolVersion::TLSv1_3) => Version::V13,
            _ => return Err(internal("a version of TLS that is not known here")),
        };
        let (suite, mut reading) = keys_of(keys.rx)?;
        let (suite_of_writing, mut writing) = keys_of(keys.tx)?;
        if suite != suite_of_writing {
            return Err(internal("one connection has two ciphers"));
        }
        if version == Version::V13 {
            reading = with_secret(suite, &reading, secrets.client)?;
            writing = with_secret(suite, &writing, secrets.server)?;
        }
        Ok(Records::with_keys(version, suite, reading, writing))
    }

    /// Records with these keys, of which this is the first use here.
    fn with_keys(version: Version, suite: Suite, reading: Keys, writing: Keys) -> Records {
        Records {
            version,
            suite,
            reading,
            writing,
            blocks: 0,
            fruitless: 0,
            renegotiation: Asked::Never,
            owes_update: false,
            part_len: 0,
            is_over: false,
        }
    }

    /// True if they can go on elsewhere as they are: nothing is owed, and it is not over.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        !self.is_over && !self.owes()
    }

    /// Appends all of it, to be read by [`Records::read`] elsewhere. Whoever has these bytes has
    /// the connection; nothing may be sealed or opened here any more if somebody else reads them.
    pub fn put(&self, out: &mut Vec<u8>) {
        out.push(FORM);
        out.push(match self.version {
            Version::V12 => 2,
            Version::V13 => 3,
        });
        out.push(match self.suite {
            Suite::Aes128Gcm => 1,
            Suite::Aes256Gcm => 2,
            Suite::ChaCha20Poly1305 => 3,
        });
        for keys in [&self.reading, &self.writing] {
            match self.version {
                // The keys follow from it.
                Version::V13 => out.extend_from_slice(&keys.secret[..self.suite.secret_len()]),
                Version::V12 => {
                    out.extend_from_slice(&keys.key[..self.suite.key_len()]);
                    out.extend_from_slice(&keys.iv);
                }
            }
            out.extend_from_slice(&keys.seq.to_be_bytes());
        }
        out.extend_from_slice(&self.blocks.to_be_bytes());
        let renegotiated = u8::from(self.renegotiation != Asked::Never);
        out.extend_from_slice(&[self.fruitless, renegotiated, self.part_len]);
    }

    /// Reads what [`Records::put`] has written, at the front of `bytes`; `None`: it is not that.
    #[must_use]
    pub fn read(bytes: &mut &[u8]) -> Option<Records> {
        let &[form, version, suite] = take(bytes, 3)? else {
            return None;
        };
        let version = match (form, version) {
            (FORM, 2) => Version::V12,
            (FORM, 3) => Version::V13,
            _ => return None,
        };
        let suite = match suite {
            1 => Suite::Aes128Gcm,
            2 => Suite::Aes256Gcm,
            3 => Suite::ChaCha20Poly1305,
            _ => return None,
        };
        let reading = Keys::read(version, suite, bytes)?;
        let writing = Keys::read(version, suite, bytes)?;
        let blocks = take_number(bytes)?;
        let &[fruitless, renegotiated, part_len] = take(bytes, 3)? else {
            return None;
        };
        let renegotiation = match (version, renegotiated) {
            (_, 0) => Asked::Never,
            (Version::V12, 1) => Asked::Answered,
            _ => return None,
        };
        let is_13 = version == Version::V13;
        let is_possible = blocks <= suite.blocks_max()
            && fruitless <= FRUITLESS_MAX
            && usize::from(part_len) <= if is_13 { KEY_UPDATE.len() } else { 0 };
        is_possible.then_some(Records {
            version,
            suite,
            reading,
            writing,
            blocks,
            fruitless,
            renegotiation,
            owes_update: false,
            part_len,
            is_over: false,
        })
    }

    /// Stops reading and sealing, but for the alert.
    pub fn give_up(&mut self) {
        self.is_over = true;
    }

    /// True if nothing can be read or sealed any more.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// True if the peer is to be answered: see [`Records::answer`].
    #[must_use]
    pub fn owes(&self) -> bool {
        !self.is_over && (self.owes_update || self.renegotiation == Asked::Unanswered)
    }

    /// Opens a whole record where it stands ([`len_of_record`]).
    ///
    /// # Errors
    /// The connection ends; [`Records::seal_alert`] tells the peer.
    pub fn open(&mut self, record: &mut [u8]) -> Result<Opened, Fault> {
        if self.is_over {
            return Err(internal("a record behind the end"));
        }
        let opened = self.open_next(record);
        self.is_over |= opened.is_err();
        opened
    }

    fn open_next(&mut self, record: &mut [u8]) -> Result<Opened, Fault> {
        let (kind, plain) = self.decrypt(record)?;
        if self.part_len > 0 && kind != HANDSHAKE {
            return Err(Fault::unexpected(kind));
        }
        if kind == DATA && !plain.is_empty() {
            self.fruitless = 0;
            return Ok(Opened::Data(plain));
        }
        self.fruitless += 1;
        if self.fruitless > FRUITLESS_MAX {
            let error = PeerMisbehaved::TooManyEmptyFragments;
            return Err(Fault::new(AlertDescription::UnexpectedMessage, error));
        }
        let content = &record[plain];
        match (kind, self.version) {
            (DATA, _) => Ok(Opened::Nothing),
            (ALERT, _) => self.on_alert(content),
            (HANDSHAKE, Version::V13) => self.on_key_update(content),
            (HANDSHAKE, Version::V12) => self.on_client_hello(content),
            _ => Err(Fault::unexpected(kind)),
        }
    }

    /// Decrypts a record in place: its content type, and the range of its plaintext.
    fn decrypt(&mut self, record: &mut [u8]) -> Result<(u8, Range<usize>), Fault> {
        let bad = || Fault::new(AlertDescription::BadRecordMac, Error::DecryptError);
        let (version, suite) = (self.version, self.suite);
        let (header, body) = record.split_at_mut(HEADER_LEN);
        let kind = header[0];
        // Whatever comes is sealed: of TLS 1.3 that is one type, to those who look from outside.
        if version == Version::V13 && kind != DATA {
            return Err(Fault::unexpected(kind));
        }
        let mut nonce = self.reading.nonce();
        let mut start = 0;
        if has_explicit_nonce(version, suite) {
            let explicit = body.get(..EXPLICIT_LEN).ok_or_else(bad)?;
            nonce[IV_LEN - EXPLICIT_LEN..].copy_from_slice(explicit);
            start = EXPLICIT_LEN;
        }
        let plain_len = body.len().checked_sub(start + TAG_LEN).ok_or_else(bad)?;
        let header = [header[0], header[1], header[2], header[3], header[4]];
        let (aad, aad_len) = additional(version, header, self.reading.seq, plain_len);
        let cipher = self.reading.cipher(suite)?;
        let nonce = Nonce::assume_unique_for_key(nonce);
        let opened = cipher.open_in_place(nonce, Aad::from(&aad[..aad_len]), &mut body[start..]);
        let plain = opened.map_err(|_| bad())?;
        self.reading.seq = self.reading.seq.checked_add(1).ok_or_else(bad)?;
        let too_long = || {
            Fault::new(
                AlertDescription::RecordOverflow,
                Error::PeerSentOversizedRecord,
            )
        };
        let start = HEADER_LEN + start;
        if version == Version::V12 {
            return match plain.len() > PLAINTEXT_MAX {
                true => Err(too_long()),
                false => Ok((kind, start..start + plain.len())),
            };
        }
        // The type, and zeros behind it.
        if plain.len() > PLAINTEXT_MAX + 1 {
            return Err(too_long());
        }
        let last = plain.iter().rposition(|&byte| byte != 0);
        let last = last.ok_or_else(|| {
            let error = PeerMisbehaved::IllegalTlsInnerPlaintext;
            Fault::new(AlertDescription::UnexpectedMessage, error)
        })?;
        Ok((plain[last], start..start + last))
    }

    fn on_alert(&mut self, content: &[u8]) -> Result<Opened, Fault> {
        let &[level, description] = content else {
            let error = InvalidMessage::MissingData("an alert");
            return Err(Fault::new(AlertDescription::DecodeError, error));
        };
        let received = Error::AlertReceived(AlertDescription::from(description));
        match (self.version, level, description) {
            (_, WARNING | FATAL, CLOSE_NOTIFY) => Ok(Opened::End),
            (Version::V13, WARNING | FATAL, USER_CANCELED) | (Version::V12, WARNING, _) => {
                Ok(Opened::Nothing)
            }
            (_, WARNING | FATAL, _) => Err(Fault {
                alert: None,
                error: received,
            }),
            _ => Err(Fault::new(AlertDescription::IllegalParameter, received)),
        }
    }

    /// TLS 1.3: nothing but a KeyUpdate may come, in as many pieces as the peer likes.
    fn on_key_update(&mut self, content: &[u8]) -> Result<Opened, Fault> {
        if content.is_empty() {
            return Err(Fault::unexpected(HANDSHAKE));
        }
        for (at, &byte) in content.iter().enumerate() {
            let len = usize::from(self.part_len);
            if let Some(&expected) = KEY_UPDATE.get(len) {
                if byte != expected {
                    return Err(Fault::unexpected(HANDSHAKE));
                }
                self.part_len += 1;
                continue;
            }
            // What stood behind it was sealed with the wrong key.
            if at + 1 < content.len() {
                let error = PeerMisbehaved::KeyEpochWithPendingFragment;
                return Err(Fault::new(AlertDescription::UnexpectedMessage, error));
            }
            match byte {
                0 => {}
                1 => self.owes_update = true,
                _ => {
                    let error = InvalidMessage::InvalidKeyUpdate;
                    return Err(Fault::new(AlertDescription::IllegalParameter, error));
                }
            }
            self.part_len = 0;
            self.reading = self.reading.next(self.suite)?;
        }
        Ok(Opened::Nothing)
    }

    /// TLS 1.2: another handshake is refused, and the connection goes on. Who asks again, or in
    /// pieces, is left.
    fn on_client_hello(&mut self, content: &[u8]) -> Result<Opened, Fault> {
        let is_whole = match content {
            [CLIENT_HELLO, high, mid, low, rest @ ..] => {
                let len = u32::from_be_bytes([0, *high, *mid, *low]);
                usize::try_from(len) == Ok(rest.len())
            }
            _ => false,
        };
        if !is_whole {
            return Err(Fault::unexpected(HANDSHAKE));
        }
        if self.renegotiation != Asked::Never {
            let error = PeerMisbehaved::TooManyRenegotiationRequests;
            return Err(Fault::new(AlertDescription::HandshakeFailure, error));
        }
        self.renegotiation = Asked::Unanswered;
        Ok(Opened::Nothing)
    }

    /// Appends the records that the peer waits for.
    ///
    /// # Errors
    /// The connection ends.
    pub fn answer(&mut self, out: &mut Vec<u8>) -> Result<(), Fault> {
        if !self.is_over && self.renegotiation == Asked::Unanswered {
            self.seal(ALERT, &[WARNING, NO_RENEGOTIATION], out)?;
            self.renegotiation = Asked::Answered;
        }
        if !self.is_over && self.owes_update {
            self.update_writing(out)?;
        }
        Ok(())
    }

    fn update_writing(&mut self, out: &mut Vec<u8>) -> Result<(), Fault> {
        let [kind, high, mid, low] = KEY_UPDATE;
        let next = self.writing.next(self.suite)?;
        self.seal(HANDSHAKE, &[kind, high, mid, low, 0], out)?;
        self.writing = next;
        self.blocks = 0;
        self.owes_update = false;
        Ok(())
    }

    /// Appends the record with these bytes, of which there are at most [`PLAINTEXT_MAX`], behind
    /// those that the peer waits for.
    ///
    /// # Errors
    /// The key has sealed as much as it may, and there is no other: the connection ends.
    pub fn seal_data(&mut self, plain: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
        self.answer(out)?;
        let is_used_up = self.blocks.saturating_add(blocks_of(plain.len())) > self.limit();
        if is_used_up && self.version == Version::V13 {
            self.update_writing(out)?;
        } else if is_used_up {
            // An end that the peer understands.
            let close = self.seal(ALERT, &[WARNING, CLOSE_NOTIFY], out);
            self.is_over = true;
            return close.and(Err(Fault {
                alert: None,
                error: Error::EncryptError,
            }));
        }
        self.seal(DATA, plain, out)
    }

    fn limit(&self) -> u64 {
        // The last records: an update or the end.
        self.suite.blocks_max() - 64
    }

    /// Appends the alert with which the connection ends; nothing may be sealed behind it.
    pub fn seal_alert(&mut self, alert: AlertDescription, out: &mut Vec<u8>) {
        let level = match alert {
            AlertDescription::CloseNotify => WARNING,
            _ => FATAL,
        };
        self.is_over = false;
        // There is nobody to be told of a failure.
        let _ = self.seal(ALERT, &[level, alert.into()], out);
        self.is_over = true;
    }

    /// Appends one record.
    fn seal(&mut self, kind: u8, plain: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
        if self.is_over || plain.len() > PLAINTEXT_MAX {
            return Err(internal("a record cannot be sealed"));
        }
        let (version, suite) = (self.version, self.suite);
        let seq = self.writing.seq;
        let nonce = self.writing.nonce();
        // The counter moves first: whatever comes, this nonce is not used again.
        let next = seq.checked_add(1).ok_or_else(|| internal("no number"))?;
        self.writing.seq = next;
        self.blocks = self.blocks.saturating_add(blocks_of(plain.len()));
        let is_explicit = has_explicit_nonce(version, suite);
        let (outer, inner) = match version {
            Version::V12 => (kind, None),
            Version::V13 => (DATA, Some(kind)),
        };
        let explicit_len = if is_explicit { EXPLICIT_LEN } else { 0 };
        let body = explicit_len + plain.len() + usize::from(inner.is_some()) + TAG_LEN;
        let [high, low] = u16::try_from(body).unwrap_or(0).to_be_bytes();
        let header = [outer, HEADER_VERSION[0], HEADER_VERSION[1], high, low];
        let begin = out.len();
        out.extend_from_slice(&header);
        if is_explicit {
            out.extend_from_slice(&nonce[IV_LEN - EXPLICIT_LEN..]);
        }
        let start = out.len();
        out.extend_from_slice(plain);
        out.extend(inner);
        let (aad, aad_len) = additional(version, header, seq, plain.len());
        let sealed = self.writing.cipher(suite).and_then(|cipher| {
            let nonce = Nonce::assume_unique_for_key(nonce);
            let aad = Aad::from(&aad[..aad_len]);
            cipher
                .seal_in_place_separate_tag(nonce, aad, &mut out[start..])
                .map_err(|_| internal("a record cannot be sealed"))
        });
        match sealed {
            Ok(tag) => {
                out.extend_from_slice(tag.as_ref());
                Ok(())
            }
            Err(fault) => {
                // Plaintext must not stay where ciphertext is expected.
                out[begin..].zeroize();
                out.truncate(begin);
                self.is_over = true;
                Err(fault)
            }
        }
    }
}

/// Blocks that a record costs: those of its plaintext, with its type, and those of the nonce and of
/// the lengths.
fn blocks_of(plain_len: usize) -> u64 {
    (plain_len as u64 + 1).div_ceil(16) + 2
}

fn has_explicit_nonce(version: Version, suite: Suite) -> bool {
    version == Version::V12 && suite != Suite::ChaCha20Poly1305
}

/// Data that is authenticated besides the plaintext, with its length.
fn additional(
    version: Version,
    header: [u8; HEADER_LEN],
    seq: u64,
    plain_len: usize,
) -> ([u8; 13], usize) {
    let mut aad = [0; 13];
    match version {
        Version::V13 => {
            aad[..HEADER_LEN].copy_from_slice(&header);
            (aad, HEADER_LEN)
        }
        Version::V12 => {
            aad[..8].copy_from_slice(&seq.to_be_bytes());
            aad[8..11].copy_from_slice(&header[..3]);
            let len = u16::try_from(plain_len).unwrap_or(0);
            aad[11..].copy_from_slice(&len.to_be_bytes());
            (aad, 13)
        }
    }
}

/// Takes so many bytes from the front.
pub(crate) fn take<'a>(bytes: &mut &'a [u8], len: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(len)?;
    *bytes = rest;
    Some(taken)
}

fn take_number(bytes: &mut &[u8]) -> Option<u64> {
    let taken = take(bytes, 8)?.try_into().ok()?;
    Some(u64::from_be_bytes(taken))
}

/// Keys as rustls gives them away, without their secret.
fn keys_of((seq, keys): (u64, ConnectionTrafficSecrets)) -> Result<(Suite, Keys), Fault> {
    let (suite, key, iv) = match &keys {
        ConnectionTrafficSecrets::Aes128Gcm { key, iv } => (Suite::Aes128Gcm, key, iv),
        ConnectionTrafficSecrets::Aes256Gcm { key, iv } => (Suite::Aes256Gcm, key, iv),
        ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } => {
            (Suite::ChaCha20Poly1305, key, iv)
        }
        _ => return Err(internal("a cipher that is not known here")),
    };
    let (key, iv) = (key.as_ref(), iv.as_ref());
    if key.len() != suite.key_len() || iv.len() != IV_LEN {
        return Err(internal("a key's length is not that of its cipher"));
    }
    let mut keys = Keys::empty(seq);
    keys.key[..key.len()].copy_from_slice(key);
    keys.iv.copy_from_slice(iv);
    Ok((suite, keys))
}

/// Keys with the secret that they follow from.
fn with_secret(suite: Suite, keys: &Keys, secret: &[u8]) -> Result<Keys, Fault> {
    let mut derived = Keys::of_secret(suite, secret)?;
    if derived.key != keys.key || derived.iv != keys.iv {
        return Err(internal("a secret is not that of the keys"));
    }
    derived.seq = keys.seq;
    Ok(derived)
}

#[cfg(test)]
mod tests;
