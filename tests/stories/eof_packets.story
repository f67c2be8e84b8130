# Clients without CLIENT_DEPRECATE_EOF: what stands in front of the rows, and what comes later
# because an EOF packet has no room for it. Stories compare the EOF packet behind the columns too
# (`testkit::reply::Rows::begin`).

# What a function changes behind an EOF packet is the client's own, and no other's.
story a_change_behind_an_eof_packet_stays_with_its_client
let probe = SELECT @@time_zone, @@sql_select_limit, @@autocommit
a joins with LOCAL_FILES+MULTI_STATEMENTS
b joins with LOCAL_FILES+MULTI_STATEMENTS without DEPRECATE_EOF
c joins with LOCAL_FILES+MULTI_STATEMENTS without SESSION_TRACK+DEPRECATE_EOF
d joins without DEPRECATE_EOF
b: CREATE TABLE t (a INT PRIMARY KEY)
b: INSERT INTO t VALUES (1)
b: CREATE FUNCTION alters() RETURNS INT NO SQL BEGIN SET time_zone = '+02:00'; SET \
    sql_select_limit = 7; RETURN 1; END
b: SELECT alters()
c: $probe
c: SET time_zone = '+05:00'
c, d: $probe
d: SET sql_mode = ''
d, b: $probe
c: SET TRANSACTION READ ONLY
c: SELECT a FROM t
d: INSERT INTO t VALUES (2)
d: BEGIN
d: SELECT alters()
d: SET NAMES utf8mb4
d: ROLLBACK
d: $probe
c: INSERT INTO t VALUES (3)
c, d: $probe
d: SELECT 1
c prepare p0: SELECT alters(), ?
c execute p0 ('1')
d, c: $probe

# Clients of both forms on few backends: neither waits for ever for the other's.
story both_forms_share_few_backends
a joins with LOCAL_FILES+MULTI_STATEMENTS
b joins with LOCAL_FILES+MULTI_STATEMENTS without DEPRECATE_EOF
c joins with LOCAL_FILES+MULTI_STATEMENTS without SESSION_TRACK+DEPRECATE_EOF
for value:
- 0
- 1
- 2
  a: SELECT $value
  a: SET @a = 1
  a: SELECT @a
  b: SELECT $value
  b: SET @a = 1
  b: SELECT @a
  c: SELECT $value
  c: SET @a = 1
  c: SELECT @a
end
