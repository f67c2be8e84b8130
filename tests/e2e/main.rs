//! End-to-end tests: the real binary, a real MariaDB, real sockets; black box.
//!
//! One private server for the whole run; pools are started once per configuration. With
//! `ONRAMP_E2E_DIRECT=1` the same tests run against the server itself, which shows that what they
//! expect is what a server does.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on says where by panicking"
)]

mod abandoned;
mod account_limit;
mod accounts;
mod asked_inside;
mod attributes;
mod backend_tls;
mod big;
mod breaches;
mod calls;
mod certificates;
mod changes;
mod charsets;
mod cleared;
mod climb;
mod column_names;
mod compare;
mod compressed;
mod conformance;
mod console;
mod deferred_begin;
mod diagnostics;
mod doctor;
mod driver;
mod drivers;
mod eofs;
mod explain;
mod extended;
mod fair;
mod faults;
mod found;
mod fragments;
mod globals;
mod guard;
mod hostile;
mod in_front;
mod in_one_write;
mod kill;
mod last_gtid;
mod lexer;
mod load;
mod load_mysql;
mod load_ports;
mod locust;
mod login;
mod long;
mod long_http2;
mod long_tls;
mod long_variables;
mod lua;
mod memory;
mod metrics;
mod mysql;
mod named;
mod names;
mod oracle;
mod otel;
mod own_tls;
mod pins;
mod pipelined;
mod prepared;
mod prepared_last;
mod privileges;
mod process;
mod protocol;
mod proxy_header;
mod published;
mod reload;
mod report;
mod reports;
mod reset_connection;
mod restoring;
mod riding;
mod roles;
mod rotation;
mod scheduling;
mod session;
mod sharing;
mod silence;
mod slow;
mod spared_set;
mod stages;
mod standstill;
mod statements;
mod status;
mod stories;
mod sysbench;
mod timeouts;
mod tls;
mod top;
mod transactions;
mod triggers_and_views;
mod truth;
mod unfinished;
mod unset;
mod untaken;
mod upgrade;
mod variables;
mod walls;
mod watch;
mod world;
