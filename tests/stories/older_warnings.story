# What becomes of older warnings when a statement goes well without any, form by form.
#
# MariaDB clears them in front of what looks at a table and leaves them otherwise, MySQL clears
# them nearly always. Two clients on one backend: one leaves warnings, says the statement and asks
# behind the other; nobody is told that the answer is gone.

# MySQL warns that FOUND_ROWS() is deprecated. Where the pool asks for it, that is no client's
# warning.
story the_pools_own_question_leaves_no_warning
a, b joins with MULTI_STATEMENTS
a: CREATE TABLE t (id INT PRIMARY KEY, v INT)
a: CREATE PROCEDURE takes() SELECT GET_LOCK('$schema', 0)
a, b: SELECT 1
a: UPDATE t SET v = 1
a: SHOW WARNINGS; CALL takes()
a reset
a, b: SELECT 1
a: SELECT 1 UNION SELECT 2
b: SHOW WARNINGS; CALL takes()
b reset
