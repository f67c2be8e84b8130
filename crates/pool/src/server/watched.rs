//! Changes on the server past the pool, as the watch has seen them last.
//!
//! `operations::watch` asks and writes; groups read without waiting. Global values, privileges, and
//! the code in triggers and views are what is watched; [`lock_waits`] are asked for by the console;
//! [`trigger`] wakes the watch before its time.

pub(crate) mod accounts;
pub(crate) mod code_catalogue;
pub(crate) mod global_values;
pub(crate) mod lock_waits;
pub(crate) mod privileges;
pub(crate) mod schemas_defined;
pub(crate) mod trigger;
