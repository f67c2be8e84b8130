//! Setting what can be set while everything runs, and setting it back.
//!
//! The problem: between a table of gaps and a run stand a dozen commands, and after the run nobody
//! remembers what was before. The mechanism: the settings of the findings that are short become
//! changes, each with the value that is there now; they are shown, agreed to, noted in a file, and
//! made. `--undo` reads the file, sets back in reverse and removes it.
//!
//! Invariants: nothing is changed before it stands in the record; a record that exists is added to,
//! and keeps what was first; what could not be set is taken out of it again, so that `--undo` tries
//! only what was done; what cannot be set at run time is said, not done.

use crate::client::Client;
use crate::facts::{Facts, Files, NO_LIMIT, Process, sysctl_path};
use crate::finding::{Finding, Status};
use crate::setting::Setting;
use crate::target::Target;
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{self, BufRead, Write};
use std::path::Path;

/// Objects that can be changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Object {
    /// A kernel setting.
    Sysctl {
        /// Name in sysctl.
        name: String,
    },
    /// A global variable of the server.
    Global {
        /// Its name.
        name: String,
    },
    /// pids.max of a control group.
    GroupPids {
        /// The file.
        path: String,
    },
    /// Soft and hard limit of a process; the value is `SOFT HARD`.
    Limit {
        /// The process.
        pid: u64,
        /// `nofile` or `nproc`.
        resource: String,
    },
}

/// One change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// Object to change.
    #[serde(flatten)]
    pub object: Object,
    /// The value before.
    pub before: String,
    /// The value after.
    pub after: String,
}

impl Change {
    /// The change that takes it back.
    #[must_use]
    pub fn reversed(&self) -> Change {
        Change {
            object: self.object.clone(),
            before: self.after.clone(),
            after: self.before.clone(),
        }
    }

    /// Object in words.
    fn words(&self) -> String {
        match &self.object {
            Object::Sysctl { name } => name.clone(),
            Object::Global { name } => format!("GLOBAL {name}"),
            Object::GroupPids { path } => path.clone(),
            Object::Limit { pid, resource } => format!("{resource} of process {pid} (soft, hard)"),
        }
    }
}

/// Changes that can be made now, and the commands of those that cannot.
#[must_use]
pub fn plan(findings: &[Finding], facts: &Facts, files: &Files) -> (Vec<Change>, Vec<String>) {
    let (mut changes, mut later): (Vec<Change>, Vec<String>) = (Vec::new(), Vec::new());
    let short = findings
        .iter()
        .filter(|finding| matches!(finding.status, Status::Fail | Status::Warn));
    for finding in short.filter(|finding| finding.is_asked) {
        for setting in &finding.settings {
            match change(setting, facts, files) {
                Some(change) if change.before == change.after => {}
                Some(change) if changes.iter().any(|known| known.object == change.object) => {}
                Some(change) => changes.push(change),
                None => later.push(setting.command()),
            }
        }
        if finding.settings.is_empty() && !finding.remedy.is_empty() {
            later.push(finding.remedy.clone());
        }
    }
    (changes, later)
}

fn change(setting: &Setting, facts: &Facts, files: &Files) -> Option<Change> {
    let server = facts.server_process.as_ref();
    match setting {
        Setting::Sysctl(name, values) => {
            let values: Vec<String> = values.iter().map(u64::to_string).collect();
            let before = files.text(&sysctl_path(name))?;
            Some(Change {
                before: before.split_whitespace().collect::<Vec<_>>().join(" "),
                after: values.join(" "),
                object: Object::Sysctl {
                    name: (*name).to_owned(),
                },
            })
        }
        Setting::Global(name, value) => Some(Change {
            before: facts.server.as_ref()?.variables.get(*name)?.clone(),
            after: value.clone(),
            object: Object::Global {
                name: (*name).to_owned(),
            },
        }),
        Setting::Tasks(value) => {
            let path = server?.group.pids_file.clone();
            Some(Change {
                before: files.text(&path)?.trim().to_owned(),
                after: value.to_string(),
                object: Object::GroupPids { path },
            })
        }
        Setting::ServerDescriptors { running, .. } => {
            let server = server?;
            limit(
                server,
                "nofile",
                server.nofile_soft?,
                server.nofile_hard?,
                *running,
            )
        }
        Setting::Threads(value) => {
            let server = server?;
            limit(
                server,
                "nproc",
                server.nproc_soft?,
                server.nproc_hard?,
                *value,
            )
        }
        // The pool and the load have those of the shell that starts them.
        Setting::Descriptors(_) | Setting::File(..) => None,
    }
}

fn limit(of: &Process, resource: &str, soft: u64, hard: u64, wanted: u64) -> Option<Change> {
    Some(Change {
        before: format!("{} {}", limit_words(soft), limit_words(hard)),
        after: format!(
            "{} {}",
            limit_words(soft.max(wanted)),
            limit_words(hard.max(wanted))
        ),
        object: Object::Limit {
            pid: of.pid,
            resource: resource.to_owned(),
        },
    })
}

fn limit_words(limit: u64) -> String {
    match limit {
        NO_LIMIT => "unlimited".to_owned(),
        limit => limit.to_string(),
    }
}

/// Shows the changes; true if they are agreed to.
///
/// # Errors
/// What keeps the answer from being read.
pub fn agree(
    changes: &[Change],
    later: &[String],
    is_agreed: bool,
    input: &mut dyn BufRead,
    out: &mut dyn Write,
) -> io::Result<bool> {
    for change in changes {
        writeln!(
            out,
            "  {:<44} {} -> {}",
            change.words(),
            change.before,
            change.after
        )?;
    }
    for command in later {
        writeln!(out, "  left to you: {command}")?;
    }
    if changes.is_empty() {
        writeln!(out, "nothing to set")?;
        return Ok(false);
    }
    if is_agreed {
        return Ok(true);
    }
    write!(out, "Set these {}? [y/N] ", changes.len())?;
    out.flush()?;
    let mut answer = String::new();
    input.read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// Places in which changes are made.
pub struct Hands<'a> {
    /// The kernel's files.
    pub files: &'a Files,
    /// The server, where variables of it are changed.
    pub target: Option<&'a Target>,
}

impl Hands<'_> {
    /// Sets `object` to `value`.
    fn set(&self, object: &Object, value: &str) -> Result<(), String> {
        match object {
            Object::Sysctl { name } => {
                let path = self.files.path(&sysctl_path(name));
                fs::write(path, value).map_err(|error| error.to_string())
            }
            Object::GroupPids { path } => {
                fs::write(self.files.path(path), value).map_err(|error| error.to_string())
            }
            Object::Global { name } => {
                let target = self.target.ok_or("the server is not named: --target")?;
                let mut client = Client::connect(target).map_err(|error| error.to_string())?;
                let quoted = match value.parse::<u64>() {
                    Ok(_) => value.to_owned(),
                    Err(_) => format!("'{}'", value.replace('\'', "''")),
                };
                let sql = format!("SET GLOBAL {name} = {quoted}");
                client
                    .query(&sql)
                    .map(|_| ())
                    .map_err(|error| error.to_string())
            }
            Object::Limit { pid, resource } => set_limit(*pid, resource, value),
        }
    }
}

fn set_limit(pid: u64, resource: &str, value: &str) -> Result<(), String> {
    let wrong = || format!("'{value}' is no soft and hard limit of process {pid}");
    let (soft, hard) = value.split_once(' ').ok_or_else(wrong)?;
    let number = |text: &str| match text {
        "unlimited" => Ok(None),
        text => text.parse().map(Some).map_err(|_| wrong()),
    };
    let resource = match resource {
        "nofile" => Resource::Nofile,
        _ => Resource::Nproc,
    };
    let pid = i32::try_from(pid)
        .ok()
        .and_then(Pid::from_raw)
        .ok_or_else(wrong)?;
    let limit = Rlimit {
        current: number(soft)?,
        maximum: number(hard)?,
    };
    prlimit(Some(pid), resource, limit)
        .map(|_| ())
        .map_err(|error| error.to_string())
}

/// Notes the changes in `record`, then makes them. Returns how many could not be made.
///
/// # Errors
/// Why the record cannot be written; then nothing was changed, unless what failed could not be
/// taken out of it.
pub fn make(
    changes: &[Change],
    hands: &Hands<'_>,
    record: &Path,
    out: &mut dyn Write,
) -> Result<usize, String> {
    let before = read_record(record)?.unwrap_or_default();
    let mut noted = before.clone();
    for change in changes {
        match find(&mut noted, &change.object) {
            // What was before the first change is what --undo goes back to.
            Some(known) => known.after.clone_from(&change.after),
            None => noted.push(change.clone()),
        }
    }
    write_record(record, &noted)?;
    let mut failed = 0;
    for change in changes {
        match hands.set(&change.object, &change.after) {
            Ok(()) => say(out, &format!("set {} to {}", change.words(), change.after)),
            Err(why) => {
                failed += 1;
                say(out, &format!("could not set {}: {why}", change.words()));
                noted.retain(|known| known.object != change.object);
                let known = before.iter().find(|known| known.object == change.object);
                noted.extend(known.cloned());
            }
        }
    }
    if failed > 0 {
        keep_record(record, &noted)?;
    }
    if !noted.is_empty() {
        let place = record.display();
        say(
            out,
            &format!("to set it back: onramp doctor --undo ({place})"),
        );
    }
    Ok(failed)
}

fn find<'a>(noted: &'a mut [Change], object: &Object) -> Option<&'a mut Change> {
    noted.iter_mut().find(|known| known.object == *object)
}

/// Sets back what the record says, the last change first, and removes it if all could be. Returns
/// how many could not.
///
/// # Errors
/// Why the record cannot be read.
pub fn undo(
    changes: &[Change],
    hands: &Hands<'_>,
    record: &Path,
    out: &mut dyn Write,
) -> Result<usize, String> {
    let mut left = Vec::new();
    for change in changes.iter().rev() {
        match hands.set(&change.object, &change.before) {
            Ok(()) => say(
                out,
                &format!("set {} back to {}", change.words(), change.before),
            ),
            Err(why) => {
                say(
                    out,
                    &format!("could not set {} back: {why}", change.words()),
                );
                left.insert(0, change.clone());
            }
        }
    }
    keep_record(record, &left)?;
    if !left.is_empty() {
        say(out, &format!("what is left stands in {}", record.display()));
    }
    Ok(left.len())
}

/// Writes a line for the user; one who does not listen loses it.
fn say(out: &mut dyn Write, words: &str) {
    let _ = writeln!(out, "{words}");
}

/// The changes of a record; None if there is none.
///
/// # Errors
/// Why it cannot be read.
pub fn read_record(record: &Path) -> Result<Option<Vec<Change>>, String> {
    let wrong = |error: String| format!("{}: {error}", record.display());
    match fs::read_to_string(record) {
        Ok(text) => serde_json::from_str(&text)
            .map(Some)
            .map_err(|error| wrong(error.to_string())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(wrong(error.to_string())),
    }
}

/// Leaves a record of these changes; none where there are none.
fn keep_record(record: &Path, changes: &[Change]) -> Result<(), String> {
    if changes.is_empty() {
        let gone = fs::remove_file(record);
        return gone.map_err(|error| format!("{}: {error}", record.display()));
    }
    write_record(record, changes)
}

/// Written beside and renamed, so that there is never half a record.
fn write_record(record: &Path, changes: &[Change]) -> Result<(), String> {
    let wrong = |error: String| format!("{}: {error}; nothing was changed", record.display());
    let text = serde_json::to_string_pretty(changes).map_err(|error| wrong(error.to_string()))?;
    let beside = record.with_extension("new");
    let written = fs::write(&beside, text + "\n").and_then(|()| fs::rename(&beside, record));
    written.map_err(|error| wrong(error.to_string()))
}

#[cfg(test)]
mod tests;
