"""mysql-connector-python's part of work.py: prepared cursors and its own pool."""

import datetime

import mysql.connector
from mysql.connector.pooling import MySQLConnectionPool
from work import SETTINGS, TLS, WORKERS, one, say, work


class Driver:
    Error = mysql.connector.Error

    def __init__(self):
        self.pool = None

    def connect(self, **more):
        settings = {"charset": "utf8mb4", "ssl_disabled": TLS is None, **SETTINGS, **more}
        return mysql.connector.connect(**settings)

    def pooled(self):
        return self.pool.get_connection()

    def number(self, error):
        return error.errno

    def again(self, connection):
        connection.reconnect(attempts=3)
        return connection

    def attributes(self, connection):
        """Values beside a statement, where the server and its component know them."""
        asked = "SELECT mysql_query_attribute_string('trace')"
        for prepared in (False, True):
            cursor = connection.cursor(prepared=prepared)
            for trace in ("one", None, "another"):
                cursor.clear_attributes()
                if trace:
                    cursor.add_attribute("trace", trace)
                try:
                    cursor.execute(asked)
                    say("attribute:", prepared, *cursor.fetchone())
                except self.Error as error:
                    say("attribute:", prepared, self.number(error))
            cursor.close()

    def extra(self):
        connection = self.connect()
        cursor = connection.cursor(prepared=True)
        at = datetime.datetime(2020, 2, 29, 1, 2, 3, 456789)
        for n in range(3):
            cursor.execute("SELECT ? + 1, ?, ? IS NULL, ?", (n << 40, "x" * n, None, at))
            say("prepared:", *cursor.fetchone())
        cursor.executemany("INSERT INTO t (name) VALUES (?)", [(f"p{n}",) for n in range(200)])
        cursor.close()
        self.attributes(connection)
        connection.commit()
        say("prepared rows:", one(connection, "SELECT COUNT(*) FROM t WHERE name LIKE 'p%'"))
        connection.close()
        # Sixteen connections stay open, and are reset each time they are given back.
        settings = {"charset": "utf8mb4", "ssl_disabled": TLS is None, **SETTINGS}
        self.pool = MySQLConnectionPool(pool_name="crowd", pool_size=WORKERS, **settings)
        connection = self.pool.get_connection()
        cursor = connection.cursor()
        cursor.execute("SET @left = 1, time_zone = '+09:00'")
        cursor.close()
        connection.close()
        left = set()
        for _ in range(WORKERS):
            connection = self.pool.get_connection()
            left.add(one(connection, "SELECT CONCAT_WS(' ', @left, @@time_zone)"))
            connection.close()
        say("given back:", left)


work(Driver())
