//! The threads that classify long texts (`text_reading.rs`).
//!
//! One for two cores: what they do is work that the groups would have to do otherwise, and a server
//! on the same machine needs the others. They end with the process.

use crate::client::buffers::text_reading::TextRead;
use crate::group::shared::{Order, Shared};
use crate::group::tokens::ClientId;
use reactor::Sender;
use std::sync::Arc;

/// Readers: one for two cores, within these bounds.
const READERS_MAX: usize = 4;

impl Shared {
    /// Long texts that wait for a reader.
    #[must_use]
    pub fn texts_waiting(&self) -> usize {
        self.jobs.texts.len()
    }

    /// Reads one text that waits, on this thread: a simulation's reader. What it found comes with
    /// the number of its group.
    #[must_use]
    pub fn read_one_text(&self) -> Option<(usize, Order)> {
        self.jobs.texts.next()?.run().map(message)
    }
}

/// Starts the readers' threads. They end with the process.
///
/// # Errors
/// A sentence when a thread cannot be started.
pub(crate) fn start_readers(
    shared: &Arc<Shared>,
    groups: &Arc<[Sender<Order>]>,
) -> Result<(), String> {
    for index in 0..(shared.cores() / 2).clamp(1, READERS_MAX) {
        let (shared, groups) = (shared.clone(), groups.clone());
        std::thread::Builder::new()
            .name(format!("text-{index}"))
            .spawn(move || {
                loop {
                    if let Some(read) = shared.jobs.texts.wait().run() {
                        let (group, order) = message(read);
                        groups[group].send(order);
                    }
                }
            })
            .map_err(|error| format!("cannot start a thread that reads long texts: {error}"))?;
    }
    Ok(())
}

/// A message to the group of a text's client.
fn message((group, client, read): (usize, ClientId, Box<TextRead>)) -> (usize, Order) {
    (group, Order::TextRead(client, read))
}
