# What a session counts and gathers about itself, and settings of several statements in one text.

# One backend: a story with a pin that lasts would come to no end.
story settings_in_one_text_follow_their_client
let probe = SELECT @@character_set_client, @@collation_connection, @@time_zone, @@sql_mode, \
    @@wait_timeout, @@character_set_results, @x
a, b multi on
for what:
- NAMES latin1; SET time_zone = '+03:00'; SET wait_timeout = 1234
- sql_mode = 'ANSI_QUOTES'; SET NAMES utf8mb4 COLLATE utf8mb4_bin; SET @x = 5;
- NAMES cp1250; SET time_zone = 'No/Such'; SET wait_timeout = 999
- NAMES utf8mb4; SELECT 1; SET time_zone = '-01:00'
- @@sql_mode = ''; SET @@time_zone = '+02:00'; SET @@no_such = 1
- character_set_results = NULL; SET wait_timeout = DEFAULT
  a: SET $what
  b, a: $probe
  b: SET time_zone = '+07:00'; SET NAMES latin2
  a: $probe
end

story what_gathers_nothing_pins_nobody
a: SET profiling = 0
a: SET profiling_history_size = 7
a: SET optimizer_trace = 'enabled=off'
b, a: SELECT @@profiling, @@profiling_history_size, @@optimizer_trace
b: SET profiling = OFF
b: SET profiling_history_size = DEFAULT
b: SHOW PROFILES
a: SELECT @@profiling, @@profiling_history_size

story counters_are_the_clients_own_from_flush_status_on
backends 2
let probe = SHOW SESSION STATUS LIKE 'Handler_read_rnd_next'
a: CREATE TABLE t (id INT PRIMARY KEY, v INT) ENGINE=InnoDB
a: INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)
a: FLUSH STATUS
b: SELECT SUM(v) FROM t
a: SELECT v FROM t ORDER BY v
b: SELECT SUM(v) FROM t
a: $probe
a: FLUSH STATUS
b: SELECT SUM(v) FROM t
a: SELECT v FROM t ORDER BY v
b: SELECT SUM(v) FROM t
a: $probe
a reset
a: FLUSH STATUS
a: SELECT 1
a: $probe
