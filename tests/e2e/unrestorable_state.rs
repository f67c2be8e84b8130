//! State that no command can restore: the client keeps its backend, and others do not see it.

use crate::compare::same_on;
use crate::world::{app, login, mysql, server, through};
use testkit::reply::Outcome;

/// On MySQL the expression around it types a variable that was never set.
#[test]
fn what_is_made_of_an_unset_variable_is_no_binary_text() {
    let Some(real) = mysql("unset_variables") else {
        return;
    };
    same_on(real, "unset_variables", 1, |story| {
        let (a, b) = (story.join(), story.join());
        for value in ["'text'", "x'ff'", "7", "1.5", "2e0"] {
            story.sql(a, &format!("SET @x = {value}"));
            for made in [
                "CONCAT_WS(' ', @x, @@time_zone)",
                "IFNULL(@x, 'a'), COALESCE(@x, 'b'), UPPER(@x), HEX(@x)",
                "IFNULL(@x, 5), IFNULL(@x, 1e0), @x + 1, @x = 'a'",
                "IFNULL(@x, CURRENT_DATE), IFNULL(@x, 'a' COLLATE utf8mb4_bin)",
                "COLLATION(@x), COERCIBILITY(@x), COLLATION(CONCAT(@x, 'a'))",
                "GROUP_CONCAT(@x), JSON_ARRAY(@x), CASE WHEN 1 THEN @x ELSE 1 END",
            ] {
                let reply = story.sql(b, &format!("SELECT {made}"));
                let [Outcome::Rows(rows)] = &reply[..] else {
                    panic!("{made}: {reply:?}");
                };
                let is_text = |kind| matches!(kind, 15 | 249..=254);
                let types = rows.columns.iter().map(|column| {
                    let kind = if is_text(column.kind) {
                        253
                    } else {
                        column.kind
                    };
                    (kind, column.collation, column.flags)
                });
                story.say(&format!("types: {:?}", types.collect::<Vec<_>>()));
            }
        }
    });
}

/// More clients than backends, each with variables of its own, and nobody is pinned.
#[test]
fn clients_with_variables_share_a_backend() {
    let test = "clients_with_variables_share_a_backend";
    let Some(real) = server(test) else { return };
    let way = through(real, 1);
    let mut clients: Vec<_> = (0..20).map(|_| login(&way, &app())).collect();
    for (i, client) in clients.iter_mut().enumerate() {
        client.must(&format!("SET @mine = {i}, @name = 'client {i}'"));
    }
    for _ in 0..3 {
        for (i, client) in clients.iter_mut().enumerate() {
            let expected = [i.to_string(), format!("client {i}")];
            assert_eq!(client.rows("SELECT @mine, @name").texts(), [expected]);
        }
    }
}
