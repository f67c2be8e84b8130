# What MySQL tells its clients and MariaDB does not, told through the pool as by the server.

story results_are_described_in_the_sessions_collation
only mysql
for what:
- NAMES utf8mb4
- NAMES utf8mb4 COLLATE utf8mb4_bin
- character_set_results = utf8mb4
- CHARACTER SET latin1
- character_set_results = NULL
- NAMES DEFAULT
  a: SELECT 'a'
  b: SET $what
  a: SELECT 'a'
  b: SELECT 'b', @@collation_connection
end
b reset
b: SELECT 'b'
b: SET time_zone = '+01:00'
a: SELECT 'a'
b: SELECT 'b'
