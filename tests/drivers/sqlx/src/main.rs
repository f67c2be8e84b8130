//! Work that sqlx must be able to do; prints facts, the same on every way to a server.
//!
//! Arguments: the port, and the schema. Facts that depend on a server's ids or clock are left out.
//! sqlx prepares every statement with parameters on the server and keeps it for its connection.

use sqlx::mysql::{
    MySqlConnectOptions, MySqlConnection, MySqlPool, MySqlPoolOptions, MySqlSslMode,
};
use sqlx::{ConnectOptions, Connection, Error, Executor, QueryBuilder, raw_sql};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::sync::Barrier;

const WORKERS: u32 = 16;
/// A killed SLEEP() is no error everywhere: this looks at each of a thousand million rows.
const ENDLESS: &str = "SELECT COUNT(*) FROM t a, t b, t c WHERE a.id + b.id + c.id = -1";
type Done<T = ()> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// The server's number of an error.
fn number(error: &Error) -> Option<u16> {
    let error = error.as_database_error()?;
    let error = error.try_downcast_ref::<sqlx::mysql::MySqlDatabaseError>()?;
    Some(error.number())
}

/// The only value of a result, as text.
async fn one(on: &mut MySqlConnection, sql: &'static str) -> Done<String> {
    let bytes: Vec<u8> = sqlx::query_scalar(sql).fetch_one(on).await?;
    Ok(String::from_utf8(bytes)?)
}

async fn session(options: &MySqlConnectOptions) -> Done {
    let odd = options.clone().timezone(Some("+03:00".to_string()));
    let mut odd = odd
        .charset("latin1")
        .collation("latin1_swedish_ci")
        .connect()
        .await?;
    let set = "SELECT CAST(CONCAT_WS(' ', @@character_set_client, @@time_zone) AS BINARY)";
    println!("set at login: {}", one(&mut odd, set).await?);
    odd.close().await?;
    let mut usual = options.connect().await?;
    let modes = "SELECT CAST(CONCAT_WS(' ', @@sql_mode, @@time_zone) AS BINARY)";
    println!("usual: {}", one(&mut usual, modes).await?);
    let emoji = "caf\u{e9} \u{1f600}";
    let back: String = sqlx::query_scalar("SELECT ?")
        .bind(emoji)
        .fetch_one(&mut usual)
        .await?;
    println!("emoji: {}", back == emoji);
    usual.ping().await?;
    usual.close().await?;
    Ok(())
}

async fn transactions(pool: &MySqlPool) -> Done {
    let table =
        "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(50), data LONGBLOB)";
    pool.execute(table).await?;
    let count = "SELECT COUNT(*) FROM t";
    for commits in [true, false] {
        let mut tx = pool.begin().await?;
        let insert = sqlx::query("INSERT INTO t (name) VALUES (?), ('b')").bind("a");
        let id = insert.execute(&mut *tx).await?.last_insert_id();
        let mut nested = tx.begin().await?;
        nested
            .execute("INSERT INTO t (name) VALUES ('not to stay')")
            .await?;
        nested.rollback().await?;
        let inside: i64 = sqlx::query_scalar(count).fetch_one(&mut *tx).await?;
        let outside: i64 = sqlx::query_scalar(count).fetch_one(pool).await?;
        println!("inserted: {id} inside: {inside} outside: {outside}");
        match commits {
            true => tx.commit().await?,
            false => drop(tx),
        }
    }
    let left: i64 = sqlx::query_scalar(count).fetch_one(pool).await?;
    println!("committed: {left}");
    Ok(())
}

async fn deadlock(pool: &MySqlPool) -> Done {
    pool.execute("CREATE TABLE d (id INT PRIMARY KEY, n INT)")
        .await?;
    pool.execute("INSERT INTO d VALUES (1, 0), (2, 0)").await?;
    let (both, met) = (Arc::new(Barrier::new(2)), Arc::new(AtomicU32::new(0)));
    let transfer = |first: i32| {
        let (pool, both, met) = (pool.clone(), Arc::clone(&both), Arc::clone(&met));
        tokio::spawn(async move {
            let mut waits = true;
            loop {
                match transfer(&pool, first, waits.then_some(&*both)).await {
                    Ok(()) => return Ok(()),
                    Err(error) if number(&error) == Some(1213) => {
                        met.fetch_add(1, Ordering::Relaxed)
                    }
                    Err(error) => return Err(error),
                };
                waits = false;
            }
        })
    };
    let (one, two) = (transfer(1), transfer(2));
    one.await??;
    two.await??;
    let sums: Vec<i32> = sqlx::query_scalar("SELECT n FROM d ORDER BY id")
        .fetch_all(pool)
        .await?;
    println!("deadlock: {} {sums:?}", met.load(Ordering::Relaxed) > 0);
    Ok(())
}

async fn transfer(pool: &MySqlPool, first: i32, both: Option<&Barrier>) -> Result<(), Error> {
    let mut tx = pool.begin().await?;
    let add = "UPDATE d SET n = n + 1 WHERE id = ?";
    sqlx::query(add).bind(first).execute(&mut *tx).await?;
    if let Some(both) = both {
        both.wait().await;
    }
    sqlx::query(add).bind(3 - first).execute(&mut *tx).await?;
    tx.commit().await
}

async fn values(pool: &MySqlPool) -> Done {
    for n in 0..3i64 {
        let select = sqlx::query_as("SELECT ? + 1, ?, ? IS NULL")
            .bind(n << 40)
            .bind(vec![0u8, 255]);
        let row: (i64, Vec<u8>, i64) = select.bind(None::<i32>).fetch_one(pool).await?;
        println!("prepared: {row:?}");
    }
    let missing = sqlx::query("SELECT * FROM missing WHERE id = ?")
        .bind(1)
        .execute(pool)
        .await;
    println!(
        "not prepared: {:?}",
        missing.err().as_ref().and_then(number)
    );
    let mut batch = QueryBuilder::new("INSERT INTO t (name) ");
    batch.push_values(0..1000, |mut row, n| {
        row.push_bind(format!("batch{n}"));
    });
    let inserted = batch.build().execute(pool).await?.rows_affected();
    println!("batch: {inserted}");
    let data = b"0123456789abcdef".repeat((6 << 20) / 16);
    let insert = sqlx::query("INSERT INTO t (name, data) VALUES ('big', ?)").bind(&data);
    insert.execute(pool).await?;
    let select = sqlx::query_scalar("SELECT data FROM t WHERE name = ?").bind("big");
    let back: Vec<u8> = select.fetch_one(pool).await?;
    println!("big: {} {}", back.len(), back == data);
    let several = raw_sql("DO 1; INSERT INTO t (name) VALUES ('x'), ('y'); DO 2");
    println!("several: {}", several.execute(pool).await?.rows_affected());
    Ok(())
}

async fn cancels(pool: &MySqlPool, options: &MySqlConnectOptions) -> Done {
    // A future that is dropped gives its connection up; the pool of the driver opens another.
    let mut late = options.connect().await?;
    let sleep = late.execute("SELECT SLEEP(2)");
    let timeout = tokio::time::timeout(Duration::from_millis(200), sleep).await;
    drop(late);
    println!("timeout: {}", timeout.is_err());
    let mut victim = options.connect().await?;
    let me: u64 = sqlx::query_scalar("SELECT CONNECTION_ID()")
        .fetch_one(&mut victim)
        .await?;
    let running = "SELECT COUNT(*) FROM information_schema.processlist \
                   WHERE db = DATABASE() AND info LIKE ?";
    let ended = tokio::spawn(async move {
        let ended = victim.execute(ENDLESS).await;
        (victim, ended)
    });
    while sqlx::query_scalar::<_, i64>(running)
        .bind(ENDLESS)
        .fetch_one(pool)
        .await?
        == 0
    {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    raw_sql(sqlx::AssertSqlSafe(format!("KILL QUERY {me}")))
        .execute(pool)
        .await?;
    let (mut victim, ended) = ended.await?;
    let name = one(
        &mut victim,
        "SELECT CAST(name AS BINARY) FROM t WHERE id = 1",
    )
    .await?;
    println!("killed: {:?} {name}", ended.err().as_ref().and_then(number));
    raw_sql(sqlx::AssertSqlSafe(format!("KILL {me}")))
        .execute(pool)
        .await?;
    while victim.execute("DO 1").await.is_ok() {}
    let again: i64 = sqlx::query_scalar("SELECT 1").fetch_one(pool).await?;
    println!("lost: true again: {again}");
    Ok(())
}

async fn work(pool: MySqlPool, worker: u32) -> Done<u32> {
    let mut connection = pool.acquire().await?;
    let (zone, wait) = (format!("+{:02}:00", worker % 12), 100 + worker);
    let set = format!("SET time_zone = '{zone}', @worker = {worker}, lock_wait_timeout = {wait}");
    raw_sql(sqlx::AssertSqlSafe(set))
        .execute(&mut *connection)
        .await?;
    let insert = sqlx::query("INSERT INTO w VALUES (?, 0)").bind(worker);
    insert.execute(&mut *connection).await?;
    let expected = format!("{zone} {worker} {wait}");
    let state = "SELECT CAST(CONCAT_WS(' ', @@time_zone, @worker, @@lock_wait_timeout) AS BINARY)";
    let mut foreign = 0;
    for _ in 0..20 {
        let mut tx = connection.begin().await?;
        let update = sqlx::query("UPDATE w SET n = n + 1 WHERE worker = ?").bind(worker);
        update.execute(&mut *tx).await?;
        foreign += u32::from(one(&mut tx, state).await? != expected);
        tx.commit().await?;
        foreign += u32::from(one(&mut connection, state).await? != expected);
    }
    Ok(foreign)
}

async fn crowd(pool: &MySqlPool) -> Done {
    pool.execute("CREATE TABLE w (worker INT PRIMARY KEY, n INT)")
        .await?;
    let workers: Vec<_> = (0..WORKERS)
        .map(|n| tokio::spawn(work(pool.clone(), n)))
        .collect();
    let mut foreign = 0;
    for worker in workers {
        foreign += worker.await??;
    }
    let sum = "SELECT CAST(CONCAT(COUNT(*), ' ', SUM(n)) AS BINARY) FROM w";
    let sum = one(&mut *pool.acquire().await?, sum).await?;
    println!("crowd: {foreign} {sum}");
    Ok(())
}

#[tokio::main]
async fn main() -> Done {
    let arguments: Vec<String> = std::env::args().collect();
    let mode = match std::env::var_os("DRIVER_TLS") {
        Some(_) => MySqlSslMode::Required,
        None => MySqlSslMode::Disabled,
    };
    let options = MySqlConnectOptions::new()
        .host("127.0.0.1")
        .port(arguments[1].parse()?)
        .username("app")
        .password("app")
        .database(&arguments[2])
        .ssl_mode(mode);
    let pool = MySqlPoolOptions::new().max_connections(WORKERS);
    let pool = pool.connect_with(options.clone()).await?;
    session(&options).await?;
    transactions(&pool).await?;
    deadlock(&pool).await?;
    values(&pool).await?;
    cancels(&pool, &options).await?;
    crowd(&pool).await?;
    pool.close().await;
    println!("done");
    Ok(())
}
