//! The pool's HTTP site: its page and figures, and whether it is well and ready.
//!
//! A thread of its own answers ([`httpd`]), with what the groups have published last
//! ([`crate::observe::figures`]). It begins before the server has answered, so that a pool that
//! waits for its server says so.

use crate::admin::live::{self, Live};
use crate::auth::secret::Secret;
use crate::observe::log::{Event, note};
use crate::observe::metrics::{self, Board};
use httpd::{Answer, Names, Reply, Request, Site, Status, kind};
use reactor::address::listen_failure;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

/// A group that has not turned for so long is not well: an idle one turns twice a second.
pub(crate) const TURNS_WITHIN: Duration = Duration::from_secs(10);

/// Serves at this address, under these names besides, until the process ends.
///
/// # Errors
/// A sentence with the setting, the address and the system's reason.
pub(crate) fn serve(
    (address, names): (SocketAddr, Names),
    board: Arc<Board>,
    live: Arc<Live>,
    token: Option<Secret>,
) -> Result<(), String> {
    let wrong = |error| format!("http: {}", listen_failure(&address, &error));
    let listener = TcpListener::bind(address).map_err(wrong)?;
    let place = listener.local_addr().map_err(wrong)?;
    let site = PoolSite { board, live, token };
    httpd::serve(listener, names, site).map_err(wrong)?;
    note(
        Event::Http,
        format_args!("page at http://{place}/, figures at http://{place}/metrics"),
    );
    Ok(())
}

/// The site, and the token of who may give commands.
struct PoolSite {
    board: Arc<Board>,
    live: Arc<Live>,
    token: Option<Secret>,
}

impl Site for PoolSite {
    fn answer(&mut self, request: &Request<'_>) -> Answer {
        let Some(post) = request.post else {
            return answer(&self.board, &self.live, request);
        };
        let token = self.token.as_deref().map_or(&b""[..], str::as_bytes);
        if token.is_empty() || !is_same(token, post.token) {
            let why = "expected the token of http_token_file: Authorization: Bearer TOKEN";
            note(
                Event::ConsoleDenied,
                format_args!("a command over HTTP has a wrong token"),
            );
            return Reply::text(Status::Unauthorized, why).into();
        }
        let (live, body) = (self.live.clone(), post.body.to_vec());
        Answer::Later(Box::new(move || match live.command(&body) {
            Ok(done) => Reply::text(Status::Ok, &done),
            Err(why) => Reply::text(Status::BadRequest, &why),
        }))
    }

    fn takes_post(&self, path: &str) -> bool {
        path == "/command" && self.token.is_some()
    }
}

/// Compares two tokens; the time does not tell where they differ.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    let differ = one.iter().zip(other).fold(0, |all, (a, b)| all | (a ^ b));
    one.len() == other.len() && differ == 0
}

/// Reply with this JSON, `{}` before there is some.
fn started(json: &str) -> Reply {
    match json.is_empty() {
        true => Reply::ok(kind::JSON, "{}"),
        false => Reply::ok(kind::JSON, json),
    }
}

/// A table of the console.
fn table(live: &Live, name: &str) -> Reply {
    match live.table(name) {
        Some(Ok(json)) => Reply::ok(kind::JSON, json),
        Some(Err(why)) => Reply::text(Status::Unavailable, &why),
        None => Reply::text(
            Status::NotFound,
            "There is no such table; /tables.json lists them.",
        ),
    }
}

fn answer(board: &Board, live: &Arc<Live>, request: &Request<'_>) -> Answer {
    let name = match request.path {
        "/tables.json" => Some(""),
        path => (path.strip_prefix("/tables/")).and_then(|name| name.strip_suffix(".json")),
    };
    let Some(name) = name else {
        return answer_now(board, live, request).into();
    };
    let (live, name) = (live.clone(), name.to_owned());
    Answer::Later(Box::new(move || table(&live, &name)))
}

fn answer_now(board: &Board, live: &Live, request: &Request<'_>) -> Reply {
    let state = |wrong: Option<String>| match wrong {
        None => Reply::text(Status::Ok, "ok"),
        Some(why) => Reply::text(Status::Unavailable, &why),
    };
    match request.path {
        "/metrics" if request.accepts("application/openmetrics-text") => {
            Reply::ok(kind::OPENMETRICS, metrics::openmetrics(&board.sample()))
        }
        "/metrics" => Reply::ok(kind::PROMETHEUS, metrics::prometheus(&board.sample())),
        "/stats.json" => Reply::ok(kind::JSON, metrics::json(&board.sample()).to_string()),
        "/" => Reply::ok(kind::HTML, httpd::page(live::PAGE)),
        "/live.json" => started(&live.live()),
        "/history.json" => started(&live.history()),
        "/healthz" => state(board.sample().unhealthy(TURNS_WITHIN)),
        "/readyz" => match board.sample() {
            // It takes clients, so a load balancer need not turn away from it.
            sample if sample.unready().is_none() && sample.is_paused() => Reply::text(
                Status::Ok,
                "ok, but paused: statements wait until RESUME at the console",
            ),
            sample => state(sample.unready()),
        },
        _ => Reply::text(
            Status::NotFound,
            "There are /, /metrics, /stats.json, /tables.json, /live.json, /history.json, /healthz \
             and /readyz here.",
        ),
    }
}
