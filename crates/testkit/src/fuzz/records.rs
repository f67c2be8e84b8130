//! Records of TLS behind a handshake, with the ciphers and key derivation of rustls as the peer.
//!
//! A peer that has the keys may say anything in records that open; one that has not, anything else.
//! Whatever they say, only data that were sealed as data come out, in order and once; what is said
//! back opens at the peer; and behind a fault there is nothing but one alert. A connection may go
//! to another process between any two records, and its counters may be near their end: the last
//! number is never used, in either direction.
//!
//! The input is a suite with the counters' beginning, and orders to the peer, each of a kind, a
//! length and so many bytes.

use reactor::records::{FRUITLESS_MAX, Opened, Records, Secrets, len_of_record};
use rustls::crypto::aws_lc_rs::cipher_suite as suites;
use rustls::crypto::cipher::{
    AeadKey, InboundOpaqueMessage, Iv, MessageDecrypter, MessageEncrypter, OutboundPlainMessage,
};
use rustls::crypto::tls13::OkmBlock;
use rustls::{
    AlertDescription, ConnectionTrafficSecrets, ContentType, ExtractedSecrets, ProtocolVersion,
    SupportedCipherSuite,
};

/// Suites with keys of 32 bytes, which rustls takes from anybody.
const SUITES: [SupportedCipherSuite; 4] = [
    suites::TLS13_AES_256_GCM_SHA384,
    suites::TLS13_CHACHA20_POLY1305_SHA256,
    suites::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
    suites::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
];
const KEY_LEN: usize = 32;
/// Numbers that are left to a counter which begins near its end.
const NEAR_END: u64 = 4;
/// Bits of the first byte: the counter for reading, for writing, begins near its end.
const READS_NEAR_END: u8 = 4;
const WRITES_NEAR_END: u8 = 8;
/// Bit of an order: the connection goes to another process first.
const MOVES: u8 = 8;
const DATA: u8 = 23;
const HANDSHAKE: u8 = 22;
const ALERT: u8 = 21;

/// Keys of one direction, as rustls has them.
struct Keys {
    suite: SupportedCipherSuite,
    /// Secret of keys of TLS 1.3; keys of TLS 1.2.
    secret: Vec<u8>,
    seq: u64,
}

impl Keys {
    fn new(suite: SupportedCipherSuite, byte: u8, is_near_end: bool) -> Keys {
        let len = match suite {
            SupportedCipherSuite::Tls13(suite) => suite.common.hash_provider.output_len(),
            SupportedCipherSuite::Tls12(_) => KEY_LEN,
        };
        Keys {
            suite,
            secret: vec![byte; len],
            seq: if is_near_end {
                u64::MAX - NEAR_END
            } else {
                u64::from(byte)
            },
        }
    }

    /// True where only the last number is left, which belongs to no record.
    fn is_used_up(&self) -> bool {
        self.seq == u64::MAX
    }

    fn expand(&self, label: &[u8], out: &mut [u8]) {
        let SupportedCipherSuite::Tls13(suite) = self.suite else {
            return out.copy_from_slice(&self.secret[..out.len()]);
        };
        let expander = suite
            .hkdf_provider
            .expander_for_okm(&OkmBlock::new(&self.secret));
        let len = u16::try_from(out.len()).expect("a short key").to_be_bytes();
        let label_len = [u8::try_from(6 + label.len()).expect("a short label")];
        let info = [&len[..], &label_len, b"tls13 ", label, &[0]];
        expander.expand_slice(&info, out).expect("a short key");
    }

    fn key(&self) -> AeadKey {
        let mut key = [0; KEY_LEN];
        self.expand(b"key", &mut key);
        AeadKey::from(key)
    }

    fn iv(&self) -> [u8; 12] {
        let mut iv = [0; 12];
        self.expand(b"iv", &mut iv);
        iv
    }

    /// The fixed part of the vector of TLS 1.2, and the rest of it.
    fn parts(&self, iv: &[u8; 12]) -> (Vec<u8>, Vec<u8>) {
        let SupportedCipherSuite::Tls12(suite) = self.suite else {
            unreachable!("TLS 1.2 is asked for");
        };
        let (fixed, rest) = iv.split_at(suite.aead_alg.key_block_shape().fixed_iv_len);
        (fixed.to_vec(), rest.to_vec())
    }

    fn extracted(&self) -> (u64, ConnectionTrafficSecrets) {
        let (key, iv) = (self.key(), self.iv());
        let keys = match self.suite {
            SupportedCipherSuite::Tls13(suite) => suite.aead_alg.extract_keys(key, Iv::new(iv)),
            SupportedCipherSuite::Tls12(suite) => {
                let (fixed, rest) = self.parts(&iv);
                suite.aead_alg.extract_keys(key, &fixed, &rest)
            }
        };
        (self.seq, keys.expect("a cipher that can be extracted"))
    }

    fn encrypter(&self) -> Box<dyn MessageEncrypter> {
        let (key, iv) = (self.key(), self.iv());
        match self.suite {
            SupportedCipherSuite::Tls13(suite) => suite.aead_alg.encrypter(key, Iv::new(iv)),
            SupportedCipherSuite::Tls12(suite) => {
                let (fixed, rest) = self.parts(&iv);
                suite.aead_alg.encrypter(key, &fixed, &rest)
            }
        }
    }

    fn decrypter(&self) -> Box<dyn MessageDecrypter> {
        let (key, iv) = (self.key(), self.iv());
        match self.suite {
            SupportedCipherSuite::Tls13(suite) => suite.aead_alg.decrypter(key, Iv::new(iv)),
            SupportedCipherSuite::Tls12(suite) => suite.aead_alg.decrypter(key, &self.parts(&iv).0),
        }
    }

    /// Sets the keys behind a KeyUpdate.
    fn update(&mut self) {
        let mut next = vec![0; self.secret.len()];
        self.expand(b"traffic upd", &mut next);
        (self.secret, self.seq) = (next, 0);
    }

    fn seal(&mut self, kind: u8, content: &[u8]) -> Vec<u8> {
        let message = OutboundPlainMessage {
            typ: ContentType::from(kind),
            version: ProtocolVersion::TLSv1_2,
            payload: content.into(),
        };
        let sealed = self.encrypter().encrypt(message, self.seq);
        self.seq = self.seq.saturating_add(1);
        sealed.expect("a short record").encode()
    }

    /// The kind and the content of a record.
    fn open(&mut self, record: &mut [u8]) -> (u8, Vec<u8>) {
        assert!(!self.is_used_up(), "a record has the last number");
        let kind = ContentType::from(record[0]);
        let message = InboundOpaqueMessage::new(kind, ProtocolVersion::TLSv1_2, &mut record[5..]);
        let opened = self.decrypter().decrypt(message, self.seq);
        let opened = opened.expect("a record that the peer can open");
        self.seq += 1;
        (u8::from(opened.typ), opened.payload.to_vec())
    }
}

/// The peer, with what it knows of what it has said.
struct Peer {
    writing: Keys,
    reading: Keys,
    is_13: bool,
    /// Bytes of a handshake message that is not whole.
    part: Vec<u8>,
    fruitless: u8,
    /// True while an update of keys that it has asked for has not come.
    waits_for_update: bool,
    renegotiations: u32,
}

impl Peer {
    /// Expected result of a record of this kind; `None`: the connection ends.
    fn expected(&mut self, kind: u8, content: &[u8]) -> Option<Opened> {
        if !self.part.is_empty() && kind != HANDSHAKE {
            return None;
        }
        if kind == DATA && !content.is_empty() {
            self.fruitless = 0;
            return Some(Opened::Data(0..content.len()));
        }
        self.fruitless += 1;
        if self.fruitless > FRUITLESS_MAX {
            return None;
        }
        match kind {
            DATA => Some(Opened::Nothing),
            ALERT => match (self.is_13, content) {
                (_, [1 | 2, 0]) => Some(Opened::End),
                (true, [1 | 2, 90]) | (false, [1, _]) => Some(Opened::Nothing),
                _ => None,
            },
            HANDSHAKE if self.is_13 && !content.is_empty() => {
                self.part.extend_from_slice(content);
                match &self.part[..] {
                    [24, 0, 0, 1, asks @ (0 | 1)] => {
                        self.waits_for_update |= *asks == 1;
                        self.part.clear();
                        self.writing.update();
                        Some(Opened::Nothing)
                    }
                    part if part.len() < 5 && [24, 0, 0, 1].starts_with(part) => {
                        Some(Opened::Nothing)
                    }
                    _ => None,
                }
            }
            HANDSHAKE => match content {
                [1, high, mid, low, rest @ ..] => {
                    let len = u32::from_be_bytes([0, *high, *mid, *low]);
                    self.renegotiations += 1;
                    (len as usize == rest.len() && self.renegotiations == 1)
                        .then_some(Opened::Nothing)
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// Reads what was sealed for it: the data, behind what was owed.
    fn reads(&mut self, mut sealed: &mut [u8]) -> Vec<u8> {
        let mut data = Vec::new();
        while !sealed.is_empty() {
            let len = len_of_record(sealed).expect("a record").expect("a header");
            let (record, rest) = sealed.split_at_mut(len);
            match self.reading.open(record) {
                (DATA, content) => data.extend_from_slice(&content),
                (HANDSHAKE, content) => {
                    assert!(self.is_13 && self.waits_for_update);
                    assert_eq!(content, [24, 0, 0, 1, 0]);
                    self.waits_for_update = false;
                    self.reading.update();
                }
                (ALERT, content) => assert!(!self.is_13 && content == [1, 100]),
                other => panic!("{other:?}"),
            }
            sealed = rest;
        }
        data
    }
}

/// Records sealed by rustls' ciphers, and records sealed for them.
pub(super) fn records(data: &[u8]) {
    let Some((&first, mut orders)) = data.split_first() else {
        return;
    };
    let suite = SUITES[usize::from(first) % SUITES.len()];
    let is_13 = matches!(suite, SupportedCipherSuite::Tls13(_));
    let mut peer = Peer {
        writing: Keys::new(suite, 1, first & READS_NEAR_END != 0),
        reading: Keys::new(suite, 2, first & WRITES_NEAR_END != 0),
        is_13,
        part: Vec::new(),
        fruitless: 0,
        waits_for_update: false,
        renegotiations: 0,
    };
    let keys = ExtractedSecrets {
        tx: peer.reading.extracted(),
        rx: peer.writing.extracted(),
    };
    let secrets = Secrets {
        client: &peer.writing.secret,
        server: &peer.reading.secret,
    };
    let version = Some(suite.version().version);
    let mut here = Records::new(version, keys, &secrets).expect("keys that belong together");
    while let [order, len, rest @ ..] = orders {
        let (content, later) = rest.split_at(rest.len().min(usize::from(*len)));
        orders = later;
        if order & MOVES != 0 && here.is_settled() {
            here = moved(&here);
        }
        let is_last = peer.writing.is_used_up();
        let (mut record, expected) = match order % 8 {
            0..=2 => {
                let record = peer.writing.seal(DATA, content);
                (record, peer.expected(DATA, content))
            }
            3 => {
                let mut sealed = Vec::new();
                if here.seal_data(content, &mut sealed).is_err() {
                    assert!(peer.reads(&mut sealed).is_empty() && peer.reading.is_used_up());
                    return;
                }
                assert_eq!(peer.reads(&mut sealed), content);
                assert!(!here.owes() && !peer.waits_for_update);
                continue;
            }
            4 => {
                let Some((&kind, content)) = content.split_first() else {
                    continue;
                };
                let record = peer.writing.seal(kind, content);
                // Zeros are the padding of TLS 1.3: behind one, the type is what stands in front.
                match content.iter().rposition(|&byte| byte != 0) {
                    Some(last) if is_13 && kind == 0 => {
                        let (content, kind) = (&content[..last], content[last]);
                        (record, peer.expected(kind, content))
                    }
                    None if is_13 && kind == 0 => (record, None),
                    _ if !is_13 && !(20..=23).contains(&kind) => (record, None),
                    _ => (record, peer.expected(kind, content)),
                }
            }
            5 => {
                let message = [24, 0, 0, 1, *len & 1];
                let record = peer.writing.seal(HANDSHAKE, &message);
                (record, peer.expected(HANDSHAKE, &message))
            }
            6 => {
                // A record that somebody between the two has changed, in any of its bytes.
                let mut record = peer.writing.seal(DATA, content);
                let at = usize::from(content.first().copied().unwrap_or(0)) % record.len();
                record[at] ^= 1 << (*len % 8);
                (record, None)
            }
            _ => {
                let mut record = vec![DATA, 3, 3, 0, *len];
                record.extend_from_slice(content);
                (record, None)
            }
        };
        let expected = expected.filter(|_| !is_last);
        let len = match len_of_record(&record) {
            Ok(Some(len)) if len <= record.len() => len,
            Ok(_) => return,
            Err(_) => return assert!(expected.is_none()),
        };
        let opened = here.open(&mut record[..len]);
        match (opened, expected) {
            (Ok(Opened::Data(range)), Some(Opened::Data(_))) => {
                let data = &record[range];
                // What was padded was cut above.
                assert!(order % 8 == 4 || data == content);
                assert!(content.is_empty() || content.windows(data.len()).any(|w| w == data));
            }
            (Ok(Opened::Nothing), Some(Opened::Nothing)) => {}
            (Ok(Opened::End), Some(Opened::End)) => return,
            (Err(fault), None) => {
                let mut nothing = Vec::new();
                assert!(here.is_over() && here.open(&mut record[..len]).is_err());
                assert!(here.seal_data(b"x", &mut nothing).is_err() && nothing.is_empty());
                if let Some(alert) = fault.alert {
                    said_alert(&mut here, &mut peer, alert);
                }
                return;
            }
            (opened, expected) => panic!("{opened:?} where {expected:?} was expected"),
        }
    }
    let mut end = Vec::new();
    here.seal_alert(AlertDescription::CloseNotify, &mut end);
    heard(&mut peer, &mut end, [1, 0]);
}

/// The connection as another process has it.
fn moved(here: &Records) -> Records {
    let mut bytes = Vec::new();
    here.put(&mut bytes);
    let mut rest = &bytes[..];
    let there = Records::read(&mut rest).expect("what was written");
    assert!(rest.is_empty());
    there
}

/// Checks that the peer gets this alert, or nothing where no number is left for it.
fn heard(peer: &mut Peer, sealed: &mut [u8], alert: [u8; 2]) {
    if peer.reading.is_used_up() {
        return assert!(sealed.is_empty());
    }
    assert_eq!(peer.reading.open(sealed), (ALERT, alert.to_vec()));
}

/// Checks that the peer hears why it is left.
fn said_alert(here: &mut Records, peer: &mut Peer, alert: AlertDescription) {
    let mut sealed = Vec::new();
    here.seal_alert(alert, &mut sealed);
    heard(peer, &mut sealed, [2, u8::from(alert)]);
}
