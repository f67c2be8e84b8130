# Timeouts that a session knows, kept by the pool as by a server.

# What MySQL tracks of transactions by itself is not the matter here.
story an_idle_client_is_closed_as_by_its_server
backends 2
for hold:
- DO 1
- BEGIN
- CREATE TEMPORARY TABLE tt (id INT)
- SELECT GET_LOCK('$schema', 30)
  a joins without SESSION_TRACK
  a: SET wait_timeout = 1 ;; SELECT @@wait_timeout, @@interactive_timeout ;; $hold
  a ends
end
# What the last one held is free.
b: SELECT GET_LOCK('$schema', 30), @@wait_timeout => 1, 28800

# The server ends what the client has there.
story a_client_in_an_idle_transaction_is_closed_as_by_mariadb
only mariadb
backends 2
for begin:
- BEGIN
- START TRANSACTION READ ONLY
  a joins
  a: SET idle_transaction_timeout = 1 ;; $begin ;; SELECT 1
  a ends
end
