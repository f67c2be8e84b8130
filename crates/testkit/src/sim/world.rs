//! The scheduler: what happens next is drawn from the seed, until everybody has gone.
//!
//! The problem: a group's mistakes hide in the order of events. The mechanism: at each step one of
//! everything that could happen now is chosen: bytes arrive, a peer takes some, the server runs a
//! command, a client sends, the group has its turn, something breaks. When nothing can happen, the
//! clock jumps to the next moment that somebody waits for.
//!
//! What holds, or the run ends with a panic that says what does not:
//! - a client that waits is answered within [`PATIENCE`];
//! - no group asks for turn after turn in which nothing happens;
//! - no statement needs more commands of the pool's own than there may be;
//! - nobody waits in one group while a backend lies idle in another (`crew.rs`);
//! - when all clients have gone, nobody waits and no backend is checked out.
//!
//! In some worlds the password of the pool's account is changed on the server and in the settings,
//! and all backends are replaced; no client is closed for that. The oracle cannot do so: its
//! scripts share one server's accounts.

mod crew;
mod kill;

use super::Seen;
use super::client::{Manners, Phase, SimClient};
use super::fake_mysql::{Db, NEW_PASSWORD, PASSWORD, Seat};
use super::net::{Dials, Disk, Peer, SimFile, SimNet, Stage, Wires};
use super::random::Random;
use super::settings::{facts, settings_text, with_readers};
use crew::Crew;
use pool::{Order, Raw, Shared, Sizes, SpoolFiles};
use reactor::{Address, Time};
use std::cell::RefMut;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use wire::auth::caching_sha2::KeyPair;
use wire::errors::ErrorCode;

/// Longest wait of a client for an answer: far above every limit, so a hang and nothing else.
const PATIENCE: Duration = Duration::from_secs(90);
const STEPS_MAX: u64 = 400_000;
/// Commands of one client that a turn may answer: those of its event, and those of its place in
/// line.
const FLOOD_TURN_MAX: usize = 64;
/// Steps before which the password is changed, in such worlds.
const ROTATED_MAX: u64 = 2000;
/// Times in a thousand steps that other servers may be read than before.
const READERS_CHANGE: u64 = 10;
/// Time for which a client stops in the middle of a reply: less than any limit of such worlds.
const STOP: Duration = Duration::from_millis(1500);
/// Error of MySQL since 8.0.24 before it closes an idle connection (ER_CLIENT_INTERACTION_TIMEOUT
/// of its manual).
const IDLE_FOR_TOO_LONG: ErrorCode = ErrorCode {
    code: 4031,
    state: "HY000",
};

/// One connection's server side.
struct Server {
    seat: Seat,
    /// Moment at which the command at the front of the input is done.
    done_at: Option<Time>,
}

/// Steps that can happen.
#[derive(Clone, Copy, Debug)]
enum Step {
    Turn(usize),
    Arrive(usize),
    Take(usize),
    End(usize),
    Greet(usize),
    Serve(usize),
    Act(usize),
    /// A worker checks a password.
    Check,
    /// A reader reads a long text.
    Read,
    /// The spool is written to, or read.
    Store,
    Fetch,
}

/// The world of one seed.
pub(crate) struct World {
    random: Random,
    net: SimNet,
    crew: Crew,
    shared: Arc<Shared>,
    files: SpoolFiles<SimFile>,
    disk: Disk,
    servers: BTreeMap<usize, Server>,
    db: Db,
    clients: Vec<SimClient>,
    manners: Manners,
    /// Faults happen for so many steps, so many times in a thousand.
    faults: (u64, u64),
    frost: bool,
    drain_at: Option<u64>,
    /// Steps before the end at which clients begin to leave in turns; 0: they leave at once.
    leaving: u64,
    /// The step at which the password is changed, and the settings as they are written.
    rotate_at: Option<u64>,
    text: String,
    /// Address of the servers that are read, where there are some: they come and go.
    reads_at: Option<Arc<Address>>,
    dials_until: Time,
    steps: u64,
    seen: Seen,
    ordered: bool,
}

impl World {
    pub(crate) fn new(seed: u64, keys: KeyPair, trace: bool) -> World {
        let mut random = Random::new(seed);
        let ordered = random.chance(150);
        let backends = if ordered { 1 } else { random.between(1, 4) };
        let most = *random.pick(&[1, 3]);
        let groups = random.between(1, backends.min(most));
        let pipeline_max = *random.pick(&[1, 2, 3, 8]);
        let pipeline_max = if ordered { 1 } else { pipeline_max };
        let wait_ms = *random.pick(&[150, 600, 2500]);
        let disk = match seed {
            _ if seed.is_multiple_of(7) => Disk::Full,
            _ if seed.is_multiple_of(13) => Disk::Hung,
            _ if seed.is_multiple_of(19) => Disk::Unreadable,
            _ => Disk::Well,
        };
        // A disk matters to those only who leave long replies to it.
        let readers_stop = disk != Disk::Well || seed.is_multiple_of(5);
        let of_all = (groups, backends);
        let mut text = settings_text(&mut random, of_all, pipeline_max, wait_ms, readers_stop);
        if ordered {
            // One queue is one order; between two, priority decides.
            text = text.replace("\"statements\"", "\"transactions\"");
        }
        // Not drawn, so that the worlds of the seeds stay what they were.
        let keeps_few = seed % 6 == 2;
        if keeps_few {
            text.insert_str(0, "account_kept_backends_max = 1\n");
        }
        let reads_elsewhere = seed % 10 == 6 && !ordered;
        if reads_elsewhere {
            text = with_readers(&text);
        }
        let settings = Raw::parse(&text).and_then(Raw::check).expect("settings");
        let tame = ordered || random.chance(250);
        let pipelined = random.chance(400);
        let manners = Manners {
            tame,
            pipelined,
            uniform: random.chance(300),
            guesses: random.chance(200),
            // The order of statements is read off their bytes, and frames are numbered by turns.
            packs: seed.is_multiple_of(3) && !ordered && !pipelined,
            secures: seed % 4 == 1 && !ordered,
            stalls: seed.is_multiple_of(2),
            keeps_few,
            reads_elsewhere,
            floods: seed % 5 == 4,
            floods_inside: seed % 2 == 1 && !tame,
            readers_stop,
            kinds: if ordered { 1 } else { random.between(1, 3) },
            eofs: random.chance(300),
            statements: random.between(4, 30),
            pipeline_max,
            wait_max: settings.wait_max,
        };
        let prepared_max = settings.prepared_max / settings.backends_max;
        let [groups, backends] = [groups, backends].map(|n| usize::try_from(n).unwrap());
        let sizes = Sizes {
            groups,
            cores: 1,
            clients_per_group: 1000,
        };
        let mut facts = facts();
        facts.reset_loses_foreign_keys = seed % 8 >= 5;
        let mut shared = Shared::new(settings, facts, keys, sizes);
        // Not drawn, so that the worlds of the seeds stay what they were.
        if !ordered {
            // Who reads a text elsewhere may be later than another.
            shared.lengths.text_here = [24, 60, 256 * 1024][prepared_max % 3];
            shared.lengths.texts = [1, 1024][prepared_max % 2];
        }
        shared.lengths.spool_block =
            [64, 600, 5000, 64 * 1024][usize::try_from(seed % 4).unwrap_or(0)];
        shared.lengths.long_reply = [400, 4000, 128 * 1024][usize::try_from(seed % 3).unwrap_or(0)];
        let address = Arc::new(Address::Tcp(([127, 0, 0, 1], 3306).into()));
        if reads_elsewhere {
            shared.begin_cluster(&address);
        }
        let files = SpoolFiles::new(move || Ok(SimFile::new(disk)));
        let shared = Arc::new(shared);
        // One more for each group's KILL.
        let net = SimNet::new(Random::new(random.next()), groups, backends + groups, trace);
        let crew = Crew::new(&net, &shared);
        let starts = net.0.borrow().now;
        let clients = (0..random.between(3, 25)).map(|id| {
            let at = starts + Duration::from_micros(random.below(20_000));
            SimClient::new(usize::try_from(id).unwrap(), &mut random, at, &manners)
        });
        let mut clients: Vec<SimClient> = clients.collect();
        if disk != Disk::Well {
            // Whose reply cannot be stored, or does not come back, is closed.
            clients.iter_mut().for_each(|client| client.ends = true);
        }
        let faults = if random.chance(300) {
            (0, 0)
        } else {
            (random.below(6000), *random.pick(&[2, 8, 30]))
        };
        // Steps count from 1: a drain at step 0 would never begin.
        let drain_at = random.chance(250).then(|| random.below(8000).max(1));
        let leaving = if random.chance(500) {
            random.below(2000)
        } else {
            0
        };
        let frost = random.chance(500);
        // Not drawn, so that the worlds of the seeds stay what they were.
        let rotate_at = (seed % 5 == 3).then_some(1 + seed * 37 % ROTATED_MAX);
        let db = Db::new(prepared_max, &mut random);
        let world = World {
            random,
            net,
            crew,
            shared,
            files,
            disk,
            servers: BTreeMap::new(),
            db,
            clients,
            manners,
            faults,
            frost,
            drain_at,
            leaving,
            rotate_at,
            reads_at: reads_elsewhere.then_some(address),
            text,
            dials_until: Time(0),
            steps: 0,
            seen: Seen::default(),
            ordered,
        };
        world.note(|| format!("seed {seed}: {}{manners:?} {:?}", world.text, world.faults));
        world
    }

    fn note(&self, what: impl FnOnce() -> String) {
        self.net.0.borrow().note(what);
    }

    fn wires(&self) -> RefMut<'_, Wires> {
        self.net.0.borrow_mut()
    }

    fn now(&self) -> Time {
        self.net.0.borrow().now
    }

    pub(crate) fn run(mut self) -> (Seen, KeyPair) {
        while self.clients.iter().any(|c| c.phase != Phase::Gone) || self.unfinished() {
            self.step();
            assert!(self.steps < STEPS_MAX, "the world does not come to its end");
        }
        self.check_end();
        let World { crew, shared, .. } = self;
        drop(crew);
        let shared = Arc::into_inner(shared).expect("nobody else holds it");
        (self.seen, shared.into_keys())
    }

    /// True while the groups have not noticed that their clients have gone.
    fn unfinished(&self) -> bool {
        self.crew.census().clients > 0 || self.crew.has_events(&self.wires())
    }

    fn step(&mut self) {
        self.steps += 1;
        self.wires().end_dials();
        self.make_trouble();
        let steps = self.possible_steps();
        if steps.is_empty() {
            return self.jump();
        }
        if self.random.chance(50) {
            let now = self.now() + Duration::from_micros(self.random.below(400));
            self.wires().now = now;
        }
        let step = *self.random.pick(&steps);
        if !matches!(step, Step::Turn(_)) {
            self.crew.something_happens();
        }
        match step {
            Step::Turn(group) => self.turn(group),
            Step::Arrive(id) => self.wires().arrive(id),
            Step::Take(id) => self.take(id),
            Step::End(id) => self.end(id),
            Step::Greet(id) => {
                let mut out = Vec::new();
                let seat = Seat::new(id, &mut out);
                let done_at = None;
                self.servers.insert(id, Server { seat, done_at });
                self.wires().send(id, &out);
            }
            Step::Serve(id) => self.serve(id),
            Step::Act(id) => self.act(id),
            Step::Read => {
                if let Some((group, read)) = self.shared.read_one_text() {
                    self.seen.texts += 1;
                    self.crew.send(group, read);
                }
            }
            Step::Store => {
                if let Some((group, stored)) = self.shared.write_spool(&self.files) {
                    self.crew.send(group, stored);
                }
            }
            Step::Fetch => {
                if let Some((group, fetched)) = self.shared.read_spool(&self.files) {
                    self.seen.fetched += 1;
                    self.crew.send(group, fetched);
                }
            }
            Step::Check => {
                self.seen.passwords += 1;
                for (group, verdict) in self.shared.check_one_password() {
                    self.crew.send(group, verdict);
                }
            }
        }
    }

    fn possible_steps(&mut self) -> Vec<Step> {
        let mut steps = Vec::new();
        let leaving = self.is_draining();
        let wires = self.net.0.borrow();
        let now = wires.now;
        for group in 0..self.crew.len() {
            if self.crew.is_due(group, &wires) {
                steps.extend([Step::Turn(group); 3]);
            }
        }
        for (id, wire) in wires.wires.iter().enumerate() {
            if wire.can_arrive() {
                steps.push(Step::Arrive(id));
            }
            let there = match wire.peer {
                Peer::Client(client) => {
                    let client = &self.clients[client];
                    client.phase != Phase::Gone && client.frozen_until <= now
                }
                Peer::Server if self.servers.contains_key(&id) => true,
                Peer::Server => {
                    if wire.stage == Stage::Stands && wire.is_open() {
                        steps.push(Step::Greet(id));
                    }
                    false
                }
            };
            if there && wire.can_be_taken() {
                steps.push(Step::Take(id));
            } else if there && wire.is_over_for_peer() {
                steps.push(Step::End(id));
            }
        }
        for (id, server) in &self.servers {
            let ready = match server.done_at {
                Some(at) => at <= now,
                None => server.seat.next_command().is_some(),
            };
            steps.extend(ready.then_some(Step::Serve(*id)));
        }
        for client in &self.clients {
            if client.may_act(now, &self.manners, leaving) && !self.sits_still(client) {
                steps.push(Step::Act(client.id));
            }
        }
        steps.extend((self.shared.password_checks_waiting() > 0).then_some(Step::Check));
        steps.extend((self.shared.texts_waiting() > 0).then_some(Step::Read));
        if self.disk != Disk::Hung {
            steps.extend((self.shared.spool_writes_waiting() > 0).then_some(Step::Store));
            steps.extend((self.shared.spool_reads_waiting() > 0).then_some(Step::Fetch));
        }
        steps
    }

    /// During a drain, a client that has nothing open waits to be sent away.
    fn sits_still(&self, client: &SimClient) -> bool {
        self.is_draining() && client.phase == Phase::In && !client.belief.may_be_bound()
    }

    fn is_draining(&self) -> bool {
        self.drain_at.is_some_and(|at| self.steps > at)
    }

    /// Moves the clock to the next moment that somebody waits for, where nothing can happen now.
    fn jump(&mut self) {
        let now = self.now();
        let peaceful = self.faults == (0, 0);
        let settings = self.shared.settings();
        let most = match self.db.account_max {
            0 => settings.backends_max,
            max => max.min(settings.backends_max),
        };
        self.crew.check_help(now, &settings, most, peaceful);
        let mut next = self.crew.deadline().min(self.wires().next_dial());
        for server in self.servers.values() {
            next = next.min(server.done_at.unwrap_or(Time::NEVER));
        }
        for client in &self.clients {
            for at in [client.acts_at, client.frozen_until] {
                if at > now && client.phase != Phase::Gone {
                    next = next.min(at);
                }
            }
            let waited = now.since(client.since.max(client.frozen_until));
            assert!(
                !client.waits() || waited < PATIENCE,
                "client {} waits for ever for {}; {:?}",
                client.id,
                client.words(),
                self.crew.census()
            );
        }
        if self.dials_until > now {
            next = next.min(self.dials_until);
        }
        assert!(
            next > now && next != Time::NEVER,
            "nothing can happen any more"
        );
        self.wires().now = next;
        self.crew.something_happens();
    }

    fn turn(&mut self, group: usize) {
        self.seen.turns += 1;
        let all = self.random.chance(700);
        let before = self.written_for_flood();
        self.crew.turn(group, &self.net, all);
        let written = self.written_for_flood().saturating_sub(before);
        assert!(
            written <= FLOOD_TURN_MAX,
            "a turn answers {written} commands of one client that floods"
        );
        self.seen.flooded = self.seen.flooded.max(written);
        self.crew.check_memory();
        let untaken = self.crew.check_untaken();
        self.seen.untaken = self.seen.untaken.max(untaken);
    }

    /// Answers that the client which floods has not taken.
    fn written_for_flood(&self) -> usize {
        let floods = |client: &&SimClient| client.floods(&self.manners) && client.is_amid_flood();
        let Some(client) = self.clients.iter().find(floods) else {
            return 0;
        };
        let untaken = |wire: usize| self.wires().wires[wire].untaken();
        client.wire.map_or(0, untaken) / client.ok_len()
    }

    /// Takes bytes that the group has written, as the peer.
    fn take(&mut self, id: usize) {
        let bytes = self.wires().take(id);
        if bytes.is_empty() {
            return;
        }
        let peer = self.wires().wires[id].peer;
        match peer {
            Peer::Server => {
                if let Some(server) = self.servers.get_mut(&id) {
                    server.seat.input.extend_from_slice(&bytes);
                }
            }
            Peer::Client(number) => {
                let mut out = Vec::new();
                let client = &mut self.clients[number];
                let before = client.answered;
                client.hear(&self.db, &self.manners, &bytes, &mut out);
                self.wires().send(id, &out);
                let now = self.now();
                let client = &mut self.clients[number];
                if client.answered > before {
                    client.since = now;
                    let think = match self.random.below(4) {
                        0 => self.random.below(30_000),
                        _ => self.random.below(500),
                    };
                    client.acts_at = now + Duration::from_micros(think);
                    let (answered, id) = (client.answered, client.id);
                    self.note(|| format!("client {id} has {answered} answers"));
                }
            }
        }
    }

    /// Ends the connection at its peer.
    fn end(&mut self, id: usize) {
        let peer = self.wires().wires[id].peer;
        match peer {
            Peer::Server => {
                self.note(|| format!("server loses {id}"));
                self.leave_seat(id);
            }
            Peer::Client(number) => {
                self.note(|| format!("client {number} is closed"));
                let faults = self.seen.killed > 0 || self.reads_at.is_some();
                self.clients[number].on_end(faults, &self.manners);
            }
        }
    }

    /// Ends a connection's session; the command that runs may still be done, or not.
    fn leave_seat(&mut self, id: usize) {
        if let Some(mut server) = self.servers.remove(&id)
            && server.done_at.is_some()
            && self.random.chance(500)
        {
            server.seat.run(&mut self.db, &mut Vec::new());
        }
    }

    /// Begins or ends a command of the server.
    fn serve(&mut self, id: usize) {
        let now = self.now();
        let Some(server) = self.servers.get_mut(&id) else {
            return;
        };
        if server.done_at.take().is_none() {
            let ms = server.seat.next_command().unwrap_or(0);
            let time = Duration::from_millis(ms) + Duration::from_micros(self.random.below(300));
            server.done_at = Some(now + time);
            return;
        }
        let connected = self.servers.values().filter(|s| s.seat.is_logged_in());
        self.db.connected = connected.count();
        let Some(server) = self.servers.get_mut(&id) else {
            return;
        };
        let mut out = Vec::new();
        if !server.seat.run(&mut self.db, &mut out) {
            self.servers.remove(&id);
            self.wires().close(id);
            return;
        }
        self.wires().send(id, &out);
        for (id, query) in std::mem::take(&mut self.db.kills) {
            self.carry_out_kill(id, query);
        }
    }

    /// Lets a client connect, send or leave.
    fn act(&mut self, number: usize) {
        let now = self.now();
        let leaving = self.is_draining();
        let client = &mut self.clients[number];
        if !client.waits() {
            client.since = now;
        }
        if client.phase == Phase::New {
            client.phase = Phase::LoggingIn;
            let id = self.wires().connect_client(number);
            self.clients[number].wire = Some(id);
            return self.note(|| format!("client {number} connects as {id}"));
        }
        let prey = self.choose_prey(number);
        let mut out = Vec::new();
        let client = &mut self.clients[number];
        let said = client.act(&mut self.random, &self.manners, leaving, prey, &mut out);
        if let Some((id, query)) = client.killed() {
            let prey = self.clients.iter_mut();
            for prey in prey.filter(|prey| prey.connection_id() == Some(id)) {
                prey.hunted = true;
                prey.ends |= !query;
            }
        }
        let client = &mut self.clients[number];
        let left = client.phase == Phase::Left;
        self.seen.stalled += u64::from(client.phase == Phase::Stalled);
        client.acts_at = now + Duration::from_micros(self.random.below(200));
        if let Some(id) = client.wire {
            self.wires().send(id, &out);
            if left {
                self.wires().close(id);
                self.clients[number].phase = Phase::Gone;
            }
        }
        self.note(|| format!("client {number} {said}"));
    }

    /// Breaks something, or mends it.
    fn make_trouble(&mut self) {
        let now = self.now();
        if self.dials_until <= now {
            self.wires().dials = Dials::Stand;
        }
        if self.drain_at == Some(self.steps + self.leaving) {
            self.note(|| "clients leave in turns".into());
            let over = Duration::from_millis(self.random.below(3000));
            self.crew.order(&Order::CloseInTurns(over));
            for client in &mut self.clients {
                client.drained = true;
            }
        }
        if self.drain_at == Some(self.steps) {
            self.note(|| "drain".into());
            self.crew.order(&Order::Drain);
            for client in &mut self.clients {
                client.drained = true;
            }
        }
        if self.rotate_at == Some(self.steps) {
            self.change_password();
        }
        if let Some(at) = self.reads_at.clone()
            && self.random.chance(READERS_CHANGE)
        {
            let mut weight = || *self.random.pick(&[None, Some(0), Some(1), Some(1)]);
            let weights = [Some(0), weight(), weight()];
            self.shared.put_readers(&at, &weights);
            self.note(|| format!("readers are {weights:?}"));
            self.crew.something_happens();
        }
        if self.frost && self.random.chance(2) {
            let number = self.random.index(self.clients.len());
            let time = *self.random.pick(&[5, 50, 500, 5000]);
            let time = Duration::from_millis(time);
            let settings = self.shared.settings();
            let client = &mut self.clients[number];
            client.freeze(now + time);
            client.ends |= time >= settings.slow_reader_max;
            client.ends |= settings.write_max.is_some_and(|max| time >= max);
            self.note(|| format!("client {number} freezes for {time:?}"));
        }
        if self.manners.readers_stop && self.random.chance(20) {
            let number = self.clients.iter().position(SimClient::may_stop);
            if let Some(number) = number {
                self.clients[number].stop_reading(now + STOP);
                self.note(|| format!("client {number} stops to read for {STOP:?}"));
            }
        }
        let (last, often) = self.faults;
        if self.steps > last || !self.random.chance(often) {
            return;
        }
        match self.random.below(8) {
            0 => {
                let all = [Dials::Refused, Dials::Impossible, Dials::Lost];
                let dials = *self.random.pick(&all);
                self.dials_until = now + Duration::from_millis(self.random.below(300));
                self.wires().dials = dials;
                self.note(|| format!("dials are {dials:?}"));
            }
            1 | 2 => self.lose_client(),
            _ => self.kill(),
        }
    }

    /// Changes the account's password, on the server and in the settings; the pool replaces its
    /// connections. Clients may go on to log in with the old one.
    fn change_password(&mut self) {
        self.note(|| "the password is changed".into());
        let both = format!("\nname = \"app\"\npassword = [\"{NEW_PASSWORD}\", \"{PASSWORD}\"]");
        let text = (self.text)
            .replace(
                &format!("\nname = \"app\"\npassword = \"{PASSWORD}\""),
                &both,
            )
            .replace(
                &format!("backend_password = \"{PASSWORD}\""),
                &format!("backend_password = \"{NEW_PASSWORD}\""),
            );
        let settings = Raw::parse(&text).and_then(Raw::check).expect("settings");
        self.shared.follow(settings).expect("they follow");
        self.db.is_rotated = true;
        self.crew.order(&Order::Reconnect);
    }

    /// Breaks a connection to the server, or closes it as the server after a part of what it sent.
    fn kill(&mut self) {
        let open: Vec<usize> = self.servers.keys().copied().collect();
        if open.is_empty() {
            return;
        }
        let id = *self.random.pick(&open);
        if !self.wires().wires[id].is_open() {
            return;
        }
        let rests = self
            .servers
            .get(&id)
            .is_some_and(|server| server.done_at.is_none() && server.seat.is_resting());
        self.leave_seat(id);
        self.seen.killed += 1;
        if rests && self.random.chance(500) {
            // A server that ends an idle session says why, unasked, whatever is on its way to it.
            self.note(|| format!("server says its last words to {id}"));
            let mut out = Vec::new();
            wire::reply::put_err(&mut out, 0, IDLE_FOR_TOO_LONG, "idle for too long");
            self.wires().send(id, &out);
            self.wires().close(id);
        } else if self.random.chance(500) {
            self.note(|| format!("server resets {id}"));
            self.wires().reset(id);
        } else {
            self.note(|| format!("server closes {id}"));
            self.wires().cut(id);
        }
    }

    /// Ends a client without a word, in the middle of anything.
    fn lose_client(&mut self) {
        // Who leaves amid a long reply leaves the most behind.
        let number = match self.clients.iter().position(SimClient::is_amid_long_reply) {
            Some(number) => number,
            _ => self.random.index(self.clients.len()),
        };
        let client = &mut self.clients[number];
        let there = match client.phase {
            Phase::LoggingIn => self.manners.guesses,
            phase => phase == Phase::In,
        };
        let Some(id) = client.wire.filter(|_| there) else {
            return;
        };
        client.phase = Phase::Gone;
        self.note(|| format!("client {number} breaks off"));
        if self.random.chance(500) {
            self.wires().reset(id);
        } else {
            self.wires().close(id);
        }
    }

    fn check_end(&mut self) {
        let census = self.crew.census();
        self.seen.new_logins = self.db.new_logins;
        self.seen.read_questions = self.db.read_questions;
        self.seen.lent = census.counts.lent;
        self.seen.abandoned = census.counts.abandoned;
        self.seen.pipelined_again = census.counts.pipelined_again;
        assert!(
            self.reads_at.is_some() || self.db.read_again <= self.seen.pipelined_again,
            "a read was executed twice that had not pipelined: {census:?}"
        );
        self.seen.spooled = census.counts.spooled;
        let kept = census.counts.refusals.get("kept-backends");
        self.seen.keepers_refused = kept.copied().unwrap_or_default();
        match self.disk {
            Disk::Unreadable => self.seen.unread = census.counts.slow_closed,
            Disk::Hung => self.seen.hung = census.counts.slow_closed,
            Disk::Well | Disk::Full => {}
        }
        assert_eq!(census.spooled_bytes, 0, "nobody is there to read it");
        let clean = census.clients == 0 && census.waiting == 0;
        assert!(clean, "everybody has gone, but: {census:?}");
        let endless = census.counts.refusals.contains_key("own-commands");
        assert!(!endless, "too many commands for one statement: {census:?}");
        for client in &self.clients {
            client.check_log(&self.db);
            self.seen.answered += client.answered;
            self.seen.secured += u64::from(client.is_under_tls()) * client.answered;
            self.seen.unrestored[0] += client.unrestored[0];
            self.seen.unrestored[1] += client.unrestored[1];
        }
        self.let_backends_rest();
        if self.drain_at.is_some_and(|at| self.steps > at) {
            assert!(self.crew.is_drained(), "the drain has no end");
        }
        if self.ordered {
            self.check_order();
        }
    }

    /// Lets statements without their client come to their end, until no backend is bound.
    fn let_backends_rest(&mut self) {
        let until = self.now() + Duration::from_secs(20);
        while self.now() < until {
            self.step();
        }
        let census = self.crew.census();
        assert!(
            census.backends_checked_out == 0 && census.backends_dialling == 0,
            "nobody is there, but: {census:?}"
        );
        let collecting = self.shared.collecting_groups();
        assert_eq!(collecting, 0, "nobody's reply goes to the spool");
    }

    /// Checks that with one backend and no pipelining statements run in the order in which they
    /// came.
    fn check_order(&self) {
        let wires = self.net.0.borrow();
        let plain: Vec<u64> = self.clients.iter().flat_map(|c| c.plain.clone()).collect();
        let came = |tag: &&u64| plain.contains(tag);
        let ran: Vec<u64> = wires.dispatched.iter().filter(came).copied().collect();
        for pair in ran.windows(2) {
            let [first, then] = [pair[0], pair[1]].map(|tag| wires.read_at[&tag]);
            assert!(first < then, "statement {} ran before {}", pair[0], pair[1]);
        }
    }
}
