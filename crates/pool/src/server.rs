//! The server: where it is, what it is, and what it says.
//!
//! [`upstream`] is its address, looked up again and again; [`server_facts`] what the probe has
//! learnt of it; [`backend_tls`] what it has to prove under TLS; [`proxy_protocol`] how it is told
//! where clients are; [`rows`] takes apart its answers
//! to questions of the pool's own; [`schemas`] and [`begins`] are what logins there have shown.

pub(crate) mod backend_tls;
pub(crate) mod begins;
pub(crate) mod proxy_protocol;
pub(crate) mod rows;
pub(crate) mod schemas;
pub(crate) mod server_facts;
pub(crate) mod server_status;
pub(crate) mod upstream;
