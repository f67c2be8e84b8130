//! A connection that waits: for `prepare` and `cleanup`, where a few connections do all the work,
//! and for clients of a proof, each of which has a thread.
//!
//! The client itself is [`wire::blocking`]; here stand its dial and its errors as [`Fault`]s. One
//! statement at a time.

use load_core::errors::Fault;
use load_core::login::Credentials;
use load_core::transport::{self, Security, Stream};
use reactor::Address;
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;
use wire::blocking::{Connection, Failure};
use wire::reply::ErrPacket;

/// One connection.
pub(crate) struct Client {
    connection: Connection<Box<dyn Stream>>,
}

impl Client {
    /// Connects within `timeout` and logs in. Statements take as long as they take.
    pub(crate) fn connect(
        address: &Address,
        who: &Credentials,
        timeout: Duration,
    ) -> Result<Client, Fault> {
        let stream = dial(address, timeout, &who.security)?;
        let mut client = Client {
            connection: Connection::new(stream),
        };
        let logged_in = client.connection.log_in(&who.account());
        logged_in.map_err(|failure| fault(failure, "during the login"))?;
        Ok(client)
    }

    /// Runs a statement; returns the rows it changed, or the server's error.
    pub(crate) fn query(&mut self, text: &[u8]) -> Result<u64, Fault> {
        self.read(text, |_| ())
    }

    /// Runs a statement and hands each row to `on_row`; returns as [`Client::query`].
    pub(crate) fn read(&mut self, text: &[u8], on_row: impl FnMut(&[u8])) -> Result<u64, Fault> {
        let changed = self.connection.query(text, on_row);
        changed.map_err(|failure| fault(failure, "during a statement"))
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.connection.quit();
    }
}

const TABLE_EXISTS: u32 = 1050;
const NO_SUCH_TABLE: u32 = 1146;

/// Advice about a statement that failed as the tables of a run are there already, or not yet.
pub(crate) fn advice(fault: &Fault) -> &'static str {
    match fault.code {
        TABLE_EXISTS => "; run the cleanup command first",
        NO_SUCH_TABLE => "; run the prepare command first",
        _ => "",
    }
}

fn fault(failure: Failure, doing: &str) -> Fault {
    match failure {
        Failure::Read(error) | Failure::Write(error) => Fault::system(&error),
        Failure::Closed => Fault::ended(doing),
        Failure::Login(error) => error.into(),
        Failure::Malformed(malformed) => malformed.into(),
        Failure::TooLong | Failure::LocalFile => Fault::protocol(failure.to_string()),
        Failure::Server {
            code,
            state,
            message,
        } => Fault::server(&ErrPacket {
            code,
            state: &state,
            message: &message,
        }),
    }
}

fn dial(
    address: &Address,
    timeout: Duration,
    security: &Security,
) -> Result<Box<dyn Stream>, Fault> {
    let system = |error| Fault::system(&error);
    match address {
        Address::Tcp(address) => {
            let stream = TcpStream::connect_timeout(address, timeout).map_err(system)?;
            stream.set_nodelay(true).map_err(system)?;
            transport::blocking(stream, security)
        }
        Address::Unix(path) => Ok(Box::new(UnixStream::connect(path).map_err(system)?)),
    }
}
