//! Two hosts with a cable between them that can lose what it carries: network namespaces of the
//! test's own, joined by a veth pair.
//!
//! The problem: a host that is gone closes nothing, and sockets of one machine always close. The
//! mechanism: whatever is started with [`Link::enter`] as its prefix runs on one of the hosts;
//! [`Link::cut`] has the far host drop what it would send, and with [`Lost::Both`] also what it
//! receives. The near host finds its cable whole and nobody there. The namespaces end with the
//! [`Link`], or with the test's process.
//!
//! It needs root and the programs of [`Link::NEEDS`].

use crate::output::Output;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::os::fd::AsFd;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The longest that a namespace may take to be there.
const LIMIT: Duration = Duration::from_secs(60);
/// Program of a namespace's first process: it ends when its input does.
const HOLDER: &str = "ip link set lo up && echo there && read -r _";

/// One of the two hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Host {
    /// The one from which the cable looks whole.
    Near,
    /// The one that falls silent.
    Far,
}

/// Packets that are lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// Packets of the far host.
    Replies,
    /// Packets of the far host, and those to it.
    Both,
}

/// Two hosts and their cable.
#[derive(Debug)]
pub struct Link {
    near: Child,
    far: Child,
}

impl Link {
    /// Programs that it uses.
    pub const NEEDS: [&str; 3] = ["unshare", "nsenter", "ip"];
    /// The near host's address.
    pub const NEAR: &str = "10.87.0.1";
    /// The far host's address.
    pub const FAR: &str = "10.87.0.2";

    /// Both hosts, up and joined.
    ///
    /// # Errors
    /// What `ip` or `unshare` said.
    pub fn new() -> Result<Link, String> {
        let link = Link {
            near: namespace()?,
            far: namespace()?,
        };
        let far = link.far.id().to_string();
        let veth = [
            "link", "add", "cable", "type", "veth", "peer", "name", "cable", "netns",
        ];
        link.ip(Host::Near, &[&veth[..], &[&far]].concat())?;
        for (host, address) in [(Host::Near, Link::NEAR), (Host::Far, Link::FAR)] {
            let address = format!("{address}/24");
            link.ip(host, &["address", "add", &address, "dev", "cable"])?;
            link.ip(host, &["link", "set", "cable", "up"])?;
        }
        Ok(link)
    }

    fn namespace_of(&self, host: Host) -> String {
        let holder = match host {
            Host::Near => &self.near,
            Host::Far => &self.far,
        };
        format!("/proc/{}/ns/net", holder.id())
    }

    /// The beginning of a command line that runs on this host.
    #[must_use]
    pub fn enter(&self, host: Host) -> [String; 3] {
        let namespace = format!("--net={}", self.namespace_of(host));
        ["nsenter".into(), namespace, "--".into()]
    }

    /// Runs this on one of the hosts: sockets that are opened meanwhile are the host's.
    ///
    /// # Panics
    /// When the namespace cannot be entered.
    pub fn on<T: Send>(&self, host: Host, what: impl FnOnce() -> T + Send) -> T {
        let namespace = File::open(self.namespace_of(host)).unwrap();
        let there = move || {
            let kind = Some(LinkNameSpaceType::Network);
            move_into_link_name_space(namespace.as_fd(), kind).unwrap();
            what()
        };
        // A namespace is a thread's own.
        std::thread::scope(|scope| scope.spawn(there).join().unwrap())
    }

    /// Silences the far host.
    ///
    /// # Panics
    /// When `ip` fails.
    pub fn cut(&self, lost: Lost) {
        let strict = match lost {
            Lost::Replies => "0",
            // Where nothing can be sent, nothing is believed to come from either.
            Lost::Both => "1",
        };
        let names = ["all", "cable"].map(|name| format!("net.ipv4.conf.{name}.rp_filter"));
        for name in names {
            let path = format!("/proc/sys/{}", name.replace('.', "/"));
            self.run(Host::Far, &["sh", "-c", &format!("echo {strict} > {path}")])
                .unwrap();
        }
        self.ip(Host::Far, &["route", "add", "blackhole", Link::NEAR])
            .unwrap();
    }

    /// Lets the far host be heard again.
    ///
    /// # Panics
    /// When `ip` fails.
    pub fn mend(&self) {
        self.ip(Host::Far, &["route", "delete", "blackhole", Link::NEAR])
            .unwrap();
    }

    fn ip(&self, host: Host, arguments: &[&str]) -> Result<(), String> {
        self.run(host, &[&["ip"], arguments].concat())
    }

    fn run(&self, host: Host, line: &[&str]) -> Result<(), String> {
        let enter = self.enter(host);
        let output = Command::new(&enter[0])
            .args(&enter[1..])
            .args(line)
            .stdin(Stdio::null())
            .output()
            .map_err(|error| format!("{line:?}: {error}"))?;
        let said = String::from_utf8_lossy(&output.stderr);
        (output.status.success())
            .then_some(())
            .ok_or_else(|| format!("{line:?}: {said}"))
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        for child in [&mut self.near, &mut self.far] {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A process alone in a new network namespace.
fn namespace() -> Result<Child, String> {
    let mut child = Command::new("unshare")
        .args(["--net", "sh", "-c", HOLDER])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .map_err(|error| format!("unshare: {error}"))?;
    let output = Output::of(child.stdout.take().expect("stdout is a pipe"));
    match output.wait_for("there", 0, LIMIT) {
        Ok(_) => Ok(child),
        Err(why) => {
            let _ = child.kill();
            let _ = child.wait();
            Err(format!("unshare --net: {why}"))
        }
    }
}
