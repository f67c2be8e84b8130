//! End-to-end tests: the real binary, a real MariaDB, real sockets; black box.
//!
//! One private server for the whole run; pools are started once per configuration. With
//! `ONRAMP_E2E_DIRECT=1` the same tests run against the server itself, which shows that what they
//! expect is what a server does.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on says where by panicking"
)]

mod abandoned_results;
mod account_limit;
mod accounts;
mod attributes;
mod audit;
mod backend_tls;
mod calls;
mod certificates;
mod charsets;
mod climb;
mod cluster;
mod compare;
mod compressed;
mod conformance;
mod console;
mod deferred_begin;
mod diagnostics;
mod doctor;
mod drills;
mod driver;
mod drivers;
mod explain;
mod fair;
mod few_statements;
mod fragments;
mod globals;
mod guard;
mod hostile;
mod kill;
mod large_packets;
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
mod mariadb_capabilities;
mod memory;
mod metrics;
mod mysql;
mod on_call;
mod oracle;
mod otel;
mod own_tls;
mod packages;
mod pins;
mod pipelined;
mod pipelining;
mod pool_report;
mod prefix_commands;
mod prepared;
mod privileges;
mod process;
mod protocol;
mod protocol_violations;
mod proxy_header;
mod published_command_lines;
mod reload;
mod reset_connection;
mod restore_in_one_write;
mod restored_sessions;
mod roles;
mod rotation;
mod rules;
mod scheduling;
mod server_crashes;
mod server_names;
mod session;
mod session_reports;
mod shared_groups;
mod silent_hosts;
mod slow;
mod stages;
mod statements;
mod status_of_sessions;
mod stopped_server;
mod stories;
mod sysbench;
mod timeouts;
mod tls;
mod top;
mod transactions;
mod triggers_and_views;
mod truth;
mod unfinished_commands;
mod unneeded_sets;
mod unset_user_variables;
mod upgrade;
mod variables;
mod walls;
mod watch_connection;
mod world;
