//! The engine: SQLite with the tables of a source, each filled for the statement that reads it.
//!
//! The mechanism: SQLite asks an authorizer about all that a statement does when it is prepared. It
//! may read, call functions and recurse, and the names of the tables that it reads are noted; all
//! else (writing, attaching, pragmas) is refused there. Then these tables are filled, the statement
//! runs, and they are emptied. The columns of JOIN ... USING are not asked for
//! there, so names of tables in the text count as well. A table that is asked for as it is needs
//! none of this: its rows go from the source into the answer.
//!
//! Bounds: the rows of a table, the bytes of an answer ([`Answer`]), the time of a statement, and
//! the memory of all engines together ([`HEAP_MAX`]).

use crate::answer::{Answer, Wrong};
use crate::dialect::COMMANDS;
use crate::{DEFAULT_SCHEMA, ROWS_MAX, Row, STATEMENT_MAX, Source, Table, Type, Value};
use reactor::Time;
use rusqlite::functions::FunctionFlags;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, Statement, ToSql, params_from_iter};
use sql::lex::{LexMode, Lexer, Token};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use wire::errors;

/// Memory of SQLite in this process.
const HEAP_MAX: i64 = 256 << 20;
/// Bytes of one value, and of a text.
const VALUE_MAX: i32 = 16 << 20;
/// Bytes of a pattern of LIKE or GLOB: it is compared by recursion, on the thread's stack.
const PATTERN_MAX: i32 = 1000;
/// Levels of an expression, for the same reason.
const DEPTH_MAX: i32 = 200;
/// Instructions of SQLite between two looks at the clock.
const LOOK_EVERY: i32 = 10_000;

/// Schema of a table that is named without one.
const ANY: &str = "";

/// Notes of the authorizer, and what it decides by.
#[derive(Default)]
struct Watch {
    /// True while the engine itself is at work: everything is allowed.
    own: AtomicBool,
    /// Tables that the statement reads, by schema and name.
    read: Mutex<BTreeSet<(String, String)>>,
    /// Moment at which the statement is ended.
    until: Mutex<Option<Time>>,
}

/// The connected account, for functions such as USER().
#[derive(Clone, Debug)]
pub(crate) struct Who {
    pub(crate) user: String,
    pub(crate) id: u32,
    pub(crate) version: String,
}

/// One connection's database.
pub(crate) struct Engine {
    database: Connection,
    watch: Arc<Watch>,
    source: Arc<dyn Source>,
    /// Answer of DATABASE().
    schema: Arc<Mutex<&'static str>>,
}

/// Tables of the console itself, about the others.
pub(crate) static OWN: &[Table] = &[
    Table {
        schema: DEFAULT_SCHEMA,
        name: "tables",
        help: "A table of the console.",
        columns: &[
            text("name", "its name"),
            text("schema", "its schema"),
            text("help", "meaning of a row"),
        ],
    },
    Table {
        schema: DEFAULT_SCHEMA,
        name: "columns",
        help: "A column of a table.",
        columns: &[
            shown("table", 15, "the table"),
            shown("name", 24, "its name"),
            shown("type", 7, "the type of its values"),
            shown("help", 50, "its meaning"),
            text("schema", "the table's schema"),
            integer("position", "its place, from 1"),
        ],
    },
    Table {
        schema: DEFAULT_SCHEMA,
        name: "variables",
        help: "A variable for @@NAME.",
        columns: &[text("name", "its name"), text("value", "its value")],
    },
    Table {
        schema: DEFAULT_SCHEMA,
        name: "help",
        help: "A command of the console.",
        columns: &[text("command", "the command"), text("effect", "its effect")],
    },
];

const fn text(name: &'static str, help: &'static str) -> crate::Column {
    crate::Column {
        name,
        width: None,
        of: Type::Text,
        help,
    }
}

const fn shown(name: &'static str, width: usize, help: &'static str) -> crate::Column {
    crate::Column {
        width: Some(width),
        ..text(name, help)
    }
}

const fn integer(name: &'static str, help: &'static str) -> crate::Column {
    crate::Column {
        name,
        width: None,
        of: Type::Integer,
        help,
    }
}

impl<'v> From<&'v Value> for ValueRef<'v> {
    fn from(value: &'v Value) -> ValueRef<'v> {
        match value {
            Value::Null => ValueRef::Null,
            Value::Integer(number) => ValueRef::Integer(*number),
            Value::Real(number) => ValueRef::Real(*number),
            Value::Text(text) => ValueRef::Text(text.as_bytes()),
        }
    }
}

impl ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(self.into()))
    }
}

impl Type {
    fn name(self) -> &'static str {
        match self {
            Type::Integer => "integer",
            Type::Real => "real",
            Type::Text => "text",
        }
    }
}

impl Engine {
    /// A database with empty tables.
    ///
    /// # Errors
    /// SQLite's.
    pub(crate) fn new(source: Arc<dyn Source>, who: &Who) -> rusqlite::Result<Engine> {
        let mut database = Connection::open_in_memory()?;
        database.pragma_update(None, "hard_heap_limit", HEAP_MAX)?;
        database.pragma_update(None, "temp_store", "memory")?;
        database.set_limit(Limit::SQLITE_LIMIT_LENGTH, VALUE_MAX)?;
        database.set_limit(Limit::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, PATTERN_MAX)?;
        database.set_limit(Limit::SQLITE_LIMIT_EXPR_DEPTH, DEPTH_MAX)?;
        let tables = || source.tables().iter().chain(OWN);
        let schemas: BTreeSet<&str> = tables().map(|table| table.schema).collect();
        // A table without a schema is looked for in them one after the other.
        let others = schemas.iter().filter(|schema| **schema != DEFAULT_SCHEMA);
        for schema in [&DEFAULT_SCHEMA].into_iter().chain(others) {
            database.execute(&format!("ATTACH ':memory:' AS {schema}"), [])?;
        }
        for table in tables() {
            let columns = table.columns.iter();
            // TEXT compares without case, as MySQL's usual collations do.
            let columns = columns.map(|column| {
                let collation = match column.of {
                    Type::Text => " COLLATE NOCASE",
                    Type::Integer | Type::Real => "",
                };
                format!("\"{}\" {}{collation}", column.name, column.of.name())
            });
            let columns: Vec<String> = columns.collect();
            let columns = columns.join(", ");
            let create = format!("CREATE TABLE {} ({columns})", full_name(table));
            database.execute(&create, [])?;
        }
        for (name, value) in [
            ("version", who.version.clone()),
            ("user", who.user.clone()),
            ("current_user", who.user.clone()),
        ] {
            let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
            database.create_scalar_function(name, 0, flags, move |_| Ok(value.clone()))?;
        }
        let schema = Arc::new(Mutex::new(DEFAULT_SCHEMA));
        for name in ["database", "schema"] {
            let schema = schema.clone();
            let flags = FunctionFlags::SQLITE_UTF8;
            database.create_scalar_function(name, 0, flags, move |_| {
                Ok(*schema.lock().unwrap_or_else(PoisonError::into_inner))
            })?;
        }
        let id = who.id;
        let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
        database.create_scalar_function("connection_id", 0, flags, move |_| Ok(id))?;
        let watch = Arc::new(Watch::default());
        let asked = watch.clone();
        database.authorizer(Some(move |context: AuthContext<'_>| asked.decide(&context)))?;
        let clock = watch.clone();
        database.progress_handler(LOOK_EVERY, Some(move || clock.is_late()))?;
        Ok(Engine {
            database,
            watch,
            source,
            schema,
        })
    }

    /// Writes all rows of a table as they are, without SQLite.
    ///
    /// # Errors
    /// A sentence with what is wrong; what is written then is half an answer.
    pub(crate) fn list(&self, table: &Table, mut answer: Answer<'_>) -> Result<(), Wrong> {
        let rows = self.rows_of(table)?;
        answer.columns(table.columns.iter().map(|column| column.name));
        for row in &rows {
            answer.row(row.iter().map(ValueRef::from))?;
        }
        answer.end();
        Ok(())
    }

    /// Runs a text that reads, and writes its rows.
    ///
    /// # Errors
    /// A sentence with what is wrong; what is written then is half an answer.
    pub(crate) fn run(&self, text: &str, answer: Answer<'_>) -> Result<(), Wrong> {
        self.watch.take();
        let until = Time::now() + STATEMENT_MAX;
        *self
            .watch
            .until
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(until);
        let mut statement = self.database.prepare(text).map_err(|error| wrong(&error))?;
        if statement.parameter_count() > 0 {
            return Err(Wrong::syntax("there are no values for placeholders here"));
        }
        let mut read = self.watch.take();
        read.extend(named(text));
        let filled = self.fill(&read);
        let answered = filled.and_then(|()| collect(&mut statement, answer));
        drop(statement);
        let emptied = self.empty(&read);
        answered.and(emptied)
    }

    /// The schema of the session.
    pub(crate) fn schema(&self) -> &'static str {
        *self.schema.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the schema, as USE does.
    pub(crate) fn use_schema(&self, schema: &'static str) {
        *self.schema.lock().unwrap_or_else(PoisonError::into_inner) = schema;
    }

    fn tables(&self) -> impl Iterator<Item = &'static Table> {
        self.source.tables().iter().chain(OWN)
    }

    fn fill(&self, read: &BTreeSet<(String, String)>) -> Result<(), Wrong> {
        for table in self.tables().filter(|table| is_among(table, read)) {
            let rows = self.rows_of(table)?;
            self.own(|| insert(&self.database, table, &rows))?;
        }
        Ok(())
    }

    fn rows_of(&self, table: &Table) -> Result<Vec<Row>, Wrong> {
        let rows = match own_rows(table, &*self.source) {
            Some(rows) => rows,
            None => self.source.rows(table).map_err(Wrong::too_late)?,
        };
        match rows.len() > ROWS_MAX {
            true => Err(Wrong::too_much(format!(
                "{} has more than {ROWS_MAX} rows now, which is what the console can hold",
                table.name
            ))),
            false => Ok(rows),
        }
    }

    fn empty(&self, read: &BTreeSet<(String, String)>) -> Result<(), Wrong> {
        for table in self.tables().filter(|table| is_among(table, read)) {
            let delete = format!("DELETE FROM {}", full_name(table));
            self.own(|| self.database.execute(&delete, []).map(|_| ()))?;
        }
        Ok(())
    }

    /// Runs work that a client may not do, without a limit of time.
    fn own(&self, work: impl FnOnce() -> rusqlite::Result<()>) -> Result<(), Wrong> {
        self.watch.own.store(true, Ordering::Relaxed);
        let done = work();
        self.watch.own.store(false, Ordering::Relaxed);
        done.map_err(|error| wrong(&error))
    }
}

impl Watch {
    fn take(&self) -> BTreeSet<(String, String)> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *read)
    }

    fn is_late(&self) -> bool {
        let until = self.until.lock().unwrap_or_else(PoisonError::into_inner);
        !self.own.load(Ordering::Relaxed) && until.is_some_and(|until| Time::now() >= until)
    }

    fn decide(&self, context: &AuthContext<'_>) -> Authorization {
        if self.own.load(Ordering::Relaxed) {
            return Authorization::Allow;
        }
        match context.action {
            AuthAction::Read { table_name, .. } => {
                let schema = context.database_name.unwrap_or(ANY).to_ascii_lowercase();
                let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
                read.insert((schema, table_name.to_ascii_lowercase()));
                Authorization::Allow
            }
            AuthAction::Select | AuthAction::Recursive => Authorization::Allow,
            AuthAction::Function { .. } => Authorization::Allow,
            _ => Authorization::Deny,
        }
    }
}

/// The rows of a statement.
fn collect(statement: &mut Statement<'_>, mut answer: Answer<'_>) -> Result<(), Wrong> {
    answer.columns(statement.column_names());
    let width = statement.column_count();
    let mut rows = statement.query([]).map_err(|error| wrong(&error))?;
    while let Some(row) = rows.next().map_err(|error| wrong(&error))? {
        // It fails behind the last column only.
        answer.row((0..width).map_while(|at| row.get_ref(at).ok()))?;
    }
    answer.end();
    Ok(())
}

fn full_name(table: &Table) -> String {
    format!("{}.\"{}\"", table.schema, table.name)
}

fn is_among(table: &Table, read: &BTreeSet<(String, String)>) -> bool {
    let name = table.name.to_ascii_lowercase();
    let with = |schema: &str| read.contains(&(schema.to_ascii_lowercase(), name.clone()));
    with(table.schema) || with(ANY)
}

/// Names of tables behind FROM, JOIN and the commas between them, by schema and name.
fn named(text: &str) -> Vec<(String, String)> {
    const ENDS: [&str; 8] = [
        "select", "where", "group", "order", "limit", "having", "window", "union",
    ];
    let tokens: Vec<Token> = Lexer::new(text.as_bytes(), LexMode::default()).collect();
    let word = |at: usize| {
        let token = tokens.get(at);
        let text = token.map_or("", |token| &text[token.start..token.end]);
        text.trim_matches(['`', '"']).to_ascii_lowercase()
    };
    let mut found = Vec::new();
    let mut among_tables = false;
    for at in 0..tokens.len() {
        let this = word(at);
        if ENDS.contains(&this.as_str()) {
            among_tables = false;
        }
        if matches!(this.as_str(), "from" | "join") {
            among_tables = true;
        } else if this != "," {
            continue;
        }
        if among_tables {
            found.push(match word(at + 2).as_str() {
                "." => (word(at + 1), word(at + 3)),
                _ => (ANY.to_owned(), word(at + 1)),
            });
        }
    }
    found
}

/// The rows of the console's own tables.
fn own_rows(table: &Table, source: &dyn Source) -> Option<Vec<Row>> {
    let named = |name: &'static str| Value::Text(name.into());
    let all = || source.tables().iter().chain(OWN);
    if !OWN.contains(table) {
        return None;
    }
    Some(match table.name {
        "tables" => all()
            .map(|table| vec![named(table.name), named(table.schema), named(table.help)])
            .collect(),
        "columns" => all()
            .flat_map(|table| {
                (1..).zip(table.columns).map(|(position, column)| {
                    vec![
                        named(table.name),
                        named(column.name),
                        named(column.of.name()),
                        named(column.help),
                        named(table.schema),
                        Value::Integer(position),
                    ]
                })
            })
            .collect(),
        "help" => {
            let shown = all().filter(|table| table.schema == DEFAULT_SCHEMA);
            let shows = shown.map(|table| {
                let show = format!("SHOW {}", table.name.to_ascii_uppercase());
                vec![Value::Text(show.into()), named(first_sentence(table.help))]
            });
            let commands = COMMANDS.iter();
            let commands = commands.map(|(text, effect)| vec![named(text), named(effect)]);
            commands.chain(shows).collect()
        }
        _ => source
            .variables()
            .into_iter()
            .map(|(name, value)| vec![Value::Text(name.into()), Value::Text(value.into())])
            .collect(),
    })
}

/// The beginning of a text, as far as it fits a terminal's line.
fn first_sentence(text: &'static str) -> &'static str {
    text.split_inclusive(". ").next().unwrap_or(text).trim_end()
}

fn insert(database: &Connection, table: &Table, rows: &[Row]) -> rusqlite::Result<()> {
    let places = vec!["?"; table.columns.len()].join(", ");
    let text = format!("INSERT INTO {} VALUES ({places})", full_name(table));
    let mut statement = database.prepare(&text)?;
    database.execute_batch("BEGIN")?;
    for row in rows {
        if let Err(error) = statement.execute(params_from_iter(row)) {
            database.execute_batch("ROLLBACK")?;
            return Err(error);
        }
    }
    database.execute_batch("COMMIT")
}

/// Opening of SQLite's message that a table is not there.
const NO_TABLE: &str = "no such table: ";

/// SQLite's error, for the client.
fn wrong(error: &rusqlite::Error) -> Wrong {
    use rusqlite::ErrorCode::{
        AuthorizationForStatementDenied, OperationInterrupted, OutOfMemory, TooBig,
    };
    let words = || match error {
        rusqlite::Error::SqlInputError { msg, .. } => msg.clone(),
        rusqlite::Error::SqliteFailure(_, Some(words)) => words.clone(),
        other => other.to_string(),
    };
    match error.sqlite_error_code() {
        Some(OperationInterrupted) => Wrong::too_late(format!(
            "the statement was ended after {} s, which is the most that the console gives it",
            STATEMENT_MAX.as_secs()
        )),
        Some(AuthorizationForStatementDenied) => Wrong {
            code: errors::SPECIFIC_ACCESS_DENIED,
            words: "the console's tables can only be read".to_owned(),
        },
        Some(OutOfMemory) => Wrong::too_much(format!(
            "the statement needs more than the {} MiB that all of the console may use",
            HEAP_MAX >> 20
        )),
        Some(TooBig) => Wrong::too_much(words()),
        _ => match words().strip_prefix(NO_TABLE) {
            Some(name) => Wrong {
                code: errors::NO_SUCH_TABLE,
                words: format!(
                    "There is no table '{name}' here; SHOW TABLES lists those that there are"
                ),
            },
            None => Wrong::syntax(words()),
        },
    }
}
