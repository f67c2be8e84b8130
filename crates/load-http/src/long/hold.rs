//! A connection that is held: hears a known message once a period, and says nothing.
//!
//! Message number n is due n periods after the connection came to stand; both sides count from
//! there, so no lateness is forgotten by counting from the message before. A message is judged when
//! its last byte has come: *wrong* if any byte is not what was agreed, or if it came before its
//! time by more than the tolerance (the two sides were told different periods); *late* if it came
//! after its time by more; else *right*. What was due by the end of the run and has not come is
//! *lost*, also on connections that were gone by then.
//!
//! The server accepts at some moment between our asking for the connection and our seeing that it
//! stands, which may be a second apart when many are opened. So what is early is counted from the
//! first of the two and what is late from the second: neither verdict is ever the server's by our
//! fault.

use super::counts::{Counts, Marks, Verdict};
use super::group::{Context, Next, Talk};
use load_core::errors::Fault;
use load_core::transport::Ending;
use reactor::Time;
use std::sync::Arc;
use std::time::Duration;

/// Bound on one of them: a million are this times a million.
const _: () = assert!(size_of::<Option<Hold>>() <= 32);

/// Agreement that all connections know.
#[derive(Debug)]
pub(super) struct Agreed {
    /// Message of at least one byte.
    pub(super) message: Arc<[u8]>,
    /// Above zero.
    pub(super) every: Duration,
    /// Greatest distance of a message from its time.
    pub(super) tolerance: Duration,
}

/// One connection.
#[derive(Debug)]
pub(super) struct Hold {
    stands_since: Time,
    /// Time that it had been asked for then, in microseconds; an hour and more count as an hour.
    opening_us: u32,
    /// Messages that have come whole.
    heard: u32,
    /// Bytes of the next one that have come; the highest bit: one of them was wrong.
    at: u32,
}

const WRONG: u32 = 1 << 31;

impl Hold {
    /// Moment of the next message.
    fn due(&self, agreed: &Agreed) -> Time {
        self.stands_since + agreed.every.saturating_mul(self.heard.saturating_add(1))
    }

    fn verdict(&self, agreed: &Agreed, now: Time) -> Verdict {
        let due = self.due(agreed);
        let opening = Duration::from_micros(self.opening_us.into());
        if self.at & WRONG != 0 || now + agreed.tolerance + opening < due {
            Verdict::Wrong
        } else if now > due + agreed.tolerance {
            Verdict::Late
        } else {
            Verdict::Right
        }
    }

    /// Takes bytes, up to the end of a message; says how many, and what the message was if it is
    /// over.
    fn take(&mut self, agreed: &Agreed, now: Time, bytes: &[u8]) -> (usize, Option<Verdict>) {
        let at = (self.at & !WRONG) as usize;
        let rest = &agreed.message[at.min(agreed.message.len())..];
        let count = rest.len().min(bytes.len());
        if rest[..count] != bytes[..count] {
            self.at |= WRONG;
        }
        if count < rest.len() {
            self.at += u32::try_from(count).unwrap_or(0);
            return (count, None);
        }
        let verdict = self.verdict(agreed, now);
        self.heard = self.heard.saturating_add(1);
        self.at = 0;
        (count, Some(verdict))
    }

    /// Messages that were due by `end`, tolerance and all, and have not come.
    fn missing(&self, agreed: &Agreed, end: Time) -> u64 {
        let stood = end
            .since(self.stands_since)
            .saturating_sub(agreed.tolerance);
        let due = stood.as_nanos() / agreed.every.as_nanos().max(1);
        u64::try_from(due)
            .unwrap_or(u64::MAX)
            .saturating_sub(self.heard.into())
    }
}

impl Talk for Hold {
    type Plan = Agreed;
    const REOPENS: bool = false;

    fn new(asked_at: Time, now: Time) -> Hold {
        let opening = now.since(asked_at).as_micros();
        Hold {
            stands_since: now,
            opening_us: u32::try_from(opening).unwrap_or(u32::MAX),
            heard: 0,
            at: 0,
        }
    }

    fn begin(&mut self, _: &mut Context<'_, Agreed>, _: bool) -> Result<Next, Fault> {
        Ok(Next::Stays)
    }

    fn wake(&mut self, _: &mut Context<'_, Agreed>) -> Result<Next, Fault> {
        Ok(Next::Stays)
    }

    fn resume(&mut self, _: &mut Context<'_, Agreed>) -> Result<Next, Fault> {
        Ok(Next::Stays)
    }

    fn hear(&mut self, context: &mut Context<'_, Agreed>, mut bytes: &[u8]) -> Result<Next, Fault> {
        while !bytes.is_empty() {
            let due = self.due(context.plan);
            let (count, verdict) = self.take(context.plan, context.now, bytes);
            bytes = &bytes[count..];
            if let Some(verdict) = verdict {
                context.judge(verdict, 1);
                if verdict != Verdict::Wrong {
                    context.counts.latency.record(context.now.since(due));
                }
            }
        }
        Ok(Next::Stays)
    }

    fn ended(&mut self, _: &mut Context<'_, Agreed>, _: Ending) -> Result<Next, Fault> {
        Err(Fault::ended("while it was held"))
    }

    fn overdue(&self, _: &Agreed, _: Time) -> Option<Fault> {
        None
    }

    fn is_busy(&self) -> bool {
        false
    }

    fn lost(&mut self, _: &mut Context<'_, Agreed>) {}

    fn finish(&mut self, agreed: &Agreed, counts: &mut Counts, marks: &mut Marks, end: Time) {
        let missing = self.missing(agreed, end);
        if missing > 0 {
            counts.judge(Verdict::Lost, missing);
            marks.note(Verdict::Lost);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Time = Time(1_000_000_000_000);

    fn agreed(message: &str) -> Agreed {
        Agreed {
            message: message.as_bytes().into(),
            every: Duration::from_secs(10),
            tolerance: Duration::from_secs(1),
        }
    }

    fn after(ms: u64) -> Time {
        START + Duration::from_millis(ms)
    }

    fn hear(hold: &mut Hold, agreed: &Agreed, ms: u64, mut bytes: &[u8]) -> Vec<Verdict> {
        let mut verdicts = Vec::new();
        while !bytes.is_empty() {
            let (count, verdict) = hold.take(agreed, after(ms), bytes);
            verdicts.extend(verdict);
            bytes = &bytes[count..];
        }
        verdicts
    }

    #[test]
    fn a_message_is_right_in_its_time_and_late_after_it() {
        use Verdict::*;
        let (agreed, mut hold) = (agreed("ok"), Hold::new(START, START));
        assert_eq!(hear(&mut hold, &agreed, 10_900, b"o"), []);
        assert_eq!(
            hear(&mut hold, &agreed, 11_001, b"k"),
            [Late],
            "its last byte counts"
        );
        assert_eq!(hear(&mut hold, &agreed, 20_000, b"ok"), [Right]);
        assert_eq!(
            hear(&mut hold, &agreed, 31_000, b"ok"),
            [Right],
            "counted from the start"
        );
        assert_eq!(
            hear(&mut hold, &agreed, 38_999, b"ok"),
            [Wrong],
            "before its time"
        );
        assert_eq!(hear(&mut hold, &agreed, 50_000, b"okok"), [Right, Wrong]);
    }

    #[test]
    fn a_server_that_accepted_before_we_saw_it_is_not_early() {
        use Verdict::*;
        let (agreed, asked_at) = (agreed("ok"), START - Duration::from_secs(2));
        let mut hold = Hold::new(asked_at, START);
        assert_eq!(hear(&mut hold, &agreed, 7_000, b"ok"), [Right]);
        assert_eq!(hear(&mut hold, &agreed, 16_999, b"ok"), [Wrong]);
        assert_eq!(
            hear(&mut hold, &agreed, 31_001, b"ok"),
            [Late],
            "counted from when it stood"
        );
    }

    #[test]
    fn other_bytes_are_wrong_once_for_each_message() {
        use Verdict::*;
        let (agreed, mut hold) = (agreed("hello"), Hold::new(START, START));
        assert_eq!(hear(&mut hold, &agreed, 10_000, b"hxxlo"), [Wrong]);
        assert_eq!(hear(&mut hold, &agreed, 20_000, b"x"), []);
        assert_eq!(hear(&mut hold, &agreed, 20_000, b"ello"), [Wrong]);
        assert_eq!(hear(&mut hold, &agreed, 30_000, b"hello"), [Right]);
    }

    #[test]
    fn what_was_due_and_has_not_come_is_lost() {
        let (agreed, mut hold) = (agreed("ok"), Hold::new(START, START));
        assert_eq!(
            hold.missing(&agreed, after(10_999)),
            0,
            "it may still come in time"
        );
        assert_eq!(hold.missing(&agreed, after(11_000)), 1);
        assert_eq!(hold.missing(&agreed, after(35_000)), 3);
        hear(&mut hold, &agreed, 10_000, b"ok");
        assert_eq!(hold.missing(&agreed, after(35_000)), 2);
        hear(&mut hold, &agreed, 10_000, b"okokok");
        assert_eq!(
            hold.missing(&agreed, after(35_000)),
            0,
            "too many make none missing"
        );
    }
}
