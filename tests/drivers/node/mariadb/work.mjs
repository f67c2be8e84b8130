// Work that MariaDB's Node connector must be able to do; prints facts, the same on every way to a
// server.
//
// Arguments: the port, and the schema. Facts that depend on a server's ids or clock are left out.
// The connector sends the statements of a connection without waiting for the answers before them,
// and rows of a batch in one command where the server has that.
import { createHash } from "node:crypto";
import mariadb from "mariadb";
import { WORKERS, createTable, crowd, database, deadlock, kills, number, say, settings as shared } from "./shared.mjs";

// One second, its default for a connection, is too little for a busy machine.
const settings = {
  ...shared, connectTimeout: 30_000, insertIdAsNumber: true, bigIntAsNumber: true, allowPublicKeyRetrieval: true,
};
const open = (more = {}) => mariadb.createConnection({ ...settings, ...more });

async function one(on, sql, values = []) {
  const rows = await on.query({ sql, rowsAsArray: true }, values);
  return rows[0][0];
}

async function session() {
  const odd = await open({ collation: "LATIN1_SWEDISH_CI", initSql: "SET @begun = 1" });
  await odd.query("SET time_zone = '+03:00', sql_mode = 'ANSI_QUOTES'");
  say("set:", await one(odd, "SELECT CONCAT_WS(' ', @@character_set_client, @@time_zone, @@sql_mode, @begun)"));
  say("latin1:", await one(odd, "SELECT HEX(CONVERT(? USING utf8mb4))", ["\u00e9"]));
  say("epoch:", await one(odd, "SELECT FROM_UNIXTIME(0)"));
  await odd.reset();
  say("reset:", await one(odd, "SELECT CONCAT_WS(' ', @@sql_mode = 'ANSI_QUOTES', @begun IS NULL)"));
  await odd.end();
  const usual = await open();
  say("usual:", await one(usual, "SELECT CONCAT_WS(' ', @@character_set_client, @@autocommit)"));
  say("emoji:", await one(usual, "SELECT ?", ["caf\u00e9 \u{1f600}"]));
  // The connector itself refuses it (45003) where the server is MySQL.
  const refused = await number(() => usual.changeUser({ database, user: "app", password: "app" }));
  say("changed user:", refused, await one(usual, "SELECT DATABASE() IS NOT NULL"));
  await usual.end();
}

async function transactions(pool) {
  await createTable(pool);
  const connection = await pool.getConnection();
  for (const commits of [true, false]) {
    await connection.beginTransaction();
    const done = await connection.query("INSERT INTO t (name, n) VALUES (?, 12.5), ('b', -1)", ["a"]);
    const inside = await one(connection, "SELECT COUNT(*) FROM t");
    say("inserted:", done.insertId, "inside:", inside, "outside:", await one(pool, "SELECT COUNT(*) FROM t"));
    await (commits ? connection.commit() : connection.rollback());
  }
  say("committed:", await one(connection, "SELECT COUNT(*) FROM t"));
  await connection.release();
}

/** Statements that are all sent before the first is answered; one of them fails. */
async function pipelined() {
  const connection = await open();
  const steps = [
    "SET @p = 1", "SELECT @p", "SET @p = @p + 1", "SELECT missing", "SELECT @p", "BEGIN",
    "INSERT INTO t (name) VALUES ('pipelined')", "SELECT COUNT(*) FROM t WHERE name = 'pipelined'",
    "ROLLBACK", "SELECT COUNT(*) FROM t WHERE name = 'pipelined'",
  ];
  const facts = await Promise.all(steps.map((sql) => connection.query({ sql, rowsAsArray: true }).then(
    (rows) => (Array.isArray(rows) ? rows[0][0] : rows.affectedRows), (error) => error.errno)));
  say("pipelined:", facts.join(" "));
  await connection.end();
}

async function prepared(pool) {
  const connection = await pool.getConnection();
  const statement = await connection.prepare("SELECT ? + 1 AS a, ? AS b, ? IS NULL AS c, ? AS d");
  for (let n = 0; n < 3; n++) {
    const [row] = await statement.execute([n * 2 ** 40, `x${n}`, null, "2020-02-29 01:02:03"]);
    say("prepared:", row.a, row.b, row.c, row.d);
  }
  await statement.close();
  say("not prepared:", await number(() => connection.execute("SELECT * FROM missing WHERE id = ?", [1])));
  for (let n = 0; n < 200; n++) {
    await connection.execute("INSERT INTO t (name) VALUES (?)", [`n${n}`]);
  }
  const rows = Array.from({ length: 1000 }, (_, n) => [`batch${n}`]);
  const batch = await connection.batch("INSERT INTO t (name) VALUES (?)", rows);
  say("batch:", batch.affectedRows, await one(pool, "SELECT COUNT(DISTINCT name) FROM t"));
  const data = Buffer.from("0123456789abcdef".repeat((6 << 20) / 16));
  await connection.execute("INSERT INTO t (name, data) VALUES ('big', ?)", [data]);
  const [{ data: back }] = await connection.execute("SELECT data FROM t WHERE name = ?", ["big"]);
  say("big:", back.length, createHash("sha256").update(back).digest("hex"), data.equals(back));
  await connection.release();
}

async function streams() {
  const connection = await open({ multipleStatements: true });
  const results = await connection.query("SELECT 1 AS a; DO 2; SELECT 3 AS a");
  say("several:", results[0][0].a, results[2][0].a);
  const sql = "SELECT a.id, REPEAT('x', 1000) AS x FROM t a, t b LIMIT 20000";
  let bytes = 0;
  for await (const row of connection.queryStream(sql)) bytes += row.x.length;
  say("streamed:", bytes);
  await connection.end();
}

async function cancels(pool) {
  const victim = await open();
  const me = await one(victim, "SELECT CONNECTION_ID()");
  say("its own number:", me === victim.threadId);
  await kills(pool, one, victim, me);
}

const pool = mariadb.createPool({ ...settings, connectionLimit: WORKERS });
await session();
await transactions(pool);
await pipelined();
await deadlock(pool, one);
await prepared(pool);
await streams();
await cancels(pool);
await crowd(pool, one);
await pool.end();
say("done");
