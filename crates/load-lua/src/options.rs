//! The options that a script declares: read from its table, set from the command line, listed.
//!
//! An option is `name = {"what it is", default, type}`; without a type it follows from the default.
//! A script that declares none gets every unknown option as a text: so did the scripts of 0.5.

use load_core::program::{Setting, size};
use mlua::{Table, Value};
use std::fmt::Write;

/// Kind of an option's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Bool,
    Int,
    Size,
    Double,
    Text,
    List,
}

/// An option of a script.
#[derive(Clone, Debug, PartialEq)]
pub struct Declared {
    /// Name with `_`.
    pub name: String,
    pub what: String,
    pub kind: Kind,
    pub default: Setting,
}

/// The options in a script's table, by name.
///
/// # Errors
/// A sentence that says which is not of the form.
pub(crate) fn declared(table: &Table) -> Result<Vec<Declared>, String> {
    let mut all = Vec::new();
    for pair in table.pairs::<Value, Value>() {
        let (name, entry) = pair.map_err(|error| error.to_string())?;
        let name = name.to_string().unwrap_or_default();
        let Value::Table(entry) = entry else {
            return Err(format!(
                "sysbench.cmdline.options.{name}: expected {{\"what it is\", default}}, got a {}",
                entry.type_name()
            ));
        };
        all.push(one(name, &entry).map_err(|error| error.to_string())?);
    }
    all.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(all)
}

fn one(name: String, entry: &Table) -> mlua::Result<Declared> {
    let what: Option<String> = entry.get(1)?;
    let default: Value = entry.get(2)?;
    let given: Option<u32> = entry.get(3)?;
    let (kind, default) = match default {
        Value::Boolean(yes) => (Kind::Bool, Setting::Bool(yes)),
        Value::Integer(number) => (Kind::Double, Setting::Number(number as f64)),
        Value::Number(number) => (Kind::Double, Setting::Number(number)),
        Value::String(text) => (Kind::Text, Setting::Text(text.to_string_lossy())),
        Value::Table(parts) => {
            let parts: Vec<String> = parts.sequence_values().collect::<mlua::Result<_>>()?;
            (Kind::List, Setting::List(parts))
        }
        _ => (Kind::Text, Setting::None),
    };
    let kind = match given {
        Some(1) => Kind::Bool,
        Some(2) => Kind::Int,
        Some(3) => Kind::Size,
        Some(4) => Kind::Double,
        Some(5 | 7) => Kind::Text,
        Some(6) => Kind::List,
        _ => kind,
    };
    Ok(Declared {
        name,
        what: what.unwrap_or_default(),
        kind,
        default,
    })
}

/// The values of all options, with what the command line says; names there have `-`.
///
/// # Errors
/// A sentence that says which option is wrong and what was expected.
pub fn settle(
    declared: Option<&[Declared]>,
    given: &[(String, Option<String>)],
    offered: &[(String, Option<String>)],
) -> Result<Vec<(String, Setting)>, String> {
    let Some(declared) = declared else {
        return Ok(given
            .iter()
            .map(|(name, value)| {
                let value = value.clone().unwrap_or_default();
                (name.replace('-', "_"), Setting::Text(value))
            })
            .collect());
    };
    let defaults = declared
        .iter()
        .map(|one| (one.name.clone(), one.default.clone()));
    let mut settled: Vec<(String, Setting)> = defaults.collect();
    let given = given.iter().map(|one| (one, true));
    let offered = offered.iter().map(|one| (one, false));
    for ((name, value), is_own) in offered.chain(given) {
        let wanted = name.replace('-', "_");
        // A script may declare a name with either sign.
        let found = declared.iter().zip(&mut settled);
        let found = found
            .into_iter()
            .find(|(one, _)| one.name.replace('-', "_") == wanted);
        let Some((one, (_, setting))) = found else {
            if is_own {
                return Err(format!("invalid option: --{name}"));
            }
            continue;
        };
        *setting = read(one.kind, name, value.as_deref())?;
    }
    Ok(settled)
}

fn read(kind: Kind, name: &str, value: Option<&str>) -> Result<Setting, String> {
    let wrong = |expected: &str| {
        format!(
            "--{name}: '{}' is not {expected}",
            value.unwrap_or_default()
        )
    };
    let Some(text) = value else {
        return match kind {
            Kind::Bool => Ok(Setting::Bool(true)),
            _ => Err(format!("--{name} needs a value: --{name}=...")),
        };
    };
    Ok(match kind {
        Kind::Bool => match text {
            "on" | "true" | "1" => Setting::Bool(true),
            "off" | "false" | "0" => Setting::Bool(false),
            _ => return Err(wrong("on or off")),
        },
        Kind::Int => Setting::Number(
            text.parse::<i32>()
                .map_err(|_| wrong("a whole number of 32 bits"))?
                .into(),
        ),
        Kind::Size => Setting::Number(size(text).ok_or_else(|| wrong("a size, as in 64K"))? as f64),
        Kind::Double => match text.parse::<f64>() {
            Ok(number) if number.is_finite() => Setting::Number(number),
            _ => return Err(wrong("a number")),
        },
        Kind::Text => Setting::Text(text.to_owned()),
        Kind::List => Setting::List(
            text.split(',')
                .map(|part| part.trim().to_owned())
                .filter(|part| !part.is_empty())
                .collect(),
        ),
    })
}

/// The options as a script's help lists them.
pub fn help(declared: &[Declared]) -> String {
    let mut out = String::new();
    for one in declared {
        let form = match one.kind {
            Kind::Bool => "[=on|off]",
            Kind::Int | Kind::Double => "=N",
            Kind::Size => "=SIZE",
            Kind::Text => "=STRING",
            Kind::List => "=[LIST,...]",
        };
        let default = match &one.default {
            Setting::None => String::new(),
            Setting::Bool(yes) => format!(" [{}]", if *yes { "on" } else { "off" }),
            Setting::Number(number) => format!(" [{number}]"),
            Setting::Text(text) => format!(" [{text}]"),
            Setting::List(parts) => format!(" [{}]", parts.join(",")),
        };
        let option = format!("--{}{form}", one.name);
        // Writing to a string does not fail.
        let _ = writeln!(out, "  {option:<29} {}{default}", one.what);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use mlua::Lua;

    fn declare(text: &str) -> Vec<Declared> {
        let lua = Lua::new();
        let table: Table = lua.load(format!("return {text}")).eval().unwrap();
        declared(&table).unwrap()
    }

    fn given(words: &[&str]) -> Vec<(String, Option<String>)> {
        let split = |word: &&str| match word.split_once('=') {
            Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
            None => ((*word).to_owned(), None),
        };
        words.iter().map(split).collect()
    }

    #[test]
    fn types_follow_from_defaults_or_are_given() {
        let all = declare(
            "{a={'an a', 1}, b={'a b', true}, c={'a c', 'x'}, d={'a d', {'x','y'}}, e={'an e'}, \
             f={'an f', 3, 2}}",
        );
        let kinds: Vec<Kind> = all.iter().map(|one| one.kind).collect();
        let expected = [
            Kind::Double,
            Kind::Bool,
            Kind::Text,
            Kind::List,
            Kind::Text,
            Kind::Int,
        ];
        assert_eq!(kinds, expected);
        let settled = settle(
            Some(&all),
            &given(&["a=2.5", "b=off", "d=p, q", "e=z", "f=7"]),
            &[],
        )
        .unwrap();
        let values: Vec<Setting> = settled.into_iter().map(|(_, value)| value).collect();
        assert_eq!(
            values,
            [
                Setting::Number(2.5),
                Setting::Bool(false),
                Setting::Text("x".into()),
                Setting::List(vec!["p".into(), "q".into()]),
                Setting::Text("z".into()),
                Setting::Number(7.0),
            ]
        );
        let help = help(&all);
        assert!(
            help.starts_with("  --a=N                         an a [1]\n"),
            "{help}"
        );
    }

    #[test]
    fn what_is_not_declared_is_refused_and_without_declarations_is_a_text() {
        let all = declare("{table_size={'rows', 10}}");
        let refused = settle(Some(&all), &given(&["zz=1"]), &[]).unwrap_err();
        assert_eq!(refused, "invalid option: --zz");
        assert_eq!(
            settle(Some(&all), &given(&["table-size=x"]), &[]).unwrap_err(),
            "--table-size: 'x' is not a number"
        );
        let offered = given(&["table-size=20", "zz=1"]);
        let settled = settle(Some(&all), &[], &offered).unwrap();
        assert_eq!(settled[0].1, Setting::Number(20.0));
        let any = settle(None, &given(&["oltp-table-size=5"]), &[]).unwrap();
        assert_eq!(
            any,
            [("oltp_table_size".to_owned(), Setting::Text("5".into()))]
        );
    }
}
