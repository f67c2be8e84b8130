//! Long connections and HTTP: `onramp load tcp-hold` and `onramp load http://...`.
//!
//! The problem: to hold a million connections says little if nobody counts what came over them.
//! The mechanism: each connection knows what it must hear and when, in some dozens of bytes, and
//! everything that it hears, or should have heard, gets one of four names:
//!
//! | name | is |
//! |---|---|
//! | right | what was expected, in its time |
//! | late | what was expected, but after its time |
//! | wrong | something else |
//! | lost | nothing: it did not come, or the connection was gone |
//!
//! Files: [`options`] is the command line, [`run`] the main thread and its workers, [`group`] one
//! thread, [`hold`] and [`http`] what a connection does, [`answer`] how HTTP answers are read,
//! [`http2`] the same over HTTP/2, with [`http2_frames`] and [`hpack`],
//! [`counts`] and [`summary`] the numbers, [`live`] the page of a run, [`body`] what both sides
//! are told, [`users`] connections as users of a Locust master.

mod answer;
pub mod body;
mod counts;
mod group;
mod hold;
mod hpack;
mod http;
mod http2;
mod http2_frames;
mod live;
mod options;
mod place;
mod run;
mod summary;
mod users;

pub use body::BodyArgs;
pub use options::{HoldArgs, HttpArgs, LongArgs, SwarmArgs};
pub use place::Place;
pub use run::run;
pub use users::Users;

/// Job behind `onramp load` when it is not a workload of SQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// `tcp-hold`
    Hold,
    /// A URL that begins with `http://` or `https://`.
    Http,
}

impl Kind {
    /// Job that the first word behind `load` asks for.
    fn of(word: &str) -> Option<Kind> {
        match word {
            "tcp-hold" => Some(Kind::Hold),
            word if ["http://", "https://"]
                .iter()
                .any(|scheme| word.starts_with(scheme)) =>
            {
                Some(Kind::Http)
            }
            _ => None,
        }
    }
}
