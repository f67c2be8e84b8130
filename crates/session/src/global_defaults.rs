//! The values that a session began under: the server's global values of that moment.
//!
//! Invariant: two sessions with the same version of this began under the same values.

use crate::text::Text;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Stands for NULL where the server is asked; no value has it.
const NULL: u8 = 1;

/// The global values of all variables that a session may set, as they were at one moment.
#[derive(Debug, Default)]
struct Globals {
    /// Counts the changes of any; 0 where nothing is known.
    version: u64,
    /// Sorted.
    names: Arc<[Text]>,
    /// Values in the order of the names; `None` for NULL.
    values: Vec<Option<Text>>,
    /// Statement that the server runs at a login.
    init_connect: Text,
}

/// Global values that a session began under. It is compared by its version.
#[derive(Clone, Debug, Default)]
pub struct GlobalDefaults(Arc<Globals>);

impl PartialEq for GlobalDefaults {
    fn eq(&self, other: &Self) -> bool {
        self.0.version == other.0.version
    }
}

impl Eq for GlobalDefaults {}

impl Hash for GlobalDefaults {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.version.hash(state);
    }
}

impl GlobalDefaults {
    /// Globals of which nothing but the names is known; `names` are sorted.
    #[must_use]
    pub fn named(names: Vec<Text>) -> GlobalDefaults {
        GlobalDefaults(Arc::new(Globals {
            names: names.into(),
            ..Globals::default()
        }))
    }

    /// Globals with the same names and other values, in the order of the names; `None` where
    /// nothing has changed.
    #[must_use]
    pub fn with(&self, values: Vec<Option<Text>>, init_connect: Text) -> Option<GlobalDefaults> {
        let old = &self.0;
        if old.values == values && old.init_connect == init_connect {
            return None;
        }
        Some(GlobalDefaults(Arc::new(Globals {
            version: old.version + 1,
            names: old.names.clone(),
            values,
            init_connect,
        })))
    }

    /// Counts the changes; 0 where no value is known.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.0.version
    }

    /// Names of what has changed since `old`, for people.
    #[must_use]
    pub fn changed_since(&self, old: &GlobalDefaults) -> Vec<String> {
        let pairs = self.0.values.iter().zip(&old.0.values);
        let all = self.0.names.iter().zip(pairs);
        let changed = all.filter(|(_, (one, two))| one != two);
        let mut names: Vec<_> = changed
            .map(|(name, _)| String::from_utf8_lossy(name).into_owned())
            .collect();
        if self.0.init_connect != old.0.init_connect {
            names.push("init_connect".into());
        }
        names
    }

    /// The expression that tells all global values.
    #[must_use]
    pub fn global_question(&self) -> String {
        question(&self.0.names, "global")
    }

    /// The variables, in the order of [`GlobalDefaults::read`].
    pub fn names(&self) -> &[Text] {
        &self.0.names
    }

    /// Statement that the server runs at a login (see `server/begins.rs` of the pool).
    pub fn init_connect(&self) -> &[u8] {
        &self.0.init_connect
    }

    /// The expression that tells all variables of the session that asks.
    pub fn question(&self) -> String {
        question(&self.0.names, "session")
    }

    /// Values from the answer to that expression.
    pub fn read(&self, told: &[u8]) -> Option<Vec<Option<Text>>> {
        read_values(told, self.0.names.len())
    }

    /// The value of a variable then, if it is known and no NULL.
    pub fn value(&self, name: &[u8]) -> Option<&[u8]> {
        let place = self.0.names.binary_search_by(|n| (**n).cmp(name)).ok()?;
        self.0.values[place].as_deref()
    }

    /// Variables that had other values then than in `other`, but for those that are `listed` under
    /// any of their names.
    pub fn differing<'a>(
        &'a self,
        other: &'a GlobalDefaults,
        listed: impl Fn(&[u8]) -> bool + 'a,
    ) -> impl Iterator<Item = &'a [u8]> {
        let same = self == other;
        let pairs = self.0.values.iter().zip(&other.0.values);
        let all = self.0.names.iter().zip(pairs);
        let differ = all.filter(move |(_, (one, two))| !same && one != two);
        let names = differ.map(|(name, _)| &**name);
        names.filter(move |name| !listed(name) && !alias_of(name).is_some_and(&listed))
    }
}

/// The other name of a variable of MariaDB's that has two.
pub(crate) fn alias_of(name: &[u8]) -> Option<&'static [u8]> {
    const PAIRS: [(&str, &str); 8] = [
        ("alter_algorithm", "old_alter_table"),
        ("default_storage_engine", "storage_engine"),
        ("log_slow_min_examined_row_limit", "min_examined_row_limit"),
        ("log_slow_query", "slow_query_log"),
        ("log_slow_query_time", "long_query_time"),
        ("tmp_memory_table_size", "tmp_table_size"),
        ("transaction_isolation", "tx_isolation"),
        ("transaction_read_only", "tx_read_only"),
    ];
    let other = |(one, two): &(&'static str, &'static str)| match name {
        _ if name == one.as_bytes() => Some(two.as_bytes()),
        _ if name == two.as_bytes() => Some(one.as_bytes()),
        _ => None,
    };
    PAIRS.iter().find_map(other)
}

/// One column of bytes with all values: a column each would cost the server more than the values.
fn question(names: &[Text], scope: &str) -> String {
    let mut sql = String::from("CONCAT_WS(x'00'");
    for name in names {
        let name = String::from_utf8_lossy(name);
        sql.push_str(&format!(",IFNULL(@@{scope}.{name},x'01')"));
    }
    sql.push(')');
    sql
}

fn read_values(told: &[u8], names: usize) -> Option<Vec<Option<Text>>> {
    let parts = told.split(|&byte| byte == 0);
    let values: Vec<Option<Text>> = parts
        .map(|value| (value != [NULL]).then(|| value.into()))
        .collect();
    (values.len() == names).then_some(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Text {
        Text::from(text.as_bytes())
    }

    fn values(pairs: &[(&str, Option<&str>)]) -> Vec<Option<Text>> {
        pairs.iter().map(|(_, value)| value.map(text)).collect()
    }

    #[test]
    fn what_differs_is_named_unless_it_is_listed_under_one_of_its_names() {
        let before = [
            ("a", Some("1")),
            ("b", None),
            ("long_query_time", Some("3")),
        ];
        let behind = [
            ("a", Some("2")),
            ("b", None),
            ("long_query_time", Some("4")),
        ];
        let all = GlobalDefaults::named(before.iter().map(|(name, _)| text(name)).collect());
        let old = all.with(values(&before), Text::default()).unwrap();
        let new = old.with(values(&behind), Text::default()).unwrap();
        assert_eq!((old.version(), new.version()), (1, 2));
        assert!(new.with(values(&behind), Text::default()).is_none());
        assert_eq!(new.changed_since(&old), ["a", "long_query_time"]);
        let names = |listed: &'static [u8]| {
            let all = old.differing(&new, move |name| name == listed);
            all.map(|name| String::from_utf8_lossy(name).into_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(names(b""), ["a", "long_query_time"]);
        assert_eq!(names(b"a"), ["long_query_time"]);
        assert_eq!(names(b"log_slow_query_time"), ["a"]);
        assert_eq!(old.differing(&old.clone(), |_| false).count(), 0);
        assert_eq!(old.value(b"a"), Some(&b"1"[..]));
        assert_eq!((old.value(b"b"), old.value(b"c")), (None, None));
    }
}
