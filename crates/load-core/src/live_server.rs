//! Site of a run while it goes on: its page, the page as JSON, and the figures for Prometheus.
//!
//! A thread of its own ([`httpd`]) answers with what the main thread made last.

use httpd::{Names, Reply, Request, Status, kind};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};

/// The page; it fetches `/live.json` every second, and nothing else.
const PAGE: &str = include_str!("live.html");

/// Content that an address serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offer {
    /// The figures for Prometheus, whatever is asked for.
    Metrics,
    /// The page and its JSON, and the figures at `/metrics`.
    Page,
}

/// Content that is handed out now.
#[derive(Clone, Debug, Default)]
pub struct Shown {
    /// Metrics in Prometheus' text format.
    pub metrics: Arc<str>,
    /// Content of the live page, as JSON.
    pub json: Arc<str>,
}

/// The content, and the threads that hand it out until the process ends.
#[derive(Clone, Default)]
pub struct Server {
    shown: Arc<Mutex<Shown>>,
}

impl Server {
    /// Listens at `address`, for the option that asks for it, and answers under `names` besides;
    /// returns where that is.
    ///
    /// # Errors
    /// A sentence with the option, the address and the system's reason.
    pub fn listen(
        &self,
        offer: Offer,
        address: &str,
        names: &[String],
    ) -> Result<SocketAddr, String> {
        let names = Names::new(names.to_vec(), "--http-name");
        let names = names.map_err(|why| format!("--http-name: {why}"))?;
        let (option, what, path) = match offer {
            Offer::Metrics => ("--prometheus", "figures", "metrics"),
            Offer::Page => ("--http", "the run's page", ""),
        };
        let wrong = |error| format!("{option} {address}: {error}");
        let listener = TcpListener::bind(address).map_err(wrong)?;
        let place = listener.local_addr().map_err(wrong)?;
        aside!("load: {what} at http://{place}/{path}");
        let shown = self.shown.clone();
        let site = move |request: &Request<'_>| {
            let shown = shown.lock().unwrap_or_else(PoisonError::into_inner).clone();
            answer(request.path, offer, &shown)
        };
        httpd::serve(listener, names, site).map_err(wrong)?;
        Ok(place)
    }

    /// Sets the content that is handed out from now on.
    pub fn show(&self, shown: Shown) {
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner) = shown;
    }
}

/// The answer at a path.
fn answer(path: &str, offer: Offer, shown: &Shown) -> Reply {
    match (offer, path) {
        (Offer::Metrics, _) | (Offer::Page, "/metrics") => {
            Reply::ok(kind::PROMETHEUS, &*shown.metrics)
        }
        (Offer::Page, "/") => Reply::ok(kind::HTML, httpd::page(PAGE)),
        (Offer::Page, "/live.json") => Reply::ok(kind::JSON, &*shown.json),
        (Offer::Page, _) => Reply::text(
            Status::NotFound,
            "There are /, /live.json and /metrics here.",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};
    use std::net::TcpStream;

    #[test]
    fn each_path_has_its_answer() {
        let shown = Shown {
            metrics: "figures\n".into(),
            json: "{}".into(),
        };
        let ask = |offer, path: &str| answer(path, offer, &shown);
        assert_eq!(ask(Offer::Metrics, "/anything").body, "figures\n");
        assert_eq!(ask(Offer::Page, "/metrics").body, "figures\n");
        assert_eq!(ask(Offer::Page, "/live.json").body, "{}");
        let page = ask(Offer::Page, "/").body;
        assert!(page.ends_with("</html>\n"));
        assert!(page.contains("const tiles =") && page.contains(".tiles {"));
        assert!(!page.contains("src=") && !page.contains("https:"));
        assert_eq!(ask(Offer::Page, "/nowhere").status, Status::NotFound);
    }

    #[test]
    fn whoever_asks_is_answered() {
        let server = Server::default();
        let opened = server.listen(Offer::Metrics, "127.0.0.1:0", &["x".to_owned()]);
        let address = opened.unwrap();
        server.show(Shown {
            metrics: "a 1\n".into(),
            ..Shown::default()
        });
        let mut reader = TcpStream::connect(address).unwrap();
        reader
            .write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
            .unwrap();
        let mut said = String::new();
        reader.read_to_string(&mut said).unwrap();
        assert!(said.starts_with("HTTP/1.1 200 OK\r\n"), "{said}");
        assert!(
            said.contains("Content-Length: 4\r\n") && said.ends_with("\r\n\r\na 1\n"),
            "{said}"
        );
    }
}
