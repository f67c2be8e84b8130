"""PyMySQL's part of work.py. It has no pool and no statements prepared by the server."""

import pymysql
from work import SETTINGS, TLS, one, say, work


class Driver:
    Error = pymysql.MySQLError

    def connect(self, **more):
        return pymysql.connect(**{"charset": "utf8mb4", "ssl": TLS, **SETTINGS, **more})

    pooled = connect

    def number(self, error):
        return error.args[0] if error.args else None

    def again(self, connection):
        connection.ping(reconnect=True)
        return connection

    def extra(self):
        flag = pymysql.constants.CLIENT.MULTI_STATEMENTS
        connection = self.connect(client_flag=flag)
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1; DO 2; SELECT 3")
            results = [cursor.fetchall()]
            while cursor.nextset():
                results.append(cursor.fetchall())
        say("several:", results)
        with self.connect(cursorclass=pymysql.cursors.SSCursor).cursor() as cursor:
            cursor.execute("SELECT a.id, REPEAT('x', 1000) FROM t a, t b LIMIT 20000")
            say("streamed:", sum(len(row[1]) for row in cursor))
        connection.close()


work(Driver())
