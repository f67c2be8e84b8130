//! The sentence that says why fewer connections stand than were wanted.
//!
//! It is made of the most frequent error of connecting, in the words of whoever said it, and of
//! what to do about it, where that is known. What `--init-sql` met counts as connecting.

use super::Measured;
use crate::options::LoadArgs;
use load_core::errors::{EADDRNOTAVAIL, EMFILE, Phase};
use load_core::layout::Layout;
use load_core::plan::Plan;

/// Reason for fewer open connections than were wanted.
pub(super) fn of(
    args: &LoadArgs,
    plan: &Plan,
    layout: &Layout,
    measured: &Measured,
) -> Option<String> {
    let wanted = plan.model.wanted(0.0, args.connections);
    if measured.connected >= u64::from(wanted) {
        return None;
    }
    let had = format!("{} of {wanted} connections stand", measured.connected);
    let errors = measured.errors();
    let kinds = [Phase::Connect, Phase::Init].map(|phase| errors.of(phase));
    let first = kinds.into_iter().flatten().max_by_key(|row| row.count);
    let Some(first) = first else {
        return Some(format!(
            "{had}: the run was stopped while it was connecting"
        ));
    };
    let advice = match (first.code, first.sqlstate.as_str()) {
        _ if first.phase == Phase::Init => "; look at --init-sql".to_owned(),
        (code, "") if code == EMFILE.unsigned_abs() => {
            format!(
                "; {}; raise the limit (ulimit -n) or use --groups",
                layout.reason()
            )
        }
        (code, "") if code == EADDRNOTAVAIL.unsigned_abs() => format!(
            "; {}; give more --source-addresses, or widen net.ipv4.ip_local_port_range",
            plan.sources.arithmetic()
        ),
        (1040 | 1203 | 1226, _) => "; raise the server's limit on connections".to_owned(),
        (1045 | 1130 | 1044, _) if !plan.sources.addresses.is_empty() => format!(
            "; connections come from {} addresses: the account must be allowed from all of them \
             ('user'@'%')",
            plan.sources.addresses.len()
        ),
        _ => String::new(),
    };
    let who = if first.sqlstate.is_empty() {
        "the system"
    } else {
        "the server"
    };
    let code = match first.sqlstate.as_str() {
        "" => String::new(),
        state => format!("error {} ({state}): ", first.code),
    };
    Some(format!(
        "{had}: {who} said {} times: {code}{}{advice}",
        first.count, first.message
    ))
}
