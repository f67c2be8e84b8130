// Work that mysql2 must be able to do; prints facts, the same on every way to a server.
//
// Arguments: the port, and the schema. Facts that depend on a server's ids or clock are left out.
import { createHash } from "node:crypto";
import mysql from "mysql2/promise";
import { WORKERS, createTable, crowd, database, deadlock, kills, number, say, settings } from "./shared.mjs";

const open = (more = {}) => mysql.createConnection({ ...settings, ...more });

async function one(on, sql, values = []) {
  const [rows] = await on.query({ sql, values, rowsAsArray: true });
  return rows[0][0];
}

async function session() {
  const odd = await open({ charset: "latin1_swedish_ci" });
  await odd.query("SET time_zone = '+03:00', sql_mode = 'ANSI_QUOTES'");
  say("set:", await one(odd, "SELECT CONCAT_WS(' ', @@character_set_client, @@time_zone, @@sql_mode)"));
  say("latin1:", await one(odd, "SELECT HEX(CONVERT(? USING utf8mb4))", ["\u00e9"]));
  say("epoch:", await one(odd, "SELECT FROM_UNIXTIME(0)"));
  await odd.end();
  const usual = await open();
  say("usual:", await one(usual, "SELECT CONCAT_WS(' ', @@character_set_client, @@autocommit)"));
  say("emoji:", await one(usual, "SELECT ?", ["caf\u00e9 \u{1f600}"]));
  await usual.changeUser({ database, user: "app", password: "app" });
  say("changed user:", await one(usual, "SELECT DATABASE() IS NOT NULL"));
  await usual.end();
}

async function transactions(pool) {
  await createTable(pool);
  const connection = await pool.getConnection();
  for (const commits of [true, false]) {
    await connection.beginTransaction();
    const [done] = await connection.query("INSERT INTO t (name, n) VALUES (?, 12.5), ('b', -1)", ["a"]);
    const inside = await one(connection, "SELECT COUNT(*) FROM t");
    say("inserted:", done.insertId, "inside:", inside, "outside:", await one(pool, "SELECT COUNT(*) FROM t"));
    await (commits ? connection.commit() : connection.rollback());
  }
  say("committed:", await one(connection, "SELECT COUNT(*) FROM t"));
  connection.release();
}

async function prepared(pool) {
  const connection = await pool.getConnection();
  const statement = await connection.prepare("SELECT ? + 1 AS a, ? AS b, ? IS NULL AS c, ? AS d");
  for (let n = 0; n < 3; n++) {
    const [[row]] = await statement.execute([n * 2 ** 40, `x${n}`, null, "2020-02-29 01:02:03"]);
    say("prepared:", row.a, row.b, row.c, row.d);
  }
  await statement.close();
  say("not prepared:", await number(() => connection.execute("SELECT * FROM missing WHERE id = ?", [1])));
  for (let n = 0; n < 200; n++) {
    await connection.execute("INSERT INTO t (name) VALUES (?)", [`n${n}`]);
  }
  const rows = Array.from({ length: 1000 }, (_, n) => [`batch${n}`]);
  const [batch] = await connection.query("INSERT INTO t (name) VALUES ?", [rows]);
  say("batch:", batch.affectedRows, await one(pool, "SELECT COUNT(DISTINCT name) FROM t"));
  const data = Buffer.from("0123456789abcdef".repeat((6 << 20) / 16));
  await connection.execute("INSERT INTO t (name, data) VALUES ('big', ?)", [data]);
  const [[{ data: back }]] = await connection.execute("SELECT data FROM t WHERE name = ?", ["big"]);
  say("big:", back.length, createHash("sha256").update(back).digest("hex"), data.equals(back));
  connection.release();
}

async function streams() {
  const connection = await open({ multipleStatements: true });
  const [results] = await connection.query("SELECT 1 AS a; DO 2; SELECT 3 AS a");
  say("several:", results[0][0].a, results[2][0].a);
  const sql = "SELECT a.id, REPEAT('x', 1000) AS x FROM t a, t b LIMIT 20000";
  let bytes = 0;
  for await (const row of connection.connection.query(sql).stream()) bytes += row.x.length;
  say("streamed:", bytes);
  await connection.end();
}

async function cancels(pool) {
  // The driver gives up the connection; its statement is ended by another one.
  const late = await open();
  const code = await late.query({ sql: "SELECT SLEEP(2)", timeout: 200 }).catch((error) => error.code);
  say("timeout:", code, await one(pool, "SELECT 1"));
  late.destroy();
  const victim = await open();
  const me = await one(victim, "SELECT CONNECTION_ID()");
  await kills(pool, one, victim, me);
}

const pool = mysql.createPool({ ...settings, connectionLimit: WORKERS });
await session();
await transactions(pool);
await deadlock(pool, one);
await prepared(pool);
await streams();
await cancels(pool);
await crowd(pool, one);
await pool.end();
say("done");
