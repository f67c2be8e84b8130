//! Outputs of results besides stdout: files, a page, a monitoring system, the screen.
//!
//! [`OutputArgs`] is what the command line says. Files are written once, at the end; what watches
//! the run while it goes ([`Watchers`]) is shown one [`Frame`] each second.

mod chart;
mod csv;
mod live;
mod live_page;
mod page;
mod prometheus;

use crate::options::LoadArgs;
use crate::output_options::{OutputArgs, When};
use crate::summary::Summary;
use live::{Live, Scene};
use live_page::LivePage;
use load_core::control::Gauges;
use load_core::live_server::{Offer, Server, Shown};
use load_core::series::Point;
use load_core::stats::Stats;
use std::fs;
use std::path::Path;

/// State of a run, once a second.
pub(crate) struct Frame<'a> {
    /// Everything that was counted so far, the ramp included.
    pub(crate) total: &'a Stats,
    pub(crate) gauges: Gauges,
    /// The last second; `None` while connections are opened.
    pub(crate) point: Option<&'a Point>,
}

/// Whoever looks on while the run goes.
#[derive(Default)]
pub(crate) struct Watchers {
    server: Option<Server>,
    page: Option<LivePage>,
    live: Option<Live>,
    total: Stats,
}

impl Watchers {
    /// Opens the outputs that the options name.
    ///
    /// # Errors
    /// A sentence that says what could not be opened.
    pub(crate) fn open(args: &LoadArgs) -> Result<Watchers, String> {
        let output = &args.output;
        let offers = [
            (Offer::Metrics, output.prometheus.as_deref()),
            (Offer::Page, output.http.as_deref()),
        ];
        let mut server = None;
        for (offer, address) in offers {
            if let Some(address) = address {
                let server = server.get_or_insert_with(Server::default);
                server.listen(offer, address, &output.http_names)?;
            }
        }
        let page = output
            .http
            .is_some()
            .then(|| LivePage::new(Scene::of(args)));
        let wants_live = output.live == When::Auto;
        Ok(Watchers {
            server,
            page,
            live: wants_live.then(|| Live::open(Scene::of(args))).flatten(),
            total: Stats::default(),
        })
    }

    /// Shows everybody how things stand: what was counted since the last time, and how it is now.
    pub(crate) fn show(&mut self, counts: &Stats, gauges: Gauges, point: Option<&Point>) {
        if self.server.is_none() && self.live.is_none() {
            return;
        }
        self.total.merge(counts.clone());
        let frame = Frame {
            total: &self.total,
            gauges,
            point,
        };
        if let Some(server) = &self.server {
            let json = self.page.as_mut().map(|page| page.json(&frame));
            server.show(Shown {
                metrics: prometheus::render(&frame).into(),
                json: json.unwrap_or_default().into(),
            });
        }
        if let Some(live) = &mut self.live {
            live.show(&frame);
        }
    }

    /// True while the terminal shows the run, and lines on how it goes are not needed.
    pub(crate) fn is_live(&self) -> bool {
        self.live.is_some()
    }

    /// Takes the picture off the terminal, for a line to be printed.
    pub(crate) fn step_aside(&mut self) {
        if let Some(live) = &mut self.live {
            live.clear();
        }
    }
}

/// Writes the files that are wanted.
///
/// # Errors
/// A sentence with the option, the file's name and the system's reason.
pub(crate) fn write_files(args: &OutputArgs, summary: &Summary) -> Result<(), String> {
    let write = |option: &str, path: Option<&Path>, text: &dyn Fn() -> Result<String, String>| {
        let Some(path) = path else {
            return Ok(());
        };
        let wrong = |error: String| format!("{option} {}: {error}", path.display());
        let text = text().map_err(wrong)?;
        fs::write(path, text).map_err(|error| wrong(error.to_string()))
    };
    write("--json", args.json.as_deref(), &|| summary.json())?;
    write("--csv", args.csv.as_deref(), &|| csv::text(&summary.series))?;
    write("--html", args.html.as_deref(), &|| page::render(summary))
}
