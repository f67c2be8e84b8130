//! A setting with the value it should have: what remedies are made of.
//!
//! One value serves the sentence in the table, the fragment of a file (`--emit`) and the change at
//! run time (`--apply`), so the three cannot disagree.

/// One setting and its wanted value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Setting {
    /// A kernel setting and its numbers.
    Sysctl(&'static str, Vec<u64>),
    /// Descriptors of whoever starts the pool or the load.
    Descriptors(u64),
    /// Descriptors of the server.
    ServerDescriptors {
        /// Value with which one that runs goes on.
        running: u64,
        /// Value with which one that starts does not cut its settings.
        at_start: u64,
    },
    /// Threads of a user.
    Threads(u64),
    /// Threads of a control group: systemd's TasksMax.
    Tasks(u64),
    /// A global variable of the server.
    Global(&'static str, String),
    /// A variable of the server that is read from its file when it starts.
    File(&'static str, String),
}

impl Setting {
    /// The command that sets it, for the table.
    #[must_use]
    pub fn command(&self) -> String {
        match self {
            Setting::Sysctl(name, values) => {
                let values: Vec<String> = values.iter().map(u64::to_string).collect();
                match values.as_slice() {
                    [value] => format!("sysctl -w {name}={value}"),
                    _ => format!("sysctl -w {name}=\"{}\"", values.join(" ")),
                }
            }
            Setting::Descriptors(value)
            | Setting::ServerDescriptors {
                at_start: value, ..
            } => {
                format!("LimitNOFILE={value} in the unit, or ulimit -n {value}, then restart")
            }
            Setting::Threads(value) => {
                format!("LimitNPROC={value} in the unit, or ulimit -u {value}, then restart")
            }
            Setting::Tasks(value) => {
                format!(
                    "TasksMax={value} in the unit: systemctl set-property UNIT TasksMax={value}"
                )
            }
            Setting::Global(name, value) => format!("SET GLOBAL {name} = {value}"),
            Setting::File(name, value) => {
                format!("{name} = {value} under [mysqld] in my.cnf, then restart")
            }
        }
    }
}
