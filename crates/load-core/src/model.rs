//! Models of load: when a connection sends, how long it waits for an answer, how long it lives.
//!
//! [`ModelArgs`] is what the command line says, [`Model`] what follows from it. The loop is one of
//! four ([`Loop`]): closed, where each connection sends as soon as it has been answered; open,
//! where events come at a rate of their own; closed with a pause in between; and closed for some of
//! the connections while the others rest. Patience and lifetimes go with each of them.

use crate::arrivals::Gaps;
use crate::durations::{Spread, parse_length};
use crate::rate_profile::RateProfile;
use clap::Args;
use std::str::FromStr;
use std::time::Duration;

/// Options of the model of load: when connections send, wait and end.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Model of load")]
pub struct ModelArgs {
    /// Open loop: events to begin each second over all connections, whether or not earlier ones are
    /// answered; a number, or stages TIME:RATE,... [default: closed loop]
    #[arg(long, value_name = "N", value_parser = RateProfile::from_str)]
    pub rate: Option<RateProfile>,

    /// Gaps between the events of --rate
    #[arg(long, value_name = "GAPS", value_enum, default_value_t = Gaps::Poisson)]
    pub arrivals: Gaps,

    /// Events of --rate that may wait for an idle connection, over all groups; more are shed
    #[arg(long, value_name = "N", default_value_t = 131_072,
          value_parser = clap::value_parser!(u32).range(0..=16_777_216))]
    pub queue_max: u32,

    /// Pause of each connection after an event: D, D-D or exp:D, as in 100ms
    #[arg(long, value_name = "D", value_parser = Spread::parse)]
    pub think_time: Option<Spread>,

    /// Connections that work at a time, as a number or in percent; the others rest, and take turns
    #[arg(long, value_name = "N|P%", value_parser = Active::from_str)]
    pub active: Option<Active>,

    /// Connections over time: TIME:NUMBER,... as in 0:100,60s:10000; overrides --connections
    #[arg(long, value_name = "STAGES", value_parser = RateProfile::from_str)]
    pub stages: Option<RateProfile>,

    /// Close each connection in good order after this long and reopen it: D, D-D or exp:D
    #[arg(long, value_name = "D", value_parser = Spread::parse)]
    pub lifetime: Option<Spread>,

    /// Give a statement up that has no answer after this long: close its connection, connect
    /// again, and run the event again
    #[arg(long, value_name = "D", value_parser = parse_length)]
    pub give_up: Option<Duration>,

    /// Most repetitions of an event that was given up [default: until it is answered]
    #[arg(long, value_name = "N", requires = "give_up")]
    pub retries: Option<u16>,

    /// Pause between giving up and connecting again: D, D-D or exp:D
    #[arg(long, value_name = "D", value_parser = Spread::parse, default_value = "0",
          requires = "give_up")]
    pub retry_pause: Spread,

    /// Count as goodput what is answered within this long [default: the time of --give-up]
    #[arg(long, value_name = "D", value_parser = parse_length)]
    pub in_time: Option<Duration>,
}

/// Number of connections that work at a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Active {
    /// Number of connections.
    Count(u32),
    /// Percentage of connections, above 0.
    Percent(f64),
}

impl FromStr for Active {
    type Err = String;

    fn from_str(text: &str) -> Result<Active, String> {
        let wrong = || format!("'{text}' is neither a number from 1 nor a percentage up to 100%");
        if let Some(percent) = text.strip_suffix('%') {
            let percent: f64 = percent.parse().map_err(|_| wrong())?;
            let is_percent = percent > 0.0 && percent <= 100.0;
            return is_percent
                .then_some(Active::Percent(percent))
                .ok_or_else(wrong);
        }
        match text.parse() {
            Ok(0) | Err(_) => Err(wrong()),
            Ok(count) => Ok(Active::Count(count)),
        }
    }
}

impl Active {
    /// Number of this share of connections, at least one.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a part of a u32 is one"
    )]
    fn of(self, connections: u32) -> u32 {
        match self {
            Active::Count(count) => count.min(connections),
            Active::Percent(percent) => (f64::from(connections) * percent / 100.0).round() as u32,
        }
        .max(1)
    }
}

/// Trigger of a connection's next event.
#[derive(Clone, Debug, PartialEq)]
pub enum Loop {
    /// End of the last one.
    Closed,
    /// Arrival of an event at a rate.
    Open {
        /// Arrivals in a second, over time.
        rate: RateProfile,
        /// Distribution of the gaps between arrivals.
        gaps: Gaps,
        /// Arrivals that wait for a free connection; one more is shed.
        queue_max: u32,
    },
    /// End of a pause behind the last one.
    Thinking(Spread),
    /// Turns: so many connections work at a time.
    Active(u32),
}

/// The model of load of a run; never changes.
#[derive(Clone, Debug)]
pub struct Model {
    /// The start of events.
    pub drive: Loop,
    /// Connections that are active, over time; all of them where there is none.
    pub stages: Option<RateProfile>,
    /// Time for which a connection stays open before it is opened anew.
    pub lifetime: Option<Spread>,
    /// Time after which a client gives up an event.
    pub give_up: Option<Duration>,
    /// Repetitions of an event that was given up; without a limit where there is none.
    pub retries: Option<u16>,
    /// Pause before a repetition.
    pub retry_pause: Spread,
    /// Longest latency that counts as goodput; `None` is everything.
    pub in_time: Option<Duration>,
}

impl ModelArgs {
    /// Refuses what contradicts itself.
    ///
    /// # Errors
    /// A sentence that says which and what to do.
    pub fn check(&self) -> Result<(), String> {
        let loops = [
            ("--rate", self.rate.is_some()),
            ("--think-time", self.think_time.is_some()),
            ("--active", self.active.is_some()),
        ];
        let given: Vec<_> = loops.iter().filter(|l| l.1).map(|l| l.0).collect();
        if let [first, second, ..] = given[..] {
            return Err(format!(
                "{first} and {second} both say when a connection sends; give one of them"
            ));
        }
        let is_never =
            |profile: &Option<RateProfile>| profile.as_ref().is_some_and(|c| c.highest() <= 0.0);
        if is_never(&self.rate) {
            return Err("--rate is never above 0: nothing would be sent".into());
        }
        if self.stages.as_ref().is_some_and(|c| c.at(0.0) < 1.0) {
            return Err("--stages begins with less than one connection; write 0:1 or more".into());
        }
        if self.stages.is_some() && self.active.is_some() {
            return Err(
                "--active is a part of a fixed number; it does not go with --stages".into(),
            );
        }
        if let (Some(life), Some(pause)) = (self.lifetime, self.think_time)
            && life.longest() <= pause.shortest()
        {
            return Err(
                "--lifetime is never longer than --think-time: no connection would live to the \
                 end of a pause"
                    .into(),
            );
        }
        if [self.give_up, self.in_time].contains(&Some(Duration::ZERO)) {
            return Err("--give-up and --in-time are longer than 0".into());
        }
        Ok(())
    }

    /// The model for so many connections.
    pub fn model(&self, connections: u32) -> Model {
        let drive = match (&self.rate, self.think_time, self.active) {
            (Some(rate), ..) => Loop::Open {
                rate: rate.clone(),
                gaps: self.arrivals,
                queue_max: self.queue_max,
            },
            (_, Some(spread), _) => Loop::Thinking(spread),
            (.., Some(active)) => Loop::Active(active.of(connections)),
            _ => Loop::Closed,
        };
        Model {
            drive,
            stages: self.stages.clone(),
            lifetime: self.lifetime,
            give_up: self.give_up,
            retries: self.retries,
            retry_pause: self.retry_pause,
            in_time: self.in_time.or(self.give_up),
        }
    }
}

impl Model {
    /// True where something is to be done at a certain time, and not only when a reply comes.
    pub fn keeps_time(&self) -> bool {
        let by_reply = matches!(self.drive, Loop::Closed | Loop::Active(_));
        !by_reply || self.give_up.is_some()
    }

    /// The most connections that are ever wanted, of so many at most.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "as in `wanted`"
    )]
    pub fn highest(&self, most: u32) -> u32 {
        match &self.stages {
            Some(stages) => (stages.highest().round() as u32).clamp(1, most),
            None => most,
        }
    }

    /// Connections that are wanted after `seconds` of execution, of so many at most.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a profile is not negative, and what is beyond a u32 is cut to `most`"
    )]
    pub fn wanted(&self, seconds: f64, most: u32) -> u32 {
        match &self.stages {
            Some(stages) => (stages.at(seconds).round() as u32).min(most),
            None => most,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        model: ModelArgs,
    }

    fn parse(line: &str) -> Result<Model, String> {
        let words = std::iter::once("load").chain(line.split_whitespace());
        let line = Line::try_parse_from(words).map_err(|e| e.to_string())?;
        line.model.check().map(|()| line.model.model(1_000))
    }

    #[test]
    fn each_loop_has_its_option() {
        let drive = |line| parse(line).unwrap().drive;
        assert_eq!(drive(""), Loop::Closed);
        assert_eq!(drive("--active 5%"), Loop::Active(50));
        assert_eq!(drive("--active 0.01%"), Loop::Active(1));
        assert_eq!(drive("--active 7"), Loop::Active(7));
        let think = Spread::Fixed(Duration::from_millis(20));
        assert_eq!(drive("--think-time 20ms"), Loop::Thinking(think));
        let both = "--think-time 20ms --lifetime exp:10ms";
        assert_eq!(drive(both), Loop::Thinking(think));
        let open = Loop::Open {
            rate: "500".parse().unwrap(),
            gaps: Gaps::Constant,
            queue_max: 10,
        };
        assert_eq!(drive("--rate 500 --arrivals constant --queue-max 10"), open);
    }

    #[test]
    fn stages_say_how_many_connections_are_wanted() {
        let model = parse("--stages 0:100,60s:700").unwrap();
        let wanted: Vec<u32> = [0.0, 30.0, 90.0].map(|s| model.wanted(s, 600)).to_vec();
        assert_eq!(wanted, [100, 400, 600]);
        assert_eq!(parse("").unwrap().wanted(5.0, 600), 600);
    }

    #[test]
    fn patience_is_also_what_counts_as_in_time() {
        let model = parse("--give-up 1s --retries 3 --retry-pause 10ms-20ms").unwrap();
        assert_eq!(model.in_time, Some(Duration::from_secs(1)));
        assert_eq!(model.retries, Some(3));
        let model = parse("--give-up 1s --in-time 50ms").unwrap();
        assert_eq!(model.in_time, Some(Duration::from_millis(50)));
        assert_eq!(parse("").unwrap().in_time, None);
    }

    #[test]
    fn contradictions_are_refused_with_a_reason() {
        for (line, words) in [
            ("--rate 5 --think-time 1s", "--rate and --think-time"),
            ("--active 5% --think-time 1s", "--think-time and --active"),
            ("--rate 0", "never above 0"),
            ("--stages 0:0,5s:10", "less than one"),
            ("--stages 0:10 --active 5%", "fixed number"),
            ("--give-up 0", "longer than 0"),
            ("--lifetime 1s-2s --think-time 2s", "end of a pause"),
            ("--active 101%", "percentage"),
            ("--active 0", "percentage"),
            ("--retries 3", "--give-up"),
        ] {
            let error = parse(line).unwrap_err();
            assert!(error.contains(words), "{line}: {error}");
        }
    }
}
