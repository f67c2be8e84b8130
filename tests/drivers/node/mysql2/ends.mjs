// What mysql2 says of a connection that its server ends.
//
// Arguments: the port, the schema, statements before, the statement. Prints CONNECTION_ID(), waits for
// a line, runs the statement and prints what came of it. Under TLS where DRIVER_TLS is set.
import { once } from "node:events";
import mysql from "mysql2/promise";

const [port, database, setup, statement] = process.argv.slice(2);
const connection = await mysql.createConnection({
  host: "127.0.0.1", port: Number(port), user: "app", password: "app", database,
  ...(process.env.DRIVER_TLS ? { ssl: { rejectUnauthorized: false } } : {}),
});
// A connection that ends while nothing is asked of it is told of here.
connection.connection.on("error", () => {});
const [rows] = await connection.query({ sql: "SELECT CONNECTION_ID()", rowsAsArray: true });
for (const sql of setup.split(";").filter(Boolean)) await connection.query(sql);
console.log(rows[0][0]);
await once(process.stdin, "data");
try {
  await connection.query(statement);
  console.log("ok");
} catch (error) {
  console.log(error.errno > 0 ? error.errno : error.fatal && /closed state/.test(error.message) ? "closed state" : error.code);
}
process.exit(0);
