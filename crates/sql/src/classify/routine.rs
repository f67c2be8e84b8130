//! End of the body of a CREATE PROCEDURE, FUNCTION, TRIGGER or EVENT.
//!
//! A body is stored, not run, so its words mean nothing to the session; but it holds semicolons,
//! and behind its end another statement may follow that does run. So the block structure must be
//! followed, and an error may go one way only: a body that seems to end too early has its rest
//! judged as statements and pins; one that seems to go on too long would hide what follows.
//!
//! The mechanism: BEGIN and CASE open, END closes, `END IF` and the like close nothing that is
//! counted. CASE is reserved. BEGIN and DO may also be names, so they count only where a statement
//! can start. A head that holds the first word of a statement has a body without a block, and ends
//! at the first semicolon.

use super::verbs;

/// Position in the body of a stored routine.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Routine {
    /// CREATE EVENT, whose head ends with DO.
    event: bool,
    /// True if the body is one statement without a block.
    simple: bool,
    depth: u32,
    /// A bit for each open block, the innermost lowest: a CASE within an expression.
    expressions: u64,
    parens: u32,
    /// True if a statement can start here.
    at_start: bool,
    /// True in the condition of a WHILE or the range of a FOR, up to its DO.
    loop_head: bool,
    declares: bool,
    /// True if it declares a condition or a handler.
    conditions: bool,
    /// True in a DECLARE ... HANDLER, before its statement.
    handler: bool,
    /// END was read; the next word tells what it closes.
    end_pending: bool,
    /// Nested deeper than `expressions` can tell.
    lost: bool,
}

impl Routine {
    pub(super) fn new(event: bool) -> Self {
        Self {
            event,
            ..Self::default()
        }
    }

    /// True if it is the body of an event.
    pub(super) fn is_event(&self) -> bool {
        self.event
    }

    /// True if it declares a condition or a handler.
    pub(super) fn declares_conditions(&self) -> bool {
        self.conditions
    }

    /// True if a statement can start here.
    pub(super) fn is_at_start(&self) -> bool {
        self.at_start
    }

    /// True if the body has been reached.
    pub(super) fn has_begun(&self) -> bool {
        self.simple || self.depth > 0
    }

    /// True if it is nested too deep to be followed.
    pub(super) fn is_lost(&self) -> bool {
        self.lost
    }

    /// Reads a semicolon; true if it ends the whole statement.
    pub(super) fn semicolon(&mut self) -> bool {
        self.resolve_end();
        self.parens = 0;
        self.at_start = true;
        self.loop_head = false;
        self.declares = false;
        self.handler = false;
        self.depth == 0
    }

    /// Ends the text; false if the block structure was not understood.
    pub(super) fn finish(&mut self) -> bool {
        self.resolve_end();
        self.depth == 0 && !self.lost
    }

    /// Reads any token but a word and a semicolon.
    pub(super) fn other(&mut self, byte: u8) {
        self.resolve_end();
        self.at_start = false;
        match byte {
            b'(' => self.parens += 1,
            b')' => self.parens = self.parens.saturating_sub(1),
            b':' if self.parens == 0 => self.at_start = true,
            _ => {}
        }
    }

    /// Reads a word that may be a keyword, and knows the token before it.
    pub(super) fn word(&mut self, word: &[u8], before: &[u8]) {
        let is = |name: &[u8]| word.eq_ignore_ascii_case(name);
        let started = std::mem::take(&mut self.at_start);
        if self.end_pending && closes_uncounted(word) {
            self.end_pending = false;
            return;
        }
        if self.end_pending {
            self.resolve_end();
            if is(b"CASE") {
                return;
            }
        }
        if self.depth == 0 {
            self.head(word, before);
        } else if is(b"BEGIN") {
            if started || (self.handler && self.parens == 0) {
                self.open(false);
                self.at_start = true;
            }
        } else if is(b"CASE") {
            self.open(!started);
        } else if is(b"END") {
            self.end_pending = true;
        } else {
            let handles = [&b"CONTINUE"[..], b"EXIT", b"UNDO"];
            let handles = handles.iter().any(|one| before.eq_ignore_ascii_case(one));
            self.conditions |= is(b"HANDLER") && handles || is(b"CONDITION") && self.declares;
            self.statement_word(word, started);
        }
    }

    /// Reads a word between the name of the routine and its body.
    fn head(&mut self, word: &[u8], before: &[u8]) {
        if self.simple || self.parens > 0 {
            return;
        }
        let is = |name: &[u8]| word.eq_ignore_ascii_case(name);
        let after = |name: &[u8]| before.eq_ignore_ascii_case(name);
        if is(b"BEGIN") {
            let block = if self.event {
                after(b"DO") || after(b":")
            } else {
                !BEFORE_A_NAME.iter().any(|word| after(word))
            };
            if block {
                self.open(false);
                self.at_start = true;
            } else {
                self.simple = true;
            }
            return;
        }
        let changes_rows = is(b"INSERT") || is(b"UPDATE") || is(b"DELETE");
        let belongs = is(b"FOR")
            || (is(b"DO") && self.event)
            || (is(b"SET") && (after(b"CHARACTER") || after(b"CHAR")))
            || (is(b"IF") && OBJECTS.iter().any(|object| after(object)))
            || (changes_rows && (after(b"BEFORE") || after(b"AFTER") || after(b"OR")));
        self.simple = !belongs && (is(b"RETURN") || verbs::first(word).is_some());
    }

    /// Reads a word within a block that opens and closes nothing.
    fn statement_word(&mut self, word: &[u8], started: bool) {
        let is = |name: &[u8]| word.eq_ignore_ascii_case(name);
        let outside = self.parens == 0;
        if is(b"THEN") || is(b"ELSE") {
            self.at_start = outside && self.expressions & 1 == 0;
        } else if is(b"LOOP") || is(b"REPEAT") {
            self.at_start = started;
        } else if is(b"DO") {
            self.at_start = outside && std::mem::take(&mut self.loop_head);
        } else if is(b"WHILE") || (is(b"FOR") && started) {
            self.loop_head = started;
        } else if is(b"DECLARE") {
            self.declares = started;
        } else if is(b"HANDLER") {
            self.handler = self.declares;
        } else if !is(b"FOR") && verbs::first(word).is_some() {
            self.handler = false;
        }
    }

    fn open(&mut self, expression: bool) {
        self.depth += 1;
        self.lost |= self.depth > u64::BITS;
        self.expressions = self.expressions << 1 | u64::from(expression);
    }

    fn resolve_end(&mut self) {
        if std::mem::take(&mut self.end_pending) {
            self.depth = self.depth.saturating_sub(1);
            self.expressions >>= 1;
            // Behind the block at most a label follows; no other block may open.
            self.simple |= self.depth == 0;
        }
    }
}

const OBJECTS: [&[u8]; 4] = [b"PROCEDURE", b"FUNCTION", b"TRIGGER", b"EVENT"];

/// Words before a name in the head of a routine or trigger, even one spelled BEGIN.
const BEFORE_A_NAME: [&[u8]; 15] = [
    b"PROCEDURE",
    b"FUNCTION",
    b"TRIGGER",
    b"EXISTS",
    b"ON",
    b"OF",
    b",",
    b"FOLLOWS",
    b"PRECEDES",
    b"RETURNS",
    b"COLLATE",
    b"CHARSET",
    b"SET",
    b"TO",
    b"LANGUAGE",
];

/// `END IF` and its like close what was never counted as open.
fn closes_uncounted(word: &[u8]) -> bool {
    [&b"IF"[..], b"LOOP", b"WHILE", b"REPEAT", b"FOR"]
        .iter()
        .any(|name| word.eq_ignore_ascii_case(name))
}
