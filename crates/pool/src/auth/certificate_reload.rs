//! Certificates and keys: read again when their files change, or when somebody asks for it.
//!
//! Certificates are renewed every few weeks by programs that know nothing of the pool. The thread
//! of [`crate::config::reload`] looks at the files once a second ([`crate::config::from_files`]);
//! SIGHUP and the console have them read at once. Files that cannot be used leave those of before
//! in use, and the log says why.

use crate::config::Settings;
use crate::config::from_files::Renewal;
use crate::observe::log::{Event, note};

/// Reads certificates and keys again if their files have changed, or if it is `demanded`.
pub(crate) fn renew(settings: &Settings, demanded: bool) {
    let clients = settings.tls.as_ref();
    let clients = clients.map(|tls| ("tls", tls.config.renew(demanded)));
    let several = settings.cluster.iter().flat_map(|cluster| &cluster.tls);
    let servers = several.chain([&settings.backend_tls]);
    let servers = servers.map(|tls| ("backend.tls", tls.config.renew(demanded)));
    for (which, renewal) in clients.into_iter().chain(servers) {
        match renewal {
            Renewal::Unchanged => {}
            Renewal::Renewed => note(
                Event::CertificatesRead,
                format_args!("{which}: certificates were read again; new connections use them"),
            ),
            Renewal::Kept(why) => note(
                Event::CertificatesKept,
                format_args!(
                    "{which}: the changed files cannot be used, so the certificates of before are \
                     kept: {why}"
                ),
            ),
        }
    }
}
