"""What PyMySQL must be able to do; arguments: the port, and the password of `sha` or nothing."""

import datetime
import decimal
import sys

import pymysql

PORT, SHA = int(sys.argv[1]), sys.argv[2]


def connect(**options):
    settings = dict(host="127.0.0.1", port=PORT, user="app", password="app", database="pymysql")
    settings.update(options)
    return pymysql.connect(**settings)


def refused(number, **options):
    try:
        connect(**options)
    except pymysql.MySQLError as error:
        assert error.args[0] == number, error.args
        return error.args[1]
    raise AssertionError(f"{options} must be refused with {number}")


first, second = connect(), connect(autocommit=True)
with first.cursor() as a, second.cursor() as b:
    a.execute(
        "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(50),"
        " price DECIMAL(8,2), at DATETIME, data BLOB) CHARACTER SET utf8mb4"
    )
    row = ("caf\u00e9 \U0001f600", decimal.Decimal("12.50"), datetime.datetime(2020, 2, 29, 1, 2, 3))
    blob = bytes(range(256))
    a.execute("INSERT INTO t (name, price, at, data) VALUES (%s, %s, %s, %s)", (*row, blob))
    assert a.lastrowid == 1 and a.rowcount == 1
    b.execute("SELECT COUNT(*) FROM t")
    assert b.fetchone() == (0,), "not committed yet"
    first.commit()
    b.execute("SELECT name, price, at, data FROM t")
    assert b.fetchone() == (*row, blob)
    a.executemany("INSERT INTO t (name) VALUES (%s)", [(f"n{i}",) for i in range(500)])
    assert a.rowcount == 500
    first.rollback()
    a.execute("SELECT COUNT(*) FROM t")
    assert a.fetchone() == (1,)
    first.commit()
    a.execute("SELECT 1/0")
    a.execute("SHOW WARNINGS")
    assert a.fetchone()[1] == 1365
    try:
        b.execute("SELECT * FROM missing")
    except pymysql.ProgrammingError as error:
        assert error.args[0] == 1146
    b.execute("SELECT @@character_set_client, DATABASE()")
    assert b.fetchone() == ("utf8mb4", "pymysql")

first.select_db("shop")
first.ping(reconnect=False)
with first.cursor() as a, second.cursor() as b:
    a.execute("SELECT DATABASE()")
    b.execute("SELECT DATABASE()")
    assert (a.fetchone(), b.fetchone()) == (("shop",), ("pymysql",))

large = connect(cursorclass=pymysql.cursors.SSCursor)
with large.cursor() as c:
    c.execute("SELECT seq, REPEAT('x', 1000) FROM seq_1_to_5000")
    assert sum(row[0] for row in c) == 5000 * 5001 // 2

several = connect(client_flag=pymysql.constants.CLIENT.MULTI_STATEMENTS)
with several.cursor() as c:
    c.execute("SELECT 1; SELECT 2; DO 1")
    results = [c.fetchall()]
    while c.nextset():
        results.append(c.fetchall())
    assert results[:2] == [((1,),), ((2,),)], results

for connection in (first, second, large, several):
    connection.close()

words = refused(1045, password="wrong")
assert words == "Access denied for user 'app'@'127.0.0.1' (using password: YES)", words
refused(1049, database="nowhere")

if SHA:
    for _ in range(2):
        connection = connect(user="sha", password=SHA)
        connection.close()
        connection = connect(user="hashed_sha", password="password")
        connection.close()
    refused(1045, user="sha", password="wrong")

print("all passed")
