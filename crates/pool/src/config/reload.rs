//! Reload: settings are read again and put in force while clients are served.
//!
//! SIGHUP and the console's RELOAD do the same, and so does a thread that looks at the file, if the
//! settings ask for that ([`watch`]). The file is read and checked as at start, options of the
//! command line override it as they did then, and passwords are fetched again from their files and
//! variables. Invariant: all of it holds or nothing of it. Settings that are wrong change
//! nothing; what is read at start only keeps its value, and is told
//! ([`crate::config::current`]). If the settings ask for it, an upgrade then puts it in force: the
//! process sends itself the signal for that, because the main thread starts the other process.
//!
//! SET at the console takes the same way ([`set`]), with one value in place of what is written.
//!
//! Certificates are read again as well, and by themselves: a wrong configuration does not keep a
//! renewed certificate out. The same thread looks at their files.

use crate::auth::certificate_reload as certificates;
use crate::config::current::Changes;
use crate::config::source::Source;
use crate::config::{Settings, UserLimit};
use crate::group::shared::Shared;
use crate::observe::log::{self, Event, note};
use reactor::Time;
use signal_hook::consts::SIGUSR2;
use std::sync::Arc;
use std::time::Duration;

/// Between two looks at the files.
const EVERY: Duration = Duration::from_secs(1);
/// The setting that has a bound of its own while the pool runs.
const BACKENDS_MAX: &str = "backends_max";
/// Reason why nothing can be read again.
const NO_SOURCE: &str = "this pool was not started from a command line";
/// Changes of one kind that are told; of more, their number is.
const LISTED_MAX: usize = 20;

/// Reads settings and certificates again; what has changed, for people.
///
/// # Errors
/// A sentence that says what is wrong; everything is as before.
pub(crate) fn reload(shared: &Shared) -> Result<String, String> {
    certificates::renew(&shared.settings(), true);
    match read_again(shared) {
        Ok(report) => {
            note(Event::SettingsRead, format_args!("{report}"));
            Ok(report)
        }
        Err(why) => {
            let report = format!("the settings of before go on: {why}");
            note(Event::SettingsKept, format_args!("{report}"));
            Err(report)
        }
    }
}

fn read_again(shared: &Shared) -> Result<String, String> {
    // One at a time.
    let mut source = shared.source();
    let Some(source) = &mut *source else {
        return Err(NO_SOURCE.into());
    };
    let (raw, mut settings) = source.read()?;
    for warning in &settings.warnings {
        note(Event::Warning, format_args!("{warning}"));
    }
    let changes = follow(shared, &mut settings)?;
    let upgrades = settings.upgrade_on_reload && !changes.fixed.is_empty();
    shared.put_in_force(settings);
    source.has_put_in_force(raw);
    let mut report = report(&changes);
    if upgrades {
        match signal_hook::low_level::raise(SIGUSR2) {
            Ok(()) => report.push_str("; an upgrade begins (upgrade_on_reload)"),
            Err(error) => report = format!("{report}; no upgrade can be begun: {error}"),
        }
    }
    Ok(report)
}

/// Compares these settings with those in force and adopts what cannot change; returns what differs.
fn follow(shared: &Shared, settings: &mut Settings) -> Result<Changes, String> {
    let old = shared.settings();
    let mut changes = settings.follow(&old)?;
    let most = shared.budget.most_total();
    if settings.backends_max > most {
        let wished = settings.backends_max;
        settings.backends_max = old.backends_max;
        changes.keep(settings, &old, BACKENDS_MAX);
        changes.fixed.push(format!(
            "{BACKENDS_MAX}: {} -> {wished} (without a restart at most {most}, as at start)",
            old.backends_max
        ));
    }
    let style = (settings.log_format, settings.log_level);
    if style != (old.log_format, old.log_level) {
        log::set_style(style.0, style.1);
    }
    shared.records.audit.open(settings.audit_log.as_ref())?;
    Ok(changes)
}

/// Puts another value of one setting in force, until settings are read again; what it is now.
///
/// # Errors
/// A sentence that says what is expected, or why it cannot be changed; everything is as before.
pub(crate) fn set(shared: &Shared, name: &str, value: Option<&str>) -> Result<String, String> {
    // No reload meanwhile.
    let mut source = shared.source();
    let Some(source) = &mut *source else {
        return Err(NO_SOURCE.into());
    };
    let (raw, mut settings) = source.with(name, value)?;
    let most = shared.budget.most_total();
    if name == BACKENDS_MAX && settings.backends_max > most {
        return Err(format!(
            "{name} can be at most {most} without a restart, as at start"
        ));
    }
    follow(shared, &mut settings)?;
    let mut shown = settings.shown.iter();
    let shown = shown.find(|setting| setting.name == name);
    let shown = shown.map_or_else(String::new, |setting| setting.value.clone());
    shared.put_in_force(settings);
    source.has_put_in_force(raw);
    Ok(match value {
        Some(_) => format!("{name} is {shown} until the next reload"),
        None => format!("{name} is {shown}, as it was read"),
    })
}

/// Puts another limit of a user in force, over reloads; none is what is written of it.
///
/// # Errors
/// A sentence that says what is expected; everything is as before.
pub(crate) fn set_of_user(
    shared: &Shared,
    user: &str,
    name: &str,
    value: Option<&str>,
) -> Result<String, String> {
    let mut source = shared.source();
    let Some(source) = &mut *source else {
        return Err(NO_SOURCE.into());
    };
    let (raw, mut settings, limits) = source.with_limit(UserLimit {
        user: user.to_owned(),
        name: name.to_owned(),
        value: value.map(str::to_owned),
    })?;
    follow(shared, &mut settings)?;
    shared.put_in_force(settings);
    source.has_put_in_force(raw);
    source.keep_limits(limits);
    Ok(match value {
        Some(value) => format!("{name} of user '{user}' is {value}, until it is set to DEFAULT"),
        None => format!("{name} of user '{user}' is as it was read"),
    })
}

/// Limits of users that hold over reloads.
pub(crate) fn limits_of_users(shared: &Shared) -> Vec<UserLimit> {
    let source = shared.source();
    let limits = source.as_ref().map(|source| source.limits().to_vec());
    limits.unwrap_or_default()
}

/// Looks at files once a second, on a thread of its own that ends with the process: certificates
/// and keys are read again when they have changed, and so are the settings, if they ask for that.
pub(crate) fn watch(shared: &Arc<Shared>) {
    let apart = shared.clone();
    let watch = move || {
        loop {
            reactor::pause(EVERY);
            let settings = apart.settings();
            certificates::renew(&settings, false);
            for digest in apart.scheduling.rules.expire(Time::now()) {
                note(
                    Event::RuleEnded,
                    format_args!("the rule for digest {digest:016x} has ended"),
                );
            }
            let has_changed = || {
                let mut source = apart.source();
                source.as_mut().is_some_and(Source::has_changed)
            };
            if settings.reload_on_change && has_changed() {
                note(
                    Event::Signal,
                    format_args!("the file of the settings has changed: it is read again"),
                );
                // What came of it is logged.
                let _ = reload(&apart);
            }
        }
    };
    let thread = std::thread::Builder::new().name("files".into());
    if let Err(error) = thread.spawn(watch) {
        note(
            Event::Failed,
            format_args!(
                "cannot start the thread that looks at files of certificates and settings: {error}"
            ),
        );
    }
}

fn report(changes: &Changes) -> String {
    let list = |changes: &[String]| match changes.len().checked_sub(LISTED_MAX) {
        None | Some(0) => changes.join(", "),
        Some(more) => format!("{}, and {more} more", changes[..LISTED_MAX].join(", ")),
    };
    let mut report = "settings were read again".to_owned();
    if *changes == Changes::default() {
        report.push_str("; nothing has changed");
    }
    if !changes.applied.is_empty() {
        report = format!("{report}; in force now: {}", list(&changes.applied));
    }
    if !changes.fixed.is_empty() {
        report = format!(
            "{report}; only after an upgrade or a restart: {}",
            list(&changes.fixed)
        );
    }
    if !changes.kept_by_upgrades.is_empty() {
        let kept = list(&changes.kept_by_upgrades);
        report = format!("{report}; only after a restart: {kept}");
    }
    report
}
