//! The Lua state of a group: compiled scripts, a coroutine and an environment for each connection.
//!
//! `prelude.lua` makes what scripts see; this is its other side: functions that it calls, and the
//! requests that its coroutines yield. Nothing here knows sockets.
//!
//! Invariants: Lua is only entered by [`Interpreter::begin`] and [`Interpreter::resume`] while
//! connections run, one coroutine at a time; a request is answered once.

use super::client::{Done, Rows};
use super::options::{self, Declared};
use super::rand::Generators;
use load_core::errors::Fault;
use load_core::program::{Program, Setting};
use mlua::{Function, IntoLua, IntoLuaMulti, Lua, MultiValue, String as LuaString, Table, Value};
use std::io::Write;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};

const PRELUDE: &str = include_str!("prelude.lua");
/// Memory of a group's Lua state: for the scripts and results of any size that is kept, and for
/// each of its users.
const STATE_BYTES_MAX: usize = 256 * 1024 * 1024;
const USER_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Request of a coroutine.
#[derive(Debug)]
pub(super) enum Request {
    /// End of its event; may it begin another?
    Next,
    /// Ready, waiting until all are.
    Ready,
    /// Left its loop of events.
    Leaving,
    Connect,
    Query(u32, LuaString),
    Prepare(u32, LuaString),
    Execute(u32, u32, Option<Table>),
    CloseStatement(u32, u32),
    Disconnect(u32),
    Reconnect(u32),
    Sleep(f64),
    /// A statement failed with this; the event is run again where it is ignored.
    Failed {
        ignored: bool,
        fault: Fault,
    },
    /// A counter of sysbench, by its number.
    Count(i64),
    /// End of the coroutine.
    Returned,
    /// Ended in an error with these words.
    Died(String),
}

/// Reply to a coroutine.
#[derive(Debug)]
pub(super) enum Reply {
    /// Nothing: it just goes on.
    Nothing,
    /// Its first step: who it is, and a name that its body may need.
    First(u32, Rc<str>),
    Yes(bool),
    Handle(u32),
    Statement(u32),
    Done(Done),
    /// A statement failed. Ignored errors have their event run again; a lost connection is opened
    /// again first.
    Failed {
        fault: Fault,
        ignored: bool,
        lost: bool,
    },
    /// No connection: the line for people, then number and words.
    NotConnected(String, Fault),
}

/// Function that a coroutine runs, by its name in the prelude.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// A connection of the run.
    Thread,
    /// The script itself.
    Main,
    /// A function of the script, in the environment that is there.
    Call,
    /// A hook of reports, in the environment that is there.
    Hook,
    /// A command of the script, as one of several.
    Parallel,
    /// A command of the script that runs alone.
    Single,
}

impl Body {
    fn name(self) -> &'static str {
        match self {
            Body::Thread => "thread",
            Body::Main => "main",
            Body::Call => "call",
            Body::Hook => "hook",
            Body::Parallel => "parallel",
            Body::Single => "single",
        }
    }
}

/// Growth of a state, in percent of the memory in use behind the last collection, until the next
/// one begins. Lua's own 200 makes garbage of half of the memory of 20,000 connections.
const GC_PAUSE_PERCENT: i32 = 130;

/// A state with the prelude in it.
pub struct Interpreter {
    generators: Rc<Generators>,
    lua: Lua,
    step: Function,
    begin: Function,
    forget: Function,
    functions: Table,
}

impl Interpreter {
    /// # Errors
    /// Lua's words, where there is no memory for a state.
    pub(super) fn new(
        program: &Program,
        generators: Generators,
        users: u32,
    ) -> Result<Interpreter, String> {
        let generators = Rc::new(generators);
        Interpreter::make(program, generators, users).map_err(|error| words(&error))
    }

    fn make(
        program: &Program,
        generators: Rc<Generators>,
        users: u32,
    ) -> mlua::Result<Interpreter> {
        let lua = Lua::new();
        lua.set_memory_limit(bytes_max(users))?;
        lua.gc_set_pause(GC_PAUSE_PERCENT);
        let core = core(&lua, &generators)?;
        let config = lua.create_table()?;
        config.set("path", &*program.path)?;
        config.set("package_path", program.package_path())?;
        config.set("version", super::VERSION)?;
        config.set("arch", std::env::consts::ARCH)?;
        config.set("command", program.command.as_deref())?;
        config.set(
            "argv",
            lua.create_sequence_from(program.argv.iter().map(String::as_str))?,
        )?;
        config.set("options", table_of(&lua, &program.settings)?)?;
        let chunk = lua.load(PRELUDE).set_name("=onramp");
        let functions: Table = chunk.call((core, config))?;
        Ok(Interpreter {
            generators,
            step: functions.get("step")?,
            begin: functions.get("begin")?,
            forget: functions.get("forget")?,
            functions,
            lua,
        })
    }

    /// Gives connection `user` a coroutine, which [`Reply::First`] starts.
    pub(super) fn begin(&self, user: u32, body: Body) -> Result<(), String> {
        self.begin
            .call::<()>((user, body.name()))
            .map_err(|error| words(&error))
    }

    /// Forgets what a connection has in Lua.
    pub(super) fn forget(&self, user: u32) {
        // Two assignments: nothing that could fail but for want of memory.
        let _ = self.forget.call::<()>(user);
    }

    /// Tells a coroutine what it waits for; returns what it asks next.
    pub(super) fn resume(&self, user: u32, reply: Reply) -> Request {
        self.generators.turn_to(user);
        let asked = match reply {
            Reply::Nothing => self.tell((user, true)),
            Reply::First(tid, name) => self.tell((user, user, tid, &*name)),
            Reply::Yes(yes) => self.tell((user, yes)),
            Reply::Handle(handle) | Reply::Statement(handle) => self.tell((user, true, handle)),
            Reply::Done(done) => self.tell_done(user, done),
            Reply::Failed {
                fault,
                ignored,
                lost,
            } => {
                let Fault {
                    code,
                    sqlstate,
                    message,
                } = fault;
                self.tell((user, false, code, sqlstate, message, ignored, lost))
            }
            Reply::NotConnected(line, fault) => {
                self.tell((user, false, line, fault.code, fault.message))
            }
        };
        asked.unwrap_or_else(|error| Request::Died(words(&error)))
    }

    fn tell_done(&self, user: u32, done: Done) -> mlua::Result<Request> {
        let Some(rows) = done.rows else {
            return self.tell((user, true));
        };
        let bytes = self.lua.create_string(&rows.bytes)?;
        if done.more.is_empty() {
            return self.tell((user, true, rows.count, rows.columns, bytes, rows.is_binary));
        }
        let more = self.lua.create_table()?;
        for rows in done.more {
            let bytes = self.lua.create_string(&rows.bytes)?;
            let one: [Value; 4] = [
                rows.count.into_lua(&self.lua)?,
                rows.columns.into_lua(&self.lua)?,
                Value::String(bytes),
                Value::Boolean(rows.is_binary),
            ];
            more.push(one)?;
        }
        self.tell((
            user,
            true,
            rows.count,
            rows.columns,
            bytes,
            rows.is_binary,
            more,
        ))
    }

    fn tell(&self, arguments: impl IntoLuaMulti) -> mlua::Result<Request> {
        let (number, a, b, c, d) = self
            .step
            .call::<(u32, Value, Value, Value, Value)>(arguments)?;
        Ok(request(number, a, b, c, d))
    }

    /// The options that the script declares.
    ///
    /// # Errors
    /// A sentence that says what is wrong with one.
    pub fn declared(&self, user: u32) -> Result<Option<Vec<Declared>>, String> {
        let get: Function = self.function("declared")?;
        let table: Option<Table> = get.call(user).map_err(|error| words(&error))?;
        table.map(|table| options::declared(&table)).transpose()
    }

    /// Adds options for all environments that are there or will be.
    pub fn set_options(&self, settings: &[(String, Setting)]) -> Result<(), String> {
        let set: Function = self.function("set_options")?;
        let table = table_of(&self.lua, settings).map_err(|error| words(&error))?;
        set.call::<()>(table).map_err(|error| words(&error))
    }

    /// True where the script has this command, and whether it may run several times at once.
    pub fn command(&self, user: u32, name: &str) -> Result<Option<bool>, String> {
        let get: Function = self.function("is_command")?;
        let (there, parallel): (bool, bool) =
            get.call((user, name)).map_err(|error| words(&error))?;
        Ok(there.then_some(parallel))
    }

    /// True where the script has a function of this name.
    pub fn has(&self, user: u32, name: &str) -> Result<bool, String> {
        let get: Function = self.function("has")?;
        get.call((user, name)).map_err(|error| words(&error))
    }

    /// True where the script has a hook of this name.
    pub fn has_hook(&self, user: u32, name: &str) -> bool {
        self.function("has_hook")
            .is_ok_and(|get| get.call((user, name)).unwrap_or(false))
    }

    /// The numbers that the next [`Body::Hook`] is given.
    pub fn set_numbers(&self, numbers: &[(&str, f64)]) -> Result<(), String> {
        let table = numbers.iter().copied();
        let table = self.lua.create_table_from(table);
        let table = table.map_err(|error| words(&error))?;
        let set = self.function("set_numbers")?;
        set.call::<()>(table).map_err(|error| words(&error))
    }

    /// Writes the end of what reports have begun.
    pub fn end_reports(&self) -> Result<(), String> {
        let end = self.function("end_of_reports")?;
        end.call::<()>(()).map_err(|error| words(&error))
    }

    fn function(&self, name: &str) -> Result<Function, String> {
        self.functions.get(name).map_err(|error| words(&error))
    }
}

/// A request by its number in the prelude.
fn request(number: u32, a: Value, b: Value, c: Value, d: Value) -> Request {
    match (number, a, b) {
        (1, ..) => Request::Next,
        (2, ..) => Request::Ready,
        (3, ..) => Request::Connect,
        (4, con, Value::String(text)) => Request::Query(whole(&con), text),
        (5, con, Value::String(text)) => Request::Prepare(whole(&con), text),
        (6, con, statement) => {
            let values = match c {
                Value::Table(values) => Some(values),
                _ => None,
            };
            Request::Execute(whole(&con), whole(&statement), values)
        }
        (7, con, statement) => Request::CloseStatement(whole(&con), whole(&statement)),
        (8, con, _) => Request::Disconnect(whole(&con)),
        (9, con, _) => Request::Reconnect(whole(&con)),
        (10, micros, _) => Request::Sleep(float(&micros)),
        (11, ignored, code) => Request::Failed {
            ignored: ignored.as_boolean().unwrap_or(false),
            fault: Fault {
                code: whole(&code),
                sqlstate: text(&c),
                message: text(&d),
            },
        },
        (12, counter, _) => Request::Count(counter.as_i64().unwrap_or(-1)),
        (13, ..) => Request::Leaving,
        (100, ..) => Request::Returned,
        (101, reason, _) => Request::Died(died(&reason)),
        (4 | 5, _, other) => Request::Died(format!(
            "a statement is a string; the script passed a {}",
            other.type_name()
        )),
        (other, ..) => Request::Died(format!("request {other} is not known")),
    }
}

/// The words of an error that ended a coroutine.
fn died(reason: &Value) -> String {
    let reason = text(reason);
    match reason.ends_with(OUT_OF_MEMORY_OF_LUA) {
        true => OUT_OF_MEMORY.to_owned(),
        false => reason,
    }
}

/// A number of Lua, which is an integer here where it has no fraction. 0 for anything else.
fn float(value: &Value) -> f64 {
    match value {
        Value::Integer(number) => *number as f64,
        Value::Number(number) => *number,
        _ => 0.0,
    }
}

fn whole(value: &Value) -> u32 {
    value.as_u32().unwrap_or(u32::MAX)
}

fn text(value: &Value) -> String {
    value
        .as_string()
        .map_or_else(String::new, LuaString::to_string_lossy)
}

/// Memory that a state with so many users may take.
fn bytes_max(users: u32) -> usize {
    USER_BYTES_MAX
        .saturating_mul(users as usize)
        .saturating_add(STATE_BYTES_MAX)
}

/// Message of an error in Lua's words, without the stack of Rust's functions.
fn words(error: &mlua::Error) -> String {
    match error {
        mlua::Error::MemoryError(_) => OUT_OF_MEMORY.to_owned(),
        mlua::Error::CallbackError { cause, .. } => words(cause),
        mlua::Error::RuntimeError(text) => text.lines().next().unwrap_or_default().to_owned(),
        other => other.to_string(),
    }
}

fn table_of(lua: &Lua, settings: &[(String, Setting)]) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    for (name, setting) in settings {
        let value = match setting {
            Setting::None => Value::Nil,
            Setting::Bool(yes) => Value::Boolean(*yes),
            Setting::Number(number) => number.into_lua(lua)?,
            Setting::Text(text) => text.as_str().into_lua(lua)?,
            Setting::List(parts) => {
                Value::Table(lua.create_sequence_from(parts.iter().map(String::as_str))?)
            }
        };
        table.set(name.as_str(), value)?;
    }
    Ok(table)
}

/// The functions that the prelude calls.
fn core(lua: &Lua, generators: &Rc<Generators>) -> mlua::Result<Table> {
    let core = lua.create_table()?;
    core.set("rand", rand(lua, generators)?)?;
    let own = generators.clone();
    let string = lua.create_function(move |lua, format: LuaString| {
        let mut out = Vec::new();
        own.string(&format.as_bytes(), &mut out);
        lua.create_string(out)
    })?;
    core.get::<Table>("rand")?.set("string", &string)?;
    core.set("string", string)?;
    core.set("row", lua.create_function(row)?)?;
    core.set(
        "print",
        lua.create_function(|_, text: LuaString| {
            let mut stdout = std::io::stdout().lock();
            // Whoever reads it may have gone.
            let _ = stdout
                .write_all(&text.as_bytes())
                .and_then(|()| stdout.flush());
            Ok(())
        })?,
    )?;
    core.set(
        "note",
        lua.create_function(|_, text: String| {
            static LINES: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
            if LINES.fetch_add(1, Ordering::Relaxed) < NOTES_MAX {
                aside!("FATAL: {text}");
            }
            Ok(())
        })?,
    )?;
    core.set(
        "note_once",
        lua.create_function(|_, what: String| {
            static SAID: AtomicBool = AtomicBool::new(false);
            if !SAID.swap(true, Ordering::Relaxed) {
                aside!(
                    "load: the script calls {what}, which makes all connections of its group wait \
                 until it returns"
                );
            }
            Ok(())
        })?,
    )?;
    core.set(
        "options_text",
        lua.create_function(|_, table: Table| {
            let declared = options::declared(&table).map_err(mlua::Error::RuntimeError)?;
            Ok(options::help(&declared))
        })?,
    )?;
    Ok(core)
}

/// Lua's message at the limit of memory.
const OUT_OF_MEMORY_OF_LUA: &str = "not enough memory";
const OUT_OF_MEMORY: &str = "the script's memory is full: the Lua state of a group may take \
     256 MiB, and 4 MiB more for each of its threads; keep less in tables, or run fewer threads";

/// Lines about statements that failed, of all connections: the first say what is wrong.
const NOTES_MAX: u32 = 4;

/// Draws from a range.
type Draw = fn(&Generators, f64, f64) -> f64;

fn rand(lua: &Lua, generators: &Rc<Generators>) -> mlua::Result<Table> {
    let rand = lua.create_table()?;
    let pairs: [(&str, Draw); 6] = [
        ("default", Generators::by_default),
        ("uniform", Generators::uniform),
        ("gaussian", Generators::gaussian),
        ("special", Generators::special),
        ("pareto", Generators::pareto),
        ("zipfian", Generators::zipfian),
    ];
    for (name, draw) in pairs {
        let own = generators.clone();
        rand.set(
            name,
            lua.create_function(move |_, (low, high)| Ok(draw(&own, low, high)))?,
        )?;
    }
    let own = generators.clone();
    rand.set(
        "unique",
        lua.create_function(move |_, ()| Ok(own.unique()))?,
    )?;
    let own = generators.clone();
    rand.set(
        "uniform_double",
        lua.create_function(move |_, ()| Ok(own.unit()))?,
    )?;
    let own = generators.clone();
    rand.set(
        "uniform_uint64",
        lua.create_function(move |_, ()| Ok(own.uint64() as f64))?,
    )?;
    let own = generators.clone();
    let varstring = move |lua: &Lua, (min, max)| {
        let mut out = Vec::new();
        own.varstring(min, max, &mut out);
        lua.create_string(out)
    };
    rand.set("varstring", lua.create_function(varstring)?)?;
    Ok(rand)
}

/// The row at a place of a result's bytes, and where the next one begins.
fn row(
    lua: &Lua,
    (bytes, at, columns, is_binary): (LuaString, usize, usize, bool),
) -> mlua::Result<MultiValue> {
    let table = lua.create_table_with_capacity(columns, 0)?;
    let mut result = Ok(());
    let mut column = 0;
    let next = Rows::row(&bytes.as_bytes(), at, columns, is_binary, |value| {
        column += 1;
        if let Some(value) = value {
            let set = lua
                .create_string(value)
                .and_then(|text| table.raw_set(column, text));
            if let Err(error) = set {
                result = Err(error);
            }
        }
    });
    result?;
    match next {
        Some(next) => (next, table).into_lua_multi(lua),
        None => Value::Nil.into_lua_multi(lua),
    }
}
