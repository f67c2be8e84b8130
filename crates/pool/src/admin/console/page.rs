//! docs/pool/console.md, made from the console's tables and compared with what is committed.
//!
//! `ONRAMP_WRITE=1 cargo test -p pool console_page` rewrites it.

use super::shown;
use crate::config::generated_page::check;
use console::{Column, DEFAULT_SCHEMA, Table};

const PAGE: &str = "docs/pool/console.md";
const HEAD: &str = "\
# Console

<!-- Made from crates/pool/src/admin/console; do not edit.
     ONRAMP_WRITE=1 cargo test -p pool console_page -->

What does this client run, who holds the row, who is refused? The console answers, and ends it:

| question | command |
|---|---|
| what runs, and for how long | `SHOW RUNNING` |
| which transactions are open | `SHOW TRANSACTIONS` |
| who waits for whose lock | `SHOW LOCKS` |
| who is connected | `SHOW CLIENTS`; `SHOW FULL CLIENTS` has every column |
| which application opens so many | `SELECT user, program, state, count(*) FROM clients GROUP BY \
1, 2, 3 ORDER BY 4 DESC` |
| who is refused, by which limit | `SHOW REFUSALS` |
| who holds the memory | `SHOW MEMORY`; `SHOW FULL CLIENTS ORDER BY memory_bytes DESC` |
| who leaves statements prepared | `SHOW FULL CLIENTS ORDER BY prepared DESC` |
| which statements take the time, or fail | `SHOW STATEMENTS ORDER BY service_seconds DESC`, \
`errors` |
| who sends one | `SELECT id, user, program FROM clients WHERE digest = '...'` |
| is it the server | `SHOW RUNNING`, `SHOW BACKENDS` |
| what changed | `SHOW STATEMENTS LAST 5 MINUTES`, `SHOW USERS LAST 1 MINUTE` |
| who has the backends | `SHOW HOLDERS` |
| who is pinned, by what | `SELECT user, program, pins, pinned_by FROM clients \
WHERE pins IS NOT NULL` |
| which server is down, or lags | `SHOW SERVERS` |
| stop it | `KILL QUERY ID`, `KILL ID`, with the `id` of any of these; `KILL USER 'app'` |
| stop all like it | `REJECT DIGEST 'D'`, `LIMIT DIGEST 'D' TO 2`, with its `digest` |
| what else there is | `HELP` |

Set it up:

```toml
[console]
listen = \"127.0.0.1:6032\"       # or the path of a Unix socket
admin_user = \"admin\"
admin_password_file = \"/etc/onramp/console.password\"
reader_user = \"reader\"          # reads only
reader_password_env = \"CONSOLE_READER_PASSWORD\"
```

and connect with any client of the MySQL protocol:

```
mysql -h 127.0.0.1 -P 6032 -u admin -p
> SHOW RUNNING;
> KILL 1073741831;
```

It also answers when every statement waits, when the server is down, and when `clients_max` is \
reached. Only
passwords are protected; everything else is in clear text, so let it listen on the loopback \
address or a Unix socket.

## Queries

- `SHOW NAME` shows a [table](#tables), at most 120 characters wide; `SHOW FULL NAME` has all its \
columns and whole
  texts. `LIKE 'pattern'` filters by the first column; `WHERE`, \
`ORDER BY`
  and `LIMIT` work as in a SELECT.
- `LAST 1 MINUTE`, `5 MINUTES` or `60 MINUTES` behind `SHOW STATEMENTS` or `SHOW USERS` shows \
[that time](#recent_statements), which
  an upgrade begins anew.
- `SELECT` runs in SQLite, in [its SQL](https://www.sqlite.org/lang_select.html), read-only. \
Text compares
  without case.
- `SHOW TABLES`, `DESCRIBE NAME`, `SHOW DATABASES` and `USE NAME` work. A SELECT finds every \
table without
  its schema.

In lists of clients and backends one that comes or goes may be missing or appear twice. Other \
figures are up to half
a second old.

## Commands

Commands need `admin_user` and are logged.

| command | effect |
|---|---|
| `PAUSE` | statements of clients without a backend wait until `RESUME` or their `wait_ms_max`; \
transactions and pinned clients go on, logins too. The server is at rest when `SHOW BACKENDS` \
has none `running` or `held` |
| `RESUME` | ends the pause |
| `KILL [CONNECTION] ID` | closes a client and ends its statement |
| `KILL QUERY ID` | ends its statement; the client gets error 1317 |
| `KILL [QUERY] USER 'NAME'` | the same for all clients of an account, at this moment |
| `KILL [QUERY] ADDRESS 'IP'` | for those from an address or a network (`10.0.0.0/8`) |
| `KILL IDLE TRANSACTIONS OLDER THAN S` | closes clients that have run nothing for S seconds in an \
open transaction |
| `REJECT DIGEST 'D' [WITH 'MESSAGE'] [FOR S]` | refuses [statements of a digest](#rules) (error \
9512), for S seconds or until `ALLOW` |
| `LIMIT DIGEST 'D' TO N [FOR S]` | refuses those beyond N at once in all groups (error 9513); \
who waits for a backend counts |
| `ALLOW DIGEST 'D'` | takes either back |
| `SET USER 'NAME' LIMIT KEY = VALUE` | changes a [limit of a user](settings.md#users) until it \
is `DEFAULT` |
| `RECONNECT` | replaces each connection to the server as soon as no client uses it |
| `SWITCH TO NAME` | [another server](several-servers.md#switchover) is written to, without an \
error for clients |
| `EXPLAIN ROUTE STATEMENT` | says whether a statement, outside of a transaction, would be [read \
elsewhere](several-servers.md#reads-elsewhere), and why |
| `FENCED NAME`, `UNFENCED NAME` | vouches that a server that is down [takes no \
writes](several-servers.md#failover); takes that back |
| `RELOAD` | [reads](signals-and-log.md#reload) settings and certificates again, and reports \
which took effect and which need a restart |
| `SET NAME = VALUE` | changes a setting until the next reload, if a reload can change it: `SET \
backends_max = 40`, `SET statement_log = 'masked'`; lists are separated by commas |
| `SET NAME = DEFAULT` | restores the value read last, or the default |
| `DRAIN` | as SIGTERM: no new clients; running work ends, then the pool |
| `SHUTDOWN` | ends the pool at once |

### Rules

Rules and limits of users hold over reloads and [upgrades](upgrade.md), until a restart; `SHOW \
RULES` has them.
D is a digest of `SHOW STATEMENTS` or `SHOW RUNNING`, or enough of its first digits.

A rule hits a command whose whole text has the digest: a query and each execution of a prepared \
statement, but
neither its preparation nor what `EXECUTE` and `CALL` run. Other case, backticks or brackets make \
another digest:
a rule is no guard. What waits is refused when its turn comes; what runs goes on.
At most: 300 bytes of message, S a year, N 100,000.

### Commands over HTTP

With `http_token_file`, the address of [`http`](settings.md#watching) takes commands:

```
curl -H 'X-Onramp: 1' -H \"Authorization: Bearer $(cat token)\" \
     --data \"REJECT DIGEST '9e1c' FOR 600\" http://127.0.0.1:9104/command
```

It answers 200; 400 with the reason; 401 for a wrong token; 403 without `X-Onramp`.

`SET SESSION NAME` of a setting gets error 1229. Session variables that connectors set are \
accepted and ignored.

## Limits

| limit | beyond it |
|---|---|
| 32 connections | the oldest that has not logged in is closed, else the oldest |
| 200,000 rows in a table; 32 MiB in an answer, 128 MiB in all; 16 MiB in a value; 256 MiB for \
the tables and sorts of all statements | error 1041; `SHOW GROUPS` still works |
| 1 MiB in a statement | error 1153; closed |
| 1,000 bytes in a pattern of LIKE or GLOB | error 1064 |
| 10 s for a statement; 2 s for a group to answer | error 3024; `SHOW GROUPS` still works |
| four statements at once, three of them of `reader_user` | the next waits 10 s, then error 3024 \
|
| 8 h idle; 10 s for a login or the rest of a command; 30 s for an answer | closed |

A wrong password gets error 1045 after a second. Prepared statements of the binary protocol get \
error 1295.

## Tables

`DESCRIBE NAME` explains all columns; here stand those that say more than their names, each once.
";
const OTHERS: &str = "
## Tables of other thread pools

Tools written for a server's thread pool find its tables, with a backend in place of a thread. \
Columns mean what the
server's manual says, 0 or NULL where the pool has no such figure. `SHOW STATUS` and `SHOW \
PROCESSLIST` show `status`
and `PROCESSLIST`; the others need a SELECT.

| schema | table | a row |
|---|---|---|
";

fn page() -> String {
    let mut page = HEAD.to_owned();
    let tables = shown().map(|shown| &shown.table);
    let (own, others): (Vec<&Table>, Vec<&Table>) =
        tables.partition(|table| table.schema == DEFAULT_SCHEMA);
    let mut said = Vec::new();
    for table in own {
        page += &format!("\n### {}\n\n{}\n", table.name, table.help);
        let is_listed = !table.name.starts_with("recent_");
        let says_more = |column: &&Column| is_listed && column.help.split(' ').count() > 4;
        let mut before = "\n";
        for column in table.columns.iter().filter(says_more) {
            let line = format!("- `{}`: {}\n", column.name, column.help);
            if !said.contains(&line) {
                page += before;
                page += &line;
                before = "";
                said.push(line);
            }
        }
    }
    page += OTHERS;
    for table in others {
        let help = table.help.trim_end_matches('.');
        page += &format!("| `{}` | `{}` | {help} |\n", table.schema, table.name);
    }
    page
}

#[test]
fn the_console_page_is_what_the_tables_say() {
    check(PAGE, "console_page", &page());
}
