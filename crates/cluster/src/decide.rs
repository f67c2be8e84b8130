//! The decision: one pure function from answers and the view before to the next view.
//!
//! The problem and the invariants are at the head of the crate. The mechanism: answers are
//! counted, each once; the writer before stays unless it says no, is down, or the cluster names
//! another; else it is replaced by the one server against which nothing stands. What a report
//! means, and what stands against a server, is in `evidence`.

use crate::evidence::Scene;
use crate::report::{Failure, Observation, Traffic};
use crate::settings::{Kind, Role, ServerId, Settings};
use crate::view::{Memory, ServerState, State, View};

/// Fewest statements by which a reader's circuit breaker judges.
const BREAKER_STATEMENTS_MIN: u32 = 20;
/// Most doublings of the time for which a server must be silent, and the time after which they are
/// forgotten.
const RELAPSES_MAX: u32 = 4;
const CALM_MS: u64 = 600_000;
/// Time for which a server is full after a statement that failed for want of room.
const FULL_MS: u64 = 10_000;
/// Steps in which the weight of a server that starts slowly grows.
const SLOW_START_STEPS: u64 = 10;

/// Next view, out of the latest observation of each server and the view before. An observation
/// that was counted already is not counted again: it may be called at any time.
pub fn decide(observations: &[Observation], view: &View, settings: &Settings, now: u64) -> View {
    let mut next = view.clone();
    for observation in observations {
        if let Some(server) = next.servers.get_mut(observation.server.index()) {
            count(observation, server, settings, now);
        }
    }
    lift_fences(&mut next, settings, now);
    let (writer, why) = choose_writer(&next, settings, now);
    next.set_writer(writer, why, now);
    choose_readers(&mut next, settings, now);
    next
}

/// Counts an answer or a failure, once.
fn count(observation: &Observation, server: &mut ServerState, settings: &Settings, now: u64) {
    let memory = &mut server.memory;
    if memory.counted_at == Some(observation.at) {
        return;
    }
    let first = memory.counted_at.replace(observation.at).is_none();
    count_traffic(observation.traffic, memory, settings, now);
    if observation.traffic.full != 0 {
        memory.full = Some((observation.traffic.full, now));
    }
    match &observation.answer {
        Ok(report) => {
            if let Some(lag_ms) = report.sources.iter().filter_map(|it| it.lag_ms).max() {
                memory.lag = Some((lag_ms, observation.at));
            }
            server.report = Some(report.clone());
            memory.reported_at = observation.at;
            memory.heard_from();
            memory.silent = 0;
            memory.good += 1;
            if !memory.is_up && (first || memory.good >= settings.rise) {
                memory.is_up = true;
                memory.up_at = (!first).then_some(now);
            }
        }
        Err(Failure::LoginRefused(text) | Failure::Broken(text)) => {
            memory.heard_from();
            memory.good = 0;
            memory.silent += 1;
            memory.failure.clone_from(text);
        }
        Err(failure @ (Failure::Refused(_) | Failure::TimedOut)) => {
            (memory.good, memory.silent) = (0, 0);
            if memory.failures == 0 {
                memory.failing_at = observation.at;
            }
            memory.failures += 1;
            match failure {
                Failure::Refused(text) => {
                    memory.refusals += 1;
                    memory.failure = format!("it refuses connections: {text}");
                }
                _ => {
                    memory.refusals = 0;
                    memory.failure = "it does not answer in time".into();
                }
            }
            let failing_at = memory.failing_at.min(observation.at);
            let silent_ms = observation.at + observation.took_ms - failing_at;
            // One that falls silent again and again is given more time each time.
            let fall_ms = settings.fall_ms << memory.relapses.min(RELAPSES_MAX);
            let is_silent = memory.failures >= settings.fall && silent_ms >= fall_ms;
            if memory.is_up && (is_silent || memory.refusals >= settings.fall) {
                memory.is_up = false;
                let calm = now.abs_diff(memory.fell_at) > CALM_MS;
                memory.relapses = if calm { 1 } else { memory.relapses + 1 };
                memory.fell_at = now;
            }
        }
    }
}

/// Opens the circuit breaker of a server on which too many statements fail.
fn count_traffic(traffic: Traffic, memory: &mut Memory, settings: &Settings, now: u64) {
    let add = |sum: u32, new: u32| (sum / 2).saturating_add(new);
    memory.statements = add(memory.statements, traffic.statements);
    memory.failed = add(memory.failed, traffic.failed);
    let [failed, statements] = [memory.failed, memory.statements].map(u64::from);
    let percent_max = u64::from(settings.errors_percent_max);
    if memory.statements >= BREAKER_STATEMENTS_MIN && failed * 100 > percent_max * statements {
        memory.opened_at = Some(now);
        (memory.statements, memory.failed) = (0, 0);
    }
}

/// Ends fences of servers that say themselves that they take no writes.
fn lift_fences(view: &mut View, settings: &Settings, now: u64) {
    let scene = Scene {
        settings,
        view,
        now,
    };
    let harmless: Vec<bool> = scene
        .ids()
        .map(|id| scene.is_fresh(id) && scene.takes_writes(id).is_err())
        .collect();
    for (server, harmless) in view.servers.iter_mut().zip(harmless) {
        if harmless {
            server.memory.fenced = None;
        }
    }
}

/// The writer, and the reason for it or for none.
fn choose_writer(view: &View, settings: &Settings, now: u64) -> (Option<ServerId>, String) {
    let scene = Scene {
        settings,
        view,
        now,
    };
    let is_candidate = |id: &ServerId| {
        let memory = &view.servers[id.index()].memory;
        matches!(scene.role(*id), Role::Auto | Role::Writer)
            && memory.is_up
            && memory.fenced.is_none()
            && scene.is_fresh(*id)
            && scene.takes_writes(*id).is_ok()
    };
    let mut candidates: Vec<ServerId> = scene.ids().filter(is_candidate).collect();
    candidates.sort_by_key(|&id| scene.rank(id));

    let lost = match view.holder {
        None => None,
        Some(holder) => match reason_to_leave(&scene, holder) {
            Some(why) => Some(format!("{}: {why}", settings.name(holder))),
            None if view.writer == Some(holder) => {
                let replaced = |&&id: &&ServerId| id != holder && scene.is_replaced(holder, id);
                return match candidates.iter().find(replaced) {
                    Some(&id) if scene.obstacle(id).is_none() => (
                        Some(id),
                        "the cluster names it in place of the writer before".into(),
                    ),
                    _ => (Some(holder), reason_to_stay(&scene, holder, &candidates)),
                };
            }
            None => None,
        },
    };
    let unasked = |id: &ServerId| {
        scene.role(*id) != Role::Off && view.servers[id.index()].memory.counted_at.is_none()
    };
    if let Some(id) = scene.ids().find(unasked) {
        return (
            None,
            format!("{} has not been asked yet", settings.name(id)),
        );
    }
    // The writer before has the first right; it is none of them if there is a reason to leave it.
    candidates.sort_by_key(|&id| Some(id) != view.holder);
    let mut obstacles = String::new();
    for id in candidates {
        match scene.obstacle(id) {
            None => return (Some(id), why_taken(settings, lost)),
            Some(why) => obstacles = format!("; {} could be, but {why}", settings.name(id)),
        }
    }
    let why = lost.unwrap_or_else(|| "no server takes writes".into());
    (None, why + &obstacles)
}

fn why_taken(settings: &Settings, lost: Option<String>) -> String {
    let says = match settings.kind {
        Kind::Galera => "it is in the primary component",
        Kind::GroupReplication => "it is the primary of the group",
        Kind::Aurora => "the cluster names it",
        Kind::Replication | Kind::Rds => "it takes writes, and no other server does",
    };
    match lost {
        Some(lost) => format!("{says}; before it {lost}"),
        None => says.into(),
    }
}

/// Reason why the writer does not stay; `None` if it does, as far as is known.
fn reason_to_leave(scene: &Scene<'_>, holder: ServerId) -> Option<String> {
    let server = &scene.view.servers[holder.index()];
    let memory = &server.memory;
    if matches!(scene.role(holder), Role::Reader | Role::Off) {
        return Some("its role forbids it".into());
    }
    if let Some(why) = &memory.fenced {
        return Some(format!("it is fenced: {why}"));
    }
    if !memory.is_up && memory.counted_at.is_some() {
        return Some(memory.failure.clone());
    }
    // A report from before it became the writer says nothing of it as the writer.
    let since = scene.view.holder_since;
    let is_old = memory.reported_at < since && since <= scene.now;
    match is_old || server.report.is_none() {
        true => None,
        false => scene.takes_writes(holder).err(),
    }
}

fn reason_to_stay(scene: &Scene<'_>, holder: ServerId, candidates: &[ServerId]) -> String {
    let single = matches!(
        scene.settings.kind,
        Kind::Replication | Kind::Rds | Kind::Aurora
    );
    match candidates.iter().find(|&&id| id != holder) {
        Some(&other) if single => {
            let other = scene.settings.name(other);
            format!("it stays the writer; {other} takes writes too: set its read_only or its role")
        }
        _ => scene.view.holder_why.clone(),
    }
}

impl View {
    /// True if what the writer writes can reach a server by replication, as far as is known. The
    /// replicas of a writer that was left never hear of the new one.
    pub fn is_followed_by(&self, server: ServerId, settings: &Settings, now: u64) -> bool {
        let scene = Scene {
            settings,
            view: self,
            now,
        };
        (self.writer).is_none_or(|writer| scene.reaches(writer, server))
    }

    pub(crate) fn set_writer(&mut self, writer: Option<ServerId>, why: String, now: u64) {
        self.why.clone_from(&why);
        if self.writer == writer {
            return;
        }
        self.epoch += 1;
        self.writer = writer;
        if let Some(id) = writer {
            (self.holder, self.holder_since, self.holder_why) = (Some(id), now, why);
            self.servers[id.index()].memory.fenced = None;
        }
    }
}

/// Sets the readers, and each server's state, reason and weight.
fn choose_readers(view: &mut View, settings: &Settings, now: u64) {
    let scene = Scene {
        settings,
        view,
        now,
    };
    let verdicts: Vec<_> = scene.ids().map(|id| verdict(&scene, id)).collect();
    view.readers.clear();
    for (id, (state, why, lags)) in (0..).map(ServerId).zip(verdicts) {
        let weight = settings.servers[id.index()].weight;
        let server = &mut view.servers[id.index()];
        server.memory.lags = lags;
        server.weight = slow_start(weight, &server.memory, settings, now);
        if state == State::Reader {
            view.readers.push(id);
        }
        if server.state != state {
            (server.state, server.since) = (state, now);
        }
        server.why = why;
    }
}

/// State of a server, the reason, and true if it lags too far.
fn verdict(scene: &Scene<'_>, id: ServerId) -> (State, String, bool) {
    let memory = &scene.view.servers[id.index()].memory;
    let lags = memory.lags;
    if scene.role(id) == Role::Off {
        return (State::Off, "its role is off".into(), lags);
    }
    if memory.counted_at.is_none() {
        return (State::Unknown, "it has not answered yet".into(), lags);
    }
    if scene.view.writer == Some(id) {
        let is_recent = |at: u64| at <= scene.now && scene.now - at < FULL_MS;
        if let Some((code, _)) = memory.full.filter(|(_, at)| is_recent(*at)) {
            let why = format!("statements fail for want of room: error {code}");
            return (State::Full, why, lags);
        }
        return (State::Writer, scene.view.why.clone(), lags);
    }
    if !memory.is_up && memory.silent == 0 {
        return (State::Down, memory.failure.clone(), lags);
    }
    if memory.silent >= scene.settings.fall || !memory.is_up {
        return (State::Unused, memory.failure.clone(), lags);
    }
    if let Some(why) = &memory.fenced {
        return (State::Unused, format!("it is fenced: {why}"), lags);
    }
    let readable = is_readable(scene, id).and_then(|()| lag(scene, id));
    match readable {
        Ok(why) => (State::Reader, why, false),
        Err((why, lags)) => (State::Unused, why, lags),
    }
}

fn is_readable(scene: &Scene<'_>, id: ServerId) -> Result<(), (String, bool)> {
    let memory = &scene.view.servers[id.index()].memory;
    let no = |why: &str| Err((why.to_owned(), memory.lags));
    if scene.role(id) == Role::Writer {
        return no("its role is writer");
    }
    if scene.settings.servers[id.index()].weight == 0 {
        return no("its weight is 0");
    }
    let open = |at: u64| at <= scene.now && scene.now - at < scene.settings.breaker_ms;
    if memory.opened_at.is_some_and(open) {
        return no("too many statements failed on it");
    }
    scene.serves_reads(id).map_err(|why| (why, memory.lags))
}

/// The lag in words, or as the error that it is too long. One that is not known has grown by the
/// time since it was: a source that is lost leaves its replicas readable for a while.
fn lag(scene: &Scene<'_>, id: ServerId) -> Result<String, (String, bool)> {
    let memory = &scene.view.servers[id.index()].memory;
    let grown = || {
        memory
            .lag
            .map(|(lag_ms, at)| lag_ms + scene.now.abs_diff(at))
    };
    let Some(lag_ms) = scene.lag_ms(id).or_else(grown) else {
        return Err(("its lag is not known".into(), memory.lags));
    };
    let lag_ms_max = scene.settings.lag_ms_max;
    if lag_ms > lag_ms_max || (memory.lags && lag_ms > lag_ms_max / 2) {
        return Err((format!("it lags by {lag_ms} ms"), true));
    }
    Ok("it is up and not behind".into())
}

/// Weight of a server, which grows in steps after it was down or its breaker open.
fn slow_start(weight: u32, memory: &Memory, settings: &Settings, now: u64) -> u32 {
    let closed_at = memory.opened_at.map(|at| at + settings.breaker_ms);
    let Some(begun) = memory.up_at.max(closed_at) else {
        return weight;
    };
    let step = now.saturating_sub(begun) * SLOW_START_STEPS / settings.slow_start_ms.max(1) + 1;
    let part = u64::from(weight) * step.min(SLOW_START_STEPS) / SLOW_START_STEPS;
    u32::try_from(part).unwrap_or(weight).max(weight.min(1))
}
