//! Bytes that are kept for the clients of a group.
//!
//! The problem: what a hundred thousand clients have left unread, set or prepared lies in as many
//! boxes, and its sum has to be known at every turn without a look at each. The mechanism: what
//! grows and shrinks in many places counts itself on a meter; what changes in a few is added and
//! taken off there. Both stand here, so that a sum leaves nothing out. No sum has a bound of its
//! own, which some could fill at the cost of others: all count for `memory_bytes_max`, and the
//! client that holds most pays.
//!
//! Invariant: what is kept for nobody is counted nowhere
//! ([`crate::observe::survey::Survey::miscounted`]).

use crate::client::Client;
use crate::server::facts::ServerFacts;
use session::meter::Meter;
use wire::execution::statement_id;

/// Bytes that are kept for the clients of a group.
#[derive(Debug, Default)]
pub(crate) struct Retained {
    /// Bytes of their user variables.
    pub(crate) variables: Meter,
    /// Bytes of the conditions that are kept for them.
    pub(crate) warnings: Meter,
    /// Bytes of their lists of prepared statements, without the texts.
    pub(crate) statements: Meter,
    /// Bytes of replies that they have not taken.
    pub(crate) outputs: Meter,
    /// Bytes of commands and replies that backends keep.
    pub(crate) in_transit: Meter,
    /// Long data that waits for its execution.
    pub(crate) long_data: Meter,
    /// Bytes that TLS takes.
    pub(crate) tls_bytes: Meter,
}

impl Retained {
    /// All of it.
    pub(crate) fn bytes(&self) -> usize {
        let meters = [
            &self.variables,
            &self.warnings,
            &self.statements,
            &self.outputs,
            &self.in_transit,
            &self.long_data,
            &self.tls_bytes,
        ];
        meters.iter().map(|meter| meter.bytes()).sum()
    }

    /// Takes COM_STMT_SEND_LONG_DATA, retained for the execution; mistakes in it are the server's
    /// to find.
    pub(crate) fn take_long_data<S>(
        &self,
        client: &mut Client<S>,
        message: &[u8],
        payload: &[u8],
        server: &ServerFacts,
    ) {
        let (max, mysql) = (server.max_allowed_packet, server.flavour.is_mysql());
        let Some(id) =
            statement_id(payload).and_then(|id| client.session.prepared.statement_meant(id, mysql))
        else {
            return;
        };
        let Some(prepared) = client.session.prepared.as_mut() else {
            return;
        };
        let kept = prepared.long_len();
        let Some(held) = prepared.get_mut(id) else {
            return;
        };
        if held.overlong || !keeps_long_data(message.len(), kept, max) {
            held.overlong = true;
            held.long = None;
            return;
        }
        (held.long.get_or_insert_default()).push(message, &self.long_data);
    }
}

/// True if another message of long data is kept, of a client that has `kept` bytes. More than the
/// server takes is for the server to refuse.
fn keeps_long_data(len: usize, kept: usize, packet_max: usize) -> bool {
    kept + len <= 2 * packet_max
}

#[cfg(test)]
mod tests {
    use super::*;
    use session::meter::Charge;

    #[test]
    fn the_sum_leaves_nothing_out() {
        let retained = Retained::default();
        let mut charges: [Charge; 7] = Default::default();
        let meters = [
            &retained.variables,
            &retained.warnings,
            &retained.statements,
            &retained.outputs,
            &retained.in_transit,
            &retained.long_data,
            &retained.tls_bytes,
        ];
        for (at, (charge, meter)) in charges.iter_mut().zip(meters).enumerate() {
            charge.set(meter, 1 << at);
        }
        assert_eq!(retained.bytes(), (1 << 7) - 1);
        drop(charges);
        assert_eq!(retained.bytes(), 0, "charges end with their owners");
    }

    #[test]
    fn long_data_of_a_client_is_kept_up_to_its_bound() {
        let mib = 1 << 20;
        assert!(keeps_long_data(mib, 31 * mib, 16 * mib));
        assert!(!keeps_long_data(mib + 1, 31 * mib, 16 * mib));
    }
}
