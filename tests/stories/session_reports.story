# What servers report of a session's changes, and when: the trackers, told through the pool.

# An error says nothing of the transaction that its statement may have begun: what the pool then
# answers itself waits until the server has told.
story the_status_behind_an_error_is_known
a: CREATE TABLE t (id INT PRIMARY KEY)
a: INSERT INTO t VALUES (1)
for value:
- 0
- 1
  b: SET autocommit = $value
  b: INSERT INTO t VALUES (1)
  b multi off
  b: SELECT * FROM missing
  b multi off
  b: ROLLBACK
  b multi off
  b: SET autocommit = $value
  b: INSERT INTO t VALUES (1)
  b ping
  b: SELECT * FROM missing
  b ping
  b: ROLLBACK
  b ping
end
c joins without DEPRECATE_EOF
for value:
- 0
- 1
  c: SET autocommit = $value
  c: INSERT INTO t VALUES (1)
  c multi off
  c: SELECT * FROM missing
  c multi off
  c: ROLLBACK
  c multi off
  c: SET autocommit = $value
  c: INSERT INTO t VALUES (1)
  c ping
  c: SELECT * FROM missing
  c ping
  c: ROLLBACK
  c ping
end
d joins without SESSION_TRACK+DEPRECATE_EOF
for value:
- 0
- 1
  d: SET autocommit = $value
  d: INSERT INTO t VALUES (1)
  d multi off
  d: SELECT * FROM missing
  d multi off
  d: ROLLBACK
  d multi off
  d: SET autocommit = $value
  d: INSERT INTO t VALUES (1)
  d ping
  d: SELECT * FROM missing
  d ping
  d: ROLLBACK
  d ping
end

# To the servers GET DIAGNOSTICS changes no state, wherever it is answered.
story a_question_about_diagnostics_reports_no_change_of_state
only mariadb
backends 2
a, b joins without DEPRECATE_EOF
a: CREATE TABLE t (a INT)
a: SET session_track_state_change = ON
a prepare p: GET DIAGNOSTICS @r = ROW_COUNT
for sql:
- INSERT INTO t VALUES (1), (2)
- SELECT 1 / 0 FROM t
- SELECT * FROM missing
- SET time_zone = '+03:00'
  for sql2:
  - GET DIAGNOSTICS @r = ROW_COUNT
  - GET DIAGNOSTICS @r = ROW_COUNT, @n = NUMBER
    a: $sql
    a: $sql2
    a: SELECT ROW_COUNT() => or error 1235
    a: DO 1
    a: $sql
    b: SELECT 1
    a: $sql2
    a: SELECT ROW_COUNT() => or error 1235
    a: DO 1
  end
end
a: INSERT INTO t VALUES (1), (2)
a execute p () => or error 1235
a: DO 1
a: INSERT INTO t VALUES (1), (2)
b: SELECT 1
a execute p () => or error 1235
a: DO 1
a: DROP TABLE t
a, b leaves
c: CREATE TABLE t (a INT)
c: SET session_track_state_change = ON
c prepare p: GET DIAGNOSTICS @r = ROW_COUNT
for sql:
- INSERT INTO t VALUES (1), (2)
- SELECT 1 / 0 FROM t
- SELECT * FROM missing
- SET time_zone = '+03:00'
  for sql2:
  - GET DIAGNOSTICS @r = ROW_COUNT
  - GET DIAGNOSTICS @r = ROW_COUNT, @n = NUMBER
    c: $sql
    c: $sql2
    c: SELECT ROW_COUNT() => or error 1235
    c: DO 1
    c: $sql
    d: SELECT 1
    c: $sql2
    c: SELECT ROW_COUNT() => or error 1235
    c: DO 1
  end
end
c: INSERT INTO t VALUES (1), (2)
c execute p () => or error 1235
c: DO 1
c: INSERT INTO t VALUES (1), (2)
d: SELECT 1
c execute p () => or error 1235
c: DO 1
c: DROP TABLE t
c, d leaves

story a_question_about_diagnostics_reports_no_change_of_state_2
only mysql
backends 2
a, b joins without DEPRECATE_EOF
a: CREATE TABLE t (a INT)
a: SET session_track_state_change = ON
for sql:
- INSERT INTO t VALUES (1), (2)
- SELECT 1 / 0 FROM t
- SELECT * FROM missing
- SET time_zone = '+03:00'
  for sql2:
  - GET DIAGNOSTICS @r = ROW_COUNT
  - GET DIAGNOSTICS @r = ROW_COUNT, @n = NUMBER
    a: $sql
    a: $sql2
    a: SELECT ROW_COUNT() => or error 1235
    a: DO 1
    a: $sql
    b: SELECT 1
    a: $sql2
    a: SELECT ROW_COUNT() => or error 1235
    a: DO 1
  end
end
a: INSERT INTO t VALUES (1), (2)
a: DO 1
a: INSERT INTO t VALUES (1), (2)
b: SELECT 1
a: DO 1
a: DROP TABLE t
a, b leaves
c: CREATE TABLE t (a INT)
c: SET session_track_state_change = ON
for sql, sql2:
- INSERT INTO t VALUES (1), (2) | GET DIAGNOSTICS @r = ROW_COUNT
- INSERT INTO t VALUES (1), (2) | GET DIAGNOSTICS @r = ROW_COUNT, @n = NUMBER
- SELECT 1 / 0 FROM t | GET DIAGNOSTICS @r = ROW_COUNT
- SELECT 1 / 0 FROM t | GET DIAGNOSTICS @r = ROW_COUNT, @n = NUMBER
- SELECT * FROM missing | GET DIAGNOSTICS @r = ROW_COUNT
- SELECT * FROM missing | GET DIAGNOSTICS @r = ROW_COUNT, @n = NUMBER
- SET time_zone = '+03:00' | GET DIAGNOSTICS @r = ROW_COUNT
- SET time_zone = '+03:00' | GET DIAGNOSTICS @r = ROW_COUNT, @n = NUMBER
  c: $sql
  c: $sql2
  c: SELECT ROW_COUNT() => or error 1235
  c: DO 1
  c: $sql
  d: SELECT 1
  c: $sql2
  c: SELECT ROW_COUNT() => or error 1235
  c: DO 1
end
c: INSERT INTO t VALUES (1), (2)
c: DO 1
c: INSERT INTO t VALUES (1), (2)
d: SELECT 1
c: DO 1
c: DROP TABLE t
c, d leaves

# A client that hears of every variable hears of the trackers' own, too. MySQL has among all of
# them `statement_id`, which is each connection's.
story a_tracker_that_is_set_is_reported_to_who_is_told_of_all
only mariadb
backends 2
let probe = SET session_track_system_variables = 'autocommit'
let probe2 = SET time_zone = '+02:00', session_track_schema = OFF
let probe3 = SET session_track_system_variables = '*', session_track_schema = OFF
a: SET session_track_system_variables = '*'
a: SET session_track_schema = OFF
a: SET time_zone = '+01:00'
a: DO 1
a: SET session_track_schema = OFF
a leaves
b: $probe
b: SET session_track_schema = OFF
b: SET time_zone = '+01:00'
b: DO 1
b: SET session_track_schema = OFF
b leaves
c: SET session_track_system_variables = '*'
c: SET session_track_schema = ON
c: SET time_zone = '+01:00'
c: DO 1
c: SET session_track_schema = ON
c leaves
d: $probe
d: SET session_track_schema = ON
d: SET time_zone = '+01:00'
d: DO 1
d: SET session_track_schema = ON
d leaves
e: SET session_track_system_variables = '*'
e: SET session_track_state_change = OFF
e: SET time_zone = '+01:00'
e: DO 1
e: SET session_track_state_change = OFF
e leaves
f: $probe
f: SET session_track_state_change = OFF
f: SET time_zone = '+01:00'
f: DO 1
f: SET session_track_state_change = OFF
f leaves
g: SET session_track_system_variables = '*'
g: SET session_track_transaction_info = 'OFF'
g: SET time_zone = '+01:00'
g: DO 1
g: SET session_track_transaction_info = 'OFF'
g leaves
h: $probe
h: SET session_track_transaction_info = 'OFF'
h: SET time_zone = '+01:00'
h: DO 1
h: SET session_track_transaction_info = 'OFF'
h leaves
i: SET session_track_system_variables = '*'
i: $probe2
i: SET time_zone = '+01:00'
i: DO 1
i: $probe2
i leaves
j: $probe
j: $probe2
j: SET time_zone = '+01:00'
j: DO 1
j: $probe2
j leaves
k: SET session_track_system_variables = '*'
k: SET session_track_system_variables = '*'
k: SET time_zone = '+01:00'
k: DO 1
k: SET session_track_system_variables = '*'
k leaves
l: $probe
l: SET session_track_system_variables = '*'
l: SET time_zone = '+01:00'
l: DO 1
l: SET session_track_system_variables = '*'
l leaves
m: SET session_track_system_variables = '*'
m: $probe3
m: SET time_zone = '+01:00'
m: DO 1
m: $probe3
m leaves
n: $probe
n: $probe3
n: SET time_zone = '+01:00'
n: DO 1
n: $probe3
n leaves

# The function may take a lock, so that it pins: on MariaDB the OK of a function counts conditions
# of before, which another backend does not have.
story what_an_eof_cannot_report_comes_with_the_next_ok
backends 2
admin: CREATE DATABASE ${schema}_b
admin: CREATE FUNCTION sets(x INT) RETURNS INT DETERMINISTIC BEGIN \
    IF x < 0 THEN DO GET_LOCK('unreported', 0); END IF; SET time_zone = '+03:00'; RETURN x; END
for less:
- without DEPRECATE_EOF
- with MULTI_STATEMENTS
  for next:
  - SET autocommit = 1
  - SELECT 1 ;; SELECT no_such_column ;; SET autocommit = 1
  - SET time_zone = '+04:00' ;; DO 1
  - SHOW WARNINGS ;; DO 1
  - SELECT 1; DO 2; SELECT 3
  - SET time_zone = 'nowhere' ;; SET NAMES latin1 ;; DO 1
    c joins with MULTI_STATEMENTS $less
    c prepare seven: SELECT 7
    c init_db: ${schema}_b
    c execute seven ()
    c: $next
    c execute seven ()
    c ping
    c execute seven ()
    c multi on
    c: $next
    c reset
    c: $next ;; SELECT $schema.sets(1) ;; $next
    c prepare eight: SELECT 8
    c: USE ${schema}_b
    c execute eight ()
    c reset
    c: $next
    c leaves
  end
end
admin: DROP DATABASE ${schema}_b

# A client that wants to hear no more of changes hears of that one, or does not, as from a server.
story the_last_report_of_a_tracker_comes_as_from_a_server
backends 2
for less:
- DEPRECATE_EOF
- LONG_PASSWORD
  for on:
  - SET session_track_state_change = ON
  - SET SESSION session_track_state_change = 1, sql_mode = ''
  - SET @@session.session_track_state_change = ON
  - SET LOCAL sql_safe_updates := 0, @v = 5, @@local.session_track_state_change := 1
    for off:
    - SET session_track_state_change = OFF
    - SET SESSION session_track_state_change = 0, time_zone = '+01:00'
    - SET time_zone = '+02:00', session_track_state_change = OFF
    - SET session_track_state_change = DEFAULT
    - SET session_track_system_variables = '', session_track_state_change = OFF
    - SET session_track_schema = OFF, session_track_state_change = OFF
      a, b joins without $less
      for round:
      - 1
      - 2
        a: $on ;; DO 1 ;; $off ;; DO 1 ;; SET NAMES latin1 ;; DO 2 ;; $off
        b: SET NAMES latin2 ;; DO 2
      end
      a: $on ;; SELECT 1 ;; $off ;; SELECT 1 ;; SET NAMES utf8mb4
      a, b leaves
    end
  end
end

# A SET of a tracker that asks about the statement before is answered wherever that has run; it
# pins, and reports more than the client has asked for.
story a_set_of_a_tracker_asks_about_the_statement_before
backends 2
a: CREATE TABLE t (a INT)
for set:
- session_track_schema = 1
- session_track_state_change = 0
  for others:
  - DO 0
  - BEGIN ;; INSERT INTO t VALUES (1)
    a, b joins
    a: INSERT INTO t VALUES (1), (2)
    b: $others
    a: SET @r = ROW_COUNT(), $set => pool: ok
    b: COMMIT
    a: SELECT @r => pool: 2
    a, b leaves
  end
end

# No driver sets these switches: their client keeps its backend, and reads and hears its own values.
story switches_of_state_and_transactions_are_their_clients_own
backends 3
loose
let probe = SELECT @@session_track_transaction_info, @@session_track_state_change, \
    @@session_track_schema, @@session_track_system_variables
a: CREATE TABLE t (v INT)
for set:
- session_track_transaction_info = STATE
- session_track_state_change = ON
- @@local.session_track_state_change = ON
- session_track_schema = OFF, session_track_transaction_info = CHARACTERISTICS
- session_track_system_variables = 'time_zone', session_track_state_change = ON
- sql_mode = '', session_track_system_variables = 'time_zone', @@session.session_track_transaction_info = 1
  for first:
  - DO 0
  - SET session_track_schema = OFF, session_track_system_variables = 'sql_mode'
    a: $first
    a: SET $set
    a, b: $probe
    a: BEGIN ;; INSERT INTO t VALUES (1) ;; COMMIT
    a: SET time_zone = '+01:00' ;; SET sql_mode = 'ANSI_QUOTES' ;; SELECT @@sql_mode AS "mode"
    a: SET session_track_system_variables = CONCAT(@@session_track_system_variables, ',autocommit')
    a: SET session_track_schema = DEFAULT
    a: SET session_track_schema = OFF, session_track_state_change = 0
    a: SET autocommit = 1 ;; SET time_zone = '+02:00'
    a: USE $schema
    a, b: $probe
    a: SET session_track_transaction_info = OFF, session_track_state_change = DEFAULT
    a, b: $probe
    a reset
    a, b: $probe
  end
end

# Of what an error has changed before a client does not hear with the SET that pins, unless that sets it.
story a_set_that_pins_reports_no_change_of_state_of_before
backends 2
for before:
- SET div_precision_increment = 6, last_insert_id = DEFAULT
- SET time_zone = '+01:00', time_zone = 'nowhere'
  for set:
  - session_track_transaction_info = CHARACTERISTICS
  - session_track_transaction_info = STATE, sql_mode = ''
  - session_track_state_change = ON
    a: $before ;; SET $set ;; DO 1 ;; SET time_zone = '+02:00'
    a leaves
  end
end
