//! Limits that `pool` and `load` are about to meet, told before they start.
//!
//! Neither can reach the doctor itself: the pool must stay free of everything that is not serving,
//! and the load generator is measured as a stranger measures it. So the binary asks for them: their
//! options become the doctor's question, and its walls become warnings, or a refusal.

use clap::ValueEnum;
use doctor::preflight::{sentence, walls};
use doctor::question::{Question, Role, Way};
use load::{Action, LoadArgs};
use std::io::Write as _;
use std::net::IpAddr;
use std::process::ExitCode;

/// Reaction to a limit that will be met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Preflight {
    /// Say so and start
    Warn,
    /// Say so and do not start
    Refuse,
    /// Do not look
    Off,
}

// Options of a command, and what is done before it starts. No doc comment: clap would show it in
// place of the command's own.
#[derive(clap::Args)]
pub(crate) struct Checked<T: clap::Args> {
    #[command(flatten)]
    pub(crate) args: T,

    /// Reaction to limits of this host that it will meet (onramp doctor has them all)
    #[arg(long, value_enum, value_name = "HOW", default_value_t = Preflight::Warn)]
    pub(crate) preflight: Preflight,
}

/// The pool's question.
pub(crate) fn of_pool(settings: &pool::Settings) -> Option<Question> {
    Some(Question {
        connections: Some(settings.clients_max as u64),
        ways: vec![Way::Onramp],
        role: Role::Pool,
        backends: settings.backends_max as u64,
        ..Question::default()
    })
}

/// The load generator's question; None where it only makes or drops tables.
pub(crate) fn of_load(args: &LoadArgs) -> Option<Question> {
    if args.command != Action::Run {
        return None;
    }
    let host = &args.target.host;
    let is_loopback = host == "localhost"
        || matches!(host.parse(), Ok(IpAddr::V4(address)) if address.is_loopback());
    let given = args.source_addresses.len() as u64;
    // It takes as many addresses of 127.0.0.0/8 as it needs; a Unix socket has no ports.
    let is_free = args.target.socket.is_some() || (given == 0 && is_loopback);
    Some(Question {
        connections: Some(u64::from(args.connections)),
        ways: vec![Way::Direct],
        role: Role::Client,
        sources: (!is_free).then_some(given.max(1)),
        connect_rate: u64::from(args.connect_rate),
        ..Question::default()
    })
}

/// Says what stands before `name`. Err is the status of a command that does not start.
pub(crate) fn look(name: &str, how: Preflight, question: Option<Question>) -> Result<(), ExitCode> {
    let Some(question) = question.filter(|_| how != Preflight::Off) else {
        return Ok(());
    };
    let walls = walls(&question);
    let word = if how == Preflight::Refuse {
        "refused"
    } else {
        "warning"
    };
    for wall in &walls {
        let _ = writeln!(
            std::io::stderr(),
            "onramp {name}: {word}: {}",
            sentence(wall)
        );
    }
    if how == Preflight::Refuse && !walls.is_empty() {
        return Err(ExitCode::FAILURE);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use pool::PoolArgs;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        load: LoadArgs,
    }

    #[derive(Parser)]
    struct PoolLine {
        #[command(flatten)]
        pool: PoolArgs,
    }

    fn load_question(line: &str) -> Option<Question> {
        let words = std::iter::once("load").chain(line.split_whitespace());
        of_load(&Line::try_parse_from(words).unwrap().load)
    }

    #[test]
    fn a_loads_ports_are_those_of_its_addresses() {
        let sources = |target: &str, more: &str| {
            let line = format!("select run --target mysql://a@{target} --connections 7 {more}");
            load_question(&line).unwrap().sources
        };
        assert_eq!(sources("127.0.0.1/t", ""), None);
        assert_eq!(sources("/t?socket=/s", ""), None);
        assert_eq!(sources("10.0.0.1/t", ""), Some(1));
        assert_eq!(sources("[::1]/t", ""), Some(1));
        assert_eq!(
            sources("127.0.0.1/t", "--source-addresses 127.0.0.5"),
            Some(1)
        );
        assert_eq!(
            sources("10.0.0.1/t", "--source-addresses 10.0.0.2,10.0.0.3"),
            Some(2)
        );
    }

    #[test]
    fn only_a_run_is_looked_at() {
        assert_eq!(load_question("select prepare --target mysql://a@h/t"), None);
        let question = load_question("select run --target mysql://a@h/t --connections 9").unwrap();
        assert_eq!((question.wanted(), question.role), (9, Role::Client));
    }

    #[test]
    fn a_pools_number_is_its_clients() {
        let line = "pool --listen 127.0.0.1:6033 --backend mysql://a:b@127.0.0.1:3306 \
                    --clients-max 50000 --backends-max 9";
        let args = PoolLine::parse_from(line.split_whitespace()).pool;
        let question = of_pool(&args.settings().unwrap()).unwrap();
        assert_eq!((question.wanted(), question.backends), (50_000, 9));
    }
}
