//! The truth: servers with their facts, who hears whom, and everything that goes wrong.
//!
//! The problem: a decision must be judged by what is so, which no monitor sees. The mechanism: a
//! model with steps of [`STEP_MS`], in which an orchestrator (for replication) or a quorum (for
//! Galera and Group Replication) makes writers, and faults are drawn from the seed. It answers a
//! question as a server of that kind would at that moment.

use crate::random::Random;
use cluster::*;

/// Time from one look at the world to the next.
pub(crate) const STEP_MS: u64 = 10;
/// Time until a cluster with a quorum, or the orchestrator, has noticed a loss.
const NOTICED_MS: u64 = 2_000;
/// Time that a switchover of RDS takes, and for which its rows stay then.
const DEPLOYED_MS: u64 = 3_000;
const FORGOTTEN_MS: u64 = 44_000;

#[derive(Clone, Debug)]
pub(crate) struct Server {
    pub(crate) role: Role,
    pub(crate) up: bool,
    pub(crate) frozen: bool,
    /// True if every second answer is late.
    pub(crate) half: bool,
    /// Percent of answers that are lost.
    pub(crate) loses: u64,
    pub(crate) read_only: bool,
    /// Index of the server that it replicates from.
    pub(crate) source: Option<usize>,
    /// Lag behind its source.
    lag_ms: u64,
    /// Reachable for the pool, and for the other servers.
    pub(crate) seen_by_pool: bool,
    pub(crate) seen_by_peers: bool,
    /// Time since which it has taken writes without a break.
    pub(crate) writes_since: Option<u64>,
    /// Last time at which it took writes.
    pub(crate) wrote_at: u64,
    /// True from joining the component until it is killed.
    joined: bool,
    /// Members by the view of a group that it was in last, and that view's number.
    list: (u64, Vec<usize>),
    /// Last time at which it heard a majority.
    majority_at: u64,
    restart_at: Option<u64>,
    heal_at: Option<u64>,
    follow_at: Option<u64>,
    asked: u32,
}

#[derive(Debug)]
pub(crate) struct World {
    pub(crate) settings: Settings,
    pub(crate) now: u64,
    pub(crate) servers: Vec<Server>,
    /// Members of the component with the quorum; the first is a group's primary.
    pub(crate) component: Vec<usize>,
    /// Components that there were.
    views: u64,
    /// Time of the last change of anything that is true.
    pub(crate) changed_at: u64,
    lost_at: Option<u64>,
    /// The server that the orchestrator made the writer.
    promoted: usize,
    /// A blue/green deployment of RDS that switches over: source, target, when it is through.
    deployed: Option<(usize, usize, u64)>,
    /// Faults are drawn while this is true.
    pub(crate) is_hostile: bool,
    pub(crate) log: Vec<String>,
}

impl World {
    pub(crate) fn new(kind: Kind, random: &mut Random) -> Self {
        let count = 2 + random.index(3);
        let replicates = matches!(kind, Kind::Replication | Kind::Rds);
        let count = if replicates { count } else { count.max(3) };
        let servers = (0..count).map(|id| {
            let role = match random.below(20) {
                0 if id > 0 => Role::Reader,
                1 if id > 1 => Role::Off,
                2 if id == 0 => Role::Writer,
                _ => Role::Auto,
            };
            Server {
                role,
                up: true,
                frozen: false,
                half: false,
                loses: 0,
                read_only: id > 0,
                source: (replicates && id > 0).then_some(0),
                lag_ms: 0,
                seen_by_pool: true,
                seen_by_peers: true,
                writes_since: None,
                wrote_at: 0,
                joined: true,
                list: (0, Vec::new()),
                majority_at: 0,
                restart_at: None,
                heal_at: None,
                follow_at: None,
                asked: 0,
            }
        });
        let servers: Vec<Server> = servers.collect();
        let named = servers.iter().zip(1..).map(|(server, id)| ServerSettings {
            name: format!("db{id}"),
            address: format!("127.0.0.{id}:3306"),
            role: server.role,
            weight: 100,
        });
        let mut settings = Settings::new(kind, named.collect());
        if random.below(2) == 0 {
            settings.writer_lost = WriterLost::Replace;
        }
        Self {
            settings,
            now: 1_000_000,
            component: (0..servers.len()).collect(),
            servers,
            views: 1,
            changed_at: 1_000_000,
            lost_at: None,
            promoted: 0,
            deployed: None,
            is_hostile: true,
            log: Vec::new(),
        }
    }

    fn say(&mut self, what: String) {
        self.log.push(format!("{} {what}", self.now));
        self.changed_at = self.now;
    }

    pub(crate) fn kind(&self) -> Kind {
        self.settings.kind
    }

    pub(crate) fn replicates(&self) -> bool {
        matches!(self.kind(), Kind::Replication | Kind::Rds)
    }

    fn hear_each_other(&self, a: usize, b: usize) -> bool {
        let up = |id: usize| self.servers[id].up && !self.servers[id].frozen;
        let seen = |id: usize| self.servers[id].seen_by_peers;
        a == b || (up(a) && up(b) && seen(a) && seen(b))
    }

    /// Members of the component that a member hears, itself included, are a majority of it.
    fn has_majority(&self, id: usize) -> bool {
        let heard = self
            .component
            .iter()
            .filter(|&&it| self.hear_each_other(id, it));
        self.servers[id].joined
            && self.component.contains(&id)
            && heard.count() * 2 > self.component.len()
    }

    /// True if a client that reaches the server could commit there now.
    pub(crate) fn takes_writes(&self, id: usize) -> bool {
        let server = &self.servers[id];
        server.up
            && !server.read_only
            && match self.kind() {
                Kind::Replication | Kind::Rds => server.source.is_none(),
                Kind::Galera => self.has_majority(id),
                _ => self.has_majority(id) && self.component.first() == Some(&id),
            }
    }

    /// One step: the cluster's own work, then new faults.
    pub(crate) fn step(&mut self, random: &mut Random) {
        self.now += STEP_MS;
        for id in 0..self.servers.len() {
            self.recover(id);
        }
        match self.kind() {
            Kind::Replication | Kind::Rds => self.orchestrate(random),
            _ => self.reform(),
        }
        if self.is_hostile && random.below(400) == 0 {
            let id = random.index(self.servers.len());
            self.fault(id, random);
        }
        for id in 0..self.servers.len() {
            let takes = self.takes_writes(id);
            let since = self.servers[id].writes_since;
            if self.has_majority(id) {
                self.servers[id].majority_at = self.now;
                self.servers[id].list = (self.views, self.component.clone());
            }
            self.servers[id].writes_since = takes.then(|| since.unwrap_or(self.now));
            if takes {
                self.servers[id].wrote_at = self.now;
            }
        }
    }

    fn recover(&mut self, id: usize) {
        let due = |at: Option<u64>| at.is_some_and(|at| at <= self.now);
        let (restarts, heals) = (
            due(self.servers[id].restart_at),
            due(self.servers[id].heal_at),
        );
        let server = &mut self.servers[id];
        if restarts {
            (server.up, server.restart_at) = (true, None);
            self.say(format!("db{} is up", id + 1));
        }
        let server = &mut self.servers[id];
        if heals {
            server.heal_at = None;
            (server.frozen, server.half, server.loses, server.lag_ms) = (false, false, 0, 0);
            (server.seen_by_pool, server.seen_by_peers) = (true, true);
            self.say(format!("db{} is healed", id + 1));
        }
    }

    pub(crate) fn kill(&mut self, id: usize, for_ms: u64) {
        let replaced = self.settings.writer_lost == WriterLost::Replace;
        let replaced = replaced && self.replicates();
        let server = &mut self.servers[id];
        (server.up, server.joined) = (false, false);
        server.list.1.clear();
        server.restart_at = Some(self.now + for_ms);
        // Where the pool may replace a lost writer, the operator sees to it that it comes back
        // read-only; elsewhere it may come back as it was.
        if replaced || self.settings.kind == Kind::Aurora {
            server.read_only = true;
        }
        self.say(format!("db{} is killed", id + 1));
    }

    fn fault(&mut self, id: usize, random: &mut Random) {
        let for_ms = 500 + random.below(12_000);
        let replication = self.replicates();
        if self.servers[id].heal_at.is_some() || !self.servers[id].up {
            return;
        }
        let until = Some(self.now + for_ms);
        let server = &mut self.servers[id];
        let what = match random.below(10) {
            0 | 1 => return self.kill(id, for_ms),
            2 => {
                (server.frozen, server.heal_at) = (true, until);
                "frozen"
            }
            3 => {
                (server.half, server.heal_at) = (true, until);
                "half dead"
            }
            4 => {
                (server.loses, server.heal_at) = (random.below(100), until);
                "losing answers"
            }
            5 => {
                (server.seen_by_pool, server.heal_at) = (false, until);
                "cut from the pool"
            }
            6 => {
                (server.seen_by_peers, server.heal_at) = (false, until);
                "cut from the others"
            }
            7 | 8 if self.deployed.is_some() => return,
            7 if replication => return self.switch_over(id),
            9 if replication => {
                server.lag_ms = random.below(30_000);
                server.heal_at = until;
                "lagging"
            }
            8 if replication => {
                // A second writer, by mistake.
                server.read_only = false;
                if random.below(2) == 0 {
                    server.source = None;
                }
                "made writable"
            }
            _ => {
                (server.seen_by_pool, server.seen_by_peers) = (false, false);
                server.heal_at = until;
                "cut from all"
            }
        };
        self.say(format!("db{} is {what}", id + 1));
    }

    /// The orchestrator's planned change: the old one is read-only before the new one writes.
    pub(crate) fn switch_over(&mut self, to: usize) {
        let writers: Vec<usize> = (0..self.servers.len())
            .filter(|&id| self.takes_writes(id))
            .collect();
        let [from] = writers[..] else { return };
        if self.deployed.is_some()
            || from == to
            || !self.hear_each_other(from, to)
            || !self.may_write(to)
        {
            return;
        }
        self.servers[from].read_only = true;
        match self.kind() {
            // Both refuse writes for a while.
            Kind::Rds => {
                self.say(format!("db{} is to follow db{}", to + 1, from + 1));
                self.deployed = Some((from, to, self.now + DEPLOYED_MS));
            }
            _ => self.promote(to),
        }
    }

    /// True if its role lets it be the writer.
    pub(crate) fn may_write(&self, id: usize) -> bool {
        matches!(self.servers[id].role, Role::Auto | Role::Writer)
    }

    fn promote(&mut self, to: usize) {
        self.promoted = to;
        self.deployed = self.deployed.filter(|it| it.1 == to);
        (self.servers[to].source, self.servers[to].read_only) = (None, false);
        self.say(format!("db{} is promoted", to + 1));
        for (id, server) in self.servers.iter_mut().enumerate() {
            if id != to {
                server.follow_at = Some(self.now + 300 * id as u64);
            }
        }
    }

    /// Acts as an orchestrator that does not see the pool: it replaces a writer that the other
    /// servers do not hear. Where the pool is told to replace a lost writer, it kills that first.
    fn orchestrate(&mut self, random: &mut Random) {
        if let Some((from, to, at)) = self.deployed {
            if self.now >= at && self.promoted != to {
                match self.servers[to].up {
                    true => self.promote(to),
                    // It is rolled back.
                    false => {
                        self.deployed = None;
                        self.servers[from].read_only = false;
                        self.say("the deployment failed".into());
                    }
                }
                // What replicated from the old one stays there.
                self.servers[from].follow_at = None;
            }
            if self.now >= at + FORGOTTEN_MS {
                self.deployed = None;
            }
            if self.now < at {
                return;
            }
        }
        let id = self.promoted;
        let lives = self.servers[id].seen_by_peers && !self.servers[id].frozen;
        let writer = (self.takes_writes(id) && lives).then_some(id);
        for id in 0..self.servers.len() {
            let due = self.servers[id].follow_at.is_some_and(|at| at <= self.now);
            if let Some(writer) = writer
                && due
                && self.hear_each_other(id, writer)
                && id != writer
            {
                let server = &mut self.servers[id];
                (server.follow_at, server.source, server.read_only) = (None, Some(writer), true);
                self.say(format!("db{} follows db{}", id + 1, writer + 1));
            }
        }
        if writer.is_some() {
            self.lost_at = None;
            return;
        }
        let lost_at = *self.lost_at.get_or_insert(self.now);
        if self.now < lost_at + NOTICED_MS {
            return;
        }
        let fit = |id: &usize| {
            let server = &self.servers[*id];
            server.up && !server.frozen && server.seen_by_peers && self.may_write(*id)
        };
        let fit: Vec<usize> = (0..self.servers.len()).filter(fit).collect();
        if fit.is_empty() {
            return;
        }
        if self.settings.writer_lost == WriterLost::Replace {
            for id in (0..self.servers.len())
                .filter(|&id| self.takes_writes(id))
                .collect::<Vec<_>>()
            {
                self.kill(id, 3_000);
            }
        }
        self.promote(fit[random.index(fit.len())]);
    }

    /// A quorum's work: members that a majority does not hear leave, those that it hears join.
    fn reform(&mut self) {
        let majority = (0..self.servers.len()).find(|&id| self.has_majority(id));
        let wanted: Vec<usize> = match majority {
            Some(id) => {
                let heard = |it: &usize| self.servers[*it].up && self.hear_each_other(id, *it);
                let member = |it: &usize| self.servers[*it].joined && heard(it);
                let stay = self.component.iter().copied().filter(member);
                let join = (0..self.servers.len()).filter(|it| !self.component.contains(it));
                stay.chain(join.filter(heard)).collect()
            }
            // An operator makes a new one of whoever is there once all members are down.
            None if self.component.iter().all(|&id| !self.servers[id].joined) => {
                (0..self.servers.len())
                    .filter(|&id| self.servers[id].up)
                    .take(1)
                    .collect()
            }
            None => return,
        };
        if wanted == self.component {
            self.lost_at = None;
            return;
        }
        let lost_at = *self.lost_at.get_or_insert(self.now);
        if self.now >= lost_at + NOTICED_MS && !wanted.is_empty() {
            self.say(format!("the component is {wanted:?}"));
            self.component = wanted;
            self.views += 1;
            self.lost_at = None;
            let primary = self.component[0];
            for (id, server) in self.servers.iter_mut().enumerate() {
                server.joined = self.component.contains(&id) && server.up;
                // Who is out knows nothing of it.
                if server.joined || !server.up {
                    server.read_only = self.settings.kind != Kind::Galera && id != primary;
                }
            }
        }
    }

    /// True if the next answer of the server comes in time, and is not lost.
    pub(crate) fn answers(&mut self, id: usize, random: &mut Random) -> bool {
        let server = &mut self.servers[id];
        server.asked += 1;
        let late = server.half && server.asked.is_multiple_of(2);
        !server.frozen && !late && server.seen_by_pool && random.below(100) >= server.loses
    }

    /// True if a server that the pool hears well replicates from it, and hears it.
    pub(crate) fn is_heard(&self, id: usize) -> bool {
        let hears =
            |it: &usize| self.servers[*it].source == Some(id) && self.hear_each_other(id, *it);
        (0..self.servers.len())
            .filter(hears)
            .any(|it| self.is_well(it))
    }

    /// True if nothing keeps the pool from hearing the server each time.
    pub(crate) fn is_well(&self, id: usize) -> bool {
        let server = &self.servers[id];
        server.up && !server.frozen && !server.half && server.loses == 0 && server.seen_by_pool
    }

    /// Report of the server on itself.
    pub(crate) fn report(&self, id: usize) -> Report {
        let server = &self.servers[id];
        let uuid = |id: usize| format!("uuid-{id}");
        let mut report = Report {
            server_id: id as u64 + 1,
            server_uuid: uuid(id),
            read_only: server.read_only,
            ..Report::default()
        };
        if let Some(source) = server.source {
            let hears = self.hear_each_other(id, source);
            report.sources.push(Source {
                channel: String::new(),
                host: format!("127.0.0.{}", source + 1),
                port: 3306,
                server_id: source as u64 + 1,
                server_uuid: String::new(),
                receiver: if hears {
                    Receiver::Connected
                } else {
                    Receiver::Connecting
                },
                applier: true,
                lag_ms: hears.then_some(server.lag_ms),
                error: String::new(),
            });
        }
        // A member that has lost the others believes the last list for a while.
        let listed = server.joined && self.component.contains(&id);
        let inside = listed && self.now < server.majority_at + 1_000;
        match self.kind() {
            Kind::Galera => {
                report.galera = Some(Galera {
                    state: if inside { 4 } else { 0 },
                    primary: inside,
                    ready: inside,
                    size: u32::try_from(self.component.len()).expect("few members"),
                    local_index: self.component.iter().position(|&it| it == id).unwrap_or(99)
                        as u64,
                    ..Galera::default()
                });
            }
            // One that was cut off, and hears the others again, has all of its last view.
            Kind::GroupReplication => {
                let (number, list) = &server.list;
                let member = |&it: &usize| GroupMember {
                    id: uuid(it),
                    state: match self.hear_each_other(id, it) || inside {
                        true => "ONLINE".into(),
                        false => "UNREACHABLE".into(),
                    },
                    primary: list[0] == it,
                    ..GroupMember::default()
                };
                let members = list.iter().map(member).collect();
                let view = format!("1:{number}");
                report.group = Some(GroupReplication { view, members });
            }
            Kind::Aurora => {
                report.innodb_read_only = server.read_only;
                report.aurora_id = uuid(id);
                let (_, list) = &server.list;
                let row = |&it: &usize| AuroraRow {
                    id: uuid(it),
                    writer: list[0] == it,
                    // Nobody brings the rows of one that is cut off up to date.
                    age_ms: self.now - server.majority_at,
                    ..AuroraRow::default()
                };
                report.aurora = list.iter().map(row).collect();
            }
            Kind::Rds => {
                let row = |(from, to, at): (usize, usize, u64)| {
                    let status = match self.now < at {
                        true => "SWITCHOVER_IN_PROGRESS",
                        false => "SWITCHOVER_COMPLETED",
                    };
                    [(from, false), (to, true)].map(|(id, target)| TopologyRow {
                        address: self.settings.servers[id].address.clone(),
                        target,
                        status: status.into(),
                    })
                };
                report.topology = self.deployed.map(row).into_iter().flatten().collect();
            }
            Kind::Replication => {}
        }
        report
    }
}
