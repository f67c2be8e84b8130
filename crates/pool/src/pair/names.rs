//! Statements by name: what a client's text finds under them on its backend, and what it leaves.
//!
//! A name is its client's: on a backend that others share, it may be another's, or missing. What a
//! text runs by name is prepared there first, one name after the other; the names that code which
//! nobody has read could meet are taken away in front of it. What such code does to the client's
//! own names, the server knows from then on.
//!
//! Invariant: a backend has a name under the definition that is noted with it, or under one that
//! only the server knows.

use crate::buffers::message::payload_of;
use crate::client::Client;
use crate::errors::reasons::PinReason;
use crate::pair::Pair;
use session::prepared::names::{Named, NamedEntry};
use session::prepared::{Definition, UnderWay};
use session::reply_summary::ReplySummary;
use session::statement::Code;
use sql::classify::{self, PinCause, Verb, classify};
use sql::text_prepared::{NamesIn, names_in};
use std::rc::Rc;
use wire::attributes::{Form, put_query};
use wire::command::Command;

/// True if a name must not be there while code runs for a client that nobody has read: all but the
/// client's own, and these too unless it stays.
pub(crate) fn hides<S>(client: &Client<S>, entry: &NamedEntry) -> bool {
    let own = client.prepared.as_ref().filter(|_| client.pins.is_unread());
    let known = own.and_then(|own| own.named(&entry.name));
    let there = entry.definition.as_ref();
    there.is_some_and(|there| known.is_none_or(|known| *there != *known))
}

/// True if code that a text runs may prepare statements by name: functions and triggers may not.
fn may_prepare(class: &classify::Statement) -> bool {
    class.multi || matches!(class.verb, Verb::Call | Verb::Prepare)
}

/// Appends what takes a name away.
pub(super) fn put_deallocate(out: &mut Vec<u8>, form: Form, name: &[u8]) {
    let text = [b"DEALLOCATE PREPARE `", name, b"`"].concat();
    put_query(out, form, &text);
}

impl<S> Pair<'_, S> {
    /// Notes the first statement that its backend lacks, to be prepared there, where a client's
    /// text uses statements by name and is more than that. Where it lacks none, the text goes out,
    /// and what it prepares itself is not overwritten later by what the client had under that name.
    /// Code that nobody has read may use all names that the client has. No more are prepared than
    /// the backend has room for among the `share` of its statements: each would take the place of
    /// another.
    pub(crate) fn note_lacking_name(&mut self, message: &[u8], share: usize) -> Option<()> {
        let (client, backend) = (&mut *self.client, &mut *self.backend);
        let own = client.prepared.as_ref()?;
        let uses = client.is_pinned_for(PinReason::Text(PinCause::TextPrepare));
        let unread = client.statement.code == Code::Unread && client.pins.is_unread();
        if own.named.is_empty() || own.under_way.is_some() || !(uses || unread) {
            return None;
        }
        let payload = payload_of(message);
        let (command, arguments) = payload.split_first()?;
        if *command != Command::Query.byte() {
            return None;
        }
        let sql = client.text_in(arguments).ok()?;
        let mode = client.lex_mode(self.context.server);
        let class = classify(sql, mode);
        // The server refuses it whole, and runs nothing of it.
        if class.multi && !client.session.multi_statements {
            return None;
        }
        let mut names = match uses {
            true => names_in(sql, mode),
            false => NamesIn::default(),
        };
        names.used.retain(|name| own.named(name).is_some());
        let named = names.used.len();
        if unread && may_prepare(&class) {
            let all = own.named.iter().map(|(name, _)| name.clone());
            let others: Vec<_> = all.filter(|name| !names.used.contains(name)).collect();
            names.used.extend(others);
        }
        names.used.truncate(backend.prepared.room(share));
        if let Some((name, definition)) = own.lacking(&names.used, &backend.prepared) {
            let named = match names.used.iter().take(named).any(|one| one == name) {
                true => Named::Execute(name.clone()),
                false => Named::MayExecute(name.clone()),
            };
            let under_way = UnderWay::named(Command::StmtExecute, definition.clone(), named);
            client.prepared.as_mut()?.under_way = Some(under_way);
            return Some(());
        }
        // What the backend has of the client under these names is for the server to know from here
        // on. What it has there of others is taken away in front of the text.
        let own = client.prepared.as_mut()?;
        for name in &names.given {
            let there = own.named(name);
            if there.is_some_and(|there| backend.prepared.has_named(name, there)) {
                backend.prepared.set_named(name, Some(None));
            }
            own.forget_name(name);
        }
        None
    }

    /// The reply to a command about a name is complete.
    pub(super) fn note_named(
        &mut self,
        under_way: &UnderWay,
        definition: Option<Rc<Definition>>,
        summary: &ReplySummary,
    ) {
        let (client, backend) = (&mut *self.client, &mut *self.backend);
        let went = summary.error.is_none();
        if let Some(Named::Prepare(name) | Named::PrepareUnread(name)) = &under_way.named
            && let Some(prepared) = &mut client.prepared
        {
            // A PREPARE that has run takes the old one away, even if it fails.
            prepared.forget_name(name);
            client.forget_command();
        }
        match &under_way.named {
            Some(Named::Prepare(name)) if went => {
                let definition = definition.unwrap_or_else(|| under_way.definition.clone());
                let entry = Some(definition.clone());
                backend.prepared.set_named(name, Some(entry));
                let prepared = client.prepared.get_or_insert_default();
                prepared.named.push((name.clone(), definition));
            }
            Some(Named::PrepareUnread(name)) if went => {
                backend.prepared.set_named(name, Some(None));
            }
            Some(Named::Deallocate(name)) if went => backend.prepared.set_named(name, None),
            Some(Named::Execute(name)) => backend.prepared.use_named(name),
            _ => {}
        }
    }

    /// Takes from the backend the names that code which nobody has read could meet there, or take
    /// away itself: others', and the client's own unless it stays. Returns the commands for that.
    pub(crate) fn hide_names(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut count = 0;
        let (client, form) = (&*self.client, self.backend.form);
        self.backend.prepared.named.retain(|entry| {
            let keep = !hides(client, entry);
            if !keep {
                put_deallocate(&mut out, form, &entry.name);
                count += 1;
            }
            keep
        });
        self.backend.note_deallocations(self.owner, count, 0);
        out
    }

    /// Code that nobody has read has run, and its client stays where it is: what the client has on
    /// its backend under a name may be another text now, or nothing. The server knows.
    pub(crate) fn leave_names_to_server(&mut self) {
        let client = &mut *self.client;
        let Some(prepared) = client.prepared.as_mut().filter(|_| client.pins.is_unread()) else {
            return;
        };
        for entry in &mut self.backend.prepared.named {
            if entry.definition.take().is_some() {
                prepared.forget_name(&entry.name);
            }
        }
    }
}
