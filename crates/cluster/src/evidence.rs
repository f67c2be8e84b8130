//! Meaning of reports: who takes writes, who may be read, what is known of a writer that is lost.
//!
//! The problem: each kind of cluster has its own signs, and each sign has a case in which it lies.
//! The mechanism: small judgements over the last reports of all servers, each an error with its
//! reason where it says no. The head of the crate has in words what [`Scene::obstacle`] holds a new
//! writer to. Counting failures and choosing among candidates is the decision's.

use crate::report::{Galera, GroupMember, GroupReplication, Receiver, Report, Source};
use crate::settings::{Kind, Role, ServerId, Settings, WriterLost};
use crate::view::View;

/// Galera's state of a node that has everything.
const SYNCED: u32 = 4;
/// Galera's state of a node that gives a newcomer its data, or was told to lag.
const DONOR: u32 = 2;
/// Failures in a row of a writer of Galera or Aurora after which a smaller cluster, or a newer row,
/// is taken to be without it.
const SUSPECT_FAILURES: u32 = 2;

/// Settings, last reports and counts of all servers at one time.
pub(crate) struct Scene<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) view: &'a View,
    pub(crate) now: u64,
}

impl Scene<'_> {
    pub(crate) fn ids(&self) -> impl Iterator<Item = ServerId> + use<> {
        (0..).map(ServerId).take(self.settings.servers.len())
    }

    fn others(&self, id: ServerId) -> impl Iterator<Item = ServerId> + use<> {
        self.ids().filter(move |&other| other != id)
    }

    pub(crate) fn role(&self, id: ServerId) -> Role {
        self.settings.servers[id.index()].role
    }

    fn name(&self, id: ServerId) -> &str {
        self.settings.name(id)
    }

    fn report(&self, id: ServerId) -> Option<&Report> {
        self.view.servers[id.index()].report.as_ref()
    }

    /// True if the last report is young enough to move the writer by.
    pub(crate) fn is_fresh(&self, id: ServerId) -> bool {
        let memory = &self.view.servers[id.index()].memory;
        self.report(id).is_some() && memory.reported_at.abs_diff(self.now) <= self.settings.stale_ms
    }

    fn is_down(&self, id: ServerId) -> bool {
        let memory = &self.view.servers[id.index()].memory;
        memory.counted_at.is_some() && !memory.is_up
    }

    /// Verdict of a server's last report, whatever its age, on sending writes to it.
    pub(crate) fn takes_writes(&self, id: ServerId) -> Result<(), String> {
        let report = self.report(id).ok_or("it has not answered yet")?;
        is_writable(report)?;
        match self.settings.kind {
            Kind::Replication => self.is_no_replica(id, report),
            Kind::Rds => self
                .is_no_replica(id, report)
                .and_then(|()| self.in_topology(id, report)),
            Kind::Galera => in_primary_component(galera(report)?),
            Kind::GroupReplication => is_primary(group(report)?, report),
            Kind::Aurora => match own_row(report) {
                Some(row) if !row.writer => Err("the cluster names another writer".into()),
                own => match self.names_itself(id, own.map_or(u64::MAX, |row| row.age_ms)) {
                    Some(other) => Err(format!("the cluster names {}", self.name(other))),
                    None => Ok(()),
                },
            },
        }
    }

    /// Verdict of a server's last report on reading from it, but for its lag.
    pub(crate) fn serves_reads(&self, id: ServerId) -> Result<(), String> {
        let report = self.report(id).ok_or("it has not answered yet")?;
        if report.offline {
            return Err("offline_mode is on".into());
        }
        match self.settings.kind {
            Kind::Replication | Kind::Rds => match report.sources.iter().find(|it| !it.applier) {
                _ if report.sources.is_empty() => Err("it replicates from nobody".into()),
                // What is to write is refused by a reader, and runs on the writer.
                _ if is_writable(report).is_ok() => Err("it is not read-only".into()),
                Some(source) if source.error.is_empty() => Err("its replication stands".into()),
                Some(source) => Err(format!("its replication stands: {}", source.error)),
                None => match self.view.writer.or(self.view.holder) {
                    Some(writer) if !self.reaches(writer, id) => {
                        Err(format!("it does not replicate from {}", self.name(writer)))
                    }
                    _ => Ok(()),
                },
            },
            Kind::Galera => {
                let node = galera(report)?;
                in_primary_component(node)?;
                if node.state != SYNCED {
                    return Err(format!("it is {}", node.state_text));
                }
                self.queue(node.queue)
            }
            Kind::GroupReplication => {
                let own = in_majority(group(report)?, report)?;
                match self.others(id).find_map(|it| self.has_newer_view(it, id)) {
                    Some(_) => Err("others have a newer view of the group".into()),
                    None => self.queue(own.queue),
                }
            }
            Kind::Aurora => own_row(report)
                .map(drop)
                .ok_or_else(|| "the cluster does not name it".into()),
        }
    }

    fn queue(&self, queue: u64) -> Result<(), String> {
        match queue > self.settings.queue_max {
            true => Err(format!("{queue} transactions wait to be applied")),
            false => Ok(()),
        }
    }

    /// Lag of a reader in milliseconds, if the server knows it.
    pub(crate) fn lag_ms(&self, id: ServerId) -> Option<u64> {
        let report = self.report(id)?;
        match self.settings.kind {
            Kind::Replication | Kind::Rds => {
                let lags = report.sources.iter().map(|source| source.lag_ms);
                lags.collect::<Option<Vec<u64>>>()?.into_iter().max()
            }
            Kind::Aurora => own_row(report).map(|row| row.lag_ms),
            Kind::Galera | Kind::GroupReplication => Some(0),
        }
    }

    /// Reason why `new` may not become the writer; `None` if all is known that must be.
    pub(crate) fn obstacle(&self, new: ServerId) -> Option<String> {
        let own = self.report(new).and_then(own_row);
        if own.is_some_and(|row| row.age_ms > self.settings.stale_ms) {
            return Some("its row in the cluster's table is old".into());
        }
        self.others(new).find_map(|other| {
            let why = match self.settings.kind {
                Kind::Replication | Kind::Rds => self.may_take_writes(other, new)?,
                Kind::Galera => self.is_another_cluster(other, new)?,
                Kind::Aurora => self.is_named_too(other, new)?,
                Kind::GroupReplication => self.has_newer_view(other, new)?,
            };
            Some(format!("{} {why}", self.name(other)))
        })
    }

    /// Reason to think that `other` may take writes while `new` is to.
    fn may_take_writes(&self, other: ServerId, new: ServerId) -> Option<String> {
        let memory = &self.view.servers[other.index()].memory;
        if matches!(self.role(other), Role::Reader | Role::Off) || memory.fenced.is_some() {
            return None;
        }
        let left = |report| self.in_topology(other, report).is_err();
        if self.settings.kind == Kind::Rds && self.report(new).is_some_and(left) {
            return None;
        }
        let hearer = self.hearer(other);
        if self.settings.writer_lost == WriterLost::Replace && self.is_down(other) {
            let hearer = self.name(hearer?);
            return Some(format!("does not answer, but {hearer} hears it"));
        }
        match self.report(other) {
            None if self.role(new) == Role::Writer || self.hearer(new).is_some() => None,
            None => Some("has never answered and may take writes".into()),
            Some(_) if self.takes_writes(other).is_ok() && self.is_fresh(other) => {
                Some("takes writes too: set its read_only or its role".into())
            }
            Some(_) if self.is_fresh(other) => None,
            Some(_) => Some("does not answer and may take writes: start it, or fence it".into()),
        }
    }

    fn is_another_cluster(&self, other: ServerId, new: ServerId) -> Option<String> {
        let cluster = |id| Some(&self.report(id)?.galera.as_ref()?.cluster);
        let differs = self.is_fresh(other)
            && self.takes_writes(other).is_ok()
            && cluster(other) != cluster(new);
        differs.then(|| "is in another cluster and takes writes".into())
    }

    /// A member that was cut off has its last list until it hears that it is out, and is the
    /// primary there.
    fn has_newer_view(&self, other: ServerId, new: ServerId) -> Option<String> {
        let view = |id| self.report(id)?.group.as_ref()?.view_order();
        (view(other)? > view(new)?).then(|| "has a newer view of the group".into())
    }

    /// Another instance of Aurora whose row is younger than this, and names it the writer: one that
    /// was cut off has its old rows.
    fn names_itself(&self, id: ServerId, age_ms: u64) -> Option<ServerId> {
        let is_younger = |report| own_row(report).is_some_and(|it| it.writer && it.age_ms < age_ms);
        self.others(id)
            .find(|&other| self.is_fresh(other) && self.report(other).is_some_and(is_younger))
    }

    fn is_named_too(&self, other: ServerId, new: ServerId) -> Option<String> {
        let theirs = self.report(other)?;
        let rows = &self.report(new)?.aurora;
        let row = |id: &str| rows.iter().find(|row| row.writer && row.id == id);
        let named = row(&theirs.aurora_id)?;
        let newer = row(&self.report(new)?.aurora_id).is_none_or(|own| named.age_ms <= own.age_ms);
        (newer && self.takes_writes(other).is_ok()).then(|| "is named as a writer too".into())
    }

    /// True if the cluster itself says, by `new`, that the writer `old` has been replaced, so that
    /// no count of failures has to be waited for.
    pub(crate) fn is_replaced(&self, old: ServerId, new: ServerId) -> bool {
        let [before, after] = [old, new].map(|id| &self.view.servers[id.index()]);
        let (Some(theirs), Some(report)) = (&before.report, &after.report) else {
            return false;
        };
        if after.memory.reported_at < before.memory.reported_at {
            return false;
        }
        let suspect = before.memory.refusals > 0 || before.memory.failures >= SUSPECT_FAILURES;
        match self.settings.kind {
            Kind::Replication | Kind::Rds => false,
            Kind::Galera => {
                let size = |report: &Report| report.galera.as_ref().map_or(0, |it| it.size);
                suspect && size(report) < size(theirs)
            }
            Kind::GroupReplication => report.group.as_ref().is_some_and(|group| {
                let old = group.members.iter().find(|it| it.id == theirs.server_uuid);
                !old.is_some_and(|it| it.primary && it.state == "ONLINE")
            }),
            Kind::Aurora => suspect && own_row(report).is_some_and(|row| row.writer),
        }
    }

    /// A server that hears `id`, by a fresh report and no failure since.
    fn hearer(&self, id: ServerId) -> Option<ServerId> {
        self.others(id).find(|&other| {
            self.is_fresh(other)
                && self.view.servers[other.index()].memory.failures == 0
                && self.report(other).is_some_and(|report| {
                    let mut sources = report.sources.iter();
                    sources.any(|it| it.receiver == Receiver::Connected && self.is_source(it, id))
                })
        })
    }

    /// True if the source that a server replicates from is the server `id`.
    fn is_source(&self, source: &Source, id: ServerId) -> bool {
        let report = self.report(id);
        let uuid = report.map_or("", |it| &it.server_uuid);
        let server_id = report.map_or(0, |it| it.server_id);
        if !uuid.is_empty() && !source.server_uuid.is_empty() {
            return uuid == source.server_uuid;
        }
        if server_id != 0 && source.server_id != 0 {
            return server_id == source.server_id;
        }
        self.settings.servers[id.index()].address == format!("{}:{}", source.host, source.port)
    }

    /// True if what `writer` writes reaches a replica: it replicates from it, or from a replica of
    /// it. A source of which nothing is known may be another writer, whose numbers MariaDB does not
    /// tell from this one's. Each server is looked at once.
    pub(crate) fn reaches(&self, writer: ServerId, id: ServerId) -> bool {
        let (mut found, mut looked_at) = (vec![id], 0);
        while let Some(&server) = found.get(looked_at) {
            looked_at += 1;
            if server == writer {
                return true;
            }
            for source in self.report(server).map_or(&[][..], |it| &it.sources) {
                let is_new = |it: &ServerId| !found.contains(it) && self.is_source(source, *it);
                let known: Vec<ServerId> = self.others(server).filter(is_new).collect();
                found.extend(known);
            }
        }
        false
    }

    /// A server that replicates from another of these, which does not replicate from it, is its
    /// replica, even if it is not read-only: writes through the pool belong to the other.
    fn is_no_replica(&self, id: ServerId, report: &Report) -> Result<(), String> {
        let replicates = |report: &Report, from| {
            let mut sources = report.sources.iter();
            // A receiver that gave up stands, but was stopped by nobody: the applier runs on.
            let runs = |it: &Source| it.receiver != Receiver::Stopped || it.applier;
            sources.any(|it| runs(it) && self.is_source(it, from))
        };
        let source = self.others(id).find(|&other| {
            let mutual = self.report(other).is_some_and(|it| replicates(it, id));
            replicates(report, other) && !mutual
        });
        match source {
            Some(source) => Err(format!("it replicates from {}", self.name(source))),
            None => Ok(()),
        }
    }

    /// Place of a server in a blue/green deployment. A server that has no row there, or that nobody
    /// deploys, is judged by `read_only` alone.
    fn in_topology(&self, id: ServerId, report: &Report) -> Result<(), String> {
        let address = &self.settings.servers[id.index()].address;
        let Some(row) = report.topology.iter().find(|row| row.address == *address) else {
            return Ok(());
        };
        match (row.status.as_str(), row.target) {
            ("SWITCHOVER_IN_PROGRESS", _) => Err("a switchover is in progress".into()),
            ("SWITCHOVER_IN_POST_PROCESSING" | "SWITCHOVER_COMPLETED", true) => Ok(()),
            ("SWITCHOVER_IN_POST_PROCESSING" | "SWITCHOVER_COMPLETED", false) => {
                Err("the blue/green deployment has left it".into())
            }
            (_, true) => Err("it is the target of a blue/green deployment".into()),
            (_, false) => Ok(()),
        }
    }

    /// Order among servers that could all be the writer: every pool comes to the same.
    pub(crate) fn rank(&self, id: ServerId) -> (bool, bool, u64, ServerId) {
        let node = self.report(id).and_then(|it| it.galera.as_ref());
        (
            self.role(id) != Role::Writer,
            node.is_some_and(|it| it.state != SYNCED),
            node.map_or(0, |it| it.local_index),
            id,
        )
    }
}

fn is_writable(report: &Report) -> Result<(), String> {
    let flags = [
        (report.offline, "offline_mode is on"),
        (report.super_read_only, "super_read_only is on"),
        (report.read_only, "read_only is on"),
        (report.innodb_read_only, "innodb_read_only is on"),
    ];
    match flags.iter().find(|(set, _)| *set) {
        Some((_, why)) => Err((*why).into()),
        None => Ok(()),
    }
}

fn galera(report: &Report) -> Result<&Galera, String> {
    report
        .galera
        .as_ref()
        .ok_or_else(|| "it is no node of Galera".into())
}

fn in_primary_component(node: &Galera) -> Result<(), String> {
    let donor = node.state == DONOR && !node.desync && !node.donor_rejects;
    let refused = [
        (
            !node.primary,
            "it is not in the primary component".to_owned(),
        ),
        (!node.ready, "wsrep_ready is OFF".to_owned()),
        (node.rejects, "wsrep_reject_queries is set".to_owned()),
        (
            node.state != SYNCED && !donor,
            format!("it is {}", node.state_text),
        ),
    ];
    match refused.into_iter().find(|(holds, _)| *holds) {
        Some((_, why)) => Err(why),
        None => Ok(()),
    }
}

fn group(report: &Report) -> Result<&GroupReplication, String> {
    report
        .group
        .as_ref()
        .ok_or_else(|| "it is no member of a group".into())
}

/// The server's own member, if it is ONLINE in a majority.
fn in_majority<'a>(
    group: &'a GroupReplication,
    report: &Report,
) -> Result<&'a GroupMember, String> {
    let own = group.members.iter().find(|it| it.id == report.server_uuid);
    let own = own.ok_or("it is in no group")?;
    if own.state != "ONLINE" {
        return Err(format!("its member is {}", own.state));
    }
    let heard = |it: &&GroupMember| ["ONLINE", "RECOVERING"].contains(&it.state.as_str());
    match group.members.iter().filter(heard).count() * 2 > group.members.len() {
        true => Ok(own),
        false => Err("it does not hear a majority of the group".into()),
    }
}

fn is_primary(group: &GroupReplication, report: &Report) -> Result<(), String> {
    match in_majority(group, report)?.primary {
        true => Ok(()),
        false => Err("it is a secondary".into()),
    }
}

/// Aurora's row of the server itself.
fn own_row(report: &Report) -> Option<&crate::report::AuroraRow> {
    report.aurora.iter().find(|row| row.id == report.aurora_id)
}
