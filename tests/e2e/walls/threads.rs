//! Threads and descriptors of a server: limits of its process, its user, its control group and its
//! process numbers.
//!
//! Whatever the limit, the client hears the same: 1135, errno 11. The doctor must name the right
//! one.

use super::crowd::Crowd;
use super::{Forecast, compare, doctor, explained, has, is_root};
use crate::world::*;
use std::fs;
use std::process::Command;

/// More connections than any of these tests reaches.
const CONNECTIONS: &str = "--max-connections=5000";
/// Leaves the descriptors out of the tests about threads.
const FEW_TABLES: &str = "--table-open-cache=400";

/// A user that nobody else on the machine is, another test run neither.
fn user() -> String {
    (1_000_000 + std::process::id()).to_string()
}

fn forecast(prefix: &[&str], pid: &str) -> Forecast {
    doctor(prefix, &["--role", "server", "--server-pid", pid])
}

/// Connects to the wall and holds the forecast against it.
fn meet(real: &Real, forecast: &Forecast, limit: &str) {
    let crowd = Crowd::gather(real, forecast, "");
    let words = &crowd.words;
    assert!(words.starts_with("ERROR 1135: "), "{words}");
    assert_eq!(explained(words), ["server-1135"], "{words}");
    compare(forecast, limit, crowd.count());
}

#[test]
fn descriptors_of_a_server_end_where_the_doctor_says() {
    if !has(&["prlimit"]) {
        return;
    }
    let real = or_return!(own(Real::start(&[CONNECTIONS, FEW_TABLES])));
    let pid = real.pid().to_string();
    // The server cuts max_connections to what it gets at its start; later it does not notice.
    let status = Command::new("prlimit")
        .args(["--pid", &pid, "--nofile=1000:1000"])
        .status();
    assert!(status.unwrap().success());
    let forecast = forecast(&[], &pid);
    let crowd = Crowd::gather(&real, &forecast, "accept");
    assert_eq!(explained(&crowd.words), ["log-accept"], "{}", crowd.words);
    compare(&forecast, "server_descriptors", crowd.count());
}

#[test]
fn threads_of_a_user_end_where_the_doctor_says() {
    if !is_root() || !has(&["setpriv", "prlimit"]) {
        return;
    }
    // Root is free of RLIMIT_NPROC, so the server runs as somebody else.
    let user = user();
    let script = format!(
        r#"for a; do case $a in --datadir=*) data=${{a#*=}}; esac; done
           chown -R {user} "${{data%/data}}" &&
           exec prlimit --nproc=800:800 \
               setpriv --reuid {user} --clear-groups --inh-caps=-all -- "$@" --user={user}"#
    );
    let prefix = ["sh", "-c", &script, "sh"];
    let real = or_return!(own(Real::start_behind(&prefix, &[CONNECTIONS, FEW_TABLES])));
    let forecast = forecast(&[], &real.pid().to_string());
    meet(&real, &forecast, "user_processes");
}

/// A control group of the test's own, removed when it is empty.
pub(crate) struct ControlGroup(PathBuf);

impl ControlGroup {
    /// Makes one with a limit, whose file has a name in version 1 and another in version 2. `None`,
    /// said on stderr, where the controller cannot be had.
    pub(crate) fn new(controller: &str, files: [&str; 2], limit: &str) -> Option<ControlGroup> {
        let group = ControlGroup::make(controller, files, limit);
        if group.is_none() {
            skip(&format!(
                "no control group with a {controller} controller can be made here"
            ));
        }
        group
    }

    fn make(controller: &str, files: [&str; 2], limit: &str) -> Option<ControlGroup> {
        let root = Path::new("/sys/fs/cgroup");
        let (root, version) = match root.join(controller) {
            first if first.is_dir() => (first, 0),
            _ => (root.to_owned(), 1),
        };
        if version == 1 {
            let wanted = format!("+{controller}");
            fs::write(root.join("cgroup.subtree_control"), wanted).ok()?;
        }
        let path = root.join(format!("onramp-test-{}-{controller}", std::process::id()));
        fs::create_dir(&path).ok()?;
        let group = ControlGroup(path);
        fs::write(group.0.join(files[version]), limit).ok()?;
        Some(group)
    }

    /// The script that has a program begin in this group, as its arguments say.
    pub(crate) fn script(&self) -> String {
        let group = self.0.display();
        format!(r#"echo $$ > {group}/cgroup.procs && exec "$@""#)
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn threads_of_a_control_group_end_where_the_doctor_says() {
    if !is_root() {
        return;
    }
    let group = or_return!(ControlGroup::new("pids", ["pids.max"; 2], "800"));
    let script = group.script();
    let prefix = ["sh", "-c", &script, "sh"];
    let real = or_return!(own(Real::start_behind(&prefix, &[CONNECTIONS, FEW_TABLES])));
    let forecast = forecast(&[], &real.pid().to_string());
    meet(&real, &forecast, "group_pids");
    drop(real);
}

/// True from Linux 6.14 on, where namespaces of processes have a kernel.pid_max of their own. On an
/// older kernel the setting would be everybody's.
pub(super) fn has_own_pid_max() -> bool {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut parts = release
        .split(['.', '-'])
        .map(|part| part.parse().unwrap_or(0));
    (parts.next(), parts.next()) >= (Some(6), Some(14))
}

#[test]
fn process_numbers_end_where_the_doctor_says() {
    if !is_root() || !has(&["unshare", "nsenter"]) {
        return;
    }
    if !has_own_pid_max() {
        return skip("kernel.pid_max is the whole machine's before Linux 6.14");
    }
    // As on a host that has been up for a while, the first 300 numbers have been given out once.
    let script = r#"n=0; while [ $n -lt 320 ]; do ( : ); n=$((n+1)); done
        echo 2000 > /proc/sys/kernel/pid_max && exec "$@""#;
    let mut prefix = words("unshare --pid --fork --kill-child --mount-proc sh -c");
    prefix.extend([script, "sh"]);
    let real = or_return!(own(Real::start_behind(&prefix, &[CONNECTIONS, FEW_TABLES])));
    let pid = real.pid();
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    let inside = children.trim();
    let enter = ["nsenter", "--target", inside, "--pid", "--mount", "--"];
    let forecast = forecast(&enter, "1");
    meet(&real, &forecast, "pid_max");
}
