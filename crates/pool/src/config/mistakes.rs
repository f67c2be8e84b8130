//! Mistakes in settings, gathered so that one look tells all of them.
//!
//! A start, a reload and the console need the first one only, which is why settings cannot be used.
//! `onramp pool --check` prints all. What several values have to do with each other is judged only
//! where each of them can be used by itself, so that one mistake is not told twice.

use crate::config::row::Keys;

/// Mistakes that are kept; of more, their number is.
pub(crate) const MISTAKES_MAX: usize = 100;

/// Mistakes in the order in which they were found.
#[derive(Debug, Default)]
pub(crate) struct Mistakes {
    kept: Vec<String>,
    more: usize,
}

/// Notes the mistakes of each value of a section by itself.
type NoteValues = fn(&Keys, Option<&Keys>, &mut dyn FnMut(String));
/// Reads a section, or the first of its mistakes.
type ReadSection<T> = fn(&Keys, Option<&Keys>) -> Result<T, String>;

impl Mistakes {
    /// Adds a mistake, once.
    pub(crate) fn add(&mut self, why: String) {
        match self.kept.contains(&why) {
            true => {}
            false if self.kept.len() < MISTAKES_MAX => self.kept.push(why),
            false => self.more += 1,
        }
    }

    /// The value, if it is there; what is wrong with it is added.
    pub(crate) fn note<T>(&mut self, value: Result<T, String>) -> Option<T> {
        value.map_err(|why| self.add(why)).ok()
    }

    /// The values of a section, if all of them can be used; what is wrong with any is added.
    pub(crate) fn section<T>(
        &mut self,
        note: NoteValues,
        read: ReadSection<T>,
        keys: &Keys,
        above: Option<&Keys>,
    ) -> Option<T> {
        let values = read(keys, above);
        if values.is_err() {
            note(keys, above, &mut |why| self.add(why));
        }
        values.ok()
    }

    /// The value, or the first of the mistakes, whether or not there is a value.
    pub(crate) fn result<T>(self, value: Option<T>) -> Result<T, String> {
        match (self.kept.into_iter().next(), value) {
            (None, Some(value)) => Ok(value),
            (first, _) => Err(first.unwrap_or_else(|| "the settings cannot be used".into())),
        }
    }

    /// One sentence for each, and the number of those that were not kept.
    pub(crate) fn lines(self) -> Vec<String> {
        let mut lines = self.kept;
        if self.more > 0 {
            lines.push(format!("and {} more", self.more));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_are_told_once_and_bounded() {
        let mut mistakes = Mistakes::default();
        assert_eq!(mistakes.note(Ok(7)), Some(7));
        assert_eq!(Mistakes::default().result(Some(7)), Ok(7));
        for number in 0..MISTAKES_MAX + 2 {
            assert_eq!(mistakes.note::<()>(Err(number.to_string())), None);
            mistakes.add("0".into());
        }
        let lines = mistakes.lines();
        assert_eq!(lines.len(), MISTAKES_MAX + 1);
        assert_eq!((lines[0].as_str(), lines[1].as_str()), ("0", "1"));
        assert_eq!(lines[MISTAKES_MAX], "and 2 more");
    }
}
