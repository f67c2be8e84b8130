"""mysql_change_user() of MariaDB's client library: libmariadb.py PORT.

Prints what came of each step; the same is to be printed on both ways.
"""
import ctypes
import ctypes.util
import sys

name = ctypes.util.find_library("mariadb")
if not name:
    sys.exit(77)
library = ctypes.CDLL(name)
library.mysql_init.restype = ctypes.c_void_p
library.mysql_error.restype = ctypes.c_char_p
library.mysql_use_result.restype = ctypes.c_void_p
library.mysql_fetch_row.restype = ctypes.POINTER(ctypes.c_char_p)
library.mysql_real_connect.restype = ctypes.c_void_p


def pointer(value):
    return ctypes.c_void_p(value)


handle = library.mysql_init(None)
opened = library.mysql_real_connect(
    pointer(handle),
    b"127.0.0.1",
    b"app",
    b"app",
    None,
    ctypes.c_uint(int(sys.argv[1])),
    None,
    ctypes.c_ulong(0),
)
print("connected", bool(opened), library.mysql_error(pointer(handle)).decode())


def ask(sql):
    if library.mysql_query(pointer(handle), sql):
        return library.mysql_error(pointer(handle)).decode()
    result = library.mysql_use_result(pointer(handle))
    row = library.mysql_fetch_row(pointer(result))
    value = row[0]
    library.mysql_free_result(pointer(result))
    return value


for user, password, schema in [
    (b"app", b"app", b"shop"),
    (b"other", b"other's", None),
    (b"app", b"wrong", None),
    (b"app", b"app", None),
]:
    failed = library.mysql_change_user(pointer(handle), user, password, schema)
    words = library.mysql_error(pointer(handle)).decode() if failed else ask(b"SELECT DATABASE()")
    print(user, schema, failed, words)
