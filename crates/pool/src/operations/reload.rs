//! Reload: settings are read again and put in force while clients are served.
//!
//! SIGHUP and the console's RELOAD do the same. The file is read and checked as at start, options
//! of the command line override it as they did then, and passwords are fetched again from their
//! files and variables. Invariant: all of it holds or nothing of it. Settings that are wrong change
//! nothing; what is read at start only keeps its value, and is told
//! ([`crate::config::current`]).
//!
//! Certificates are read again as well, and by themselves: a wrong configuration does not keep a
//! renewed certificate out.

use crate::config::current::Changes;
use crate::log::{self, Event, note};
use crate::operations::certificates;
use crate::shared::Shared;
use std::sync::PoisonError;

/// Changes of one kind that are told; of more, their number is.
const TOLD_MAX: usize = 20;

/// Reads settings and certificates again; what has changed, for people.
///
/// # Errors
/// A sentence that says what is wrong; everything is as before.
pub(crate) fn reload(shared: &Shared) -> Result<String, String> {
    certificates::renew(&shared.settings(), true);
    match read_again(shared) {
        Ok(told) => {
            note(Event::SettingsRead, format_args!("{told}"));
            Ok(told)
        }
        Err(why) => {
            let told = format!("the settings of before go on: {why}");
            note(Event::SettingsKept, format_args!("{told}"));
            Err(told)
        }
    }
}

fn read_again(shared: &Shared) -> Result<String, String> {
    // One at a time.
    let source = shared.source.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(args) = &*source else {
        return Err("this pool was not started from a command line".into());
    };
    let mut settings = args.clone().settings()?;
    let old = shared.settings();
    for warning in &settings.warnings {
        note(Event::Warning, format_args!("{warning}"));
    }
    let mut changes = settings.follow(&old)?;
    let most = shared.budget.most_total();
    if settings.backends_max > most {
        let wished = settings.backends_max;
        settings.backends_max = old.backends_max;
        changes.keep(&mut settings, &old, "backends_max");
        changes.fixed.push(format!(
            "backends_max ({wished}; without a restart at most {most}, as at start)"
        ));
    }
    let style = (settings.log_format, settings.log_level);
    if style != (old.log_format, old.log_level) {
        log::set_style(style.0, style.1);
    }
    shared.put_in_force(settings);
    Ok(told(&changes))
}

fn told(changes: &Changes) -> String {
    let list = |changes: &[String]| match changes.len().checked_sub(TOLD_MAX) {
        None | Some(0) => changes.join(", "),
        Some(more) => format!("{}, and {more} more", changes[..TOLD_MAX].join(", ")),
    };
    let mut told = "settings were read again".to_owned();
    if changes.applied.is_empty() && changes.fixed.is_empty() {
        told.push_str("; nothing has changed");
    }
    if !changes.applied.is_empty() {
        told = format!("{told}; in force now: {}", list(&changes.applied));
    }
    if !changes.fixed.is_empty() {
        told = format!(
            "{told}; only after an upgrade or a restart: {}",
            list(&changes.fixed)
        );
    }
    told
}
