//! One request to a collector, and what its answer means.
//!
//! By the protocol, 429, 502, 503, 504 and a connection that fails may be tried again; every other
//! refusal may not. Bounds: a request takes [`REQUEST_MAX`] at most, name look-up included; of an
//! answer [`ANSWER_MAX`] bytes are read.

use crate::config::OtelSettings;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::{Agent, Body};

/// The longest request.
const REQUEST_MAX: Duration = Duration::from_secs(10);
/// Bytes of an answer.
const ANSWER_MAX: u64 = 64 * 1024;
/// Characters of an answer that are logged.
const WHY_MAX: usize = 200;

/// Destination of requests.
#[derive(Clone)]
pub(crate) struct Collector {
    agent: Agent,
    endpoint: String,
}

/// Answer of a collector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Acceptance, but for so many of them.
    Taken { rejected: u64 },
    /// Refusal, now and later.
    Refused { why: String },
    /// Request to try again; `after` is when.
    Later {
        why: String,
        after: Option<Duration>,
    },
}

impl Collector {
    /// # Errors
    /// A sentence with the setting.
    pub(crate) fn new(settings: &OtelSettings) -> Result<Collector, String> {
        let mut config = Agent::config_builder()
            .timeout_global(Some(REQUEST_MAX))
            .http_status_as_error(false)
            .max_redirects(0)
            .proxy(None)
            .user_agent(concat!("onramp/", env!("CARGO_PKG_VERSION")));
        if settings.endpoint.starts_with("https://") {
            let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
            let tls = TlsConfig::builder()
                .unversioned_rustls_crypto_provider(provider)
                .root_certs(authorities(settings)?);
            config = config.tls_config(tls.build());
        }
        Ok(Collector {
            agent: config.build().into(),
            endpoint: settings.endpoint.clone(),
        })
    }

    pub(crate) fn url(&self, signal: &str) -> String {
        format!("{}/v1/{signal}", self.endpoint)
    }

    /// Sends a request about `signal`.
    pub(crate) fn post(&self, signal: &str, body: &Value) -> Answer {
        let request = self
            .agent
            .post(self.url(signal))
            .content_type("application/json");
        match request.send(body.to_string()) {
            Ok(response) => {
                let after = response.headers().get("retry-after");
                let after = after.and_then(|value| value.to_str().ok()?.parse().ok());
                let status = response.status().as_u16();
                meaning(status, after, &text(response.into_body()))
            }
            Err(error) => Answer::Later {
                why: error.to_string(),
                after: None,
            },
        }
    }
}

/// The authorities that are trusted.
fn authorities(settings: &OtelSettings) -> Result<RootCerts, String> {
    let found = match &settings.authorities {
        Some(given) => given.clone(),
        None => rustls_native_certs::load_native_certs().certs,
    };
    if found.is_empty() {
        return Err(
            "otel.ca: the system trusts no authority; expected the path of a PEM file".into(),
        );
    }
    let certificates = found
        .iter()
        .map(|der| Certificate::from_der(der).to_owned());
    Ok(RootCerts::Specific(Arc::new(certificates.collect())))
}

/// The text of an answer; one that does not come is empty.
fn text(mut body: Body) -> String {
    let reading = body.with_config().limit(ANSWER_MAX).lossy_utf8(true);
    reading.read_to_string().unwrap_or_default()
}

fn meaning(status: u16, after: Option<u64>, body: &str) -> Answer {
    let why = || {
        let said: String = body.trim().chars().take(WHY_MAX).collect();
        format!("status {status} {said}").trim_end().to_owned()
    };
    match status {
        200..=299 => Answer::Taken {
            rejected: rejected(body),
        },
        429 | 502..=504 => Answer::Later {
            why: why(),
            after: after.map(Duration::from_secs),
        },
        _ => Answer::Refused { why: why() },
    }
}

/// Spans, or records of the log, that an answer says were not taken.
fn rejected(body: &str) -> u64 {
    let parsed = serde_json::from_str::<Value>(body).unwrap_or_default();
    let counts = ["rejectedSpans", "rejectedLogRecords"];
    let counts = counts.map(|name| {
        let count = &parsed["partialSuccess"][name];
        let text = count.as_str().and_then(|text| text.parse().ok());
        count.as_u64().or(text).unwrap_or(0)
    });
    counts.into_iter().max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_told_apart_by_their_status() {
        let taken = |rejected| Answer::Taken { rejected };
        assert_eq!(meaning(200, None, "{}"), taken(0));
        assert_eq!(meaning(200, None, "no JSON"), taken(0));
        let in_part = r#"{"partialSuccess":{"rejectedSpans":"3","errorMessage":"old"}}"#;
        assert_eq!(meaning(200, None, in_part), taken(3));
        assert_eq!(meaning(200, None, &in_part.replace("\"3\"", "4")), taken(4));
        let of_the_log = in_part.replace("Spans", "LogRecords");
        assert_eq!(meaning(200, None, &of_the_log), taken(3));
        for status in [429, 502, 503, 504] {
            let later = meaning(status, Some(7), " busy\n");
            let expected = Answer::Later {
                why: format!("status {status} busy"),
                after: Some(Duration::from_secs(7)),
            };
            assert_eq!(later, expected);
        }
        for status in [301, 400, 401, 404, 413, 500, 501] {
            let refused = meaning(status, Some(7), "");
            let why = format!("status {status}");
            assert_eq!(refused, Answer::Refused { why });
        }
    }

    #[test]
    fn a_long_answer_is_cut() {
        let Answer::Refused { why } = meaning(400, None, &"ä".repeat(1000)) else {
            panic!("refused");
        };
        assert_eq!(why.chars().count(), WHY_MAX + "status 400 ".len());
    }
}
