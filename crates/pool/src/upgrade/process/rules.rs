//! Rules of administrators, which the process that takes over follows as well.
//!
//! The old process sends them before the first client goes, and again when they have changed: the
//! console is its own until it ends.

use crate::config::UserLimit;
use crate::config::reload::{limits_of_users, set_of_user};
use crate::group::shared::Shared;
use crate::limits::rules;
use crate::observe::log::{Event, note};
use crate::upgrade::frames::Frame;
use reactor::Time;
use session::record::{Read, put_list, read_list, read_text};
use wire::packet::{Reader, put_lenenc_bytes};

/// All rules of this process, as a message.
pub(crate) fn message(shared: &Shared) -> Frame {
    let mut out = Vec::new();
    rules::put(&mut out, &shared.rules.get(), Time::now());
    put_list(&mut out, limits_of_users(shared).iter(), |out, limit| {
        let value = limit.value.as_deref().unwrap_or_default();
        for text in [&*limit.user, &*limit.name, value] {
            put_lenenc_bytes(out, text.as_bytes());
        }
    });
    Frame::Rules(out)
}

/// Follows the rules of the process before.
pub(crate) fn take_over(shared: &Shared, bytes: &[u8]) {
    let reader = &mut Reader::new(bytes);
    let read = rules::read(reader, Time::now()).and_then(|rules| Ok((rules, limits(reader)?)));
    let wrong = |why: &dyn std::fmt::Display| {
        let text = format_args!("a rule of the process before does not hold here: {why}");
        note(Event::UpgradeFailed, text);
    };
    let (rules, limits) = match read {
        Ok(read) => read,
        Err(why) => return wrong(&why),
    };
    shared.rules.take_over(rules);
    let before = limits_of_users(shared);
    let gone = before.iter().filter(|limit| {
        let is_same = |other: &UserLimit| (&other.user, &other.name) == (&limit.user, &limit.name);
        !limits.iter().any(is_same)
    });
    let gone = gone.map(|limit| UserLimit {
        value: None,
        ..limit.clone()
    });
    let new = limits.iter().filter(|limit| !before.contains(limit));
    for limit in gone.chain(new.cloned()) {
        if let Err(why) = set_of_user(shared, &limit.user, &limit.name, limit.value.as_deref()) {
            wrong(&why);
        }
    }
}

fn limits(reader: &mut Reader<'_>) -> Read<Vec<UserLimit>> {
    let text = |reader: &mut Reader<'_>| -> Read<String> {
        let text = read_text(reader, "a text")?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    };
    read_list(reader, "limits", |reader| {
        Ok(UserLimit {
            user: text(reader)?,
            name: text(reader)?,
            value: Some(text(reader)?),
        })
    })
}
