//! Texts and executions: they are judged, and the plan is carried out.
//!
//! A text is judged by its words, its client and what is known of stored code, all at once
//! ([`crate::statements::plan`]). Code that it defines is made known in front of that. What
//! the plan says is done here, in one match; a command that a backend is to run is started
//! (`statements.rs: start`), perhaps with another text in its place.

use crate::client::Handled;
use crate::client::{Client, ClientState};
use crate::group::Group;
use crate::group::tokens::{BackendId, ClientId};
use crate::scheduler::matching::choice::LastBackend;
use crate::scheduler::priority::Asked;
use crate::statements::own_ok::OwnOk;
use crate::statements::pinning::guards;
use crate::statements::plan::{Judging, OwnReply, Plan, RunPlan};
use crate::statements::stored_code::{CodeSeen, SchemaText};
use reactor::Net;
use session::elsewhere::Why;
use session::pins::Guard;
use session::prepared::{Definition, UnderWay};
use session::read_back::Properties;
use session::statement::Code;
use sql::text::Text;
use std::borrow::Cow;
use std::rc::Rc;
use std::time::Duration;
use wire::command::Command;
use wire::execution::without_cursor;

/// A command that has been judged.
pub(crate) enum Judged<'a> {
    /// A text.
    Text(&'a Text<'a>),
    /// An execution of the client's statement with this id.
    Execution(Command, u32, Rc<Definition>),
}

impl<N: Net> Group<N> {
    /// A text that a client sends, behind its attributes if it has any.
    pub(crate) fn on_query(&mut self, key: ClientId, message: &[u8], arguments: &[u8]) -> Handled {
        self.code_seen.renew(&self.shared.code_catalogue);
        let Some(client) = self.clients.get(key) else {
            return Handled::Used;
        };
        let Ok(sql) = client.text_in(arguments) else {
            self.answers().malformed(key);
            return Handled::Used;
        };
        let mode = client.lex_mode(&self.shared.server);
        let digested = self.figures.digests.are_counted() || !self.rules.is_empty();
        let names = self.code_seen.names.tables();
        let seen = (self.current_input).seen(message, (sql, mode), digested, names);
        let names_none_of = (!seen.may_name).then_some(self.code_seen.version);
        let session = client.session.clone();
        let text = Text { sql, mode, seen };
        if let Some(handled) = self.keep_rules(key, || text.digest()) {
            return handled;
        }
        let of_schema = SchemaText {
            sql,
            mode,
            found: &seen.class,
            schema: Some(session.schema.as_deref().unwrap_or_default()),
            names_none_of: None,
        };
        let guards = guards(of_schema, &mut self.code_seen, &self.shared);
        let reads = self.reading(key);
        let reads = reads.is_some_and(|client| client.wants_readers(&self.backend_pools, sql));
        let plan = self.judge((key, reads), &guards, |j| j.text(&text, names_none_of));
        self.carry_out_plan(key, message, plan, Judged::Text(&text), guards)
    }

    /// Judges a client's command, which has these guards; `reads_elsewhere`: it may go to another
    /// server.
    pub(crate) fn judge(
        &mut self,
        (key, reads_elsewhere): (ClientId, bool),
        guards: &[Box<dyn Guard>],
        judge: impl FnOnce(Judging<'_, N::Sock>) -> Plan,
    ) -> Option<Plan> {
        let alone = self.alone(key)?;
        let client = alone.view.client;
        let last = LastBackend {
            key,
            client,
            backends: &self.backends,
            pools: (client.pool as usize, &self.backend_pools.pools),
            defaults: &self.defaults,
            server: &self.shared.server,
            now: self.net.now(),
        };
        let is_served = !self.drain.is_ending();
        let may_use = |id: &BackendId, asks_only: &dyn Fn() -> bool| {
            let reader = self.backends.get(*id).filter(|backend| backend.is_reader());
            // A question in front of the text would be the last statement there.
            let is_asked = |pool: usize| {
                let pool = &self.backend_pools.pools[pool];
                (self.reading(key)).is_some_and(|client| client.not_known_to_have(pool).is_some())
            };
            is_served && reader.is_none_or(|reader| asks_only() && !is_asked(reader.pool))
        };
        let last_backend =
            |asks_only: &dyn Fn() -> bool| last.find().filter(|id| may_use(id, asks_only));
        Some(judge(Judging {
            alone,
            code: CodeSeen::of(&self.shared, &self.code_seen),
            policy: self.settings.stored_code,
            gtid: self.gtids.get(&key),
            pipelines: self.settings.pipeline_max > 1,
            digests: self.figures.digests.are_counted(),
            reads_elsewhere,
            guarded: !guards.is_empty(),
            last_backend: &last_backend,
        }))
    }

    /// Carries out the plan of a command.
    pub(crate) fn carry_out_plan(
        &mut self,
        key: ClientId,
        message: &[u8],
        plan: Option<Plan>,
        judged: Judged<'_>,
        guards: Vec<Box<dyn Guard>>,
    ) -> Handled {
        match plan {
            None => Handled::Used,
            Some(Plan::Reply(_)) if self.awaits_answers(key) => self.waiters().wait_outside(key),
            Some(Plan::Reply(reply)) => self.reply_locally(key, reply, &judged),
            Some(Plan::Kill(kill)) => self.on_kill(key, message, kill),
            Some(Plan::Refuse(refusal)) => {
                if let Judged::Execution(_, id, _) = judged
                    && let Some(client) = self.clients.get_mut(key)
                {
                    client.drop_long_data(id);
                }
                self.answers().refuse_counted(key, &refusal)
            }
            Some(Plan::Wait) => self.waiters().wait_outside(key),
            Some(Plan::Run(plan)) => self.run(key, message, plan, judged, guards),
        }
    }

    /// Answers a command that no server sees.
    fn reply_locally(&mut self, key: ClientId, reply: OwnReply, judged: &Judged<'_>) -> Handled {
        if let (OwnReply::Ok(..) | OwnReply::EmptyAgain, Judged::Text(text)) = (&reply, judged) {
            let failed = matches!(reply, OwnReply::EmptyAgain);
            let digests = &mut self.figures.digests;
            let digest = digests.of_text(text, self.net.now());
            digests.sent(digest, Duration::ZERO);
            digests.answered(digest, Duration::ZERO, failed, 0);
        }
        match reply {
            OwnReply::Ok(edge, reports) => {
                let mysql = self.shared.server.flavour.is_mysql();
                if let Some(client) = self.clients.get_mut(key) {
                    client.note_answered_locally(edge, mysql, &mut self.counts);
                }
                let ok = OwnOk {
                    reports: &reports,
                    ..OwnOk::PLAIN
                };
                self.answers().ok(key, &ok);
            }
            OwnReply::EmptyAgain => self.answers().empty_again(key),
            OwnReply::Rows(rows) => self.answers().show(key, &rows),
            OwnReply::Priority(asked) => {
                if let Asked::ReadFrom(from) = asked {
                    self.readers().ask_from(key, from);
                }
                match self.waiters().ask_priority(key, asked) {
                    Ok(()) => self.answers().ok(key, &OwnOk::PLAIN),
                    Err(refusal) => return self.answers().refuse_counted(key, &refusal),
                }
            }
        }
        Handled::Used
    }

    /// Runs a command on a backend.
    fn run(
        &mut self,
        key: ClientId,
        message: &[u8],
        mut plan: RunPlan,
        judged: Judged<'_>,
        guards: Vec<Box<dyn Guard>>,
    ) -> Handled {
        if let Some(backend) = plan.back
            && self.bind(key, backend)
        {
            let pool = self.backends.get(backend).map(|backend| backend.pool);
            if let (Some(pool), Some(client)) = (pool, self.clients.get_mut(key)) {
                client.pool = u32::try_from(pool).unwrap_or(client.pool);
            }
        }
        let goes_back = plan.back.is_some_and(|back| {
            (self.backends.get(back)).is_some_and(|backend| backend.is_reader())
        });
        if goes_back {
            plan.statement.place = Why::Read;
        } else if self.shared.cluster.is_some() {
            let statement = &mut plan.statement;
            if plan.effects.pins.is_some() || statement.code != Code::None {
                // It may write, and what it leaves stays on the writer.
                statement.place = Why::Code;
            }
            let class = match &judged {
                Judged::Text(text) => text.seen.class,
                Judged::Execution(_, _, definition) => definition.class,
            };
            if let Some(handled) = self.route(key, message.len(), &mut plan.statement, &class) {
                return handled;
            }
        }
        let backend = self.clients.get(key).and_then(Client::backend);
        if plan.asks_insert_id
            && let Some(backend) = backend
            && let Some(mut pair) = self.pair(key, backend)
        {
            let next = pair.read_back(Properties::INSERT_ID);
            self.follow(key, backend, next);
        }
        let Some(client) = self.clients.get_mut(key) else {
            return Handled::Used;
        };
        client.plan_retracking(plan.retracking);
        let (digest, now) = (plan.statement.digest, self.net.now());
        let message = match judged {
            Judged::Text(text) => {
                client.take_effects(text.sql, plan.effects, guards);
                if digest != 0 {
                    (self.figures.digests).note(digest, (text.sql, text.mode), now);
                }
                match plan.instead {
                    Some(instead) => Cow::Owned(client.reworded(message, &instead)),
                    None => Cow::Borrowed(message),
                }
            }
            Judged::Execution(command, id, definition) => {
                let definition = match plan.definition {
                    Some(own) => self.definitions.share(*own),
                    None => definition,
                };
                client.take_effects(&definition.sql, plan.effects, guards);
                if digest != 0 {
                    let server = &self.shared.server;
                    let mode = server.lex_mode(&definition.session, client.capabilities);
                    (self.figures.digests).note(digest, (&definition.sql, mode), now);
                }
                client.prepared.get_or_insert_default().under_way = Some(UnderWay {
                    cursor: plan.cursor,
                    ..UnderWay::new(command, id, definition)
                });
                match plan.drops_cursor {
                    true => Cow::Owned(without_cursor(message)),
                    false => Cow::Borrowed(message),
                }
            }
        };
        let handled = self.start(key, &message, plan.statement);
        // The checkout of a client that has not used its backend after all ends.
        if plan.back.is_some()
            && let Some(client) = self.clients.get(key)
            && client.state() == ClientState::Idle
            && let Some(backend_id) = client.backend()
        {
            self.settle(backend_id);
        }
        handled
    }
}
