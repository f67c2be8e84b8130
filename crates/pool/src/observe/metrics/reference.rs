//! docs/pool/metrics.md, made from the table of metrics and compared with what is committed.
//!
//! `ONRAMP_WRITE=1 cargo test -p pool metrics_page` rewrites it.

use super::{GROUPS_MAX, METRICS, Type};
use crate::config::generated_page::check;
use crate::errors::totals::ERRORS_MAX;
use crate::observe::figures::BOUNDS;
use crate::observe::figures::places::{ACCOUNTS_MAX, USERS_MAX};

const PAGE: &str = "docs/pool/metrics.md";
const HEAD: &str = "\
# Metrics and health

<!-- Made from crates/pool/src/observe/metrics.rs; do not edit.
     ONRAMP_WRITE=1 cargo test -p pool metrics_page -->

To watch the pool, start it with `--http 127.0.0.1:9104` (in the file: `http`). Open that \
address in a
browser, run `onramp top 127.0.0.1:9104` in a terminal, or have Prometheus scrape it:

```yaml
scrape_configs:
  - job_name: onramp
    static_configs:
      - targets: [\"127.0.0.1:9104\"]
```

[monitoring/](../../monitoring/README.md) has alert rules and a dashboard for Grafana.

| path | answers |
|---|---|
| `/` | the page: what goes on now, the last minutes and hour; clients, statements, pins, groups, \
errors, memory, the host |
| `/live.json`, `/history.json` | the data of the page |
| `/metrics` | OpenMetrics 1.0.0 where `Accept` asks for it, else Prometheus 0.0.4 |
| `/stats.json` | the same as JSON, with percentiles in place of buckets |
| `/tables.json`, `/tables/NAME.json` | the [console](console.md#tables)'s tables: their names, \
one of them; 503 with more than eight requests for `clients` or `backends` at once |
| `/healthz` | 200, or 503 with the reason when a group has stood still for 10 s |
| `/readyz` | 200, or 503 with the reason: the server has not answered yet or cannot be reached, \
or the pool drains; a paused pool answers 200 and says that it is |

When the server is down, all pools in front of it become unready together. If that does your \
load balancer no
good, let it ask `/healthz`.

## Access

There is no login, so listen on the loopback address or a network of your own. Readers see names \
of users,
addresses of clients, settings without passwords, and texts of statements without values. They \
can change
nothing without a [token](console.md#commands-over-http). \
Requests under a host name other than `localhost` are refused with 403, unless \
`http_names` lists
it: otherwise a web site could have its name resolve to this address and read it in a user's \
browser (DNS
rebinding).

## All metrics

Counters end in `_total`; histograms are marked; the rest are gauges. Labels are in parentheses. \
Figures are copied twice a second, so
scraping never delays a statement. A *turn* is one pass of a group's loop; times shorter than a \
turn count as
0. Histograms have these bounds, in seconds: ";

fn page() -> String {
    let bounds: Vec<String> = (BOUNDS.iter())
        .map(|(bound, _)| bound.as_secs_f64().to_string())
        .collect();
    let mut page = format!("{HEAD}{}.\n\n", bounds.join(", "));
    page += &format!(
        "Labels have a bounded number of values: the first {USERS_MAX} users, {ACCOUNTS_MAX} \
         accounts of the server,\n{GROUPS_MAX} groups and {ERRORS_MAX} error numbers have their \
         own, and the others share `other`.\n\n"
    );
    for metric in METRICS {
        let kind = (metric.kind == Type::Histogram).then_some("histogram");
        let marks: Vec<&str> = kind
            .into_iter()
            .chain(metric.labels.iter().copied())
            .collect();
        let labels = match &marks[..] {
            [] => String::new(),
            marks => format!(" ({})", marks.join(", ")),
        };
        page += &format!("- `{}`{labels}: {}\n", metric.name, metric.help);
    }
    page
}

#[test]
fn the_metrics_page_is_what_the_table_says() {
    check(PAGE, "metrics_page", &page());
}
