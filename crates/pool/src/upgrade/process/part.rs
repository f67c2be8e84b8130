//! A group's part in an upgrade: on either side of it, or on none.
//!
//! A group's thread calls it between two turns: with orders of the main thread, and with the time.
//! What fails is told to the thread that talks with the other process, and the group goes on.

use crate::group::Group;
use crate::group::shared::Order;
use crate::observe::log::{Event, note};
use crate::upgrade::process::Progress;
use crate::upgrade::process::giving::Giving;
use crate::upgrade::process::taking::{Listening, Taking};
use reactor::{RealNet, Time};
use std::sync::Arc;

/// Part of a group in an upgrade.
pub(crate) struct Part {
    index: usize,
    progress: Arc<Progress>,
    taking: Option<Taking>,
    giving: Option<Giving>,
    listens_at: Listening,
    /// True if its listeners are closed.
    is_closed: bool,
    /// True if it ends with its last client.
    leaves: bool,
    /// Moment at which there is something to do at the latest.
    at: Time,
}

impl Part {
    pub(crate) fn new(
        index: usize,
        progress: Arc<Progress>,
        (taking, listens_at): (Option<Taking>, Listening),
    ) -> Part {
        Part {
            index,
            progress,
            taking,
            giving: None,
            listens_at,
            is_closed: false,
            leaves: false,
            at: Time::NEVER,
        }
    }

    /// Moment at which [`Part::step`] is to be called at the latest.
    pub(crate) fn deadline(&self) -> Time {
        self.at
    }

    /// True if the group ends with its last client.
    pub(crate) fn leaves(&self) -> bool {
        self.leaves
    }

    /// True if the last client has left a group that ends with it.
    pub(crate) fn is_over(&self, group: &Group<RealNet>) -> bool {
        self.leaves && group.parts.clients.is_empty()
    }

    /// Follows an order of the main thread's, if it is about an upgrade.
    pub(crate) fn order(&mut self, group: &mut Group<RealNet>, order: &Order) {
        match order {
            Order::Give(peer) => {
                let progress = self.progress.clone();
                match Giving::begin(group, self.index, *peer, progress) {
                    Ok(giving) => self.giving = Some(giving),
                    Err(why) => self.progress.steps().failed = Some(why),
                }
            }
            Order::Keep => {
                self.give_up(group);
                group.parts.net.pause_listening();
                self.progress.steps().stopped.insert(self.index);
            }
            Order::CloseListeners => {
                group.parts.net.stop_listening();
                self.is_closed = true;
                self.progress.steps().closed.insert(self.index);
            }
            Order::Accept => {
                self.leaves = false;
                self.accept(group);
                if let Some(taking) = &mut self.taking {
                    taking.listen_alone(group);
                }
            }
            Order::Leave => self.leaves = true,
            _ => {}
        }
    }

    fn accept(&mut self, group: &mut Group<RealNet>) {
        // Where that fails, other groups accept.
        let _ = group.parts.net.resume_listening();
        if std::mem::take(&mut self.is_closed)
            && let Err(why) = self.listens_at.open(&mut group.parts.net, Vec::new())
        {
            note(
                Event::UpgradeFailed,
                format_args!("group {}: {why}", self.index),
            );
        }
    }

    fn give_up(&mut self, group: &mut Group<RealNet>) {
        self.at = Time::NEVER;
        if let Some(giving) = self.giving.take() {
            giving.give_up(group);
        }
    }

    /// Clients whose statements have ended in this turn go at once.
    pub(crate) fn hurry(&mut self, group: &mut Group<RealNet>) {
        if let Some(giving) = &self.giving
            && giving.has_work(group)
        {
            self.at = Time(0);
        }
    }

    /// Carries on with the group's hand-overs between two turns.
    pub(crate) fn step(&mut self, group: &mut Group<RealNet>) {
        if let Some(taking) = &mut self.taking
            && !taking.step(group)
        {
            self.taking = None;
        }
        if let Some(giving) = &mut self.giving {
            match giving.step(group) {
                Ok(at) => self.at = at,
                Err(why) => {
                    self.give_up(group);
                    self.progress.steps().failed = Some(why);
                }
            }
        }
    }
}
