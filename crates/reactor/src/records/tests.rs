//! Records by bytes written out, by a peer with the same keys that says anything, and by rustls.
use super::*;
use crate::tls::tests::{server_config, talk};
use rustls::crypto::aws_lc_rs;
use rustls::crypto::aws_lc_rs::cipher_suite as suites;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, KeyLog, ServerConnection, SupportedCipherSuite};
use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::sync::{Arc, Mutex};

const ALL: [(Version, Suite); 6] = [
    (Version::V12, Suite::Aes128Gcm),
    (Version::V12, Suite::Aes256Gcm),
    (Version::V12, Suite::ChaCha20Poly1305),
    (Version::V13, Suite::Aes128Gcm),
    (Version::V13, Suite::Aes256Gcm),
    (Version::V13, Suite::ChaCha20Poly1305),
];
const V13: (Version, Suite) = (Version::V13, Suite::Aes128Gcm);
const V12: (Version, Suite) = (Version::V12, Suite::Aes256Gcm);

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex
        .bytes()
        .filter(|byte| !byte.is_ascii_whitespace())
        .collect();
    let pair = |pair: &[u8]| {
        let text = std::str::from_utf8(pair).unwrap();
        u8::from_str_radix(text, 16).unwrap()
    };
    digits.chunks(2).map(pair).collect()
}

fn records((version, suite): (Version, Suite), reading: Keys, writing: Keys) -> Records {
    Records::with_keys(version, suite, reading, writing)
}

/// Keys made of this byte, as TLS 1.3 derives them.
fn keys(suite: Suite, byte: u8, seq: u64) -> Keys {
    let mut keys = Keys::of_secret(suite, &vec![byte; suite.secret_len()]).unwrap();
    keys.seq = seq;
    keys
}

/// A server's side, and a client's side that says what it is told to.
fn both(kind: (Version, Suite)) -> (Records, Records) {
    let suite = kind.1;
    let server = records(kind, keys(suite, 1, 5), keys(suite, 2, 9));
    let client = records(kind, keys(suite, 2, 9), keys(suite, 1, 5));
    (server, client)
}

fn sealed(by: &mut Records, kind: u8, plain: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    by.seal(kind, plain, &mut out).unwrap();
    out
}

/// Plaintext of a record of application data.
fn data_of(by: &mut Records, mut record: Vec<u8>) -> Vec<u8> {
    assert_eq!(len_of_record(&record).unwrap(), Some(record.len()));
    match by.open(&mut record).unwrap() {
        Opened::Data(range) => record[range].to_vec(),
        other => panic!("{other:?}"),
    }
}

/// The alert with which a record is refused.
fn refused(by: &mut Records, mut record: Vec<u8>) -> Option<AlertDescription> {
    let fault = by.open(&mut record).unwrap_err();
    assert!(by.is_over());
    // Nothing is taken behind it, and nothing is said.
    assert!(by.open(&mut record).is_err());
    assert!(by.seal_data(b"x", &mut Vec::new()).is_err());
    fault.alert
}

/// RFC 8448, 3: the keys, the client's data and its end, and the server's data.
#[test]
fn records_are_those_of_the_trace_in_the_rfc() {
    let client = bytes("9e40646ce79a7f9dc05af8889bce6552875afa0b06df0087f792ebb7c17504a5");
    let server = bytes("a11af9f05531f856ad47116b45a950328204b4f44bfb6b3a4b4f1f3fcb631643");
    let reading = Keys::of_secret(Suite::Aes128Gcm, &client).unwrap();
    assert_eq!(reading.key[..16], bytes("17422dda596ed5d9acd890e3c63f5051"));
    assert_eq!(reading.iv[..], bytes("5b78923dee08579033e523d9"));
    let mut writing = Keys::of_secret(Suite::Aes128Gcm, &server).unwrap();
    assert_eq!(writing.key[..16], bytes("9f02283b6c9c07efc26bb9f2ac92e356"));
    assert_eq!(writing.iv[..], bytes("cf782b88dd83549aadf1e984"));
    // The ticket had number 0.
    writing.seq = 1;
    let mut here = records(V13, reading, writing);
    let said: Vec<u8> = (0..50).collect();
    let record = bytes(
        "1703030043a23f7054b62c94d0affafe8228ba55cbefacea42f914aa66bcab3f2b9819a8a5b46b395bd54a9a
         20441e2b62974e1f5a6292a2977014bd1e3deae63aeebb21694915e4",
    );
    assert_eq!(data_of(&mut here, record), said);
    let mut out = Vec::new();
    here.seal_data(&said, &mut out).unwrap();
    let expected = bytes(
        "17030300432e937e11ef4ac740e538ad36005fc4a46932fc3225d05f82aa1b36e30efaf97d90e6dffc602dcb
         501a59a8fcc49c4bf2e5f0a21c0047c2abf332540dd032e167c2955d",
    );
    assert_eq!(out, expected);
    let mut end = bytes("1703030013c9872760655666b74d7ff1153efd6db6d0b0e3");
    assert_eq!(here.open(&mut end).unwrap(), Opened::End);
}

#[test]
fn data_go_both_ways_in_records_of_any_length() {
    for kind in ALL {
        let (mut server, mut client) = both(kind);
        for len in [1, 2, 15, 16, 17, 255, 4096, PLAINTEXT_MAX] {
            let text: Vec<u8> = (0..len).map(|n| u8::try_from(n % 251).unwrap()).collect();
            let mut out = Vec::new();
            client.seal_data(&text, &mut out).unwrap();
            assert!(out.len() <= text.len() + OVERHEAD_MAX);
            assert_eq!(data_of(&mut server, out), text, "{kind:?}");
            let mut out = Vec::new();
            server.seal_data(&text, &mut out).unwrap();
            assert_eq!(data_of(&mut client, out), text, "{kind:?}");
        }
        let long = vec![0; PLAINTEXT_MAX + 1];
        assert!(server.seal_data(&long, &mut Vec::new()).is_err());
    }
}

#[test]
fn a_record_that_is_changed_anywhere_is_refused() {
    for kind in ALL {
        let (_, mut client) = both(kind);
        let record = sealed(&mut client, DATA, b"DROP");
        for at in 0..record.len() {
            for bit in 0..8 {
                let mut changed = record.clone();
                changed[at] ^= 1 << bit;
                let (mut server, _) = both(kind);
                match len_of_record(&changed) {
                    Ok(Some(len)) if len == changed.len() => {
                        assert!(
                            refused(&mut server, changed).is_some(),
                            "{kind:?} {at} {bit}"
                        );
                    }
                    Ok(Some(_)) => assert!((3..5).contains(&at)),
                    Ok(None) => panic!("a whole header"),
                    Err(fault) => assert!(fault.alert.is_some() && at < 5),
                }
            }
        }
        // Too short to be any.
        for len in 0..TAG_LEN + EXPLICIT_LEN {
            let mut short = vec![DATA, 3, 3, 0, u8::try_from(len).unwrap()];
            short.resize(HEADER_LEN + len, 0);
            let (mut server, _) = both(kind);
            let alert = refused(&mut server, short);
            assert_eq!(alert, Some(AlertDescription::BadRecordMac));
        }
    }
}

#[test]
fn records_that_are_replayed_reordered_or_left_out_are_refused() {
    for kind in ALL {
        for order in [[0, 0], [1, 0], [0, 2], [2, 2]] {
            let (mut server, mut client) = both(kind);
            let all: Vec<_> = (0..3).map(|n| sealed(&mut client, DATA, &[n])).collect();
            if order[0] == 0 {
                assert_eq!(data_of(&mut server, all[0].clone()), [0]);
            }
            let next = usize::from(order[0] == 0);
            let alert = refused(&mut server, all[order[next]].clone());
            assert_eq!(alert, Some(AlertDescription::BadRecordMac), "{order:?}");
        }
        // What the server has said is nothing that a client says.
        let (mut server, _) = both(kind);
        let own = sealed(&mut server, DATA, b"echo");
        assert_eq!(
            refused(&mut server, own),
            Some(AlertDescription::BadRecordMac)
        );
    }
}

#[test]
fn headers_that_cannot_stand_here_are_refused_before_their_record_has_come() {
    let alert = |header: [u8; 5]| len_of_record(&header).unwrap_err().alert;
    for kind in [0, 19, 24, b'G', 0x80] {
        assert_eq!(
            alert([kind, 3, 3, 0, 32]),
            Some(AlertDescription::UnexpectedMessage)
        );
    }
    for (major, minor) in [(3, 1), (3, 4), (2, 3), (0, 0)] {
        let alert = alert([DATA, major, minor, 0, 32]);
        assert_eq!(alert, Some(AlertDescription::ProtocolVersion));
    }
    assert_eq!(
        len_of_record(&[DATA, 3, 3, 0x41, 0]).unwrap(),
        Some(RECORD_MAX)
    );
    assert_eq!(
        alert([DATA, 3, 3, 0x41, 1]),
        Some(AlertDescription::RecordOverflow)
    );
    assert_eq!(len_of_record(&[DATA, 3, 3, 0x41]).unwrap(), None);
}

#[test]
fn padding_is_taken_off_and_bounded() {
    for suite in [Suite::Aes128Gcm, Suite::Aes256Gcm, Suite::ChaCha20Poly1305] {
        let kind = (Version::V13, suite);
        let (mut server, mut client) = both(kind);
        for zeros in [0, 1, 100, 16_000] {
            let mut plain = b"data".to_vec();
            plain.push(DATA);
            plain.resize(plain.len() + zeros, 0);
            let record = sealed(&mut client, 0, &plain);
            assert_eq!(data_of(&mut server, record), b"data");
        }
        // Nothing but padding.
        let record = sealed(&mut client, 0, &[0; 40]);
        assert_eq!(
            refused(&mut server, record),
            Some(AlertDescription::UnexpectedMessage)
        );
    }
}

/// A record of as many bytes as the header allows, but of more plaintext than a record may have.
#[test]
fn more_plaintext_than_a_record_may_have_is_refused() {
    for kind in ALL {
        for (len, is_taken) in [(PLAINTEXT_MAX, true), (PLAINTEXT_MAX + 1, false)] {
            let (mut server, client) = both(kind);
            let keys = &client.writing;
            let is_explicit = has_explicit_nonce(kind.0, kind.1);
            let mut plain = vec![7; len];
            if kind.0 == Version::V13 {
                plain.push(DATA);
            }
            let body = plain.len() + TAG_LEN + if is_explicit { EXPLICIT_LEN } else { 0 };
            let [high, low] = u16::try_from(body).unwrap().to_be_bytes();
            let header = [DATA, 3, 3, high, low];
            let (aad, aad_len) = additional(kind.0, header, keys.seq, plain.len());
            let nonce = Nonce::assume_unique_for_key(keys.nonce());
            let cipher = keys.cipher(kind.1).unwrap();
            let tag = cipher
                .seal_in_place_separate_tag(nonce, Aad::from(&aad[..aad_len]), &mut plain)
                .unwrap();
            let mut record = header.to_vec();
            if is_explicit {
                record.extend_from_slice(&keys.nonce()[4..]);
            }
            record.extend_from_slice(&plain);
            record.extend_from_slice(tag.as_ref());
            if is_taken {
                assert_eq!(data_of(&mut server, record).len(), PLAINTEXT_MAX);
            } else {
                assert_eq!(
                    refused(&mut server, record),
                    Some(AlertDescription::RecordOverflow)
                );
            }
        }
    }
}

/// Opens a record that brings no data.
fn nothing(by: &mut Records, mut record: Vec<u8>) {
    assert_eq!(by.open(&mut record).unwrap(), Opened::Nothing);
}

/// The client changes its keys.
fn update(client: &mut Records, asks: u8) -> Vec<u8> {
    let record = sealed(client, HANDSHAKE, &[24, 0, 0, 1, asks]);
    client.writing = client.writing.next(client.suite).unwrap();
    record
}

#[test]
fn keys_are_updated_in_both_directions() {
    for suite in [Suite::Aes128Gcm, Suite::Aes256Gcm, Suite::ChaCha20Poly1305] {
        let (mut server, mut client) = both((Version::V13, suite));
        for round in 0..4 {
            let old = sealed(&mut client, DATA, b"old");
            assert_eq!(data_of(&mut server, old), b"old");
            nothing(&mut server, update(&mut client, 0));
            assert!(!server.owes());
            assert_eq!(server.reading.seq, 0);
            // Two requests while nothing can be said are answered by one update.
            nothing(&mut server, update(&mut client, 1));
            nothing(&mut server, update(&mut client, 1));
            assert!(server.owes());
            let text = [round];
            let record = sealed(&mut client, DATA, &text);
            assert_eq!(data_of(&mut server, record), text);
            let mut out = Vec::new();
            server.seal_data(b"answer", &mut out).unwrap();
            assert!(!server.owes());
            assert_eq!(server.writing.seq, 1);
            let len = len_of_record(&out).unwrap().unwrap();
            let (update, answer) = out.split_at_mut(len);
            assert_eq!(client.open(update).unwrap(), Opened::Nothing);
            assert!(!client.owes(), "an answer asks for nothing");
            assert_eq!(data_of(&mut client, answer.to_vec()), b"answer");
        }
        // A record of the keys before.
        let old = sealed(&mut client, DATA, b"old");
        let mut again = client.writing.next(suite).unwrap();
        std::mem::swap(&mut client.writing, &mut again);
        nothing(&mut server, {
            std::mem::swap(&mut client.writing, &mut again);
            client.writing.seq -= 1;
            sealed(&mut client, HANDSHAKE, &[24, 0, 0, 1, 0])
        });
        assert_eq!(
            refused(&mut server, old),
            Some(AlertDescription::BadRecordMac)
        );
    }
}

#[test]
fn an_update_may_come_in_pieces_with_nothing_between_or_behind() {
    let (mut server, mut client) = both(V13);
    for byte in [24, 0, 0, 1] {
        let piece = sealed(&mut client, HANDSHAKE, &[byte]);
        nothing(&mut server, piece);
        assert_ne!(server.reading.seq, 0);
    }
    nothing(&mut server, {
        let record = sealed(&mut client, HANDSHAKE, &[1]);
        client.writing = client.writing.next(client.suite).unwrap();
        record
    });
    assert!(server.owes() && server.reading.seq == 0);
    let record = sealed(&mut client, DATA, b"new");
    assert_eq!(data_of(&mut server, record), b"new");
    let expected = |first: &[&[u8]], last: (u8, &[u8])| {
        let (mut server, mut client) = both(V13);
        for piece in first {
            let piece = sealed(&mut client, HANDSHAKE, piece);
            nothing(&mut server, piece);
        }
        let record = sealed(&mut client, last.0, last.1);
        refused(&mut server, record).unwrap()
    };
    let unexpected = AlertDescription::UnexpectedMessage;
    // Data or an alert between two pieces.
    assert_eq!(expected(&[&[24, 0]], (DATA, b"x")), unexpected);
    assert_eq!(expected(&[&[24, 0]], (DATA, b"")), unexpected);
    assert_eq!(expected(&[&[24]], (ALERT, &[1, 0])), unexpected);
    // Two of them, or something behind one, in a record whose key is old by then.
    let two = [24, 0, 0, 1, 0, 24, 0, 0, 1, 0];
    assert_eq!(expected(&[], (HANDSHAKE, &two)), unexpected);
    assert_eq!(expected(&[], (HANDSHAKE, &two[..6])), unexpected);
    // Other messages, other lengths, nothing.
    for message in [
        &[4, 0, 0, 1, 0][..],
        &[1],
        &[24, 0, 0, 2, 0, 0],
        &[24, 1],
        &[],
    ] {
        assert_eq!(expected(&[], (HANDSHAKE, message)), unexpected);
    }
    assert_eq!(
        expected(&[], (HANDSHAKE, &[24, 0, 0, 1, 2])),
        AlertDescription::IllegalParameter
    );
    for kind in [CHANGE_CIPHER_SPEC, 24, 0xff] {
        assert_eq!(expected(&[], (kind, &[1])), unexpected);
    }
    // What is not sealed at all.
    for kind in [CHANGE_CIPHER_SPEC, ALERT, HANDSHAKE] {
        let (mut server, _) = both(V13);
        let alert = refused(&mut server, vec![kind, 3, 3, 0, 1, 1]);
        assert_eq!(alert, Some(unexpected));
    }
}

#[test]
fn records_without_data_are_bounded_and_data_begin_the_count_again() {
    for kind in ALL {
        for how in 0..3 {
            let (mut server, mut client) = both(kind);
            let fruitless = |client: &mut Records| match (how, kind.0) {
                (0, _) => sealed(client, DATA, b""),
                (1, Version::V13) => update(client, 1),
                (1, Version::V12) => sealed(client, ALERT, &[WARNING, 41]),
                _ => sealed(client, ALERT, &[WARNING, USER_CANCELED]),
            };
            for _ in 0..2 {
                for _ in 0..FRUITLESS_MAX {
                    nothing(&mut server, fruitless(&mut client));
                }
                let record = sealed(&mut client, DATA, b"x");
                assert_eq!(data_of(&mut server, record), b"x");
            }
            for _ in 0..FRUITLESS_MAX {
                nothing(&mut server, fruitless(&mut client));
            }
            let alert = refused(&mut server, fruitless(&mut client));
            assert_eq!(alert, Some(AlertDescription::UnexpectedMessage));
        }
    }
}

#[test]
fn alerts_end_the_connection_or_are_passed_over() {
    let opened = |kind, content: &[u8]| {
        let (mut server, mut client) = both(kind);
        let mut record = sealed(&mut client, ALERT, content);
        let opened = server.open(&mut record);
        opened.map_err(|fault| {
            assert!(server.is_over());
            (fault.alert, fault.error)
        })
    };
    for kind in ALL {
        for level in [WARNING, FATAL] {
            assert_eq!(opened(kind, &[level, CLOSE_NOTIFY]), Ok(Opened::End));
        }
        let died = Err((
            None,
            Error::AlertReceived(AlertDescription::HandshakeFailure),
        ));
        assert_eq!(opened(kind, &[FATAL, 40]), died);
        // TLS 1.3 knows no warnings but two.
        let warned = opened(kind, &[WARNING, 40]);
        assert_eq!(
            warned,
            if kind.0 == Version::V12 {
                Ok(Opened::Nothing)
            } else {
                died
            }
        );
        assert_eq!(opened(kind, &[WARNING, USER_CANCELED]), Ok(Opened::Nothing));
        for (content, alert) in [
            (&[][..], AlertDescription::DecodeError),
            (&[1], AlertDescription::DecodeError),
            (&[1, 0, 0], AlertDescription::DecodeError),
            (&[3, 0], AlertDescription::IllegalParameter),
        ] {
            assert_eq!(opened(kind, content).unwrap_err().0, Some(alert));
        }
    }
}

#[test]
fn another_handshake_is_refused_and_the_connection_goes_on() {
    let (mut server, mut client) = both(V12);
    let hello = [1, 0, 0, 3, 3, 3, 0];
    let record = sealed(&mut client, HANDSHAKE, &hello);
    nothing(&mut server, record);
    assert!(server.owes());
    let mut out = Vec::new();
    server.answer(&mut out).unwrap();
    assert!(!server.owes());
    assert_eq!(out[0], ALERT);
    let (kind, plain) = client.decrypt(&mut out).unwrap();
    assert_eq!(
        (kind, &out[plain]),
        (ALERT, &[WARNING, NO_RENEGOTIATION][..])
    );
    let record = sealed(&mut client, DATA, b"goes on");
    assert_eq!(data_of(&mut server, record), b"goes on");
    let record = sealed(&mut client, HANDSHAKE, &hello);
    assert_eq!(
        refused(&mut server, record),
        Some(AlertDescription::HandshakeFailure)
    );
    for other in [
        &hello[..3],
        &hello[..6],
        &[0, 0, 0, 0],
        &[24, 0, 0, 1, 0],
        &[],
    ] {
        let (mut server, mut client) = both(V12);
        let record = sealed(&mut client, HANDSHAKE, other);
        assert_eq!(
            refused(&mut server, record),
            Some(AlertDescription::UnexpectedMessage)
        );
    }
    let (mut server, mut client) = both(V12);
    let record = sealed(&mut client, CHANGE_CIPHER_SPEC, &[1]);
    assert_eq!(
        refused(&mut server, record),
        Some(AlertDescription::UnexpectedMessage)
    );
}

#[test]
fn a_key_that_has_sealed_enough_is_changed_or_the_connection_ends() {
    // The last record that a key may seal, and the first that it may not.
    let text = [7; 100];
    for kind in ALL
        .into_iter()
        .filter(|kind| kind.1 != Suite::ChaCha20Poly1305)
    {
        let (mut server, mut client) = both(kind);
        server.blocks = server.limit() - blocks_of(text.len());
        let mut out = Vec::new();
        server.seal_data(&text, &mut out).unwrap();
        assert_eq!(data_of(&mut client, out), text);
        assert_eq!(server.blocks, server.limit());
        let mut out = Vec::new();
        let result = server.seal_data(&text, &mut out);
        if kind.0 == Version::V12 {
            assert!(result.is_err() && server.is_over());
            assert_eq!(client.open(&mut out).unwrap(), Opened::End);
            assert!(server.seal_data(&text, &mut Vec::new()).is_err());
            continue;
        }
        result.unwrap();
        let len = len_of_record(&out).unwrap().unwrap();
        nothing(&mut client, out.drain(..len).collect());
        assert_eq!(data_of(&mut client, out), text);
        assert_eq!(server.blocks, blocks_of(text.len()));
    }
    assert_eq!(BLOCKS_PER_KEY_MAX, 1 << 34, "RFC 8446, 5.5");
    assert_eq!(blocks_of(PLAINTEXT_MAX), 1027);
    // The counter does not begin again.
    for kind in ALL {
        let (mut server, mut client) = both(kind);
        server.writing.seq = u64::MAX;
        assert!(server.seal_data(b"x", &mut Vec::new()).is_err());
        assert_eq!(server.writing.seq, u64::MAX);
        client.writing.seq = u64::MAX - 1;
        server.reading.seq = u64::MAX;
        let record = sealed(&mut client, DATA, b"x");
        assert!(server.open(&mut record.clone()).is_err());
    }
}

/// Each record that goes out has its own nonce, also where sealing fails or ends.
#[test]
fn no_nonce_is_used_twice() {
    for kind in ALL {
        let (mut server, mut client) = both(kind);
        let mut seen = BTreeSet::new();
        for round in 0..200u32 {
            let nonce = (server.writing.key, server.writing.nonce());
            assert!(seen.insert(nonce), "{kind:?} {round}");
            let mut out = Vec::new();
            if round % 7 == 3 {
                let _ = server.seal(DATA, &[0; PLAINTEXT_MAX + 1], &mut out);
                assert!(out.is_empty());
            }
            if round % 50 == 49 && kind.0 == Version::V13 {
                nothing(&mut server, update(&mut client, 1));
                server.answer(&mut out).unwrap();
                nothing(&mut client, out.clone());
                let record = sealed(&mut client, DATA, b"x");
                data_of(&mut server, record);
                continue;
            }
            server.seal_data(b"the same text", &mut out).unwrap();
            if has_explicit_nonce(kind.0, kind.1) {
                assert_eq!(out[5..13], nonce.1[4..]);
            }
            assert_eq!(data_of(&mut client, out), b"the same text");
        }
    }
}

#[test]
fn secrets_are_not_shown() {
    let (mut server, _) = both(V13);
    server.reading.iv = [0xab; IV_LEN];
    assert_eq!(
        format!("{server:?}"),
        "Records of V13 Aes128Gcm: Keys at record 5, Keys at record 9"
    );
}

/// The secrets of one handshake.
#[derive(Debug, Default)]
struct Log(Mutex<Vec<(String, Vec<u8>)>>);

impl Log {
    fn of(&self, label: &str) -> Vec<u8> {
        let all = self.0.lock().unwrap();
        let found = all.iter().find(|(known, _)| known == label);
        found.map_or_else(Vec::new, |(_, secret)| secret.clone())
    }
}

impl KeyLog for Log {
    fn log(&self, label: &str, _: &[u8], secret: &[u8]) {
        let mut all = self.0.lock().unwrap();
        all.push((label.to_owned(), secret.to_vec()));
    }
}

/// State of a server behind its handshake with a client of this suite.
fn shaken(
    suite: SupportedCipherSuite,
) -> (
    ClientConnection,
    Option<ProtocolVersion>,
    ExtractedSecrets,
    Arc<Log>,
) {
    let mut provider = aws_lc_rs::default_provider();
    provider.cipher_suites = vec![suite];
    let config = ClientConfig::builder_with_provider(provider.clone().into())
        .with_safe_default_protocol_versions()
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(crate::SkipVerification::new(provider.into())))
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    let mut client = ClientConnection::new(Arc::new(config), name).unwrap();
    let log = Arc::new(Log::default());
    let mut config = server_config();
    config.enable_secret_extraction = true;
    config.key_log = log.clone();
    let mut server = ServerConnection::new(Arc::new(config)).unwrap();
    talk(&mut client, &mut server);
    assert!(!client.is_handshaking() && !server.is_handshaking());
    let version = server.protocol_version();
    (
        client,
        version,
        server.dangerous_extract_secrets().unwrap(),
        log,
    )
}

/// Rustls as the peer: every suite that it has, both versions, with updates on either side.
#[test]
fn rustls_understands_what_is_sealed_and_is_understood() {
    let all = [
        suites::TLS13_AES_128_GCM_SHA256,
        suites::TLS13_AES_256_GCM_SHA384,
        suites::TLS13_CHACHA20_POLY1305_SHA256,
        suites::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
        suites::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
        suites::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
    ];
    for suite in all {
        let (mut client, version, extracted, log) = shaken(suite);
        let (of_client, of_server) = (
            log.of("CLIENT_TRAFFIC_SECRET_0"),
            log.of("SERVER_TRAFFIC_SECRET_0"),
        );
        let secrets = Secrets {
            client: &of_client,
            server: &of_server,
        };
        let mut server = Records::new(version, extracted, &secrets).unwrap();
        let is_13 = server.version == Version::V13;
        for round in 0..20u8 {
            if is_13 && round % 5 == 2 {
                client.refresh_traffic_keys().unwrap();
            }
            if is_13 && round % 5 == 4 {
                // As after 2^34 blocks.
                server.blocks = server.limit();
            }
            let text = vec![round; 1 + 700 * usize::from(round)];
            client.writer().write_all(&text).unwrap();
            let mut there = Vec::new();
            while client.wants_write() {
                client.write_tls(&mut there).unwrap();
            }
            let mut got = Vec::new();
            while let Ok(Some(len)) = len_of_record(&there) {
                let mut record: Vec<u8> = there.drain(..len).collect();
                if let Opened::Data(range) = server.open(&mut record).unwrap() {
                    got.extend_from_slice(&record[range]);
                }
            }
            assert!(got == text && there.is_empty());
            let mut back = Vec::new();
            for piece in text.chunks(PLAINTEXT_MAX) {
                server.seal_data(piece, &mut back).unwrap();
            }
            let mut back = &back[..];
            while !back.is_empty() {
                client.read_tls(&mut back).unwrap();
                client.process_new_packets().unwrap();
            }
            let mut got = vec![0; text.len()];
            client.reader().read_exact(&mut got).unwrap();
            assert!(got == text);
        }
        let mut end = Vec::new();
        server.seal_alert(AlertDescription::CloseNotify, &mut end);
        client.read_tls(&mut &end[..]).unwrap();
        assert!(client.process_new_packets().unwrap().peer_has_closed());
    }
}

/// Without them a KeyUpdate would end in garbage, at a time that nobody can foresee.
#[test]
fn secrets_that_are_not_those_of_the_keys_are_refused() {
    let suite = suites::TLS13_AES_128_GCM_SHA256;
    for how in 0..4 {
        let (_, version, extracted, log) = shaken(suite);
        let mut client = log.of("CLIENT_TRAFFIC_SECRET_0");
        let mut server = log.of("SERVER_TRAFFIC_SECRET_0");
        match how {
            0 => client[0] ^= 1,
            1 => std::mem::swap(&mut client, &mut server),
            2 => server.clear(),
            _ => server.push(0),
        }
        let secrets = Secrets {
            client: &client,
            server: &server,
        };
        assert!(Records::new(version, extracted, &secrets).is_err(), "{how}");
    }
    let (_, _, extracted, _) = shaken(suite);
    let secrets = Secrets {
        client: &[],
        server: &[],
    };
    assert!(Records::new(None, extracted, &secrets).is_err());
}

/// Records as they go on in another process.
fn elsewhere(records: &Records) -> Records {
    let mut out = Vec::new();
    records.put(&mut out);
    let mut rest = &out[..];
    let there = Records::read(&mut rest).unwrap();
    assert!(rest.is_empty());
    let mut again = Vec::new();
    there.put(&mut again);
    assert_eq!(out, again);
    there
}

#[test]
fn a_connection_goes_on_in_another_process_at_any_record() {
    for kind in ALL {
        let (mut server, mut client) = both(kind);
        for round in 0..12 {
            server = elsewhere(&server);
            client = elsewhere(&client);
            if round % 3 == 1 && kind.0 == Version::V13 {
                // In the middle of an update too.
                nothing(&mut server, sealed(&mut client, HANDSHAKE, &[24, 0]));
                server = elsewhere(&server);
                nothing(&mut server, sealed(&mut client, HANDSHAKE, &[0, 1, 1]));
                client.writing = client.writing.next(kind.1).unwrap();
                assert!(!server.is_settled(), "an answer is owed");
                let mut out = Vec::new();
                server.answer(&mut out).unwrap();
                nothing(&mut client, out);
                assert!(server.is_settled());
                server = elsewhere(&server);
            }
            let text = [round; 40];
            let record = sealed(&mut client, DATA, &text);
            assert_eq!(data_of(&mut server, record), text);
            let mut out = Vec::new();
            server.seal_data(&text, &mut out).unwrap();
            assert_eq!(data_of(&mut client, out), text);
        }
        // What was counted there counts here.
        for _ in 0..FRUITLESS_MAX {
            server = elsewhere(&server);
            nothing(&mut server, sealed(&mut client, DATA, b""));
        }
        server = elsewhere(&server);
        assert!(refused(&mut server, sealed(&mut client, DATA, b"")).is_some());
        assert!(!server.is_settled());
    }
    let (mut server, mut client) = both(V12);
    let hello = [1, 0, 0, 1, 3];
    nothing(&mut server, sealed(&mut client, HANDSHAKE, &hello));
    server.answer(&mut Vec::new()).unwrap();
    server.blocks = server.limit();
    server = elsewhere(&server);
    assert!(refused(&mut server, sealed(&mut client, HANDSHAKE, &hello)).is_some());
    let (mut server, _) = both(V12);
    server.blocks = server.limit();
    assert!(elsewhere(&server).seal_data(b"x", &mut Vec::new()).is_err());
}

#[test]
fn what_is_no_connection_is_refused() {
    for kind in ALL {
        let (server, _) = both(kind);
        let mut out = Vec::new();
        server.put(&mut out);
        for len in 0..out.len() {
            assert!(Records::read(&mut &out[..len]).is_none(), "{kind:?} {len}");
        }
        let with = |at: usize, byte: u8| {
            let mut changed = out.clone();
            changed[at] = byte;
            Records::read(&mut &changed[..]).is_some()
        };
        // Forms, versions and suites that nobody knows here.
        for byte in (0..=255).filter(|byte| *byte != FORM) {
            assert!(!with(0, byte));
        }
        for byte in (0..=255).filter(|byte| ![2, 3].contains(byte)) {
            assert!(!with(1, byte));
        }
        for byte in (0..=255).filter(|byte| ![1, 2, 3].contains(byte)) {
            assert!(!with(2, byte));
        }
        let len = out.len();
        assert!(with(len - 3, FRUITLESS_MAX) && !with(len - 3, FRUITLESS_MAX + 1));
        let is_12 = kind.0 == Version::V12;
        assert!(with(len - 2, u8::from(is_12)) && !with(len - 2, 2));
        assert_eq!(with(len - 2, 1), is_12);
        assert!(with(len - 1, if is_12 { 0 } else { 4 }));
        assert!(!with(len - 1, if is_12 { 1 } else { 5 }));
        let is_gcm = kind.1 != Suite::ChaCha20Poly1305;
        assert_eq!(with(len - 11, 0xff), !is_gcm, "blocks");
    }
}
