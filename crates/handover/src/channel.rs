//! A socket to the other process of an upgrade: messages out, messages in, with descriptors.
//!
//! Invariants: one message is under way at a time, so the descriptors that have come are those of
//! the message at the front; what is sent is sent in order, and its descriptors go with its first
//! byte.

use crate::descriptors;
use crate::frames::Frame;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Bytes received at once.
const STEP: usize = 64 * 1024;

/// A connection to the other process.
#[derive(Debug)]
pub struct Channel {
    socket: OwnedFd,
    /// Lent to who receives.
    buffer: Vec<u8>,
    received: Vec<u8>,
    descriptors: Vec<OwnedFd>,
    unsent: Vec<u8>,
    sent: usize,
}

/// Message that has come.
#[derive(Debug)]
pub enum Come {
    /// A message, with the descriptors that have come.
    Frame(Frame, Vec<OwnedFd>),
    /// Nothing whole yet.
    Nothing,
    /// Close of the other end.
    End,
}

fn blocked(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

impl Channel {
    /// Over this socket, which does not wait.
    #[must_use]
    pub fn new(socket: OwnedFd) -> Channel {
        Channel {
            socket,
            buffer: vec![0; STEP],
            received: Vec::new(),
            descriptors: Vec::new(),
            unsent: Vec::new(),
            sent: 0,
        }
    }

    /// Channel of which each call waits for so long: for a thread that has nothing else to do.
    ///
    /// # Errors
    /// The system's error.
    pub fn waiting(socket: OwnedFd, at_most: Option<Duration>) -> io::Result<Channel> {
        let stream = UnixStream::from(socket);
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(at_most)?;
        stream.set_write_timeout(at_most)?;
        Ok(Channel::new(stream.into()))
    }

    /// Sets the time that each call waits from now on.
    ///
    /// # Errors
    /// The system's error.
    pub fn wait_at_most(&self, at_most: Option<Duration>) -> io::Result<()> {
        let stream = UnixStream::from(self.socket.try_clone()?);
        stream.set_read_timeout(at_most)
    }

    /// True if all has been sent.
    #[must_use]
    pub fn is_sent(&self) -> bool {
        self.unsent.is_empty()
    }

    /// Sends a message; what there is no room for goes with [`Channel::flush`]. With the first byte
    /// the descriptors are sent.
    ///
    /// # Errors
    /// The system's error, or the message has no form as bytes; it was not sent, or not whole.
    /// Behind one that was not sent whole nothing can be sent.
    pub fn send(&mut self, frame: &Frame, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        if !self.is_sent() {
            return Err(io::Error::other("the one before is not sent whole"));
        }
        self.unsent = frame.to_bytes().map_err(io::Error::other)?;
        // An empty socket takes the front of any message.
        self.sent = descriptors::send(&self.socket, &self.unsent, descriptors)?;
        self.flush().map(|_| ())
    }

    /// Sends what is left; whether that is all.
    ///
    /// # Errors
    /// The system's error.
    pub fn flush(&mut self) -> io::Result<bool> {
        while self.sent < self.unsent.len() {
            match descriptors::send(&self.socket, &self.unsent[self.sent..], &[]) {
                Ok(sent) => self.sent += sent,
                Err(error) if blocked(&error) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        (self.unsent, self.sent) = (Vec::new(), 0);
        Ok(true)
    }

    /// The next message, if it has come whole.
    ///
    /// # Errors
    /// The system's error, or what is wrong with what has come.
    pub fn receive(&mut self) -> Result<Come, String> {
        loop {
            let len = Frame::len_of(&self.received).map_err(|error| error.to_string())?;
            if let Some(len) = len.filter(|len| self.received.len() >= *len) {
                let frame = Frame::read(&self.received[..len]).map_err(|e| e.to_string())?;
                self.received.drain(..len);
                // Those of the message behind it may have come.
                let descriptors = match frame.descriptors() {
                    Some(0) => Vec::new(),
                    _ => std::mem::take(&mut self.descriptors),
                };
                return Ok(Come::Frame(frame, descriptors));
            }
            match descriptors::receive(&self.socket, &mut self.buffer, &mut self.descriptors) {
                Ok(0) => return Ok(Come::End),
                Ok(count) => self.received.extend_from_slice(&self.buffer[..count]),
                Err(error) if blocked(&error) => return Ok(Come::Nothing),
                // It has ended and had not read all that was sent to it.
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok(Come::End),
                Err(error) => return Err(error.to_string()),
            }
        }
    }

    /// Last frame that can be received when the other end can send nothing more: so it is certain
    /// what it has said.
    pub fn last_word(&mut self) -> Option<Frame> {
        descriptors::stop_receiving(&self.socket).ok()?;
        match self.receive() {
            Ok(Come::Frame(frame, _)) => Some(frame),
            _ => None,
        }
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frames::ClientRecords;

    fn pair() -> (Channel, Channel) {
        let (one, other) = UnixStream::pair().unwrap();
        one.set_nonblocking(true).unwrap();
        other.set_nonblocking(true).unwrap();
        (Channel::new(one.into()), Channel::new(other.into()))
    }

    #[test]
    fn a_message_longer_than_the_socket_takes_goes_in_pieces() {
        let (mut one, mut other) = pair();
        let frame = Frame::Clients(vec![ClientRecords {
            client: vec![7; 3 << 20],
            backend: None,
        }]);
        let (descriptor, _far) = UnixStream::pair().unwrap();
        one.send(&frame, &[descriptor.as_fd()]).unwrap();
        assert!(!one.is_sent());
        assert!(one.send(&Frame::Ready, &[]).is_err(), "it would be amid it");
        let come = loop {
            match other.receive().unwrap() {
                Come::Frame(come, descriptors) => break (come, descriptors.len()),
                Come::Nothing => drop(one.flush().unwrap()),
                Come::End => panic!("the end"),
            }
        };
        assert_eq!(come, (frame, 1));
        assert!(one.is_sent());
        drop(one);
        assert!(matches!(other.receive(), Ok(Come::End)));
    }

    #[test]
    fn the_last_word_counts_and_none_comes_behind_it() {
        let (mut one, mut other) = pair();
        other.send(&Frame::Taken(vec![None]), &[]).unwrap();
        assert_eq!(one.last_word(), Some(Frame::Taken(vec![None])));
        for _ in 0..2 {
            assert!(other.send(&Frame::Taken(vec![None]), &[]).is_err());
        }
        let (mut one, mut other) = pair();
        assert_eq!(one.last_word(), None);
        assert!(other.send(&Frame::Ready, &[]).is_err());
    }
}
