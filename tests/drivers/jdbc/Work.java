// Work that a JDBC driver must be able to do behind HikariCP; prints facts, the same on every way.
//
// Arguments: the driver ("mysql" or "mariadb"), the port, and the schema. Facts that depend on a
// server's ids or clock are left out.

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import java.math.BigDecimal;
import java.security.MessageDigest;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.atomic.AtomicInteger;

public final class Work {
    private static final int WORKERS = 16;

    /** A killed SLEEP() is no error everywhere: this looks at each of a thousand million rows. */
    private static final String ENDLESS =
        "SELECT COUNT(*) FROM t a, t b, t c WHERE a.id + b.id + c.id = -1";

    /** What is given to each driver in its own words: statements are prepared by the server. */
    private final String url;
    private final HikariDataSource pool;

    private interface Action {
        void run() throws Exception;
    }

    private Work(String driver, String port, String schema) {
        boolean tls = System.getenv("DRIVER_TLS") != null;
        String options = driver.equals("mysql")
            ? "useServerPrepStmts=true&cachePrepStmts=true&sslMode=" + (tls ? "REQUIRED" : "DISABLED")
                + "&allowPublicKeyRetrieval=true&rewriteBatchedStatements=true&useCursorFetch=true"
            : "useServerPrepStmts=true&cachePrepStmts=true&sslMode=" + (tls ? "trust" : "disable");
        url = "jdbc:" + driver + "://127.0.0.1:" + port + "/" + schema + "?" + options;
        HikariConfig config = new HikariConfig();
        config.setJdbcUrl(url);
        config.setUsername("app");
        config.setPassword("app");
        config.setMaximumPoolSize(WORKERS);
        pool = new HikariDataSource(config);
    }

    private static void say(Object... facts) {
        System.out.println(String.join(" ", Arrays.stream(facts).map(String::valueOf).toList()));
    }

    private Connection open() throws SQLException {
        return DriverManager.getConnection(url, "app", "app");
    }

    private static String one(Connection on, String sql, Object... values) throws SQLException {
        try (PreparedStatement statement = on.prepareStatement(sql)) {
            for (int n = 0; n < values.length; n++) {
                statement.setObject(n + 1, values[n]);
            }
            try (ResultSet rows = statement.executeQuery()) {
                rows.next();
                return rows.getString(1);
            }
        }
    }

    private static int run(Connection on, String sql) throws SQLException {
        try (Statement statement = on.createStatement()) {
            return statement.executeUpdate(sql);
        }
    }

    /** The number of the error that must come. */
    private static int number(Action action) throws Exception {
        try {
            action.run();
            return 0;
        } catch (SQLException error) {
            return error.getErrorCode();
        }
    }

    private void session() throws SQLException {
        try (Connection odd = open()) {
            run(odd, "SET time_zone = '+03:00', sql_mode = 'ANSI_QUOTES'");
            say("set:", one(odd, "SELECT CONCAT_WS(' ', @@time_zone, @@sql_mode)"));
            say("epoch:", one(odd, "SELECT CONCAT(FROM_UNIXTIME(0))"));
            say("emoji:", one(odd, "SELECT ?", "caf\u00e9 \ud83d\ude00").equals("caf\u00e9 \ud83d\ude00"));
            odd.setTransactionIsolation(Connection.TRANSACTION_SERIALIZABLE);
            say("level:", odd.getTransactionIsolation());
            odd.setReadOnly(true);
            say("read only:", odd.isReadOnly());
            odd.setCatalog("information_schema");
            say("schema:", one(odd, "SELECT DATABASE()"));
        }
        try (Connection usual = pool.getConnection()) {
            say("usual:", one(usual, "SELECT CONCAT_WS(' ', @@character_set_client, @@autocommit)"));
            say("level:", usual.getTransactionIsolation());
        }
    }

    private void transactions() throws Exception {
        try (Connection first = pool.getConnection(); Connection second = pool.getConnection()) {
            run(first, "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(50),"
                + " n DECIMAL(10,2), at DATETIME(6), data LONGBLOB)");
            first.setAutoCommit(false);
            for (boolean commits : new boolean[] {true, false}) {
                try (Statement statement = first.createStatement()) {
                    statement.executeUpdate("INSERT INTO t (name, n) VALUES ('a', 12.5)",
                        Statement.RETURN_GENERATED_KEYS);
                    ResultSet keys = statement.getGeneratedKeys();
                    keys.next();
                    say("inserted:", keys.getLong(1));
                }
                var savepoint = first.setSavepoint("half");
                run(first, "INSERT INTO t (name) VALUES ('not to stay')");
                first.rollback(savepoint);
                say("inside:", one(first, "SELECT COUNT(*) FROM t"),
                    "outside:", one(second, "SELECT COUNT(*) FROM t"));
                if (commits) {
                    first.commit();
                } else {
                    first.rollback();
                }
            }
            first.setAutoCommit(true);
            say("committed:", one(second, "SELECT COUNT(*) FROM t"));
            say("missing:", number(() -> run(second, "DELETE FROM missing")));
        }
    }

    private void deadlock() throws Exception {
        try (Connection setup = pool.getConnection()) {
            run(setup, "CREATE TABLE d (id INT PRIMARY KEY, n INT)");
            run(setup, "INSERT INTO d VALUES (1, 0), (2, 0)");
            CyclicBarrier both = new CyclicBarrier(2);
            AtomicInteger met = new AtomicInteger();
            together(2, n -> transfer(n + 1, both, met));
            say("deadlock:", met.get() > 0, one(setup, "SELECT GROUP_CONCAT(n ORDER BY id) FROM d"));
        }
    }

    private void transfer(int first, CyclicBarrier both, AtomicInteger met) throws Exception {
        try (Connection connection = pool.getConnection()) {
            connection.setAutoCommit(false);
            for (int attempt = 0;; attempt++) {
                try {
                    run(connection, "UPDATE d SET n = n + 1 WHERE id = " + first);
                    if (attempt == 0) {
                        both.await();
                    }
                    run(connection, "UPDATE d SET n = n + 1 WHERE id = " + (3 - first));
                    connection.commit();
                    return;
                } catch (SQLException error) {
                    if (error.getErrorCode() != 1213) {
                        throw error;
                    }
                    met.incrementAndGet();
                    connection.rollback();
                }
            }
        }
    }

    private interface Each {
        void run(int n) throws Exception;
    }

    /** Runs in so many threads; the first error ends the program. */
    private static void together(int count, Each each) throws InterruptedException {
        Thread[] threads = new Thread[count];
        for (int n = 0; n < count; n++) {
            int number = n;
            threads[n] = new Thread(() -> {
                try {
                    each.run(number);
                } catch (Exception error) {
                    error.printStackTrace();
                    Runtime.getRuntime().halt(1);
                }
            });
            threads[n].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
    }

    private void prepared() throws Exception {
        try (Connection connection = pool.getConnection()) {
            try (PreparedStatement statement =
                    connection.prepareStatement("SELECT ? + 1, ?, ? IS NULL, CONCAT(?)")) {
                for (long n = 0; n < 10; n++) {
                    statement.setLong(1, n << 40);
                    statement.setBigDecimal(2, new BigDecimal("12.50"));
                    statement.setObject(3, null);
                    statement.setString(4, "x" + n);
                    ResultSet rows = statement.executeQuery();
                    rows.next();
                    say("prepared:", rows.getString(1), rows.getString(2), rows.getString(3),
                        rows.getString(4));
                }
            }
            say("not prepared:", number(() -> one(connection, "SELECT * FROM missing WHERE id = ?", 1)));
            connection.setAutoCommit(false);
            try (PreparedStatement insert =
                    connection.prepareStatement("INSERT INTO t (name, n) VALUES (?, ?)")) {
                for (int n = 0; n < 1000; n++) {
                    insert.setString(1, "batch" + n);
                    insert.setInt(2, n);
                    insert.addBatch();
                }
                say("batch:", insert.executeBatch().length);
            }
            connection.commit();
            connection.setAutoCommit(true);
            say("sum:", one(connection, "SELECT CONCAT(COUNT(DISTINCT name), ' ', SUM(n)) FROM t"));
            big(connection);
        }
    }

    private void big(Connection connection) throws Exception {
        byte[] data = "0123456789abcdef".repeat((6 << 20) / 16).getBytes();
        try (PreparedStatement insert =
                connection.prepareStatement("INSERT INTO t (name, data) VALUES ('big', ?)")) {
            insert.setBytes(1, data);
            insert.executeUpdate();
        }
        try (Statement statement = connection.createStatement()) {
            ResultSet rows = statement.executeQuery("SELECT data FROM t WHERE name = 'big'");
            rows.next();
            byte[] back = rows.getBytes(1);
            byte[] digest = MessageDigest.getInstance("SHA-256").digest(back);
            say("big:", back.length, HexFormat.of().formatHex(digest), Arrays.equals(back, data));
        }
        // One of the two drivers reads from a cursor then, the other from the socket.
        try (Statement statement = connection.createStatement()) {
            statement.setFetchSize(100);
            ResultSet rows = statement.executeQuery("SELECT a.id, REPEAT('x', 1000) FROM t a, t b LIMIT 20000");
            long bytes = 0;
            while (rows.next()) {
                bytes += rows.getString(2).length();
            }
            say("streamed:", bytes);
        }
    }

    private void cancels() throws Exception {
        try (Connection victim = open(); Connection other = pool.getConnection()) {
            try (Statement statement = victim.createStatement()) {
                statement.setQueryTimeout(1);
                int error = number(() -> statement.executeQuery(ENDLESS));
                say("timeout:", error != 0, one(victim, "SELECT name FROM t WHERE id = 1"));
            }
            try (Statement statement = victim.createStatement()) {
                CountDownLatch ended = new CountDownLatch(1);
                AtomicInteger error = new AtomicInteger();
                Thread thread = new Thread(() -> {
                    // Connector/J has a number for it only if it sees the server's error before the
                    // end of its own KILL.
                    try {
                        statement.executeQuery(ENDLESS);
                    } catch (SQLException interrupted) {
                        error.set(1);
                    }
                    ended.countDown();
                });
                thread.start();
                String running =
                    "SELECT COUNT(*) FROM information_schema.processlist WHERE db = DATABASE() AND info LIKE ?";
                while (one(other, running, ENDLESS).equals("0")) {
                    Thread.sleep(10);
                }
                statement.cancel();
                ended.await();
                say("cancelled:", error.get() != 0, one(victim, "SELECT 'alive'"));
            }
            String me = one(victim, "SELECT CONNECTION_ID()");
            run(other, "KILL " + me);
            while (number(() -> run(victim, "DO 1")) == 0 && victim.isValid(5)) {
                Thread.onSpinWait();
            }
            say("lost:", !victim.isValid(5), "again:", one(other, "SELECT 'here'"));
        }
    }

    private void crowd() throws Exception {
        try (Connection setup = pool.getConnection()) {
            run(setup, "CREATE TABLE w (worker INT PRIMARY KEY, n INT)");
        }
        String state = "SELECT CONCAT_WS(' ', @@time_zone, @worker, @@lock_wait_timeout)";
        AtomicInteger foreign = new AtomicInteger();
        together(WORKERS, worker -> {
            try (Connection connection = pool.getConnection()) {
                String zone = String.format("+%02d:00", worker % 12);
                run(connection, "SET time_zone = '" + zone + "', @worker = " + worker
                    + ", lock_wait_timeout = " + (100 + worker));
                run(connection, "INSERT INTO w VALUES (" + worker + ", 0)");
                connection.setAutoCommit(false);
                String expected = zone + " " + worker + " " + (100 + worker);
                for (int n = 0; n < 20; n++) {
                    run(connection, "UPDATE w SET n = n + 1 WHERE worker = " + worker);
                    foreign.addAndGet(one(connection, state).equals(expected) ? 0 : 1);
                    connection.commit();
                    foreign.addAndGet(one(connection, state).equals(expected) ? 0 : 1);
                    connection.commit();
                }
                connection.setAutoCommit(true);
            }
        });
        try (Connection setup = pool.getConnection()) {
            say("crowd:", foreign.get(), one(setup, "SELECT CONCAT(COUNT(*), ' ', SUM(n)) FROM w"));
        }
    }

    public static void main(String[] arguments) throws Exception {
        Work work = new Work(arguments[0], arguments[1], arguments[2]);
        work.session();
        work.transactions();
        work.deadlock();
        work.prepared();
        work.cancels();
        work.crowd();
        work.pool.close();
        say("done");
    }
}
