//! The lexer against live servers: where they say that statements end, and how many columns each
//! has, is where the lexer says so.
//!
//! Texts come from seeds ([`testkit::texts`]); each server runs them, for each character set and
//! `sql_mode`. What the lexer doubts is counted, so that it cannot be right by saying nothing.

use crate::world::*;
use sql::lex::{Charset, Kind, LexMode, Lexer, Server};
use testkit::texts::{LETTERS, Letters, Texts};

/// Texts for each character set and mode.
const TEXTS: u64 = 100;
/// Texts of a thousand that may be doubtful, at most, and that must be good to the end.
const DOUBTS_MAX: usize = 30;
const GOOD_MIN: usize = 750;

/// The columns of each statement of a text, and whether the last is read by no server.
fn columns_of(lexer: &mut Lexer<'_>) -> Vec<usize> {
    let mut statements = Vec::new();
    let (mut depth, mut columns) = (0, None);
    for token in lexer.by_ref() {
        let so_far = columns.unwrap_or(1);
        match token.kind {
            Kind::Semicolon => {
                statements.push(columns.take().unwrap_or(0));
                continue;
            }
            Kind::Punct(b'(') => depth += 1,
            Kind::Punct(b')') => depth -= 1,
            Kind::Punct(b',') if depth == 0 => {
                columns = Some(so_far + 1);
                continue;
            }
            _ => {}
        }
        columns = Some(so_far);
    }
    statements.extend(columns);
    statements
}

/// Error in the lexer's reading, by what the server answered.
fn wrong(columns: &[usize], unread: bool, answers: &[Outcome]) -> Option<String> {
    let results = answers.iter().take_while(|a| matches!(a, Outcome::Rows(_)));
    let seen: Vec<usize> = results.map(|rows| rows.rows().columns.len()).collect();
    let failed = matches!(answers.last(), Some(Outcome::Failed(_)));
    // A statement that fails has no columns; an empty one at the end has an OK.
    let fits = columns.starts_with(&seen);
    let whole = seen.len() == columns.len();
    let ends = match (failed, unread) {
        (false, true) => false,
        (false, false) => whole,
        (true, _) => !whole || unread || columns.is_empty(),
    };
    (!fits || !ends).then(|| format!("read as {columns:?}, {unread}; seen {seen:?}, {failed}"))
}

fn run(client: &mut Client, text: &[u8]) -> Vec<Outcome> {
    client.run(Command::Query, text).unwrap()
}

/// Runs the texts of one character set and mode; gives how many are doubtful, and good.
fn compare(client: &mut Client, seed: u64, letters: Letters, server: Server) -> [usize; 2] {
    let (ansi_quotes, no_backslash_escapes) = (seed & 1 != 0, seed & 2 != 0);
    let modes = ["ANSI_QUOTES", "NO_BACKSLASH_ESCAPES"];
    let chosen = [ansi_quotes, no_backslash_escapes];
    let chosen = modes.iter().zip(chosen).filter(|(_, on)| *on);
    let sql_mode: Vec<&str> = chosen.map(|(name, _)| *name).collect();
    client.must(&format!("SET sql_mode = '{}'", sql_mode.join(",")));
    client.must(&format!("SET NAMES {}", letters.charset));
    let mode = LexMode {
        ansi_quotes,
        no_backslash_escapes,
        ignore_space: false,
        no_schema: false,
        charset: Charset::of_name(letters.charset.as_bytes()),
        server,
    };
    let mut texts = Texts::new(seed, letters, ansi_quotes, no_backslash_escapes);
    let [mut doubts, mut good] = [0; 2];
    for _ in 0..TEXTS {
        let text = texts.text();
        let answers = run(client, &text);
        good += usize::from(!matches!(answers.last(), Some(Outcome::Failed(_))));
        let mut lexer = Lexer::new(&text, mode);
        let columns = columns_of(&mut lexer);
        if lexer.miscut() || (lexer.doubtful() && lexer.in_comment()) {
            doubts += 1;
        } else if let Some(why) = wrong(&columns, lexer.unread(), &answers) {
            panic!("{mode:?}\n{}\n{why}: {answers:?}", text.escape_ascii());
        }
    }
    [doubts, good]
}

fn as_on(real: &Real) {
    let mut client = login(
        &real.address(),
        &app().with(wire::capabilities::MULTI_STATEMENTS),
    );
    let version = client.value("SELECT VERSION()");
    let mut numbers = version.split(|c: char| !c.is_ascii_digit());
    let mut number = || numbers.next().unwrap().parse::<u32>().unwrap();
    let version = number() * 10_000 + number() * 100 + number();
    let server = match real.flavour() {
        Flavour::MariaDb => Server::MariaDb(version),
        Flavour::MySql => Server::MySql(version),
    };
    let (mut texts, mut doubts, mut good) = (0, 0, 0);
    for (set, letters) in LETTERS.into_iter().enumerate() {
        for modes in 0..4 {
            let seed = u64::try_from(set).unwrap() * 4 + modes;
            let [doubtful, fine] = compare(&mut client, seed, letters, server);
            (doubts, good) = (doubts + doubtful, good + fine);
            texts += usize::try_from(TEXTS).unwrap();
        }
    }
    assert!(doubts * 1000 <= texts * DOUBTS_MAX, "{doubts} of {texts}");
    assert!(good * 1000 >= texts * GOOD_MIN, "{good} of {texts}");
}

#[test]
fn statements_end_where_the_server_says() {
    pooled_servers().for_each(as_on);
}
