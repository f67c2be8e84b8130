"""What a driver says of a connection that its server ends: ends.py DRIVER PORT SCHEMA SETUP STATEMENT.

Prints CONNECTION_ID(), waits for a line, runs the statement and prints what came of it.
"""

import sys

driver, port, schema, setup, statement = sys.argv[1:6]
if driver == "pymysql":
    import pymysql as module

    more = {}
else:
    import mysql.connector as module

    more = {"ssl_disabled": True}


def connect():
    return module.connect(
        host="127.0.0.1", port=int(port), user="app", password="app", database=schema,
        autocommit=True, **more,
    )


connection = connect()
cursor = connection.cursor()
for sql in filter(None, setup.split(";")):
    cursor.execute(sql)
    cursor.fetchall() if cursor.description else None
cursor.execute("SELECT CONNECTION_ID()")
print(cursor.fetchall()[0][0], flush=True)
sys.stdin.readline()
try:
    cursor.execute(statement)
    cursor.fetchall()
    print("ok")
except module.Error as error:
    print(getattr(error, "errno", None) or error.args[0])
