//! A plain client that waits: for `prepare` and `cleanup`, where a few connections do all the work.
//!
//! The same login and the same reply follower as the run, over `std::net`. One statement at a time;
//! rows are read and dropped.

use crate::errors::Fault;
use crate::login::Credentials;
use reactor::Address;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;
use wire::client_login::{ClientLogin, Progress};
use wire::command::{Command, ReplyShape, put_command};
use wire::packet::{HEADER_LEN, Header};
use wire::reply::{Reply, Step};

trait Stream: Read + Write + Send {}
impl<T: Read + Write + Send> Stream for T {}

/// One connection.
pub(crate) struct Client {
    stream: Box<dyn Stream>,
    payload: Vec<u8>,
}

impl Client {
    /// Connects within `timeout` and logs in. Statements take as long as they take.
    pub(crate) fn connect(
        address: &Address,
        who: &Credentials,
        timeout: Duration,
    ) -> Result<Client, Fault> {
        let stream = dial(address, timeout).map_err(|e| Fault::system(&e))?;
        let mut client = Client {
            stream,
            payload: Vec::new(),
        };
        client.log_in(who)?;
        Ok(client)
    }

    fn log_in(&mut self, who: &Credentials) -> Result<(), Fault> {
        let (mut login, mut out) = (ClientLogin::new(), Vec::new());
        loop {
            let header = self.read_packet("during the login")?;
            out.clear();
            let progress = login.on_packet(&who.account(), header.seq, &self.payload, &mut out)?;
            self.write(&out)?;
            if progress == Progress::Done {
                return Ok(());
            }
        }
    }

    /// Runs a statement; returns the rows it changed, or the server's error.
    pub(crate) fn query(&mut self, text: &[u8]) -> Result<u64, Fault> {
        let mut out = Vec::with_capacity(text.len() + HEADER_LEN + 1);
        put_command(&mut out, Command::Query, text);
        self.write(&out)?;
        let mut reply = Reply::new(ReplyShape::Results);
        let mut changed = 0;
        while !reply.is_done() {
            let header = self.read_packet("during a statement")?;
            let role = reply.role(self.payload.first().copied(), header.len);
            match reply.advance(role, &self.payload, header.len)? {
                Step::Ok(ok) => changed = ok.affected_rows,
                Step::Err(err) => return Err(Fault::server(&err)),
                Step::File => {
                    let what = "the server asks for a local file, which nobody offered";
                    return Err(Fault::protocol(what.to_owned()));
                }
                _ => {}
            }
        }
        Ok(changed)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        self.stream.write_all(bytes).map_err(|e| Fault::system(&e))
    }

    /// Reads one packet into `payload`.
    fn read_packet(&mut self, doing: &str) -> Result<Header, Fault> {
        let mut header = [0; HEADER_LEN];
        self.read_exact_into(&mut header, doing)?;
        let header = Header::read(&header).unwrap_or(Header { len: 0, seq: 0 });
        let mut payload = std::mem::take(&mut self.payload);
        payload.resize(header.len, 0);
        let result = self.read_exact_into(&mut payload, doing);
        self.payload = payload;
        result.map(|()| header)
    }

    fn read_exact_into(&mut self, buffer: &mut [u8], doing: &str) -> Result<(), Fault> {
        self.stream
            .read_exact(buffer)
            .map_err(|error| match error.kind() {
                io::ErrorKind::UnexpectedEof => Fault::ended(doing),
                _ => Fault::system(&error),
            })
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let mut bye = Vec::new();
        put_command(&mut bye, Command::Quit, b"");
        // A server that is gone needs no goodbye.
        let _ = self.stream.write_all(&bye);
    }
}

fn dial(address: &Address, timeout: Duration) -> io::Result<Box<dyn Stream>> {
    Ok(match address {
        Address::Tcp(address) => {
            let stream = TcpStream::connect_timeout(address, timeout)?;
            stream.set_nodelay(true)?;
            Box::new(stream)
        }
        Address::Unix(path) => Box::new(UnixStream::connect(path)?),
    })
}
