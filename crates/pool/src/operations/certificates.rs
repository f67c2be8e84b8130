//! Certificates and keys: read again when their files change, or when somebody asks for it.
//!
//! Certificates are renewed every few weeks by programs that know nothing of the pool. A thread
//! looks at the files once a second ([`crate::from_files`]); SIGHUP and the console have them read
//! at once. Files that cannot be used leave those of before in use, and the log says why.

use crate::config::Settings;
use crate::from_files::Renewal;
use crate::log::{Event, note};
use crate::shared::Shared;
use std::sync::Arc;
use std::time::Duration;

/// Between two looks at the files.
const EVERY: Duration = Duration::from_secs(1);

/// Reads certificates and keys again if their files have changed, or if it is `demanded`.
pub(crate) fn renew(settings: &Settings, demanded: bool) {
    let clients = settings.tls.as_ref();
    let clients = clients.map(|tls| ("tls", tls.config.renew(demanded)));
    let server = settings.backend_tls.as_ref();
    let server = server.map(|tls| ("backend.tls", tls.config.renew(demanded)));
    for (which, renewal) in clients.into_iter().chain(server) {
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

/// Looks at the files of certificates once a second, on a thread of its own that ends with the
/// process.
pub(crate) fn watch(shared: &Arc<Shared>) {
    if shared.settings().tls.is_none() && shared.settings().backend_tls.is_none() {
        return;
    }
    let apart = shared.clone();
    let watch = move || {
        loop {
            reactor::pause(EVERY);
            renew(&apart.settings(), false);
        }
    };
    let thread = std::thread::Builder::new().name("certificates".into());
    if let Err(error) = thread.spawn(watch) {
        note(
            Event::Failed,
            format_args!("cannot start the thread that looks at certificates: {error}"),
        );
    }
}
