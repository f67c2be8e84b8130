//! Messages of a locustfile's own: a program of the user's runs for each of a type that was named
//! (`--locust-on`), as a function does that Locust's Python workers have registered.
//!
//! Each type has a thread, which runs one program at a time in the order of the messages. A program
//! reads the message's data as JSON from its standard input, and says what is to be sent to the
//! master on its standard output: a line for each message, an object with `type` and `data`.
//! Messages of types that nobody named are ignored and said to be so, as Locust's workers do.
//!
//! Bounds: [`WAITING_MAX`] messages of a type wait, and more are dropped and said to be; while
//! [`REPLIES_MAX`] messages of programs wait for being sent, the threads wait with theirs; a
//! program that writes more than [`OUTPUT_MAX`], or takes longer than [`PROGRAM_MAX`], is ended
//! with all that it has started.

use rmpv::Value;
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value as Json;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Messages of one type that wait for its program.
const WAITING_MAX: usize = 256;
/// Messages of programs that wait for being sent.
const REPLIES_MAX: usize = 256;
/// Bytes that a program may write for one message.
const OUTPUT_MAX: u64 = 1024 * 1024;
/// Longest time of a program for one message.
const PROGRAM_MAX: Duration = Duration::from_secs(600);

/// Types of messages that a master and its workers exchange by themselves.
const OWN_TYPES: [&str; 15] = [
    "ack",
    "client_ready",
    "client_stopped",
    "heartbeat",
    "locustfile",
    "logs",
    "quit",
    "reconnect",
    "spawn",
    "spawning",
    "spawning_complete",
    "stats",
    "stop",
    "update_user_class",
    "worker_xfer",
];

/// A type of message and the program that runs for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    kind: String,
    program: String,
}

impl Listener {
    /// Reads `TYPE=PROGRAM`.
    pub(super) fn read(text: &str) -> Result<Listener, String> {
        let (kind, program) = text.split_once('=').unwrap_or((text, ""));
        if kind.is_empty() || program.is_empty() {
            return Err("expected TYPE=PROGRAM".to_owned());
        }
        if OWN_TYPES.contains(&kind) {
            return Err(format!(
                "'{kind}' is a message of Locust's own; take another name"
            ));
        }
        Ok(Listener {
            kind: kind.to_owned(),
            program: program.to_owned(),
        })
    }
}

/// One message, and the worker that it came to.
struct Call {
    node: String,
    index: Option<u64>,
    data: Json,
}

/// A message to the master in the name of a worker.
pub(super) struct Reply {
    pub(super) node: String,
    pub(super) kind: String,
    pub(super) data: Value,
}

/// The programs of a run.
pub(super) struct Listeners {
    threads: Vec<Thread>,
    replies: Receiver<Reply>,
}

struct Thread {
    kind: String,
    calls: SyncSender<Call>,
    running: Arc<Mutex<Option<Child>>>,
}

impl Listeners {
    /// # Errors
    /// A sentence with the system's reason.
    pub(super) fn start(listeners: &[Listener]) -> Result<Listeners, String> {
        Listeners::start_for(listeners, PROGRAM_MAX, reply_channel())
    }

    /// Starts programs that may take so long for a message; their replies go to the channel.
    fn start_for(
        listeners: &[Listener],
        max: Duration,
        (sender, replies): (SyncSender<Reply>, Receiver<Reply>),
    ) -> Result<Listeners, String> {
        let mut threads = Vec::new();
        for listener in listeners {
            let (calls, waiting) = sync_channel(WAITING_MAX);
            let running = Arc::<Mutex<Option<Child>>>::default();
            let (listener, held, sender) = (listener.clone(), running.clone(), sender.clone());
            let kind = listener.kind.clone();
            thread::Builder::new()
                .name("locust-on".to_owned())
                .spawn(move || serve((&listener, max), &held, &waiting, &sender))
                .map_err(|error| format!("no thread for --locust-on: {error}"))?;
            threads.push(Thread {
                kind,
                calls,
                running,
            });
        }
        Ok(Listeners { threads, replies })
    }

    /// Hands a message to the program of its type.
    pub(super) fn hear(&self, kind: &str, data: &Value, node: &str, index: Option<u64>) {
        let mut of_kind = self.threads.iter().filter(|thread| thread.kind == kind);
        let Some(thread) = of_kind.next() else {
            aside!(
                "load: the Locust master sent '{kind}', which no --locust-on of this worker names; \
                 it is ignored"
            );
            return;
        };
        let call = Call {
            node: node.to_owned(),
            index,
            data: to_json(data),
        };
        if let Err(TrySendError::Full(_)) = thread.calls.try_send(call) {
            aside!(
                "load: '{kind}' of the Locust master is dropped: {WAITING_MAX} wait for the \
                 program of --locust-on"
            );
        }
    }

    /// Messages that programs want to be sent.
    pub(super) fn replies(&self) -> impl Iterator<Item = Reply> {
        self.replies.try_iter()
    }
}

impl Drop for Listeners {
    fn drop(&mut self) {
        for thread in &self.threads {
            let mut running = thread
                .running
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            if let Some(child) = running.as_mut() {
                end(child);
            }
        }
    }
}

/// Ends a program with what it has started: who has its output open is waited for.
fn end(child: &mut Child) {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    if let Some(pid) = pid {
        let _ = kill_process_group(pid, Signal::KILL);
    }
}

/// Channel of programs' messages on their way to the master.
fn reply_channel() -> (SyncSender<Reply>, Receiver<Reply>) {
    sync_channel(REPLIES_MAX)
}

/// Runs a type's thread.
fn serve(
    (listener, max): (&Listener, Duration),
    running: &Mutex<Option<Child>>,
    calls: &Receiver<Call>,
    replies: &SyncSender<Reply>,
) {
    for call in calls {
        let said =
            run((listener, max), running, &call).and_then(|out| read_replies(&out, &call.node));
        let sent = said.unwrap_or_else(|reason| {
            let reason = format!(
                "--locust-on {}={}: {reason}",
                listener.kind, listener.program
            );
            aside!("load: {reason}");
            vec![exception(&call.node, &reason)]
        });
        for reply in sent {
            if replies.send(reply).is_err() {
                return;
            }
        }
    }
}

/// An exception of a worker for Locust's page.
fn exception(node: &str, reason: &str) -> Reply {
    Reply {
        node: node.to_owned(),
        kind: "exception".to_owned(),
        data: super::message::map([("msg", reason.into()), ("traceback", "".into())]),
    }
}

/// Runs the program once; returns what it wrote.
fn run(
    (listener, max): (&Listener, Duration),
    running: &Mutex<Option<Child>>,
    call: &Call,
) -> Result<Vec<u8>, String> {
    let mut command = Command::new(&listener.program);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    command.process_group(0);
    command.env("ONRAMP_LOCUST_TYPE", &listener.kind);
    command.env("ONRAMP_LOCUST_NODE", &call.node);
    if let Some(index) = call.index {
        command.env("ONRAMP_LOCUST_INDEX", index.to_string());
    }
    let mut child = command
        .spawn()
        .map_err(|error| format!("cannot be run: {error}"))?;
    let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
    let hold = || running.lock().unwrap_or_else(PoisonError::into_inner);
    *hold() = Some(child);
    let input = call.data.to_string();
    let mut output = Vec::new();
    let (done, late) = sync_channel::<()>(0);
    let (read, is_late) = thread::scope(|scope| {
        scope.spawn(move || {
            if let Some(mut stdin) = stdin {
                // A program that does not read its input may end before it is written.
                let _ = stdin.write_all(input.as_bytes());
            }
        });
        let watch = scope.spawn(move || {
            let is_late = late.recv_timeout(max) == Err(RecvTimeoutError::Timeout);
            if let (true, Some(child)) = (is_late, hold().as_mut()) {
                end(child);
            }
            is_late
        });
        let read = stdout.map(|stdout| stdout.take(OUTPUT_MAX + 1).read_to_end(&mut output));
        if output.len() as u64 > OUTPUT_MAX
            && let Some(child) = hold().as_mut()
        {
            end(child);
        }
        drop(done);
        (read.unwrap_or(Ok(0)), watch.join().unwrap_or_default())
    });
    let child = hold().take();
    let ended = child.map(|mut child| child.wait());
    if output.len() as u64 > OUTPUT_MAX {
        return Err(format!(
            "it wrote more than {OUTPUT_MAX} bytes, and was ended"
        ));
    }
    if is_late {
        let limit = max.as_secs();
        return Err(format!("it took longer than {limit} s, and was ended"));
    }
    read.map_err(|error| format!("its output cannot be read: {error}"))?;
    match ended {
        Some(Ok(status)) if status.success() => Ok(output),
        Some(Ok(status)) => Err(format!("it ended with {status}")),
        Some(Err(error)) => Err(format!("its end was not seen: {error}")),
        None => Err("it was ended".to_owned()),
    }
}

/// Reads a program's output: an object with `type` and `data` a line.
fn read_replies(output: &[u8], node: &str) -> Result<Vec<Reply>, String> {
    let text = String::from_utf8_lossy(output);
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines
        .map(|line| {
            let read = serde_json::from_str::<Json>(line);
            let value =
                read.map_err(|error| format!("expected JSON a line, not '{line}': {error}"))?;
            let kind = value.get("type").and_then(Json::as_str);
            let kind = kind.ok_or_else(|| {
                format!("expected {{\"type\": TYPE, \"data\": DATA}} a line, not '{line}'")
            })?;
            if OWN_TYPES.contains(&kind) {
                return Err(format!("'{kind}' is a message of Locust's own"));
            }
            Ok(Reply {
                node: node.to_owned(),
                kind: kind.to_owned(),
                data: value.get("data").map_or(Value::Nil, to_msgpack),
            })
        })
        .collect()
}

/// Keys that are no strings are written as strings; bytes that are no text lose what is none.
fn to_json(value: &Value) -> Json {
    let text = |bytes: &[u8]| Json::from(String::from_utf8_lossy(bytes).into_owned());
    match value {
        Value::Nil | Value::Ext(..) => Json::Null,
        Value::Boolean(yes) => (*yes).into(),
        Value::Integer(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => number.into(),
            (None, number) => number.into(),
        },
        Value::F32(number) => f64::from(*number).into(),
        Value::F64(number) => (*number).into(),
        Value::String(string) => text(string.as_bytes()),
        Value::Binary(bytes) => text(bytes),
        Value::Array(list) => list.iter().map(to_json).collect(),
        Value::Map(pairs) => {
            let key = |key: &Value| match to_json(key) {
                Json::String(key) => key,
                other => other.to_string(),
            };
            let pairs = pairs.iter();
            Json::Object(pairs.map(|(k, value)| (key(k), to_json(value))).collect())
        }
    }
}

fn to_msgpack(value: &Json) -> Value {
    match value {
        Json::Null => Value::Nil,
        Json::Bool(yes) => (*yes).into(),
        Json::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => number.into(),
            (None, Some(number)) => number.into(),
            (None, None) => number.as_f64().map_or(Value::Nil, Value::from),
        },
        Json::String(text) => text.as_str().into(),
        Json::Array(list) => Value::Array(list.iter().map(to_msgpack).collect()),
        Json::Object(fields) => {
            let fields = fields.iter();
            Value::Map(
                fields
                    .map(|(key, value)| (key.as_str().into(), to_msgpack(value)))
                    .collect(),
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn listener(program: &str) -> Listener {
        Listener::read(&format!("names={program}")).unwrap()
    }

    /// A program with these lines, and the file that it is in. Another process writes that: one
    /// that a test beside this one starts would have it open for a moment, and it could not be run.
    fn script(name: &str, lines: &str) -> (PathBuf, Listener) {
        let file = format!("onramp-locust-on-{name}-{}", std::process::id());
        let file = std::env::temp_dir().join(file);
        let write = r#"printf '#!/bin/sh\n%s\n' "$1" >"$0" && chmod 700 "$0""#;
        let mut shell = Command::new("/bin/sh");
        let written = shell.arg("-c").arg(write).arg(&file).arg(lines).status();
        assert!(written.unwrap().success());
        let program = listener(file.to_str().unwrap());
        (file, program)
    }

    /// The next reply, or what is told instead of it.
    fn reply(listeners: &Listeners) -> Reply {
        let wait = Duration::from_secs(30);
        listeners.replies.recv_timeout(wait).unwrap()
    }

    #[test]
    fn values_survive_the_way_to_json_and_back() {
        let text = r#"{"a":[1,-2,2.5,null,true,"é"],"b":{}}"#;
        let json: Json = serde_json::from_str(text).unwrap();
        assert_eq!(to_json(&to_msgpack(&json)), json);
        let keyed = Value::Map(vec![(7.into(), Value::Binary(b"x".to_vec()))]);
        assert_eq!(to_json(&keyed).to_string(), r#"{"7":"x"}"#);
    }

    #[test]
    fn a_listener_is_no_message_of_locusts_own() {
        assert!(
            Listener::read("spawn=/bin/cat")
                .unwrap_err()
                .contains("own")
        );
        assert!(Listener::read("names").is_err());
        assert!(Listener::read("names=").is_err());
    }

    #[test]
    fn a_program_reads_the_data_and_what_it_writes_is_sent() {
        let listeners = Listeners::start(&[listener("/bin/cat")]).unwrap();
        let data = super::super::message::map([("type", "seen".into()), ("data", 5.into())]);
        listeners.hear("names", &data, "n_1", Some(3));
        let said = reply(&listeners);
        assert_eq!((&*said.node, &*said.kind), ("n_1", "seen"));
        assert_eq!(said.data, Value::from(5));
    }

    #[test]
    fn a_program_that_fails_is_an_exception_of_the_worker() {
        for (program, words) in [
            ("/bin/false", "exit status: 1"),
            ("/nonexistent/program", "cannot be run"),
            ("/bin/cat", "expected {\"type\""),
        ] {
            let listeners = Listeners::start(&[listener(program)]).unwrap();
            listeners.hear("names", &5.into(), "n_1", None);
            let said = reply(&listeners);
            assert_eq!(said.kind, "exception");
            assert!(
                to_json(&said.data)
                    .to_string()
                    .contains(&words.replace('"', "\\\""))
            );
        }
    }

    #[test]
    fn what_a_program_writes_is_bounded_and_a_reply_is_none_of_locusts_own() {
        let listeners = Listeners::start(&[listener("/usr/bin/yes")]).unwrap();
        listeners.hear("names", &Value::Nil, "n_1", None);
        assert!(
            to_json(&reply(&listeners).data)
                .to_string()
                .contains("more than")
        );
        let said = read_replies(b"{\"type\":\"stats\"}\n", "n");
        assert!(said.err().unwrap().contains("own"));
    }

    /// A child of the program holds its output open, and ends with it.
    #[test]
    fn a_program_that_does_not_end_is_ended_with_what_it_has_started() {
        let (file, program) = script("endless", "sleep 1000 & sleep 1000");
        let short = Duration::from_millis(50);
        let channel = reply_channel();
        let listeners = Listeners::start_for(&[program], short, channel).unwrap();
        for _ in 0..2 {
            listeners.hear("names", &Value::Nil, "n_1", None);
        }
        for _ in 0..2 {
            let said = to_json(&reply(&listeners).data).to_string();
            assert!(said.contains("took longer"), "{said}");
        }
        std::fs::remove_file(&file).unwrap();
    }

    /// A program that has ended with them waits with its thread, and none of them is lost.
    #[test]
    fn messages_of_programs_that_wait_are_bounded() {
        let (sender, replies) = reply_channel();
        let earlier = |number: usize| Reply {
            node: "n_1".to_owned(),
            kind: "earlier".to_owned(),
            data: number.into(),
        };
        for number in 0..REPLIES_MAX {
            assert!(sender.try_send(earlier(number)).is_ok(), "{number}");
        }
        let one_more = sender.try_send(earlier(REPLIES_MAX));
        assert!(matches!(one_more, Err(TrySendError::Full(_))));
        let says = r#"for i in 0 1 2; do echo "{\"type\":\"later\",\"data\":$i}"; done"#;
        let (file, program) = script("later", &format!("{says}\n: >\"$0.done\""));
        let channel = (sender, replies);
        let listeners = Listeners::start_for(&[program], PROGRAM_MAX, channel).unwrap();
        listeners.hear("names", &Value::Nil, "n_1", None);
        let done = PathBuf::from(format!("{}.done", file.display()));
        let running = &listeners.threads[0].running;
        while !done.exists() || running.lock().unwrap().is_some() {
            thread::yield_now();
        }
        for number in 0..REPLIES_MAX {
            let said = reply(&listeners);
            assert_eq!((&*said.kind, said.data), ("earlier", number.into()));
        }
        for number in 0..3 {
            let said = reply(&listeners);
            assert_eq!((&*said.kind, said.data), ("later", number.into()));
        }
        for file in [file, done] {
            std::fs::remove_file(file).unwrap();
        }
    }

    #[test]
    fn messages_that_wait_are_bounded() {
        let (calls, waiting) = sync_channel(WAITING_MAX);
        let (_sender, replies) = reply_channel();
        let listeners = Listeners {
            threads: vec![Thread {
                kind: "names".to_owned(),
                calls,
                running: Arc::default(),
            }],
            replies,
        };
        for number in 0..WAITING_MAX + 5 {
            listeners.hear("names", &number.into(), "n_1", None);
        }
        drop(listeners);
        let kept: Vec<_> = waiting.iter().map(|call| call.data.as_u64()).collect();
        assert_eq!(kept.len(), WAITING_MAX);
        assert_eq!(kept.last(), Some(&Some(WAITING_MAX as u64 - 1)));
    }
}
