//! Objects that run stored code without saying so, and the names by which a statement's text
//! reaches them.
//!
//! The problem: a trigger's or a view's own text is only half of what it does; it calls routines,
//! writes to tables with triggers, reads views. The mechanism: everything with code is an
//! [`Object`], judged by itself; [`resolve`] goes round until nothing gets worse: what code calls
//! and names, it does. What comes out are the [`Names`] of tables and views, and what each routine
//! may leave ([`crate::known_code`]).
//!
//! A name counts with its schema: a text reaches `a.t` when `t` stands in it and either `a` does
//! too or `a` is its default schema. A routine that nobody knows may do anything.
//!
//! Cascades of foreign keys fire no triggers, and columns' expressions call no stored functions
//! (tried on MariaDB 10.11 and MySQL 9.7). MySQL fires them where `enable_cascade_triggers` is ON,
//! which pins.

use sql::classify::Reads;
use sql::classify::stored::{Call, Defined, Folded, Judged, Leaves, fold_bare, names_in};
use sql::lex::LexMode;
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
    /// For people.
    pub title: String,
    /// Side effects of its own text.
    pub judged: Judged,
}

impl Object {
    /// True if a table or view of this schema may be meant where its text has its name.
    fn may_mean(&self, schema: &Folded) -> bool {
        let near = schema.is_empty() || self.schema.is_empty() || *schema == self.schema;
        near || self.judged.names.contains(schema)
    }
}

/// Schemata by the names of tables and views in them.
type Map = BTreeMap<Folded, BTreeSet<Folded>>;

/// By the name of a table or view: its schema, and what is read.
type Asking = BTreeMap<Folded, Vec<(Folded, Reads)>>;

/// Tables and views that run code which may change its session unseen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// Objects whose code runs when they are read.
    read: Map,
    /// Objects whose code runs when they are written to, and those that are read.
    written: Map,
    /// Tables whose triggers read what the statement before left, and views that write to such
    /// tables, by name: the schema, and what they read.
    asking: Asking,
    /// Views that do so when they are read, in the same form.
    asking_views: Asking,
    /// Each of the objects behind them, for people.
    pub lines: Vec<String>,
    /// Every routine, procedures apart from functions.
    pub routines: Routines,
    /// Each routine whose calls pin, for people.
    pub unknown: Vec<String>,
    /// Loaded functions and packages, which go before routines of their names.
    pub besides: Besides,
    /// The names in all of the four.
    tables: NameSet,
    /// There is more code than is read: any name may be that of a table or view with some.
    unread: bool,
}

/// Routines by whether they are procedures, and by name.
pub type Routines = BTreeMap<(bool, Folded), Vec<Routine>>;

/// A routine, with all that it calls and fires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Routine {
    /// Empty where it is not known: any.
    pub schema: Folded,
    /// The most that it may leave.
    pub leaves: Leaves,
    /// User variables that it may set.
    pub sets: BTreeSet<Folded>,
    /// Dependencies on the statement before its call.
    pub asks: Reads,
    /// It may count no rows (see [`Judged::uncounted`]).
    pub uncounted: bool,
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

    /// Every name that the two questions below look for in a text: where a text has none of these,
    /// both are answered with no. `None`: nobody can tell.
    pub fn tables(&self) -> Option<&NameSet> {
        (!self.unread).then_some(&self.tables)
    }

    /// True if a text may run any of that code. `schema` is its default schema, empty where there
    /// is none, if that is certain; `reads`: it writes to no table.
    pub fn reached_by(
        &self,
        (sql, mode): (&[u8], LexMode),
        schema: Option<&[u8]>,
        reads: bool,
    ) -> bool {
        if self.unread {
            return true;
        }
        let map = if reads { &self.read } else { &self.written };
        let hits = names_in(sql, mode).filter_map(|name| map.get(&name));
        let schemata: BTreeSet<&Folded> = hits.flatten().collect();
        let Some(schema) = schema.map(fold_bare) else {
            return !schemata.is_empty();
        };
        let here = |one: &&Folded| one.is_empty() || ***one == *schema;
        schemata.iter().any(here)
            || !schemata.is_empty() && names_in(sql, mode).any(|name| schemata.contains(&name))
    }

    /// True if any trigger or view reads what the statement before left; `reads`: of views alone.
    pub fn any_asks(&self, reads: bool) -> bool {
        !self.asking_views.is_empty() || !reads && !self.asking.is_empty()
    }

    /// Dependencies on the statement before, of the triggers of the tables that a text names, or
    /// writes to through views, and of the views that it names. `schema` and `reads` are as for
    /// [`Names::reached_by`].
    pub fn asked_by_named(
        &self,
        (sql, mode): (&[u8], LexMode),
        schema: Option<&[u8]>,
        reads: bool,
    ) -> Reads {
        let here = schema.map(fold_bare);
        let named = |schema: &Folded| names_in(sql, mode).any(|name| name == *schema);
        let meant = |schema: &Folded| {
            schema.is_empty() || here.as_ref().is_none_or(|here| here == schema) || named(schema)
        };
        let asking = names_in(sql, mode).flat_map(|name| {
            let triggers = self.asking.get(&name).filter(|_| !reads);
            triggers.into_iter().chain(self.asking_views.get(&name))
        });
        let asking = asking.flatten().filter(|(schema, _)| meant(schema));
        asking.fold(Reads::NONE, |all, (_, asks)| all.union(*asks))
    }

    fn all_tables(&self) -> NameSet {
        let code = self.read.keys().chain(self.written.keys());
        let asking = self.asking.keys().chain(self.asking_views.keys());
        code.chain(asking).map(|name| &**name).collect()
    }

    fn hit<'a>(map: &Map, object: &'a Object) -> Option<&'a Folded> {
        let reaches = |name: &&Folded| {
            let schemata = map.get(*name);
            schemata.is_some_and(|all| all.iter().any(|schema| object.may_mean(schema)))
        };
        if map.is_empty() {
            return None;
        }
        object.judged.names.iter().find(reaches)
    }

    /// Notes what an object that leaves so much makes of its table or view; whether that is new.
    fn note(&mut self, object: &Object, leaves: Leaves) -> bool {
        let (read, written) = match object.kind {
            Defined::Trigger => (false, leaves.is_unseen()),
            Defined::Column => [leaves.is_unseen(); 2].into(),
            Defined::View => {
                let runs = leaves > Leaves::Nothing;
                (runs, runs || Self::hit(&self.written, object).is_some())
            }
            Defined::Copy => {
                let runs = Self::hit(&self.read, object).is_some();
                (runs, runs || Self::hit(&self.written, object).is_some())
            }
            Defined::Function | Defined::Procedure => (false, false),
        };
        let mut put = |map: fn(&mut Names) -> &mut Map| {
            let schemata = map(self).entry(object.name.clone()).or_default();
            schemata.insert(object.schema.clone())
        };
        let new = read && put(|names| &mut names.read);
        written && put(|names| &mut names.written) || new
    }
}

/// Side effects of each object, with the reason.
struct Judging<'a> {
    objects: &'a [&'a Object],
    leaves: Vec<(Leaves, String)>,
    routines: HashMap<(bool, &'a [u8]), Vec<usize>>,
    names: Names,
}

/// Finds the tables and views behind which code runs that may leave something unseen.
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
    let own = |object: &&Object| (object.judged.leaves, object.judged.why.clone());
    let mut judging = Judging {
        objects,
        leaves: objects.iter().map(own).collect(),
        routines,
        names: Names::default(),
    };
    while judging.go_round() {}
    judging.names.lines = judging.lines();
    judging.set_routines();
    judging.names.tables = judging.names.all_tables();
    judging.names
}

/// An object with all that it calls, fires and reads.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Whole {
    /// User variables that it may set.
    sets: BTreeSet<Folded>,
    /// Dependencies on the statement before its call.
    asks: Reads,
    /// Dependencies of the triggers that fire where somebody writes through the views that it
    /// names, or through itself.
    written: Reads,
}

impl Whole {
    fn is_empty(&self) -> bool {
        self.sets.is_empty() && self.asks.is_empty() && self.written.is_empty()
    }
}

fn put_asking(asking: &mut Asking, object: &Object, asks: Reads) {
    if !asks.is_empty() {
        let named = asking.entry(object.name.clone()).or_default();
        named.push((object.schema.clone(), asks));
    }
}

impl Judging<'_> {
    /// Looks at each object once; whether anything has got worse.
    fn go_round(&mut self) -> bool {
        let mut worse = false;
        for (i, object) in self.objects.iter().enumerate() {
            if let Some(found) = self.worse(object, self.leaves[i].0) {
                self.leaves[i] = found;
                worse = true;
            }
            worse |= self.names.note(object, self.leaves[i].0);
        }
        worse
    }

    /// Side effects of an object through others, if they are worse than those that are known of it.
    fn worse(&self, object: &Object, known: Leaves) -> Option<(Leaves, String)> {
        if known == Leaves::Session || object.kind == Defined::Copy {
            return None;
        }
        let called = object
            .judged
            .calls
            .iter()
            .map(|call| self.called(object, call));
        let called = called.max_by_key(|found| found.0);
        if let Some(called) = called.filter(|found| found.0 > known) {
            return Some(called);
        }
        let reads = matches!(object.kind, Defined::View | Defined::Column);
        let map = if reads {
            &self.names.read
        } else {
            &self.names.written
        };
        let hit = Names::hit(map, object)?;
        Some((
            Leaves::Session,
            format!("uses {}", String::from_utf8_lossy(hit)),
        ))
    }

    fn called(&self, object: &Object, call: &Call) -> (Leaves, String) {
        let name = String::from_utf8_lossy(&call.path.name);
        let meant = self.meant(object, call);
        let worst = meant.iter().max_by_key(|i| self.leaves[**i].0);
        match worst {
            Some(&i) => {
                let (leaves, why) = &self.leaves[i];
                (*leaves, format!("calls {name}: {why}"))
            }
            None if call.perhaps => (Leaves::Nothing, String::new()),
            None => (Leaves::Session, format!("calls {name}, which is not shown")),
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

    /// Notes every routine, with the user variables that it and what it reaches may set, and every
    /// table and view whose code asks.
    fn set_routines(&mut self) {
        let mut whole: Vec<Whole> = Vec::new();
        for object in self.objects {
            whole.push(Whole {
                sets: object.judged.sets.clone(),
                asks: object.judged.asks,
                written: Reads::NONE,
            });
        }
        // Most code sets none, so one round is the rule.
        while self.spread(&mut whole) {}
        for (i, object) in self.objects.iter().enumerate() {
            let procedure = match object.kind {
                Defined::Procedure => true,
                Defined::Function => false,
                Defined::Trigger => {
                    put_asking(&mut self.names.asking, object, whole[i].asks);
                    continue;
                }
                Defined::View => {
                    put_asking(&mut self.names.asking_views, object, whole[i].asks);
                    put_asking(&mut self.names.asking, object, whole[i].written);
                    continue;
                }
                _ => continue,
            };
            let (leaves, why) = &self.leaves[i];
            let Whole { sets, asks, .. } = whole[i].clone();
            let uncounted = object.judged.uncounted;
            if !leaves.is_followed() {
                self.names.unknown.push(format!("{} ({why})", object.title));
            } else if !asks.is_empty() {
                let why = "reads what the statement before left";
                self.names.unknown.push(format!("{} ({why})", object.title));
            }
            let named = (procedure, object.name.clone());
            self.names.routines.entry(named).or_default().push(Routine {
                schema: object.schema.clone(),
                leaves: *leaves,
                sets,
                asks,
                uncounted,
            });
        }
        self.names.unknown.sort();
    }

    /// Gives each object what it reaches; whether that was news.
    fn spread(&self, whole: &mut [Whole]) -> bool {
        // Tables and views whose code sets some, or asks.
        let mut setting: HashMap<&[u8], Vec<usize>> = HashMap::new();
        for (i, object) in self.objects.iter().enumerate() {
            let of_a_table = matches!(
                object.kind,
                Defined::Trigger | Defined::View | Defined::Column
            );
            if of_a_table && !whole[i].is_empty() {
                setting.entry(&object.name).or_default().push(i);
            }
        }
        let mut news = false;
        for (i, object) in self.objects.iter().enumerate() {
            let calls = object.judged.calls.iter();
            let called: Vec<usize> = calls.flat_map(|call| self.meant(object, call)).collect();
            let all = called.iter().map(|&j| whole[j].asks);
            let mut asks = all.fold(whole[i].asks, Reads::union);
            let mut written = whole[i].written;
            let mut reached = called;
            if !setting.is_empty() {
                let names = object.judged.names.iter();
                let hits = names.filter_map(|name| setting.get(&**name));
                reached.extend(hits.flatten());
            }
            let is_view = object.kind == Defined::View;
            // Who reads from a view fires no triggers.
            let writes = !is_view && object.judged.leaves >= Leaves::Rows;
            for &j in &reached {
                let (other, its) = (&self.objects[j], &whole[j]);
                if !object.may_mean(&other.schema) {
                    continue;
                }
                match other.kind {
                    Defined::View => {
                        asks = asks.union(its.asks);
                        written = written.union(its.written);
                    }
                    Defined::Trigger if is_view => written = written.union(its.asks),
                    Defined::Trigger => asks = asks.union(its.asks),
                    _ => {}
                }
            }
            if writes {
                asks = asks.union(written);
            }
            let mut sets = whole[i].sets.clone();
            for j in reached {
                sets.extend(whole[j].sets.iter().cloned());
            }
            let now = Whole {
                sets,
                asks,
                written,
            };
            news |= now != whole[i];
            whole[i] = now;
        }
        news
    }

    /// The objects by which names are reached.
    fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        for (object, (leaves, why)) in self.objects.iter().zip(&self.leaves) {
            let least = match object.kind {
                Defined::Trigger | Defined::Column => Leaves::ReadBack,
                Defined::View => Leaves::Rows,
                _ => continue,
            };
            if *leaves >= least {
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
    use sql::classify::stored::{body, expression, fold};
    use sql::text::Seen;

    fn mode() -> LexMode {
        LexMode {
            server: sql::lex::Server::MariaDb(101_119),
            ..LexMode::default()
        }
    }

    fn object(kind: Defined, schema: &str, name: &str, text: &str) -> Object {
        let judged = match kind {
            Defined::View | Defined::Column => expression(text.as_bytes(), mode()),
            _ => body(text.as_bytes(), mode(), &BTreeSet::new()),
        };
        Object {
            kind,
            schema: fold_bare(schema.as_bytes()),
            name: fold_bare(name.as_bytes()),
            title: format!("{kind:?} {schema}.{name}"),
            judged,
        }
    }

    fn names(objects: &[Object]) -> Names {
        resolve(&objects.iter().collect::<Vec<_>>())
    }

    fn reaches(names: &Names, sql: &str, schema: &str) -> bool {
        let reads = sql.starts_with("SELECT");
        let reached = names.reached_by((sql.as_bytes(), mode()), Some(schema.as_bytes()), reads);
        assert!(!reached || may_name(names, sql), "{sql}");
        reached
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
        assert!(names.reached_by((b"DELETE FROM orders", mode()), None, false));
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
            ("fires", Reads::ROW_COUNT),
            ("reads", Reads::ROW_COUNT),
            ("calls", Reads::ROW_COUNT),
            ("neither", Reads::NONE),
            ("through", Reads::ROW_COUNT),
            ("of_its_own", Reads::NONE),
        ] {
            let routine = &names.routines[&(true, fold(procedure.as_bytes()))][0];
            assert_eq!(routine.asks, asks, "{procedure}");
        }
        for (sql, asks) in [
            ("INSERT INTO counted VALUES (1)", Reads::ROW_COUNT),
            ("INSERT INTO plain VALUES (1)", Reads::ROW_COUNT),
            ("DELETE FROM over", Reads::ROW_COUNT),
            ("INSERT INTO further VALUES (1)", Reads::ROW_COUNT),
            ("INSERT INTO other SELECT 1", Reads::NONE),
            ("SELECT c FROM over", Reads::NONE),
            ("SELECT c FROM counting", Reads::ROW_COUNT),
        ] {
            let reads = sql.starts_with("SELECT");
            let asked = names.asked_by_named((sql.as_bytes(), mode()), Some(b"d"), reads);
            assert_eq!(asked, asks, "{sql}");
            assert!(asks.is_empty() || may_name(&names, sql), "{sql}");
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
}
