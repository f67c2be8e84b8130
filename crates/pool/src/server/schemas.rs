//! Schemas that the server has let an account into.
//!
//! The problem: whether a login may use its default schema is the server's to say, and asking costs
//! each login a backend. The mechanism: what the server has said once is remembered for that pool
//! of backend, until the server says otherwise. Invariant: the table is bounded ([`SCHEMAS_MAX`]);
//! when it is full it is learnt again: whoever is not in it is asked for.

use std::collections::HashSet;

/// Schemas that a group remembers, for all pools.
const SCHEMAS_MAX: usize = 4096;

/// Schemas that a group remembers.
#[derive(Debug, Default)]
pub(crate) struct Schemas {
    let_in: HashSet<(usize, Box<[u8]>)>,
}

impl Schemas {
    /// True if backends of a pool are known to be let into a schema.
    pub(crate) fn knows(&self, pool: usize, schema: &[u8]) -> bool {
        self.let_in.contains(&(pool, Box::from(schema)))
    }

    /// Adds a schema into which a backend of this pool was let.
    pub(crate) fn learn(&mut self, pool: usize, schema: &[u8]) {
        let entry = (pool, Box::from(schema));
        if self.let_in.len() >= SCHEMAS_MAX && !self.let_in.contains(&entry) {
            self.let_in.clear();
        }
        self.let_in.insert(entry);
    }

    /// Removes a schema into which one was not let.
    pub(crate) fn forget(&mut self, pool: usize, schema: &[u8]) {
        self.let_in.remove(&(pool, Box::from(schema)));
    }

    /// Forgets what is known of one pool.
    pub(crate) fn forget_pool(&mut self, pool: usize) {
        self.let_in.retain(|(of, _)| *of != pool);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(n: usize) -> Box<[u8]> {
        n.to_string().into_bytes().into()
    }

    #[test]
    fn a_full_table_is_learnt_again() {
        let mut schemas = Schemas::default();
        (0..SCHEMAS_MAX).for_each(|n| schemas.learn(0, &schema(n)));
        assert!(schemas.knows(0, &schema(0)) && !schemas.knows(1, &schema(0)));
        schemas.learn(0, &schema(7));
        assert_eq!(schemas.let_in.len(), SCHEMAS_MAX, "it was in there");
        schemas.learn(1, &schema(7));
        assert_eq!(schemas.let_in.len(), 1);
        assert!(schemas.knows(1, &schema(7)) && !schemas.knows(0, &schema(7)));
        schemas.forget(1, &schema(7));
        assert!(!schemas.knows(1, &schema(7)));
    }
}
