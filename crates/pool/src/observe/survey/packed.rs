//! A client as records for another process, as it stands at this moment.
//!
//! Whether it may go is asked before ([`crate::upgrade::record`]). Invariant: what would be longer
//! than the other process takes stays here.

use crate::group::tokens::ClientId;
use crate::observe::survey::Survey;
use crate::upgrade::record::{self, AccountThere, Beside, RECORD_BYTES_MAX, Stays};
use handover::ClientRecords;
use reactor::Net;

impl<N: Net> Survey<'_, N> {
    /// A client that may go, as a record.
    ///
    /// # Errors
    /// It would be too long, or has no form as bytes.
    pub(crate) fn packed(&self, key: ClientId) -> Result<ClientRecords, Stays> {
        let client = self.clients.get(key).ok_or(Stays::Busy)?;
        let pool = &self.pools.pools[client.pool as usize].key;
        let account = pool.account.as_ref().map(|counted| AccountThere {
            user: counted.user.clone(),
            host: counted.host.clone(),
            credential: pool.credential.clone(),
        });
        let user = self.settings.users.get(client.identity.user());
        let programs = self.shared.records.programs.names();
        let beside = Beside {
            program: (client.place.arrival.program.name(&programs)).map_or("", |name| &**name),
            user: user.map_or("", |user| &user.name),
            account,
            gtid: self.gtids.get(&key),
        };
        let refused = |_| Stays::Refused;
        let mut records = ClientRecords {
            client: record::bytes_of(client, &beside).map_err(refused)?,
            backend: None,
        };
        if client.backend().is_some() {
            let backend = client.backend_in(self.backends).ok_or(Stays::Busy)?;
            let bytes = record::bytes_of_bound(client, backend, self.net.now());
            records.backend = Some(bytes.map_err(refused)?);
        }
        match records.bytes() > RECORD_BYTES_MAX {
            true => Err(Stays::Refused),
            false => Ok(records),
        }
    }
}
