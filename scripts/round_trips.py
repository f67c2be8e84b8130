"""Counts the round trips to a server that programs cost, direct and through the pool.

What counts is a proxy in front of the server: a trip is each time that a connection sends something
after the server has answered it. Programs connect before their trips are counted. What the pool asks
the server by itself, without clients, is measured as well and taken off.

Arguments: the onramp to run, the server's port, a folder for files. UNITS says how often each
program does its work. scripts/round-trips.sh calls this.
"""

import asyncio
import os
import pathlib
import subprocess
import sys
import threading
import time

UNITS = int(os.environ["UNITS"])
JDBC = pathlib.Path("target/drivers/jdbc/lib")
SELECT = "SELECT c FROM sbtest1 WHERE id = %d"
UPDATE = "UPDATE sbtest1 SET k = k + 1 WHERE id = %d"


class Counter:
    """A proxy that counts; it runs in a thread of its own."""

    def __init__(self, server_port):
        self.server_port, self.port, self.trips = server_port, None, 0
        ready = threading.Event()
        threading.Thread(target=lambda: asyncio.run(self.serve(ready)), daemon=True).start()
        ready.wait()

    async def serve(self, ready):
        server = await asyncio.start_server(self.relay, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        ready.set()
        await server.serve_forever()

    async def relay(self, reader, writer):
        theirs, ours = await asyncio.open_connection("127.0.0.1", self.server_port)
        state = {"answered": True}

        async def pump(source, sink, is_request):
            while data := await source.read(1 << 16):
                if is_request:
                    self.trips += state["answered"]
                state["answered"] = not is_request
                sink.write(data)
                await sink.drain()
            sink.close()

        both = pump(reader, ours, True), pump(theirs, writer, False)
        await asyncio.gather(*both, return_exceptions=True)


def sysbench(port):
    """oltp_read_write as text, one thread: 20 statements for each transaction."""

    def run(units):
        command = ["sysbench", "oltp_read_write", "--db-driver=mysql", "--mysql-host=127.0.0.1"]
        command += [f"--mysql-port={port}", "--mysql-user=app", "--mysql-password=app"]
        command += ["--mysql-db=sbtest", "--tables=1", "--table-size=1000", "--threads=1"]
        command += ["--db-ps-mode=disable", f"--events={units}", "--time=0", "run"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

    return run


def django(port):
    """A request: a SELECT and an UPDATE in ATOMIC_REQUESTS; the connection is kept and checked."""
    import pymysql

    # Django asks for a mysqlclient of this version.
    pymysql.version_info = (1, 4, 6, "final", 1)
    pymysql.install_as_MySQLdb()
    from django.conf import settings

    database = {"ENGINE": "django.db.backends.mysql", "NAME": "sbtest", "USER": "app"}
    database |= {"PASSWORD": "app", "HOST": "127.0.0.1", "PORT": port, "CONN_MAX_AGE": None}
    database |= {"ATOMIC_REQUESTS": True, "CONN_HEALTH_CHECKS": True}
    settings.configure(ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"], DATABASES={"default": database})
    import django as package

    package.setup()
    from django.core.handlers.wsgi import WSGIHandler
    from django.test import RequestFactory

    handler = WSGIHandler()

    def run(units):
        for _ in range(units):
            response = handler(RequestFactory().get("/").environ, lambda *_: None)
            assert response.status_code == 200, response.content
            response.close()

    return run


def view(_request):
    from django import db
    from django.http import HttpResponse

    with db.connections["default"].cursor() as cursor:
        cursor.execute(SELECT % 1)
        cursor.fetchall()
        cursor.execute(UPDATE % 1)
    return HttpResponse("done")


class Urls:
    """Made when Django asks for it: it is not there before it has been set up."""

    def __iter__(self):
        from django.urls import path

        return iter([path("", view)])

    def __reversed__(self):
        return reversed(list(iter(self)))


urlpatterns = Urls()


def sqlalchemy(port):
    """A session from the pool with pre-ping: a SELECT, an UPDATE, COMMIT, reset on return."""
    from sqlalchemy import create_engine, text

    url = f"mysql+pymysql://app:app@127.0.0.1:{port}/sbtest"
    engine = create_engine(url, pool_size=1, pool_pre_ping=True)

    def run(units):
        for _ in range(units):
            with engine.begin() as connection:
                connection.execute(text(SELECT % 1)).fetchall()
                connection.execute(text(UPDATE % 1))

    return run


JAVA = """
import com.zaxxer.hikari.*;
import java.sql.*;
public final class Trips {
    public static void main(String[] given) throws Exception {
        HikariConfig config = new HikariConfig();
        config.setJdbcUrl("jdbc:mysql://127.0.0.1:" + given[0] + "/sbtest?sslMode=DISABLED"
            + "&allowPublicKeyRetrieval=true");
        config.setUsername("app");
        config.setPassword("app");
        config.setMaximumPoolSize(1);
        config.setAutoCommit(true);
        try (HikariDataSource pool = new HikariDataSource(config)) {
            int next;
            while ((next = System.in.read()) == '\\n') {
                for (int unit = 0; unit < Integer.parseInt(given[1]); unit++) {
                    try (Connection on = pool.getConnection();
                            Statement statement = on.createStatement()) {
                        on.setAutoCommit(false);
                        statement.executeQuery("SELECT c FROM sbtest1 WHERE id = 1");
                        statement.executeUpdate("UPDATE sbtest1 SET k = k + 1 WHERE id = 1");
                        on.commit();
                        on.setAutoCommit(true);
                    }
                }
                System.out.println();
            }
        }
    }
}
"""


def hikari(port):
    """A transaction behind HikariCP and Connector/J: autocommit off, SELECT, UPDATE, COMMIT, on."""
    source = FOLDER / "Trips.java"
    source.write_text(JAVA)
    return ["java", "-cp", f"{JDBC}/*", str(source), str(port), str(UNITS)]


PROGRAMS = {"oltp_read_write": sysbench, "Django": django, "SQLAlchemy": sqlalchemy}


def of_this_script(name):
    """A program of this script, in a process of its own: it does its work when it gets a line."""
    return lambda port: [sys.executable, __file__, "run", name, str(port)]


def trips_of(command, counter, idle_per_s):
    """Round trips for each unit of work."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, **pipes) as program:

        def work():
            program.stdin.write(b"\n")
            program.stdin.flush()
            assert program.stdout.readline() == b"\n"

        # The first ones connect, and learn.
        work()
        began, before = time.monotonic(), counter.trips
        work()
        trips = counter.trips - before - idle_per_s * (time.monotonic() - began)
        program.stdin.close()
    return trips / UNITS


def main():
    global FOLDER
    if sys.argv[1] == "run":
        run = PROGRAMS[sys.argv[2]](int(sys.argv[3]))
        while sys.stdin.readline():
            run(UNITS)
            print(flush=True)
        return
    binary, server_port, FOLDER = sys.argv[1], int(sys.argv[2]), pathlib.Path(sys.argv[3])
    commands = {name: of_this_script(name) for name in PROGRAMS}
    if JDBC.is_dir():
        commands["HikariCP"] = hikari
    direct, pooled = Counter(server_port), Counter(server_port)
    config = FOLDER / "round-trips.toml"
    config.write_text(
        'listen = ["127.0.0.1:%d"]\ngroups = 1\nbackends_max = 2\nbackends_min = 2\n'
        '[backend]\naddress = "127.0.0.1:%d"\n[[user]]\nname = "app"\npassword = "app"\n'
        % (server_port + 1, pooled.port)
    )
    log = open(FOLDER / "round-trips.log", "w")
    pool = subprocess.Popen([binary, "pool", "--config", config], stderr=log)
    try:
        while "listening on" not in (FOLDER / "round-trips.log").read_text():
            assert pool.poll() is None, (FOLDER / "round-trips.log").read_text()
            time.sleep(0.1)
        time.sleep(3)
        before = pooled.trips
        time.sleep(5)
        idle_per_s = (pooled.trips - before) / 5
        print(f"{'program':<18}{'trips direct':>14}{'pooled':>10}{'ratio':>8}")
        for name, command in commands.items():
            alone = trips_of(command(direct.port), direct, 0)
            behind = trips_of(command(server_port + 1), pooled, idle_per_s)
            print(f"{name:<18}{alone:>14.2f}{behind:>10.2f}{behind / alone:>8.2f}", flush=True)
    finally:
        pool.terminate()
        pool.wait()


if __name__ == "__main__":
    main()
