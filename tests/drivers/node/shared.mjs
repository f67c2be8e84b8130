// What the programs for drivers for Node share: how they reach the server, and the work that is said
// alike in all of them. `one` of theirs asks a connection or a pool for one value.

export const [port, database] = [Number(process.argv[2]), process.argv[3]];
export const WORKERS = 16;
export const settings = {
  host: "127.0.0.1", port, database, user: "app", password: "app", dateStrings: true,
  // Under TLS where DRIVER_TLS is set; the certificate is nobody's.
  ...(process.env.DRIVER_TLS ? { ssl: { rejectUnauthorized: false } } : {}),
};
export const say = (...facts) => console.log(...facts);

/** The number of the error that must come. */
export async function number(action) {
  try {
    await action();
  } catch (error) {
    return error.errno;
  }
  return null;
}

/** The table of most of the work. */
export async function createTable(pool) {
  await pool.query(
    "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(50), n DECIMAL(10,2)," +
      " at DATETIME(6), data LONGBLOB)",
  );
}

/** Two transactions that wait for each other; whoever is chosen begins anew. */
export async function deadlock(pool, one) {
  await pool.query("CREATE TABLE d (id INT PRIMARY KEY, n INT)");
  await pool.query("INSERT INTO d VALUES (1, 0), (2, 0)");
  let [waiting, met, go] = [2, 0, null];
  const both = new Promise((resolve) => (go = resolve));
  const add = "UPDATE d SET n = n + 1 WHERE id = ?";
  async function transfer(first) {
    const connection = await pool.getConnection();
    for (let attempt = 0; ; attempt++) {
      try {
        await connection.beginTransaction();
        await connection.execute(add, [first]);
        if (attempt === 0) {
          if (--waiting === 0) go();
          await both;
        }
        await connection.execute(add, [3 - first]);
        await connection.commit();
        return connection.release();
      } catch (error) {
        if (error.errno !== 1213) throw error;
        met++;
        await connection.rollback();
      }
    }
  }
  await Promise.all([transfer(1), transfer(2)]);
  say("deadlock:", met > 0, await one(pool, "SELECT GROUP_CONCAT(n ORDER BY id) FROM d"));
}

/** A statement of this connection is killed, and then the connection, which has the number `me`. */
export async function kills(pool, one, victim, me) {
  // A killed SLEEP() is no error everywhere: this looks at each of a thousand million rows.
  const endless = "SELECT COUNT(*) FROM t a, t b, t c WHERE a.id + b.id + c.id = -1";
  const ended = number(() => victim.query(endless));
  const running = "SELECT COUNT(*) FROM information_schema.processlist WHERE db = DATABASE() AND info LIKE ?";
  while ((await one(pool, running, [endless])) === 0) await new Promise((resolve) => setTimeout(resolve, 10));
  await pool.query(`KILL QUERY ${me}`);
  say("killed:", await ended, await one(victim, "SELECT name FROM t WHERE id = 1"));
  // Whether the loss is an event or a statement's error depends on which comes first.
  victim.on("error", () => {});
  await pool.query(`KILL ${me}`);
  let alive = true;
  while (alive) alive = await victim.query("DO 1").then(() => true, () => false);
  say("lost: true, again:", await one(pool, "SELECT 'here'"));
}

/** Clients with sessions of their own, all at once, on fewer backends. */
export async function crowd(pool, one) {
  await pool.query("CREATE TABLE w (worker INT PRIMARY KEY, n INT)");
  const state = "SELECT CONCAT_WS(' ', @@time_zone, @worker, @@lock_wait_timeout)";
  let foreign = 0;
  async function work(worker) {
    const connection = await pool.getConnection();
    const [zone, wait] = [`+${String(worker % 12).padStart(2, "0")}:00`, 100 + worker];
    await connection.query(`SET time_zone = '${zone}', @worker = ${worker}, lock_wait_timeout = ${wait}`);
    await connection.query("INSERT INTO w VALUES (?, 0)", [worker]);
    const expected = `${zone} ${worker} ${wait}`;
    for (let n = 0; n < 20; n++) {
      await connection.beginTransaction();
      await connection.execute("UPDATE w SET n = n + 1 WHERE worker = ?", [worker]);
      if ((await one(connection, state)) !== expected) foreign++;
      await connection.commit();
      if ((await one(connection, state)) !== expected) foreign++;
    }
    await connection.release();
  }
  await Promise.all(Array.from({ length: WORKERS }, (_, worker) => work(worker)));
  say("crowd:", foreign, await one(pool, "SELECT CONCAT(COUNT(*), ' ', SUM(n)) FROM w"));
}
