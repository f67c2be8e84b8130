//! Logins: greeting, answer, change of plugin and user, and the client's state machine.
//!
//! Both sides speak before anybody has proven who they are. What is read must be written as the
//! same, and no server may lead a client to say the password where others can listen.

use wire::auth::Credential;
use wire::auth::{NONCE_LEN, Nonce, Plugin, native};
use wire::capabilities as cap;
use wire::client_login::{Account, COLLATION, ClientLogin, Progress};
use wire::handshake::{AuthSwitch, ChangeUser, Greeting, Login, put_auth_switch};
use wire::packet::{Frame, HEADER_LEN, frame, join_payload};

/// Reads a greeting, or the server's request for another plugin.
pub(super) fn greeting(data: &[u8]) {
    if let Ok(greeting) = Greeting::read(data) {
        let mut out = Vec::new();
        greeting.put(&mut out);
        assert!(matches!(frame(&out), Frame::Whole { total, last_seq: 0 } if total == out.len()));
        assert_eq!(Greeting::read(&out[HEADER_LEN..]).as_ref(), Ok(&greeting));
    }
    if let Ok(switch) = AuthSwitch::read(data)
        && let (Some(nonce), Ok(plugin)) = (switch.nonce(), std::str::from_utf8(switch.plugin))
    {
        let mut out = Vec::new();
        put_auth_switch(&mut out, 2, plugin, &nonce);
        let again = AuthSwitch::read(&out[HEADER_LEN..]).expect("what we write we read");
        assert_eq!((again.plugin, again.nonce()), (switch.plugin, Some(nonce)));
        let spoken = Plugin::from_name(switch.plugin);
        assert!(spoken.is_none_or(|spoken| spoken.name() == plugin));
    }
}

/// Reads a client's login, COM_CHANGE_USER's arguments, or a stored hash.
pub(super) fn login(data: &[u8]) {
    if let Ok(login) = Login::read(data) {
        // Of the three forms that an answer may have we write one.
        let capabilities = login.capabilities | cap::PLUGIN_AUTH_LENENC_DATA;
        let login = Login {
            capabilities,
            ..login
        };
        let mut out = Vec::new();
        login.put(&mut out, 1);
        assert_eq!(Login::read(&out[HEADER_LEN..]).as_ref(), Ok(&login));
        let without = (cap::CONNECT_WITH_DB, cap::PLUGIN_AUTH);
        assert!(capabilities & without.0 != 0 || login.schema.is_empty());
        assert!(capabilities & without.1 != 0 || login.plugin.is_empty());
    }
    if let Ok(change) = ChangeUser::read(data) {
        let mut front = change.user.to_vec();
        front.push(0);
        assert!(data.starts_with(&front));
        assert!(!change.schema.contains(&0));
    }
    if let Ok(text) = std::str::from_utf8(data)
        && let Some(hash) = native::stored_from_text(text)
    {
        let digits: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(text.to_ascii_lowercase(), format!("*{digits}"));
    }
}

const PASSWORD: &[u8] = b"not to be said aloud";

/// Reads a server's packets up to its OK; the first byte says whether others can listen.
pub(super) fn client_login(data: &[u8]) {
    let Some((&how, mut stream)) = data.split_first() else {
        return;
    };
    let account = Account {
        user: b"app",
        credential: Credential::Password(if how & 2 == 0 { PASSWORD } else { b"" }),
        schema: b"shop",
        private: how & 1 != 0,
        wanted: cap::OFFERED,
        extended: 0,
        required: if how & 4 == 0 { cap::PROTOCOL_41 } else { 0 },
        collation: COLLATION,
        server_key: wire::client_login::ServerKey::Sent,
    };
    proofs(stream);
    let mut login = ClientLogin::new();
    let mut payload = Vec::new();
    while let Frame::Whole { total, last_seq } = frame(stream) {
        payload.clear();
        join_payload(&stream[..total], &mut payload);
        stream = &stream[total..];
        let mut out = Vec::new();
        let progress = login.on_packet(&account, last_seq, &payload, &mut out);
        let aloud = out.windows(PASSWORD.len()).any(|part| part == PASSWORD);
        assert!(account.private || !aloud, "the password was said aloud");
        if !out.is_empty() {
            let expected = (out.len(), last_seq.wrapping_add(1));
            let found = match frame(&out) {
                Frame::Whole { total, .. } => (total, out[3]),
                other => panic!("half an answer: {other:?}"),
            };
            assert_eq!(found, expected, "one packet, with the number that follows");
        }
        match progress {
            Ok(Progress::Waits) => {}
            Ok(Progress::Done) => return assert!(out.is_empty(), "an answer to OK"),
            Err(error) => return assert!(!error.to_string().is_empty()),
        }
    }
}

/// Checks that an answer proves the password that it was made of, and no other.
fn proofs(data: &[u8]) {
    let Some((nonce, password)) = data.split_first_chunk::<NONCE_LEN>() else {
        return;
    };
    let nonce: &Nonce = nonce;
    let stored = native::stored(password);
    assert!(native::verify(
        &native::answer(password, nonce),
        nonce,
        &stored
    ));
    assert!(!native::verify(password, nonce, &stored));
}
