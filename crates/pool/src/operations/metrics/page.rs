//! docs/pool/metrics.md, made from the table of metrics and compared with what is committed.
//!
//! `ONRAMP_WRITE=1 cargo test -p pool metrics_page` rewrites it.

use super::{GROUPS_MAX, METRICS};
use crate::errors::error_counts::ERRORS_MAX;
use crate::figures::{BOUNDS, USERS_MAX};
use crate::generated_page::check;

const PAGE: &str = "docs/pool/metrics.md";
const HEAD: &str = "\
# Metrics and health

<!-- Made from crates/pool/src/operations/metrics.rs; do not edit.
     ONRAMP_WRITE=1 cargo test -p pool metrics_page -->

To watch the pool, start it with `--http 127.0.0.1:9104` (in the file: `http`), and have Prometheus
scrape that address:

```yaml
scrape_configs:
  - job_name: onramp
    static_configs:
      - targets: [\"127.0.0.1:9104\"]
```

`onramp top 127.0.0.1:9104` shows in a terminal what the page shows, as wide and high as that is.
`q` ends it.

[monitoring/](../../monitoring/README.md) has alert rules and a dashboard for Grafana.

| path | answers |
|---|---|
| `/` | a page for people: rates, percentiles and the last hour, clients by user and address, the \
statements that took most time, pins with the beginning of their statement, groups, errors, \
memory, the host |
| `/live.json`, `/history.json` | what the page shows |
| `/metrics` | the figures below: OpenMetrics 1.0.0 where `Accept` asks for it, otherwise \
Prometheus 0.0.4 |
| `/stats.json` | the same figures as JSON, with percentiles in place of buckets |
| `/tables.json`, `/tables/NAME.json` | the names of the [console](console.md#tables)'s tables; \
one of them, with the names of its columns. `clients` and `backends` are asked of the groups, one \
request after another; where more than eight wait, 503 |
| `/healthz` | 200 while every group gets on, 503 with the reason when one stands still for 10 s |
| `/readyz` | 200, or 503 with the reason: at start until the server has answered, while the \
server cannot be reached, and during a drain |

Anyone who reaches this address reads the names of users, the addresses of their clients, how much \
they
do, the settings without passwords, the texts of statements without their values, and the \
beginnings of those that pin, up to their first literal. There is no login:
listen on the loopback or on a network of your own. Nothing can be changed there.

A request by a name other than `localhost` is refused with 403: the page of a foreign site could
have its own name resolve to this address, and then read here in a browser of yours (DNS rebinding).
Where Prometheus or people ask by a name, list it in `http_names`. A POST without the header
`X-Onramp` is refused for the same reason; no path takes one today.

`/readyz` speaks of the server too. Where several pools stand in front of one server, all of them
become unready at once when it is away. If your balancer does nothing good then, let it ask
`/healthz`.

A thread of its own answers. Each group copies its figures twice a second, so they are at most half
a second old, and however often you ask, no group is held up. A *turn* is one pass of a group's
loop. Times are those of the turns:
what is shorter than a turn counts as 0. Histograms have
the same bounds, in seconds:
";

fn page() -> String {
    let bounds: Vec<String> = (BOUNDS.iter())
        .map(|(bound, _)| bound.as_secs_f64().to_string())
        .collect();
    let mut page = format!("{HEAD}{}.\n\n", bounds.join(", "));
    page += &format!(
        "Every label has a bounded number of values. The first {USERS_MAX} users of the settings \
         have values of\ntheir own, the others share `other`. So do groups after the first \
         {GROUPS_MAX}, and numbers of errors after\nthe first {ERRORS_MAX} that came.\n\n## All \
         metrics\n\n| name | type | labels | what |\n|---|---|---|---|\n"
    );
    for metric in METRICS {
        let labels: Vec<String> = (metric.labels.iter())
            .map(|label| format!(" `{label}`"))
            .collect();
        page += &format!(
            "| `{}` | {} |{} | {} |\n",
            metric.name,
            metric.kind.name(),
            labels.join(","),
            metric.help
        );
    }
    page
}

#[test]
fn the_metrics_page_is_what_the_table_says() {
    check(PAGE, "metrics_page", &page());
}
