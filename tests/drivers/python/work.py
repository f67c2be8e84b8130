"""What three Python drivers share: work, told in facts that are the same on every way to a server.

A driver is a module with a class Driver (see pymysql_work.py for the smallest one). Arguments of
each program: the port, and the schema. What depends on a server's ids or clock is not printed.
"""

import datetime
import decimal
import hashlib
import os
import ssl
import sys
import threading
import time

PORT, SCHEMA = int(sys.argv[1]), sys.argv[2]
WORKERS = 16
SETTINGS = dict(host="127.0.0.1", port=PORT, user="app", password="app", database=SCHEMA)
# Under TLS where DRIVER_TLS is set; the certificate is nobody's.
TLS = None
if os.environ.get("DRIVER_TLS"):
    TLS = ssl.create_default_context()
    TLS.check_hostname = False
    TLS.verify_mode = ssl.CERT_NONE


def say(*facts):
    print(*facts, flush=True)


def one(connection, sql, values=None):
    """The only value of a result."""
    cursor = connection.cursor()
    cursor.execute(sql, values)
    (value,) = cursor.fetchone()
    cursor.close()
    return value


def run(connection, sql, values=None):
    cursor = connection.cursor()
    cursor.execute(sql, values)
    rows = cursor.rowcount
    cursor.close()
    return rows


def number(driver, action):
    """The number of the error that must come."""
    try:
        action()
    except driver.Error as error:
        return driver.number(error)
    return None


def session(driver):
    odd = driver.connect(charset="latin1")
    run(odd, "SET time_zone = '+03:00', sql_mode = 'ANSI_QUOTES'")
    say("set:", one(odd, "SELECT CONCAT_WS(' ', @@character_set_client, @@time_zone, @@sql_mode)"))
    say("latin1:", one(odd, "SELECT HEX(CONVERT(%s USING utf8mb4))", ("\u00e9",)))
    say("epoch:", one(odd, "SELECT FROM_UNIXTIME(0)"))
    usual = driver.connect()
    say("usual:", one(usual, "SELECT CONCAT_WS(' ', @@character_set_client, @@autocommit)"))
    say("emoji:", one(usual, "SELECT %s", ("caf\u00e9 \U0001f600",)) == "caf\u00e9 \U0001f600")
    odd.close()
    usual.close()


def transactions(driver):
    first, second = driver.connect(), driver.connect()
    run(
        first,
        "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(50), n DECIMAL(10,2),"
        " at DATETIME(6), data LONGBLOB)",
    )
    for commits in (True, False):
        run(first, "INSERT INTO t (name, n) VALUES (%s, 12.5), ('b', -1)", ("a",))
        inside, outside = (one(c, "SELECT COUNT(*) FROM t") for c in (first, second))
        say("inside:", inside, "outside:", outside)
        first.commit() if commits else first.rollback()
        second.commit()
    say("committed:", one(first, "SELECT COUNT(*) FROM t"))
    first.commit()
    run(first, "SET TRANSACTION READ ONLY")
    say("read only:", number(driver, lambda: run(first, "DELETE FROM t")))
    first.rollback()
    first.close()
    second.close()


def deadlock(driver):
    setup = driver.connect()
    run(setup, "CREATE TABLE d (id INT PRIMARY KEY, n INT)")
    run(setup, "INSERT INTO d VALUES (1, 0), (2, 0)")
    setup.commit()
    both, met = threading.Barrier(2), []

    def transfer(first):
        connection = driver.connect()
        add = "UPDATE d SET n = n + 1 WHERE id = %s"
        for attempt in range(100):
            try:
                run(connection, add, (first,))
                if attempt == 0:
                    both.wait()
                run(connection, add, (3 - first,))
                connection.commit()
                return connection.close()
            except driver.Error as error:
                if driver.number(error) != 1213:
                    raise
                met.append(1)
                connection.rollback()

    together(transfer, (1, 2))
    setup.commit()
    say("deadlock:", bool(met), one(setup, "SELECT GROUP_CONCAT(n ORDER BY id) FROM d"))
    setup.close()


def together(work, arguments):
    """Runs `work` in a thread for each argument; the first error ends the program."""
    failed = []

    def guarded(argument):
        try:
            work(argument)
        except BaseException as error:
            failed.append(error)
            raise

    threads = [threading.Thread(target=guarded, args=(a,), daemon=True) for a in arguments]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        sys.exit(f"failed: {failed[0]!r}")


def values(driver):
    connection = driver.connect()
    row = ("caf\u00e9", decimal.Decimal("12.50"), datetime.datetime(2020, 2, 29, 1, 2, 3, 456789))
    run(connection, "INSERT INTO t (name, n, at, data) VALUES (%s, %s, %s, %s)", (*row, b"\0\xff"))
    cursor = connection.cursor()
    cursor.execute("SELECT name, n, at, data FROM t WHERE name = %s", (row[0],))
    say("values:", cursor.fetchone() == (*row, b"\0\xff"))
    rows = [(f"batch{n}",) for n in range(1000)]
    cursor.executemany("INSERT INTO t (name) VALUES (%s)", rows)
    say("batch:", cursor.rowcount, one(connection, "SELECT COUNT(DISTINCT name) FROM t"))
    data = b"0123456789abcdef" * (6 * 65536)
    cursor.execute("INSERT INTO t (name, data) VALUES ('big', %s)", (data,))
    cursor.execute("SELECT data FROM t WHERE name = 'big'")
    (back,) = cursor.fetchone()
    say("big:", len(back), hashlib.sha256(back).hexdigest(), back == data)
    cursor.execute("SELECT 1/0")
    cursor.fetchall()
    cursor.execute("SHOW WARNINGS")
    say("warnings:", [row[1] for row in cursor.fetchall()])
    cursor.close()
    connection.commit()
    say("missing:", number(driver, lambda: run(connection, "SELECT * FROM missing")))
    connection.close()


def cancels(driver):
    """By a second connection, as these drivers have it."""
    victim, other = driver.connect(), driver.connect()
    me = one(victim, "SELECT CONNECTION_ID()")
    # A killed SLEEP() is no error everywhere: this looks at each of a thousand million rows.
    endless = "SELECT COUNT(*) FROM t a, t b, t c WHERE a.id + b.id + c.id = -1"
    running = "SELECT COUNT(*) FROM information_schema.processlist WHERE db = DATABASE() AND info LIKE %s"
    ended = []
    victim.commit()
    thread = threading.Thread(
        target=lambda: ended.append(number(driver, lambda: run(victim, endless))), daemon=True
    )
    thread.start()
    while one(other, running, (endless,)) == 0:
        time.sleep(0.01)
    run(other, f"KILL QUERY {me}")
    thread.join()
    victim.rollback()
    say("killed:", ended, one(victim, "SELECT name FROM t WHERE id = 1"))
    run(other, f"KILL {me}")
    while number(driver, lambda: run(victim, "DO 1")) is None:
        pass
    say("lost: True, again:", one(driver.again(victim), "SELECT 'here'"))
    other.close()


def crowd(driver):
    setup = driver.connect()
    run(setup, "CREATE TABLE w (worker INT PRIMARY KEY, n INT)")
    foreign = []
    state = "SELECT CONCAT_WS(' ', @@time_zone, @worker, @@lock_wait_timeout)"

    def work(worker):
        connection = driver.pooled()
        zone, wait = f"+{worker % 12:02}:00", 100 + worker
        expected = f"{zone} {worker} {wait}"
        run(connection, f"SET time_zone = '{zone}', @worker = {worker}, lock_wait_timeout = {wait}")
        run(connection, "INSERT INTO w VALUES (%s, 0)", (worker,))
        connection.commit()
        for _ in range(20):
            run(connection, "UPDATE w SET n = n + 1 WHERE worker = %s", (worker,))
            if one(connection, state) != expected:
                foreign.append(worker)
            connection.commit()
            if one(connection, state) != expected:
                foreign.append(worker)
            connection.commit()
        connection.close()

    together(work, range(WORKERS))
    setup.commit()
    say("crowd:", len(foreign), one(setup, "SELECT CONCAT(COUNT(*), ' ', SUM(n)) FROM w"))
    setup.close()


def work(driver):
    session(driver)
    transactions(driver)
    deadlock(driver)
    values(driver)
    driver.extra()
    cancels(driver)
    crowd(driver)
    say("done")
