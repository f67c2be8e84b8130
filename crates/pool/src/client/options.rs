//! COM_SET_OPTION: whether a client may send several statements in one text.
//!
//! The pool answers it: the option is a part of the session that follows the client, and is set on
//! a backend in front of the client's next command there.

use crate::client::ClientSession;
use session::state::Interner;
use sql::lex::Server;
use wire::errors::{self, ErrorCode};

impl ClientSession {
    /// Sets what the command with these arguments says.
    ///
    /// # Errors
    /// The server's own, and its words.
    pub(crate) fn set_option(
        &mut self,
        arguments: &[u8],
        server: Server,
        sessions: &mut Interner,
    ) -> Result<(), (ErrorCode, &'static str)> {
        // MySQL wants two bytes; to MariaDB those that are missing are zero. More are ignored.
        let option = match (arguments, server) {
            ([low, high, ..], _) => [*low, *high],
            (_, Server::MySql(_)) => {
                let said = "Malformed communication packet.";
                return Err((errors::MALFORMED_PACKET, said));
            }
            ([low], _) => [*low, 0],
            ([], _) => [0, 0],
        };
        let multi_statements = match option {
            [0, 0] => true,
            [1, 0] => false,
            // The server's own answer to an option that it does not know.
            _ => return Err((errors::UNKNOWN_COM, "Unknown command")),
        };
        self.state = sessions.with_multi(&self.state, multi_statements);
        self.last.answered(-1);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Client;
    use reactor::Time;
    use std::rc::Rc;

    const MARIADB: Server = Server::MariaDb(101_100);
    const MYSQL: Server = Server::MySql(90_700);

    /// True if several statements are allowed after this command, or the number of its error.
    fn set(arguments: &[u8], server: Server, before: bool) -> Result<bool, u16> {
        let mut sessions = Interner::default();
        let mut client = Client::of_tests(Time(1), Rc::default());
        client.session.state = sessions.with_multi(&client.session.state, before);
        let set = client.session.set_option(arguments, server, &mut sessions);
        set.map(|()| client.session.state.multi_statements)
            .map_err(|(error, _)| error.code)
    }

    #[test]
    fn several_statements_are_allowed_and_not_any_more() {
        for server in [MARIADB, MYSQL] {
            assert_eq!(set(&[0, 0], server, false), Ok(true));
            assert_eq!(set(&[1, 0], server, true), Ok(false));
            assert_eq!(set(&[1, 0, 9], server, true), Ok(false), "more is ignored");
        }
    }

    #[test]
    fn what_is_missing_is_zero_to_mariadb_and_an_error_to_mysql() {
        assert_eq!(set(&[1], MARIADB, true), Ok(false));
        assert_eq!(set(&[], MARIADB, false), Ok(true));
        let malformed = errors::MALFORMED_PACKET.code;
        assert_eq!(set(&[1], MYSQL, true), Err(malformed));
    }

    #[test]
    fn an_option_that_there_is_not_changes_nothing() {
        let unknown = errors::UNKNOWN_COM.code;
        assert_eq!(set(&[2, 0], MARIADB, true), Err(unknown));
        assert_eq!(set(&[0, 1], MYSQL, true), Err(unknown));
    }
}
