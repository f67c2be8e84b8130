//! Meaning of a client's KILL: its victim, and the group that carries it out.
//!
//! The problem: a client's CONNECTION_ID() is the number in our greeting, which means nothing to
//! the server; the server's number of the backend that runs its statement means another client a
//! moment later. The mechanism: a KILL is read ([`sql::kill`]) and its number looked at. Ids of
//! clients begin above [`FIRST_ID`], where no server's numbers are found in practice, so that a
//! number read from SHOW PROCESSLIST never means a client. Such a KILL goes to the server as it is,
//! unless it names a backend of the pool.
//!
//! Invariants: nothing is changed here; who has not said a KILL's number is not hit by it.

use crate::client::clients::FIRST_ID;
use crate::group::shared::Shared;
use crate::server::fleet::IDS;
use crate::statements::kill::jobs::{Asker, KillAsk};
use sql::kill::{Kill, Victim};
use sql::lex::Server;
use wire::attributes::{Form, put_query};

impl Shared {
    /// The group in which the client with this id is, if there is one: ids begin at [`FIRST_ID`],
    /// and each group counts in steps of the number of groups.
    pub(crate) fn group_of_client(&self, id: u32) -> usize {
        let number = id.saturating_sub(FIRST_ID);
        let own = if self.connections.fleet.is_some() {
            number % IDS
        } else {
            number
        };
        own as usize % self.groups()
    }

    /// The first id of clients here, and how many there are: in a fleet each seat has its own.
    pub(crate) fn ids(&self) -> (u32, u32) {
        match &self.connections.fleet {
            Some(fleet) => (FIRST_ID + fleet.seat() * IDS, IDS),
            None => (FIRST_ID, FIRST_ID),
        }
    }

    /// Notes the server's number of a backend that has logged in.
    pub(crate) fn note_thread(&self, thread: u32) {
        self.connections.threads.change(|all| all.insert(thread));
    }

    /// Forgets the number of a backend that is gone.
    pub(crate) fn forget_thread(&self, thread: u32) {
        self.connections.threads.change(|all| all.remove(&thread));
    }
}

/// Victim of a KILL.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Meant {
    /// The client that says it.
    Itself,
    /// A client with this id, if there is one, in the group with this number.
    Client { group: usize, ask: KillAsk },
    /// A connection of the pool's own, which is nobody's to end.
    Backend,
    /// Another connection to the server, or none.
    Elsewhere,
}

/// The client that sends a KILL.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Killer<'a> {
    pub(crate) asker: Asker,
    /// Its own id.
    pub(crate) id: u32,
    /// Its account on the server.
    pub(crate) user: &'a str,
}

impl Killer<'_> {
    /// Resolves its target.
    pub(crate) fn means(&self, kill: Kill, shared: &Shared) -> Meant {
        let id = match kill.victim {
            Victim::Own => return Meant::Itself,
            // MySQL takes the lower half of a longer number.
            Victim::Id(id) if shared.server.flavour.is_mysql() => id & u64::from(u32::MAX),
            Victim::Id(id) => id,
        };
        let short = u32::try_from(id).ok();
        let Some(id) = short.filter(|id| *id >= FIRST_ID) else {
            let is_ours = |id: u32| shared.connections.threads.change(|all| all.contains(&id));
            return match short.is_some_and(is_ours) {
                true => Meant::Backend,
                false => Meant::Elsewhere,
            };
        };
        if id == self.id {
            return Meant::Itself;
        }
        let ask = KillAsk {
            asker: Some(self.asker),
            id,
            query: kill.query,
            user: Some(self.user.to_owned()),
            account: None,
        };
        let group = shared.group_of_client(id);
        Meant::Client { group, ask }
    }
}

/// COM_PROCESS_KILL: the same without words. `None` where the server knows no such command, or not
/// with these arguments.
pub(crate) fn kill_of_command(arguments: &[u8], server: Server) -> Option<Kill> {
    let gone = matches!(server, Server::MySql(90_000..));
    let id = <[u8; 4]>::try_from(arguments).ok().filter(|_| !gone)?;
    Some(Kill {
        query: false,
        victim: Victim::Id(u64::from(u32::from_le_bytes(id))),
    })
}

/// The command that says a KILL which a client has prepared.
pub(crate) fn command_of(kill: Kill, form: Form) -> Vec<u8> {
    let what = if kill.query { "QUERY " } else { "" };
    let text = match kill.victim {
        Victim::Id(id) => format!("KILL {what}{id}"),
        Victim::Own => format!("KILL {what}CONNECTION_ID()"),
    };
    let mut message = Vec::new();
    put_query(&mut message, form, text.as_bytes());
    message
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::scripted::shared;
    use crate::group::tokens::ClientId;

    fn kill(id: u64) -> Kill {
        let victim = Victim::Id(id);
        Kill {
            query: true,
            victim,
        }
    }

    fn killer() -> Killer<'static> {
        Killer {
            asker: Asker {
                group: 0,
                killer: ClientId::from_parts(1, 0),
            },
            id: FIRST_ID + 5,
            user: "app",
        }
    }

    #[test]
    fn a_number_of_a_client_means_that_client() {
        let shared = shared("");
        let Meant::Client { group, ask } = killer().means(kill(u64::from(FIRST_ID)), &shared)
        else {
            panic!("ids of clients begin there");
        };
        assert_eq!((group, ask.id, ask.query), (0, FIRST_ID, true));
        assert_eq!(ask.user.as_deref(), Some("app"));
        assert_eq!(ask.asker, Some(killer().asker));
    }

    #[test]
    fn its_own_number_means_itself_in_any_form() {
        let shared = shared("");
        let own = Kill {
            query: false,
            victim: Victim::Own,
        };
        assert_eq!(killer().means(own, &shared), Meant::Itself);
        let number = kill(u64::from(FIRST_ID + 5));
        assert_eq!(killer().means(number, &shared), Meant::Itself);
    }

    #[test]
    fn a_number_of_the_servers_is_the_servers_but_for_the_pools_own_connections() {
        let shared = shared("");
        shared.note_thread(42);
        assert_eq!(killer().means(kill(42), &shared), Meant::Backend);
        assert_eq!(killer().means(kill(43), &shared), Meant::Elsewhere);
        shared.forget_thread(42);
        assert_eq!(killer().means(kill(42), &shared), Meant::Elsewhere);
        assert_eq!(
            killer().means(kill(u64::from(FIRST_ID - 1)), &shared),
            Meant::Elsewhere
        );
    }

    #[test]
    fn the_command_is_read_where_the_server_has_it() {
        let id = 7u32.to_le_bytes();
        let read = kill_of_command(&id, Server::MariaDb(101_100));
        assert_eq!(read.map(|kill| kill.victim), Some(Victim::Id(7)));
        assert!(!read.is_some_and(|kill| kill.query));
        assert_eq!(kill_of_command(&id, Server::MySql(90_700)), None);
        assert!(kill_of_command(&id, Server::MySql(80_400)).is_some());
        assert_eq!(kill_of_command(&id[1..], Server::MariaDb(101_100)), None);
    }

    #[test]
    fn a_prepared_kill_is_said_in_words() {
        let own = Kill {
            query: true,
            victim: Victim::Own,
        };
        let said = |kill| String::from_utf8_lossy(&command_of(kill, Form::Plain)).into_owned();
        assert!(said(own).ends_with("\u{3}KILL QUERY CONNECTION_ID()"));
        let hard = Kill {
            query: false,
            victim: Victim::Id(9),
        };
        assert!(said(hard).ends_with("\u{3}KILL 9"));
    }
}
