//! Commands of an administrator, and how each is carried out.
//!
//! Invariant: clients that one command ends are asked for [`KILLS_AT_ONCE`] at a time, so that no
//! group looks for thousands of them in one turn; each is ended only if what chose it still holds.

use super::Console;
use crate::auth::network::Network;
use crate::config::reload;
use crate::group::shared::Order;
use crate::limits::rules::{AT_ONCE_MAX, Effect, MESSAGE_MAX, SECONDS_MAX};
use crate::observe::figures::Stage;
use crate::observe::listing::{ClientLine, Said, Wanted};
use crate::observe::log::Peer;
use crate::server::fleet::Fleet;
use crate::statements::kill::jobs::KillEnd;
use console::{Action, Refused, Victims};
use reactor::Time;
use session::elsewhere::{Why, place_of};
use session::plan::statement_of;
use session::state::Session;
use sql::classify::classify;
use sql::elsewhere::tie;
use sql::lex::Charset;
use std::collections::BTreeSet;
use std::time::Duration;

/// A KILL of a client elsewhere that has not ended after this time is not waited for: each takes
/// about a second, behind those that wait.
const ELSEWHERE_MAX: Duration = Duration::from_secs(10);
/// Clients that all groups are asked to end at once.
const KILLS_AT_ONCE: usize = 50;
/// Hexadecimal digits of a whole digest.
const DIGEST_LEN: usize = 16;
/// Digests that are named where a beginning fits several.
const NAMED_MAX: usize = 5;

/// The digest that was meant by these digits: a whole one, or the only one that begins so of those
/// that are `known`. A whole one needs no answer of groups that may be busy.
fn digest_of(
    written: &str,
    known: impl FnOnce() -> Result<BTreeSet<u64>, String>,
) -> Result<u64, String> {
    // SHOW may have cut it.
    let digits = written.trim_end_matches("..").to_ascii_lowercase();
    let whole = u64::from_str_radix(&digits, 16);
    let is_hex = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let Some(whole) = whole.ok().filter(|_| is_hex && digits.len() <= DIGEST_LEN) else {
        return Err(format!(
            "expected up to {DIGEST_LEN} hexadecimal digits, as SHOW STATEMENTS has them, got \
             '{written}'"
        ));
    };
    if digits.len() == DIGEST_LEN {
        return Ok(whole);
    }
    let known = known()?;
    let names = known.iter().map(|digest| format!("{digest:016x}"));
    let found: Vec<String> = names.filter(|name| name.starts_with(&digits)).collect();
    match &found[..] {
        [one] => Ok(u64::from_str_radix(one, 16).unwrap_or(whole)),
        [] => Err(format!(
            "no digest that is known begins with '{digits}': see SHOW STATEMENTS and SHOW RULES, \
             or write all {DIGEST_LEN} digits"
        )),
        several => Err(format!(
            "{} digests begin with '{digits}': {}; write more digits",
            several.len(),
            several[..several.len().min(NAMED_MAX)].join(", ")
        )),
    }
}

/// End of a rule that was given so many seconds.
fn until(seconds: Option<u64>) -> Result<Time, String> {
    match seconds {
        None => Ok(Time::NEVER),
        Some(seconds @ 1..=SECONDS_MAX) => Ok(Time::now() + Duration::from_secs(seconds)),
        Some(other) => Err(format!(
            "FOR: expected 1 to {SECONDS_MAX} seconds, got {other}"
        )),
    }
}

/// Ends a client of another pool of the fleet, or its statement.
fn elsewhere(fleet: &Fleet, id: u32, query: bool) -> Result<KillEnd, Refused> {
    let Some(end) = fleet.pass_on_for_console(id, query) else {
        return Err("too many KILLs of clients of other pools wait"
            .to_owned()
            .into());
    };
    let late = |_| {
        let seconds = ELSEWHERE_MAX.as_secs();
        Refused::Late(format!(
            "no other pool of the fleet has answered within {seconds} s; one may still do it"
        ))
    };
    end.recv_timeout(ELSEWHERE_MAX).map_err(late)
}

/// True if a client is one of those that a command is about.
fn is_meant(client: &ClientLine, victims: &Victims, from: Option<Network>) -> bool {
    match victims {
        Victims::User(name) => client.user.as_ref() == Some(name),
        Victims::Address(_) => match (client.address, from) {
            (Peer::Tcp(address), Some(network)) => network.contains(address.ip()),
            _ => false,
        },
        Victims::IdleTransactions(seconds) => {
            client.state == Stage::Holding.name()
                && client.transaction.is_some()
                && client.state_seconds >= *seconds as f64
        }
    }
}

impl Console {
    /// Carries a command out, and says what was done.
    pub(super) fn carry_out(&self, action: &Action) -> Result<String, Refused> {
        let shared = &self.shared;
        let done = match action {
            Action::Pause => self.pause(true),
            Action::Resume => self.pause(false),
            Action::Drain | Action::Shutdown => Ok("the pool is ending".into()),
            Action::Kill { id, query } => return self.kill(*id, *query),
            Action::KillAll { victims, query } => return self.kill_all(victims, *query),
            Action::Reject {
                digest,
                message,
                seconds,
            } => self.reject(digest, message, *seconds),
            Action::Limit {
                digest,
                max,
                seconds,
            } => self.limit(digest, *max, *seconds),
            Action::Allow { digest } => self.allow(digest),
            Action::UserLimit { user, name, value } => {
                reload::set_of_user(shared, user, name, value.as_deref())
            }
            Action::Reconnect => {
                Order::Reconnect.tell_all(&self.groups);
                Ok("connections to the server are replaced, each when its client has done".into())
            }
            Action::SwitchTo(name) => self.switch_to(name),
            Action::Route(text) => self.route(text),
            Action::Fenced(name) => {
                let why =
                    Some("an operator has vouched that it takes no writes (UNFENCED ends that)");
                let fenced = self.cluster().and_then(|cluster| cluster.fence(name, why));
                fenced.map(|()| format!("'{name}' is taken to take no writes"))
            }
            Action::Unfenced(name) => {
                let unfenced = self.cluster().and_then(|cluster| cluster.fence(name, None));
                unfenced.map(|()| format!("'{name}' is what it says of itself"))
            }
            Action::Reload => reload::reload(shared),
            Action::Set { name, value } => reload::set(shared, name, value.as_deref()),
        };
        done.map_err(Refused::from)
    }

    /// Says where a client's statement would go that stands in no transaction and has asked for
    /// readers.
    fn route(&self, text: &str) -> Result<String, String> {
        let reads = self.cluster()?.reads();
        let server = &self.shared.server;
        let mut mode = server.lex_mode(&Session::default(), 0);
        // In a character set that is not known nothing is a SELECT.
        mode.charset = Charset::Utf8;
        let class = classify(text.as_bytes(), mode);
        let found = statement_of(&class, mode).found;
        let tie = || tie(text.as_bytes(), mode);
        let why = match place_of((text.as_bytes(), mode), tie, None, (&class, found)) {
            why if !why.is_elsewhere() => why,
            _ if !reads.list().takes_reads() => Why::NoReader,
            why => why,
        };
        let place = if why.is_elsewhere() {
            "a reader"
        } else {
            "the writer"
        };
        Ok(format!("{place}: {}", why.clause()))
    }

    fn reject(&self, digest: &str, message: &str, seconds: Option<u64>) -> Result<String, String> {
        if message.len() > MESSAGE_MAX {
            return Err(format!(
                "WITH: expected at most {MESSAGE_MAX} bytes, got {}",
                message.len()
            ));
        }
        let digest = digest_of(digest, || self.digests())?;
        let effect = Effect::Reject(message.to_owned());
        (self.shared.scheduling.rules).set(digest, effect, until(seconds)?)?;
        Ok(format!("statements of digest {digest:016x} get error 9512"))
    }

    fn limit(&self, digest: &str, max: u64, seconds: Option<u64>) -> Result<String, String> {
        let wrong =
            || format!("TO: expected 1 to {AT_ONCE_MAX}, got {max}; REJECT DIGEST allows none");
        let at_once = usize::try_from(max)
            .ok()
            .filter(|max| (1..=AT_ONCE_MAX).contains(max));
        let at_once = at_once.ok_or_else(wrong)?;
        let digest = digest_of(digest, || self.digests())?;
        let effect = Effect::Limit(at_once);
        (self.shared.scheduling.rules).set(digest, effect, until(seconds)?)?;
        Ok(format!(
            "statements of digest {digest:016x} beyond {max} at once get error 9513"
        ))
    }

    fn allow(&self, digest: &str) -> Result<String, String> {
        let digest = digest_of(digest, || {
            Ok(self.shared.scheduling.rules.get().keys().copied().collect())
        })?;
        match self.shared.scheduling.rules.allow(digest) {
            true => Ok(format!("statements of digest {digest:016x} run again")),
            false => Err(format!(
                "there is no rule for digest {digest:016x} (SHOW RULES)"
            )),
        }
    }

    /// Digests that the tables show.
    fn digests(&self) -> Result<BTreeSet<u64>, String> {
        let mut known: BTreeSet<u64> = self.shared.scheduling.rules.get().keys().copied().collect();
        known.extend(self.list(true)?.iter().map(|client| client.digest));
        if let Some(pool) = &self.sample().pool {
            let counted = pool.total.figures.digests.list();
            known.extend(counted.iter().map(|(digest, _)| *digest));
        }
        known.remove(&0);
        Ok(known)
    }

    fn kill(&self, number: u64, query: bool) -> Result<String, Refused> {
        let Ok(id) = u32::try_from(number) else {
            return Err(self.unknown(number));
        };
        let group = self.shared.group_of_client(id);
        let idle_for = None;
        let wanted = Wanted::Kill {
            id,
            query,
            idle_for,
        };
        let said = self.ask(group, wanted).map_err(Refused::Late)?;
        let end = match (said, &self.shared.connections.fleet) {
            (Said::Killed(KillEnd::Unknown(_)), Some(fleet)) => elsewhere(fleet, id, query)?,
            (Said::Killed(end), _) => end,
            _ => return Err(self.unknown(number)),
        };
        match end {
            KillEnd::Done if query => Ok(format!("the statement of client {id} is being ended")),
            KillEnd::Done => Ok(format!("client {id} is closed")),
            KillEnd::Failed(why) => Err(why.into()),
            _ => Err(self.unknown(number)),
        }
    }

    /// Refuses a number that no client has.
    fn unknown(&self, number: u64) -> Refused {
        let why = match self.shared.connections.fleet {
            Some(_) => "SHOW CLIENTS of each pool of the fleet has the ids",
            None => "SHOW CLIENTS has the ids",
        };
        Refused::UnknownClient(number, why.into())
    }

    /// Ends several clients, or their statements.
    fn kill_all(&self, victims: &Victims, query: bool) -> Result<String, Refused> {
        let from = match victims {
            Victims::Address(address) => Some(Network::parse(address)?),
            _ => None,
        };
        let idle_for = match victims {
            Victims::IdleTransactions(seconds) => Some(Duration::from_secs(*seconds)),
            _ => None,
        };
        let busy = query || idle_for.is_some();
        let mut clients = self.list(busy).map_err(Refused::Late)?;
        let runs = [Stage::Running.name(), Stage::Waiting.name()];
        clients.retain(|client| {
            is_meant(client, victims, from) && (!query || runs.contains(&client.state))
        });
        let mut ended = 0;
        for some in clients.chunks(KILLS_AT_ONCE) {
            let ask = |client: &ClientLine| {
                let id = client.id;
                self.begin(
                    client.group,
                    Wanted::Kill {
                        id,
                        query,
                        idle_for,
                    },
                )
            };
            let asked: Result<Vec<_>, String> = some.iter().map(ask).collect();
            for answer in asked.map_err(Refused::Late)? {
                let said = answer.wait();
                let said =
                    said.map_err(|why| Refused::Late(format!("{ended} are ended, then: {why}")))?;
                ended += usize::from(matches!(said, Said::Killed(KillEnd::Done)));
            }
        }
        let (of, more) = match self.shared.connections.fleet.is_some() {
            true => (
                " of this pool",
                "; say the same to each other pool of the fleet",
            ),
            false => ("", ""),
        };
        Ok(match query {
            true => format!("the statements of {ended} clients{of} are being ended{more}"),
            false => format!("{ended} clients{of} are closed{more}"),
        })
    }

    /// Begins a pause, or ends it.
    fn pause(&self, on: bool) -> Result<String, String> {
        if self.shared.scheduling.set_paused(on) == on {
            let state = if on { "already paused" } else { "not paused" };
            return Err(format!("the pool is {state}"));
        }
        Order::Look.tell_all(&self.groups);
        Ok(match on {
            true => "paused: statements wait, except those of clients that hold a backend".into(),
            false => "resumed".into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_meant_by_as_many_digits_as_tell_it_from_others() {
        let known = || {
            Ok(BTreeSet::from([
                0x00ab_0000_0000_0001,
                0x00ab_1000_0000_0001,
            ]))
        };
        let late = || Err("group 0 has not answered".to_owned());
        assert_eq!(digest_of("00AB1..", known), Ok(0x00ab_1000_0000_0001));
        assert_eq!(digest_of("00000000000000ff", known), Ok(0xff));
        // A group that is too busy to answer keeps nobody from a rule.
        assert_eq!(digest_of("00000000000000ff", late), Ok(0xff));
        assert!(
            digest_of("00ff", late)
                .unwrap_err()
                .contains("has not answered")
        );
        for (written, why) in [
            (
                "00ab",
                "2 digests begin with '00ab': 00ab000000000001, 00ab100000000001; write more",
            ),
            ("0b", "no digest that is known begins with '0b'"),
            ("", "expected up to 16 hexadecimal digits"),
            ("+0", "expected up to 16 hexadecimal digits"),
            ("00000000000000000", "expected up to 16 hexadecimal digits"),
        ] {
            let said = digest_of(written, known).unwrap_err();
            assert!(said.contains(why), "{written}: {said}");
        }
    }

    #[test]
    fn a_rule_lasts_for_a_year_at_most() {
        assert_eq!(until(None), Ok(Time::NEVER));
        assert!(until(Some(SECONDS_MAX)).is_ok());
        for seconds in [0, SECONDS_MAX + 1] {
            let said = until(Some(seconds)).unwrap_err();
            assert!(said.contains("expected 1 to 31536000 seconds"), "{said}");
        }
    }
}
