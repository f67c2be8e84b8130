"""What a driver says of a connection that its server ends: ends.py DRIVER PORT SCHEMA SETUP STATEMENT.

Prints CONNECTION_ID() behind them, waits for a line, runs the statement and prints what came of it. Under TLS where
DRIVER_TLS is set.
"""

import os
import ssl
import sys

driver, port, schema, setup, statement = sys.argv[1:6]
tls = bool(os.environ.get("DRIVER_TLS"))
if driver == "pymysql":
    import pymysql as module

    more = {}
    if tls:
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        more = {"ssl": context}
else:
    import mysql.connector as module

    more = {"ssl_disabled": not tls}


def connect():
    return module.connect(
        host="127.0.0.1", port=int(port), user="app", password="app", database=schema,
        autocommit=True, **more,
    )


connection = connect()
cursor = connection.cursor()
cursor.execute("SELECT CONNECTION_ID()")
own_id = cursor.fetchall()[0][0]
for sql in filter(None, setup.split(";")):
    cursor.execute(sql)
    cursor.fetchall() if cursor.description else None
print(own_id, flush=True)
sys.stdin.readline()
try:
    cursor.execute(statement)
    cursor.fetchall()
    print("ok")
except module.Error as error:
    print(getattr(error, "errno", None) or error.args[0])
