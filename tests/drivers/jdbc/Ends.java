// What Connector/J says of a connection that its server ends.
//
// Arguments: the driver, the port, the schema, statements before, the statement. Prints CONNECTION_ID(),
// waits for a line, runs the statement and prints the state and number of what came of it. Under TLS
// where DRIVER_TLS is set.
import java.sql.DriverManager;
import java.sql.SQLException;

public final class Ends {
    public static void main(String[] words) throws Exception {
        boolean tls = System.getenv("DRIVER_TLS") != null;
        String mode = words[0].equals("mysql") ? (tls ? "REQUIRED" : "DISABLED") : (tls ? "trust" : "disable");
        String options = "allowPublicKeyRetrieval=true&sslMode=" + mode;
        String url = "jdbc:" + words[0] + "://127.0.0.1:" + words[1] + "/" + words[2] + "?" + options;
        var connection = DriverManager.getConnection(url, "app", "app");
        var run = connection.createStatement();
        var found = run.executeQuery("SELECT CONNECTION_ID()");
        found.next();
        long id = found.getLong(1);
        for (String sql : words[3].split(";")) {
            if (!sql.isEmpty()) run.execute(sql);
        }
        System.out.println(id);
        System.in.read();
        try {
            run.execute(words[4]);
            System.out.println("ok");
        } catch (SQLException error) {
            System.out.println(error.getSQLState() + (error.getErrorCode() == 0 ? "" : " " + error.getErrorCode()));
        }
        System.exit(0);
    }
}
