//! Texts and executions: they are judged, and the plan is carried out.
//!
//! A text is judged by its words, its client and what is known of stored code, all at once
//! ([`crate::statements::plan`]). Code that it defines is made known in front of that. What
//! the plan says is done here, in one match; a command that a backend is to run is started
//! (`start.rs: start`), perhaps with another text in its place.

use crate::client::{Client, ClientState, Handled, attributes};
use crate::cluster::routing;
use crate::group::parts::Parts;
use crate::group::tokens::{BackendId, ClientId};
use crate::scheduler::checkout;
use crate::scheduler::matching::choice::LastBackend;
use crate::scheduler::priority::Asked;
use crate::statements::kill::carrying;
use crate::statements::own_ok::OwnOk;
use crate::statements::pinning::guards;
use crate::statements::plan::{Judging, OwnReply, Plan, RunPlan};
use crate::statements::stored_code::{CodeSeen, SchemaText};
use crate::statements::{endings, start, unanswered};
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

/// A text that a client sends, behind its attributes if it has any.
pub(crate) fn on_query<N: Net>(
    parts: &mut Parts<N>,
    key: ClientId,
    message: &[u8],
    arguments: &[u8],
) -> Handled {
    (parts.known.code_seen).renew(&parts.shared.watched.code_catalogue);
    let Some(client) = parts.clients.get(key) else {
        return Handled::Used;
    };
    let Ok(sql) = attributes::text_in(client.capabilities, arguments) else {
        parts.answers().malformed(key);
        return Handled::Used;
    };
    let mode = client.lex_mode(&parts.shared.server);
    let digested = parts.observed.figures.digests.are_counted() || !parts.known.rules.is_empty();
    let names = parts.known.code_seen.names.tables();
    let seen = (parts.client_side.current_input).seen(message, (sql, mode), digested, names);
    let names_none_of = (!seen.may_name).then_some(parts.known.code_seen.version);
    let session = client.session.state.clone();
    let text = Text { sql, mode, seen };
    if !parts.known.rules.is_empty()
        && let Some(handled) = start::keep_rules(parts, key, text.digest())
    {
        return handled;
    }
    let of_schema = SchemaText {
        sql,
        mode,
        found: &seen.class,
        schema: Some(session.schema.as_deref().unwrap_or_default()),
        names_none_of: None,
    };
    let guards = guards(of_schema, &mut parts.known.code_seen, &parts.shared);
    let reads = parts.reading(key);
    let reads = reads.is_some_and(|client| client.wants_readers(&parts.backend_pools, sql));
    let plan = judge(parts, (key, reads), &guards, |j| {
        j.text(&text, names_none_of)
    });
    carry_out_plan(parts, key, message, plan, Judged::Text(&text), guards)
}

/// Judges a client's command, which has these guards; `reads_elsewhere`: it may go to another
/// server.
pub(crate) fn judge<N: Net>(
    parts: &mut Parts<N>,
    (key, reads_elsewhere): (ClientId, bool),
    guards: &[Box<dyn Guard>],
    judge: impl FnOnce(Judging<'_, N::Sock>) -> Plan,
) -> Option<Plan> {
    let alone = parts.alone(key)?;
    let client = alone.view.client;
    let last = LastBackend {
        key,
        client,
        backends: &parts.backends,
        pools: (client.pool as usize, &parts.backend_pools.pools),
        defaults: &parts.known.defaults,
        server: &parts.shared.server,
        now: parts.net.now(),
    };
    let is_served = !parts.work.drain.is_ending();
    let may_use = |id: &BackendId, asks_only: &dyn Fn() -> bool| {
        let reader = (parts.backends)
            .get(*id)
            .filter(|backend| backend.is_reader());
        // A question in front of the text would be the last statement there.
        let is_asked = |pool: usize| {
            let pool = &parts.backend_pools.pools[pool];
            (parts.reading(key)).is_some_and(|client| client.not_known_to_have(pool).is_some())
        };
        is_served && reader.is_none_or(|reader| asks_only() && !is_asked(reader.pool))
    };
    let last_backend =
        |asks_only: &dyn Fn() -> bool| last.find().filter(|id| may_use(id, asks_only));
    Some(judge(Judging {
        alone,
        code: CodeSeen::of(&parts.shared, &parts.known.code_seen),
        policy: parts.settings.stored_code,
        gtid: parts.client_side.gtids.get(&key),
        pipelines: parts.settings.pipeline_max > 1,
        digests: parts.observed.figures.digests.are_counted(),
        reads_elsewhere,
        guarded: !guards.is_empty(),
        last_backend: &last_backend,
    }))
}

/// Carries out the plan of a command.
pub(crate) fn carry_out_plan<N: Net>(
    parts: &mut Parts<N>,
    key: ClientId,
    message: &[u8],
    plan: Option<Plan>,
    judged: Judged<'_>,
    guards: Vec<Box<dyn Guard>>,
) -> Handled {
    match plan {
        None => Handled::Used,
        Some(Plan::Reply(_)) if unanswered::awaits_answers(parts, key) => {
            parts.waiters().wait_outside(key)
        }
        Some(Plan::Reply(reply)) => reply_locally(parts, key, reply, &judged),
        Some(Plan::Kill(kill)) => carrying::on_kill(parts, key, message, kill),
        Some(Plan::Refuse(refusal)) => {
            if let Judged::Execution(_, id, _) = judged
                && let Some(client) = parts.clients.get_mut(key)
            {
                client.session.prepared.drop_long_data(id);
            }
            parts.answers().refuse_counted(key, &refusal)
        }
        Some(Plan::Wait) => parts.waiters().wait_outside(key),
        Some(Plan::Run(plan)) => run(parts, key, message, plan, judged, guards),
    }
}

/// Answers a command that no server sees.
fn reply_locally<N: Net>(
    parts: &mut Parts<N>,
    key: ClientId,
    reply: OwnReply,
    judged: &Judged<'_>,
) -> Handled {
    if let (OwnReply::Ok(..) | OwnReply::EmptyAgain, Judged::Text(text)) = (&reply, judged) {
        let failed = matches!(reply, OwnReply::EmptyAgain);
        let digests = &mut parts.observed.figures.digests;
        let digest = digests.of_text(text, parts.net.now());
        digests.sent(digest, Duration::ZERO);
        digests.answered(digest, Duration::ZERO, failed, 0);
    }
    match reply {
        OwnReply::Ok(edge, reports) => {
            let mysql = parts.shared.server.flavour.is_mysql();
            if let Some(client) = parts.clients.get_mut(key) {
                client.note_answered_locally(edge, mysql, &mut parts.observed.counts);
            }
            let ok = OwnOk {
                reports: &reports,
                ..OwnOk::PLAIN
            };
            parts.answers().ok(key, &ok);
        }
        OwnReply::EmptyAgain => parts.answers().empty_again(key),
        OwnReply::Rows(rows) => parts.answers().show(key, &rows),
        OwnReply::Priority(asked) => {
            if let Asked::ReadFrom(from) = asked {
                parts.readers().ask_from(key, from);
            }
            match parts.waiters().ask_priority(key, asked) {
                Ok(()) => parts.answers().ok(key, &OwnOk::PLAIN),
                Err(refusal) => return parts.answers().refuse_counted(key, &refusal),
            }
        }
    }
    Handled::Used
}

/// Runs a command on a backend.
fn run<N: Net>(
    parts: &mut Parts<N>,
    key: ClientId,
    message: &[u8],
    mut plan: RunPlan,
    judged: Judged<'_>,
    guards: Vec<Box<dyn Guard>>,
) -> Handled {
    let mut goes_back = false;
    if let Some(backend) = plan.back {
        checkout::bind(parts, key, backend, None);
        goes_back = (parts.backends.get(backend)).is_some_and(|backend| backend.is_reader());
    }
    if goes_back {
        plan.statement.place = Why::Read;
    } else if parts.shared.cluster.is_some() {
        let statement = &mut plan.statement;
        if plan.effects.pins.is_some() || statement.code != Code::None {
            // It may write, and what it leaves stays on the writer.
            statement.place = Why::Code;
        }
        let class = match &judged {
            Judged::Text(text) => text.seen.class,
            Judged::Execution(_, _, definition) => definition.class,
        };
        if let Some(handled) =
            routing::route(parts, key, message.len(), &mut plan.statement, &class)
        {
            return handled;
        }
    }
    if plan.asks_insert_id
        && let Some(backend) = parts.clients.get(key).and_then(Client::backend)
        && let Some(mut pair) = parts.pair(key, backend)
    {
        let next = pair.read_back(Properties::INSERT_ID);
        endings::follow(parts, key, backend, next);
    }
    let Some(client) = parts.clients.get_mut(key) else {
        return Handled::Used;
    };
    client.session.effects.plan_retracking(plan.retracking);
    let (digest, now) = (plan.statement.digest, parts.net.now());
    let message = match judged {
        Judged::Text(text) => {
            client.session.take_effects(text.sql, plan.effects, guards);
            if digest != 0 {
                (parts.observed.figures.digests).note(digest, (text.sql, text.mode), now);
            }
            match plan.instead {
                Some(instead) => {
                    Cow::Owned(attributes::reworded(client.capabilities, message, &instead))
                }
                None => Cow::Borrowed(message),
            }
        }
        Judged::Execution(command, id, definition) => {
            let definition = match plan.definition {
                Some(own) => parts.known.definitions.share(*own),
                None => definition,
            };
            (client.session).take_effects(&definition.sql, plan.effects, guards);
            if digest != 0 {
                let server = &parts.shared.server;
                let mode = server.lex_mode(&definition.session, client.capabilities);
                (parts.observed.figures.digests).note(digest, (&definition.sql, mode), now);
            }
            client.session.prepared.get_or_insert_default().under_way = Some(UnderWay {
                cursor: plan.cursor,
                ..UnderWay::new(command, id, definition)
            });
            match plan.drops_cursor {
                true => Cow::Owned(without_cursor(message)),
                false => Cow::Borrowed(message),
            }
        }
    };
    let handled = start::start(parts, key, &message, plan.statement);
    // The checkout of a client that has not used its backend after all ends.
    if plan.back.is_some()
        && let Some(client) = parts.clients.get(key)
        && client.state() == ClientState::Idle
        && let Some(backend_id) = client.backend()
    {
        endings::settle(parts, backend_id);
    }
    handled
}
