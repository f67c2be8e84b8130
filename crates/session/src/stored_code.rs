//! Objects that run stored code without saying so, and the names by which a statement's text
//! reaches them.
//!
//! The problem: a trigger's or a view's own text is only half of what it does; it calls routines,
//! writes to tables with triggers, reads views. The mechanism: everything with code is an
//! [`Object`] with the [`Verdict`] on its own words; [`resolve`] goes round until nothing gets
//! worse: the verdict on what code calls and names is its own. What comes out are the [`Names`] of
//! tables and views whose code pins, and the verdict on each routine.
//!
//! A name counts with its schema: a text reaches `a.t` when `t` stands in it and either `a` does
//! too or `a` is its default schema. A routine that nobody knows may do anything.
//!
//! Cascades of foreign keys fire no triggers, and columns' expressions call no stored functions
//! (tried on MariaDB 10.11 and MySQL 9.7). MySQL fires them where `enable_cascade_triggers` is ON,
//! which pins.

use sql::classify::stored::{
    BEYOND_ASCII, Call, Defined, Finding, Folded, Scanned, Verdict, fold_bare, names_in,
};
use sql::lex::{LexMode, Server};
use sql::name_set::NameSet;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Something with code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// Kind of object.
    pub kind: Defined,
    /// Empty where it is not known: any.
    pub schema: Folded,
    /// Its name; the table's for triggers and columns.
    pub name: Folded,
    /// Title for people.
    pub title: String,
    /// Scan of its own text.
    pub scanned: Scanned,
}

impl Object {
    /// True if a table or view of this schema may be meant where its text has its name.
    fn may_mean(&self, schema: &Folded) -> bool {
        let near = schema.is_empty() || self.schema.is_empty() || *schema == self.schema;
        near || self.scanned.names.contains(schema)
    }

    /// Finding about its own words.
    fn own(&self) -> (Finding, String) {
        let scanned = &self.scanned;
        let (verdict, asks) = (scanned.verdict, scanned.asks);
        let gives_back = matches!(self.kind, Defined::Function | Defined::Procedure);
        match scanned.sets_insert_id && !gives_back && verdict < Verdict::Pins {
            true => (Finding::PINS, "LAST_INSERT_ID(...)".into()),
            false => (Finding { verdict, asks }, scanned.why.clone()),
        }
    }
}

/// Findings about the tables and views of a name, by schema.
type Map = BTreeMap<Folded, BTreeMap<Folded, Finding>>;

/// Tables and views whose code pins, and all routines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// Objects whose code runs when they are read.
    read: Map,
    /// Objects whose code runs when they are written to, and those that are read.
    written: Map,
    /// Each of the objects behind them, for people.
    pub lines: Vec<String>,
    /// Every routine, procedures apart from functions.
    pub routines: Routines,
    /// Each routine whose calls pin, for people.
    pub unknown: Vec<String>,
    /// Loaded functions and packages, which go before routines of their names.
    pub besides: Besides,
    /// The names of the tables and views.
    tables: NameSet,
    /// True if the code of any of them asks about the statement before.
    asks: bool,
    /// True if there is more code than is read: any name may be that of a table or view with some.
    unread: bool,
}

/// Routines by whether they are procedures, and by name.
pub type Routines = BTreeMap<(bool, Folded), Vec<Routine>>;

/// A routine, with all that it calls and fires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Routine {
    /// Empty where it is not known: any.
    schema: Folded,
    finding: Finding,
    /// True if it may count no rows (see [`Scanned::uncounted`]).
    uncounted: bool,
}

impl Routine {
    /// True if it may be the one that is meant in this schema; `None`: in any.
    fn fits(&self, wanted: Option<&Folded>) -> bool {
        wanted.is_none_or(|wanted| self.schema.is_empty() || self.schema == *wanted)
    }
}

/// Meanings of a call besides a routine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Besides {
    /// Functions that the server has loaded; `None` where that cannot be read.
    pub loaded: Option<BTreeSet<Folded>>,
    /// MariaDB's packages: `a.b` may mean the routine of one.
    pub packages: BTreeSet<Folded>,
}

impl Names {
    /// True if no table and no view runs such code.
    pub fn is_empty(&self) -> bool {
        self.written.is_empty() && !self.unread
    }

    /// The names where there is more code than is read. No routine is known, so each may do
    /// anything.
    pub fn all() -> Names {
        Names {
            unread: true,
            ..Names::default()
        }
    }

    /// True if any trigger or view asks about the statement before.
    pub fn any_asks(&self) -> bool {
        self.asks
    }

    /// Every name that [`Names::named_in`] looks for in a text. `None`: nobody can tell.
    pub fn tables(&self) -> Option<&NameSet> {
        (!self.unread).then_some(&self.tables)
    }

    /// Finding about the code of the tables and views that a text names. `schema` is its default
    /// schema, empty where there is none, if that is certain; `reads`: it writes to no table.
    pub fn named_in(
        &self,
        (sql, mode): (&[u8], LexMode),
        schema: Option<&[u8]>,
        reads: bool,
    ) -> Finding {
        if self.unread {
            return Finding::PINS;
        }
        let map = if reads { &self.read } else { &self.written };
        let hits: Vec<_> = (names_in(sql, mode).filter_map(|name| map.get(&name))).collect();
        if hits.is_empty() {
            return Finding::default();
        }
        let here = schema.map(fold_bare);
        let named: BTreeSet<Folded> = names_in(sql, mode).collect();
        let meant = |schema: &Folded| {
            let any = schema.is_empty() || here.as_ref().is_none_or(|here| here == schema);
            any || named.contains(schema)
        };
        let meant = hits
            .into_iter()
            .flatten()
            .filter(|(schema, _)| meant(schema));
        meant.fold(Finding::default(), |all, (_, found)| all.and(*found))
    }

    /// Finding about the routines that a text calls, and whether each is one of those that are
    /// known. `schema` is as for [`Names::named_in`].
    pub fn called_by(
        &self,
        calls: &BTreeSet<Call>,
        schema: Option<&[u8]>,
        server: Server,
    ) -> (Finding, bool) {
        let here = schema.map(fold_bare);
        let (mut all, mut known) = (Finding::default(), true);
        for call in calls {
            let meant = self.meant(call, here.as_ref());
            let mysql = server.is_mysql() && call.procedure;
            known &= !meant.is_empty();
            for routine in meant {
                all = all.and(routine.finding);
                // Its OK would tell what the statement before has counted.
                if mysql && routine.uncounted {
                    all = all.and(Finding::PINS);
                }
            }
        }
        (all, known)
    }

    /// The routines that a call may mean; none where it may mean something else.
    fn meant(&self, call: &Call, here: Option<&Folded>) -> Vec<&Routine> {
        let path = &call.path;
        let beyond = |name: &Folded| **name == *BEYOND_ASCII;
        let schema_beyond = path.schema.as_ref().is_some_and(beyond);
        let other = match &path.schema {
            Some(schema) => self.besides.packages.contains(schema),
            None if call.procedure => false,
            None => (self.besides.loaded.as_ref()).is_none_or(|all| all.contains(&path.name)),
        };
        if other || schema_beyond || beyond(&path.name) {
            return Vec::new();
        }
        let all = self.routines.get(&(call.procedure, path.name.clone()));
        let wanted = path.schema.as_ref().or(here);
        let all = all.into_iter().flatten();
        all.filter(|routine| routine.fits(wanted)).collect()
    }

    fn hit<'a>(map: &Map, object: &'a Object) -> Option<(&'a Folded, Finding)> {
        if map.is_empty() {
            return None;
        }
        let hits = object.scanned.names.iter().flat_map(|name| {
            let meant = map.get(name).into_iter().flatten();
            let meant = meant.filter(|(schema, _)| object.may_mean(schema));
            meant.map(move |(_, found)| (name, *found))
        });
        hits.reduce(|(name, all), (_, found)| (name, all.and(found)))
    }

    /// Notes what this finding about an object makes of its table or view; true if that is new.
    fn note(&mut self, object: &Object, found: Finding) -> bool {
        let none = Finding::default();
        let hit = |map| Self::hit(map, object).map_or(none, |(_, found)| found);
        let (read, written) = match object.kind {
            Defined::Trigger => (none, found),
            Defined::Column => (found, found),
            Defined::View => {
                // A SELECT that changes rows is no plain one.
                let read = match found.verdict {
                    Verdict::Writes => Finding::PINS,
                    _ => found,
                };
                (read, hit(&self.written))
            }
            Defined::Copy => (hit(&self.read), hit(&self.written)),
            Defined::Function | Defined::Procedure => return false,
        };
        let put = |map: &mut Map, found: Finding| {
            if !found.pins() {
                return false;
            }
            let schemata = map.entry(object.name.clone()).or_default();
            let known = schemata.entry(object.schema.clone()).or_default();
            let both = known.and(found);
            std::mem::replace(known, both) != both
        };
        let new = put(&mut self.read, read);
        put(&mut self.written, written.and(read)) || new
    }
}

/// Finding about each object, with the reason.
struct Judging<'a> {
    objects: &'a [&'a Object],
    found: Vec<(Finding, String)>,
    routines: HashMap<(bool, &'a [u8]), Vec<usize>>,
    names: Names,
}

/// Finds the tables and views whose code pins, and the verdict on each routine.
pub fn resolve(objects: &[&Object]) -> Names {
    let mut routines: HashMap<(bool, &[u8]), Vec<usize>> = HashMap::new();
    for (i, object) in objects.iter().enumerate() {
        if matches!(object.kind, Defined::Function | Defined::Procedure) {
            let procedure = object.kind == Defined::Procedure;
            routines
                .entry((procedure, &object.name))
                .or_default()
                .push(i);
        }
    }
    let mut judging = Judging {
        objects,
        found: objects.iter().map(|object| object.own()).collect(),
        routines,
        names: Names::default(),
    };
    while judging.go_round() {}
    judging.names.lines = judging.lines();
    judging.set_routines();
    let mut names = judging.names;
    names.tables = names.written.keys().map(|name| &**name).collect();
    let mut all = names.written.values().flat_map(BTreeMap::values);
    names.asks = all.any(|found| !found.asks.is_empty());
    names
}

/// The worse verdict with its reason, and the questions of both.
fn worse_of(one: (Finding, String), other: (Finding, String)) -> (Finding, String) {
    let both = one.0.and(other.0);
    let why = match other.0.verdict > one.0.verdict {
        true => other.1,
        false => one.1,
    };
    (both, why)
}

impl Judging<'_> {
    /// Looks at each object once; true if anything has got worse.
    fn go_round(&mut self) -> bool {
        let mut worse = false;
        for (i, object) in self.objects.iter().enumerate() {
            let (known, own) = self.found[i].clone();
            let (reached, why) = self.reached(object);
            let both = known.and(reached);
            if both != known {
                let why = if both.verdict > known.verdict {
                    why
                } else {
                    own
                };
                self.found[i] = (both, why);
                worse = true;
            }
            worse |= self.names.note(object, both);
        }
        worse
    }

    /// Finding about what an object calls and names, with the reason of its verdict.
    fn reached(&self, object: &Object) -> (Finding, String) {
        if object.kind == Defined::Copy {
            return Default::default();
        }
        let called = object.scanned.calls.iter();
        let called = called.map(|call| self.called(object, call));
        // What changes no rows itself reads what it names.
        let map = match object.scanned.verdict {
            Verdict::Clean => &self.names.read,
            _ => &self.names.written,
        };
        let hit = Names::hit(map, object);
        let hit =
            hit.map(|(name, found)| (found, format!("uses {}", String::from_utf8_lossy(name))));
        called.chain(hit).fold(Default::default(), worse_of)
    }

    fn called(&self, object: &Object, call: &Call) -> (Finding, String) {
        let name = String::from_utf8_lossy(&call.path.name);
        let meant = self.meant(object, call).into_iter();
        let worst = meant.map(|i| self.found[i].clone()).reduce(worse_of);
        match worst {
            Some((found, why)) => (found, format!("calls {name}: {why}")),
            None if call.perhaps => Default::default(),
            None => (Finding::PINS, format!("calls {name}, which is not shown")),
        }
    }

    /// The routines that a call of an object's code may mean.
    fn meant(&self, object: &Object, call: &Call) -> Vec<usize> {
        let found = self.routines.get(&(call.procedure, &*call.path.name));
        let found = found.map_or(&[][..], |found| found);
        let schema = call.path.schema.as_ref();
        let here = |want: &Folded| {
            let same = |i: &usize| {
                let schema = &self.objects[*i].schema;
                *schema == *want || schema.is_empty() || want.is_empty()
            };
            found.iter().copied().filter(same).collect::<Vec<_>>()
        };
        let mut meant = here(schema.unwrap_or(&object.schema));
        if meant.is_empty() && schema.is_none() {
            meant = found.to_vec();
        }
        meant
    }

    /// Notes every routine.
    fn set_routines(&mut self) {
        for (object, (finding, why)) in self.objects.iter().zip(&self.found) {
            let procedure = object.kind == Defined::Procedure;
            if !procedure && object.kind != Defined::Function {
                continue;
            }
            if finding.pins() {
                self.names.unknown.push(format!("{} ({why})", object.title));
            }
            let named = (procedure, object.name.clone());
            self.names.routines.entry(named).or_default().push(Routine {
                schema: object.schema.clone(),
                finding: *finding,
                uncounted: object.scanned.uncounted,
            });
        }
        self.names.unknown.sort();
    }

    /// The objects by which names are reached.
    fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        for (object, (finding, why)) in self.objects.iter().zip(&self.found) {
            let least = match object.kind {
                Defined::Trigger | Defined::Column => Verdict::Pins,
                Defined::View => Verdict::Writes,
                _ => continue,
            };
            if finding.verdict >= least {
                lines.push(format!("{} ({why})", object.title));
            }
        }
        lines.sort();
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sql::classify::Reads;
    use sql::classify::stored::{body, calls_in, expression, fold};
    use sql::text::Seen;

    fn mode() -> LexMode {
        LexMode {
            server: sql::lex::Server::MariaDb(101_119),
            ..LexMode::default()
        }
    }

    fn object(kind: Defined, schema: &str, name: &str, text: &str) -> Object {
        let scanned = match kind {
            Defined::View | Defined::Column => expression(text.as_bytes(), mode()),
            _ => body(text.as_bytes(), mode(), &BTreeSet::new()),
        };
        Object {
            kind,
            schema: fold_bare(schema.as_bytes()),
            name: fold_bare(name.as_bytes()),
            title: format!("{kind:?} {schema}.{name}"),
            scanned,
        }
    }

    fn names(objects: &[Object]) -> Names {
        resolve(&objects.iter().collect::<Vec<_>>())
    }

    fn found(names: &Names, sql: &str, schema: &str) -> Finding {
        let reads = sql.starts_with("SELECT");
        let found = names.named_in((sql.as_bytes(), mode()), Some(schema.as_bytes()), reads);
        assert!(!found.pins() || may_name(names, sql), "{sql}");
        found
    }

    fn reaches(names: &Names, sql: &str, schema: &str) -> bool {
        found(names, sql, schema).pins()
    }

    /// True if a text may name any of the tables.
    fn may_name(names: &Names, sql: &str) -> bool {
        Seen::read(sql.as_bytes(), mode(), false, names.tables()).may_name
    }

    use Defined::{Column, Copy, Function, Procedure, Trigger, View};

    #[test]
    fn a_table_is_reached_by_name_and_schema() {
        let names = names(&[
            object(Trigger, "shop", "Orders", "DO GET_LOCK('a', 0)"),
            object(Trigger, "shop", "items", "SET NEW.a = 1"),
        ]);
        assert!(reaches(&names, "INSERT INTO orders VALUES (1)", "shop"));
        assert!(reaches(&names, "UPDATE `Shop`.`ORDERS` SET a = 1", "other"));
        assert!(!reaches(&names, "UPDATE orders SET a = 1", "other"));
        assert!(!reaches(
            &names,
            "INSERT INTO items VALUES ('orders')",
            "shop"
        ));
        assert!(
            !reaches(&names, "SELECT * FROM orders", "shop"),
            "fires nothing"
        );
        let anywhere = names.named_in((b"DELETE FROM orders", mode()), None, false);
        assert!(anywhere.pins());
        assert_eq!(names.lines, ["Trigger shop.Orders (GET_LOCK())"]);
    }

    #[test]
    fn a_name_may_have_quotes_in_it() {
        let names = names(&[object(Trigger, "d", "`t`", "SET @a = 1")]);
        assert!(reaches(&names, "INSERT INTO ```T``` VALUES (1)", "d"));
        assert!(!reaches(&names, "INSERT INTO t VALUES (1)", "d"));
    }

    #[test]
    fn what_code_calls_it_does() {
        let names = names(&[
            object(Function, "d", "f", "RETURN g()"),
            object(Function, "d", "g", "RETURN (SELECT GET_LOCK('a', 0))"),
            object(Function, "d", "clean", "RETURN 5"),
            object(
                Function,
                "d",
                "writes",
                "BEGIN INSERT INTO log VALUES (1); RETURN 1; END",
            ),
            object(Procedure, "d", "p", "SELECT f() INTO @x"),
            object(View, "d", "locks", "select `f`() AS `a`"),
            object(View, "d", "over", "select `a` from `d`.`locks`"),
            object(View, "d", "plain", "select `clean`() AS `a`"),
            object(View, "d", "writer", "select `writes`() AS `a`"),
            object(View, "d", "unknown", "select `nobody`() AS `a`"),
            object(Trigger, "d", "t", "CALL p()"),
            object(Trigger, "d", "u", "SET NEW.a = writes() + clean()"),
        ]);
        for view in ["locks", "over", "writer", "unknown"] {
            assert!(
                reaches(&names, &format!("SELECT * FROM {view}"), "d"),
                "{view}"
            );
        }
        assert!(!reaches(&names, "SELECT * FROM plain", "d"));
        assert!(reaches(&names, "INSERT INTO t VALUES (1)", "d"));
        assert!(
            !reaches(&names, "INSERT INTO u VALUES (1)", "d"),
            "its rows are no session's"
        );
    }

    #[test]
    fn code_is_reached_through_tables_and_views() {
        let names = names(&[
            object(Trigger, "d", "last", "DO GET_LOCK('a', 0)"),
            object(Trigger, "d", "first", "INSERT INTO last VALUES (NEW.a)"),
            object(Trigger, "d", "other", "INSERT INTO e.last VALUES (NEW.a)"),
            object(View, "d", "through", "select `a` from `d`.`first`"),
            object(Column, "d", "numbered", "nextval(`d`.`s`)"),
            object(Copy, "d", "copy", "numbered"),
        ]);
        assert!(reaches(&names, "INSERT INTO first VALUES (1)", "d"));
        assert!(reaches(&names, "UPDATE through SET a = 1", "d"));
        assert!(!reaches(&names, "SELECT * FROM through", "d"));
        assert!(reaches(&names, "INSERT INTO numbered VALUES ()", "d"));
        assert!(reaches(&names, "INSERT INTO copy VALUES ()", "d"));
        assert!(
            reaches(&names, "INSERT INTO other VALUES (1)", "d"),
            "when in doubt"
        );
    }

    #[test]
    fn code_asks_what_its_triggers_and_views_ask() {
        let names = names(&[
            object(Trigger, "d", "counted", "SET NEW.c = ROW_COUNT()"),
            object(View, "d", "counting", "select row_count() AS `c`"),
            object(View, "d", "plain", "select `c` from `d`.`counted`"),
            object(Procedure, "d", "fires", "INSERT INTO counted VALUES (1)"),
            object(Procedure, "d", "reads", "SELECT c FROM counting"),
            object(Procedure, "d", "calls", "CALL fires()"),
            object(Procedure, "d", "neither", "SELECT c FROM plain"),
            object(View, "d", "over", "select `c` from `d`.`plain`"),
            object(Procedure, "d", "through", "UPDATE over SET c = 1"),
            object(Trigger, "d", "further", "INSERT INTO plain VALUES (1)"),
            object(
                Procedure,
                "e",
                "of_its_own",
                "INSERT INTO counted VALUES (1)",
            ),
        ]);
        for (procedure, asks) in [
            ("fires", true),
            ("reads", true),
            ("calls", true),
            ("neither", false),
            ("through", true),
            ("of_its_own", false),
        ] {
            let routine = &names.routines[&(true, fold(procedure.as_bytes()))][0];
            assert_eq!(!routine.finding.asks.is_empty(), asks, "{procedure}");
        }
        for (sql, asks) in [
            ("INSERT INTO counted VALUES (1)", true),
            ("INSERT INTO plain VALUES (1)", true),
            ("DELETE FROM over", true),
            ("INSERT INTO further VALUES (1)", true),
            ("INSERT INTO other SELECT 1", false),
            ("SELECT c FROM over", false),
            ("SELECT c FROM counting", true),
        ] {
            let asked = found(&names, sql, "d").asks;
            assert_eq!(!asked.is_empty(), asks, "{sql}");
        }
        assert!(!may_name(&names, "INSERT INTO others SELECT 1"));
    }

    #[test]
    fn where_not_all_code_is_read_each_text_may_name_some() {
        assert!(may_name(&Names::all(), "SELECT 1"));
        assert!(!may_name(&Names::default(), "SELECT c FROM t"));
    }

    #[test]
    fn nothing_harmful_is_nothing() {
        let names = names(&[
            object(Trigger, "d", "t", "SET NEW.a = UPPER(NEW.a)"),
            object(View, "d", "v", "select `a` from `d`.`t`"),
            object(Function, "d", "locks", "RETURN GET_LOCK('a', 0)"),
        ]);
        assert!(names.is_empty(), "{names:?}");
    }

    /// A catalogue, and what it finds about a text's calls.
    fn called(sql: &str, schema: Option<&str>, server: Server) -> (Finding, bool) {
        let objects = [
            object(Procedure, "d", "p", "INSERT INTO t VALUES (f(1))"),
            object(Procedure, "d", "writes", "INSERT INTO u VALUES (f(1))"),
            object(Procedure, "e", "p", "DO GET_LOCK('a', 0)"),
            object(Procedure, "d", "empty", "BEGIN END"),
            object(Function, "d", "f", "RETURN 5"),
            object(Function, "d", "loaded", "RETURN 5"),
            object(Trigger, "d", "t", "SET @seen = 5"),
            object(Procedure, "d", "asks", "SELECT ROW_COUNT()"),
            object(Procedure, "d", "calls_asks", "CALL asks()"),
        ];
        let mut names = names(&objects);
        names.besides = Besides {
            loaded: Some([fold_bare(b"loaded")].into()),
            packages: [fold_bare(b"pack")].into(),
        };
        let calls = calls_in(sql.as_bytes(), mode()).unwrap();
        names.called_by(&calls, schema.map(str::as_bytes), server)
    }

    #[test]
    fn a_call_is_known_when_all_that_it_may_mean_is() {
        const MARIADB: Server = Server::MariaDb(101_119);
        const MYSQL: Server = Server::MySql(90_704);
        use Verdict::{Clean, Pins, Writes};
        for (sql, schema, verdict, asks, known) in [
            ("CALL p()", Some("d"), Pins, false, true),
            ("CALL D.`P`", Some("x"), Pins, false, true),
            ("CALL D.`WRITES`", Some("x"), Writes, false, true),
            ("CALL writes()", None, Writes, false, true),
            ("CALL p()", None, Pins, false, true),
            ("CALL e.p()", Some("d"), Pins, false, true),
            ("CALL nobody()", Some("d"), Clean, false, false),
            ("SELECT f(1), d.f(2)", Some("d"), Clean, false, true),
            ("SELECT f(1), g(2)", Some("d"), Clean, false, false),
            ("SELECT loaded(1)", Some("d"), Clean, false, false),
            ("SELECT d.loaded(1)", Some("x"), Clean, false, true),
            ("CALL pack.f()", Some("d"), Clean, false, false),
            ("CALL asks()", Some("d"), Pins, true, true),
            ("CALL nobody(); CALL asks()", Some("d"), Pins, true, false),
            ("CALL calls_asks()", Some("d"), Pins, true, true),
        ] {
            for server in [MARIADB, MYSQL] {
                let (found, all) = called(sql, schema, server);
                let asked = found.asks == Reads::ROW_COUNT.when(asks);
                assert_eq!((found.verdict, asked, all), (verdict, true, known), "{sql}");
            }
        }
        let empty = |server| called("CALL empty()", Some("d"), server);
        assert!(!empty(MARIADB).0.pins());
        assert!(empty(MYSQL).0.pins(), "whose count would its OK tell?");
    }
}
