//! The server: where it is, what it is, and what it says.
//!
//! [`upstream`] is its address, looked up again and again, and [`status`] how a group has seen it;
//! [`facts`] are what the [`probe`] has learnt; [`tls`] is what it has to prove; [`proxy_protocol`]
//! tells it where clients are; [`watch`] asks for what changes past the pool, and [`watched`] has
//! the findings; [`schemas`] and [`begins`] are what logins have shown; [`fleet`] shares its
//! connections with other pools, in [`rounds`].

pub(crate) mod begins;
pub(crate) mod facts;
pub(crate) mod fleet;
pub(crate) mod globals;
pub(crate) mod outages;
pub(crate) mod probe;
pub(crate) mod proxy_protocol;
pub(crate) mod redefinition;
pub(crate) mod rounds;
pub(crate) mod rows;
pub(crate) mod schemas;
pub(crate) mod status;
pub(crate) mod tls;
pub(crate) mod triggers_and_views;
pub(crate) mod upstream;
pub(crate) mod watch;
pub(crate) mod watched;
