//! The engine: SQLite with the tables of a source, each filled for the statement that reads it.
//!
//! The mechanism: SQLite asks an authorizer about all that a statement does when it is prepared. It
//! may read, call functions and recurse, and the names of the tables that it reads are noted; all
//! else (writing, attaching, pragmas) is refused there. Then these tables are filled, the statement
//! runs, and they are emptied. The columns of JOIN ... USING are not asked for
//! there, so names of tables in the text count as well.
//!
//! Bounds: the rows of a table, the bytes of an answer, the time of a statement, and the memory of
//! all engines together ([`HEAP_MAX`]).

use crate::shares::{Answers, Held};
use crate::{
    ANSWERS_BYTES_MAX, MAIN, RESULT_BYTES_MAX, ROWS_MAX, Row, STATEMENT_MAX, Source, Table, Type,
    Value,
};
use reactor::Time;
use rusqlite::functions::FunctionFlags;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, ToSql, params_from_iter};
use sql::lex::{LexMode, Lexer, Token};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

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

/// An answer with rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Rows {
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<Row>,
}

/// What the authorizer notes and decides by.
#[derive(Default)]
struct Watch {
    /// The engine itself is at work: everything is allowed.
    own: AtomicBool,
    /// Tables that the statement reads, by schema and name.
    read: Mutex<BTreeSet<(String, String)>>,
    /// The statement is ended at this moment.
    until: Mutex<Option<Time>>,
}

/// Who is connected, for functions such as USER().
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
    answers: Arc<Answers>,
}

/// Tables of the console itself, about the others.
pub(crate) static OWN: &[Table] = &[
    Table {
        schema: MAIN,
        name: "tables",
        help: "a table of the console",
        columns: &[
            text("name", "its name"),
            text("schema", "its schema; none is needed for 'main'"),
            text("help", "what it has a row for"),
        ],
    },
    Table {
        schema: MAIN,
        name: "columns",
        help: "a column of a table",
        columns: &[
            text("table", "the table"),
            text("name", "its name"),
            text("type", "the type of its values"),
            text("help", "what it says"),
            text("schema", "the table's schema"),
            integer("position", "its place, from 1"),
        ],
    },
    Table {
        schema: MAIN,
        name: "variables",
        help: "a variable that @@NAME shows",
        columns: &[text("name", "its name"), text("value", "its value")],
    },
];

const fn text(name: &'static str, help: &'static str) -> crate::Column {
    crate::Column {
        name,
        of: Type::Text,
        help,
    }
}

const fn integer(name: &'static str, help: &'static str) -> crate::Column {
    crate::Column {
        name,
        of: Type::Integer,
        help,
    }
}

impl ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let value = match self {
            Value::Null => ValueRef::Null,
            Value::Integer(number) => ValueRef::Integer(*number),
            Value::Real(number) => ValueRef::Real(*number),
            Value::Text(text) => ValueRef::Text(text.as_bytes()),
        };
        Ok(ToSqlOutput::Borrowed(value))
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
    pub(crate) fn new(
        source: Arc<dyn Source>,
        answers: Arc<Answers>,
        who: &Who,
    ) -> rusqlite::Result<Engine> {
        let mut database = Connection::open_in_memory()?;
        database.pragma_update(None, "hard_heap_limit", HEAP_MAX)?;
        database.pragma_update(None, "temp_store", "memory")?;
        database.set_limit(Limit::SQLITE_LIMIT_LENGTH, VALUE_MAX)?;
        database.set_limit(Limit::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, PATTERN_MAX)?;
        database.set_limit(Limit::SQLITE_LIMIT_EXPR_DEPTH, DEPTH_MAX)?;
        let tables = || source.tables().iter().chain(OWN);
        let schemas: BTreeSet<&str> = tables().map(|table| table.schema).collect();
        for schema in schemas.iter().filter(|schema| **schema != MAIN) {
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
            ("database", MAIN.to_owned()),
            ("schema", MAIN.to_owned()),
        ] {
            let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
            database.create_scalar_function(name, 0, flags, move |_| Ok(value.clone()))?;
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
            answers,
        })
    }

    /// Runs a text that reads.
    ///
    /// # Errors
    /// A sentence with what is wrong.
    pub(crate) fn run(&self, text: &str) -> Result<(Rows, Held), String> {
        self.watch.take();
        let until = Time::now() + STATEMENT_MAX;
        *self
            .watch
            .until
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(until);
        let mut statement = self.database.prepare(text).map_err(|error| plain(&error))?;
        if statement.parameter_count() > 0 {
            return Err("there are no values for placeholders here".into());
        }
        let mut read = self.watch.take();
        read.extend(named(text));
        let filled = self.fill(&read);
        let answer = filled.and_then(|()| self.collect(&mut statement));
        drop(statement);
        let emptied = self.empty(&read);
        let answer = answer?;
        emptied?;
        Ok(answer)
    }

    fn tables(&self) -> impl Iterator<Item = &'static Table> {
        self.source.tables().iter().chain(OWN)
    }

    fn fill(&self, read: &BTreeSet<(String, String)>) -> Result<(), String> {
        for table in self.tables().filter(|table| is_among(table, read)) {
            let rows = match own_rows(table, &*self.source) {
                Some(rows) => rows,
                None => self.source.rows(table)?,
            };
            if rows.len() > ROWS_MAX {
                return Err(format!(
                    "{} has more than {ROWS_MAX} rows now, which is what the console can hold",
                    table.name
                ));
            }
            self.own(|| insert(&self.database, table, &rows))?;
        }
        Ok(())
    }

    /// The rows of a statement, counted among all answers.
    fn collect(&self, statement: &mut rusqlite::Statement<'_>) -> Result<(Rows, Held), String> {
        let mut held = Held::none(self.answers.clone());
        let names = statement.column_names();
        let columns: Vec<String> = names.into_iter().map(str::to_owned).collect();
        let width = columns.len();
        let mut answer = Rows {
            columns,
            rows: Vec::new(),
        };
        let mut bytes = 0;
        let mut rows = statement.query([]).map_err(|error| plain(&error))?;
        while let Some(row) = rows.next().map_err(|error| plain(&error))? {
            let mut values = Vec::with_capacity(width);
            let mut row_bytes = size_of::<Row>();
            for at in 0..width {
                let value = match row.get_ref(at).map_err(|error| plain(&error))? {
                    ValueRef::Null => Value::Null,
                    ValueRef::Integer(number) => Value::Integer(number),
                    ValueRef::Real(number) => Value::Real(number),
                    ValueRef::Text(text) | ValueRef::Blob(text) => {
                        Value::Text(String::from_utf8_lossy(text).into_owned())
                    }
                };
                row_bytes += size_of::<Value>();
                if let Value::Text(text) = &value {
                    row_bytes += text.len();
                }
                values.push(value);
            }
            bytes += row_bytes;
            // As rows, and as the packets that are made of them.
            if !held.grow(2 * row_bytes) {
                return Err(format!(
                    "all answers of the console together may take {} MiB; try again when others \
                     have been taken",
                    ANSWERS_BYTES_MAX >> 20
                ));
            }
            if bytes > RESULT_BYTES_MAX {
                return Err(format!(
                    "the answer is longer than {} MiB; ask for less of it",
                    RESULT_BYTES_MAX >> 20
                ));
            }
            answer.rows.push(values);
        }
        Ok((answer, held))
    }

    fn empty(&self, read: &BTreeSet<(String, String)>) -> Result<(), String> {
        for table in self.tables().filter(|table| is_among(table, read)) {
            let delete = format!("DELETE FROM {}", full_name(table));
            self.own(|| self.database.execute(&delete, []).map(|_| ()))?;
        }
        Ok(())
    }

    /// Does something that a client may not, without a limit of time.
    fn own(&self, work: impl FnOnce() -> rusqlite::Result<()>) -> Result<(), String> {
        self.watch.own.store(true, Ordering::Relaxed);
        let done = work();
        self.watch.own.store(false, Ordering::Relaxed);
        done.map_err(|error| plain(&error))
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
                let schema = context.database_name.unwrap_or(MAIN).to_ascii_lowercase();
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

fn full_name(table: &Table) -> String {
    format!("{}.\"{}\"", table.schema, table.name)
}

fn is_among(table: &Table, read: &BTreeSet<(String, String)>) -> bool {
    let name = (
        table.schema.to_ascii_lowercase(),
        table.name.to_ascii_lowercase(),
    );
    read.contains(&name)
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
                _ => (MAIN.to_owned(), word(at + 1)),
            });
        }
    }
    found
}

/// The rows of the console's own tables.
fn own_rows(table: &Table, source: &dyn Source) -> Option<Vec<Row>> {
    let named = |name: &str| Value::Text(name.to_owned());
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
        _ => source
            .variables()
            .into_iter()
            .map(|(name, value)| vec![Value::Text(name), Value::Text(value)])
            .collect(),
    })
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

/// What SQLite says, in a sentence for the client.
fn plain(error: &rusqlite::Error) -> String {
    use rusqlite::ErrorCode::{AuthorizationForStatementDenied, OperationInterrupted, OutOfMemory};
    match error.sqlite_error_code() {
        Some(OperationInterrupted) => format!(
            "the statement was ended after {} s, which is the most that the console gives it",
            STATEMENT_MAX.as_secs()
        ),
        Some(AuthorizationForStatementDenied) => "the console's tables can only be read".to_owned(),
        Some(OutOfMemory) => format!(
            "the statement needs more than the {} MiB that all of the console may use",
            HEAP_MAX >> 20
        ),
        _ => match error {
            rusqlite::Error::SqlInputError { msg, .. } => msg.clone(),
            rusqlite::Error::SqliteFailure(_, Some(words)) => words.clone(),
            other => other.to_string(),
        },
    }
}
