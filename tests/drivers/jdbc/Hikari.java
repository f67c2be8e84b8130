// Work over HikariCP until its time is up: rounds of a transaction, and what failed by SQLState.
// Arguments: URL, connections, seconds.

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import java.sql.SQLException;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

class Hikari {
    public static void main(String[] arguments) throws Exception {
        HikariConfig config = new HikariConfig();
        config.setJdbcUrl(arguments[0]);
        config.setUsername("app");
        config.setPassword("app");
        config.setMaximumPoolSize(Integer.parseInt(arguments[1]));
        config.setConnectionTimeout(10_000);
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(Long.parseLong(arguments[2]));
        AtomicLong done = new AtomicLong();
        Map<String, Long> failed = new TreeMap<>();
        var threads = Executors.newFixedThreadPool(20);
        try (var pool = new HikariDataSource(config)) {
            for (int i = 0; i < 20; i++) {
                int id = 1 + i;
                threads.submit(() -> {
                    while (System.nanoTime() < end) {
                        try (var connection = pool.getConnection()) {
                            connection.setAutoCommit(false);
                            try (var select = connection.prepareStatement("SELECT c FROM sbtest1 WHERE id = ?")) {
                                select.setInt(1, id);
                                select.executeQuery();
                            }
                            connection.commit();
                            done.incrementAndGet();
                        } catch (SQLException error) {
                            synchronized (failed) {
                                failed.merge(error.getSQLState() + " " + error.getErrorCode(), 1L, Long::sum);
                            }
                        }
                    }
                });
            }
            threads.shutdown();
            threads.awaitTermination(1, TimeUnit.HOURS);
        }
        System.out.println(done + " transactions, failed " + failed);
    }
}
