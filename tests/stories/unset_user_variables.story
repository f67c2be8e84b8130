# User variables that a client has never set, on a backend that has had them of another: columns'
# types and lengths are compared too.

story a_variable_that_another_client_has_set_was_never_set
a: SET @i = 5, @u = CAST(7 AS UNSIGNED), @d = 1.50, @f = 1e2, @t = 'text', @b = x'00ff', @z = NULL
b: SELECT @i
b: SELECT IFNULL(@i, x'ff')
b: SELECT IFNULL(@i, 1.5), IFNULL(@i, 7)
a: SELECT @i, IFNULL(@i, x'41')
b: SELECT @u
b: SELECT IFNULL(@u, x'ff')
b: SELECT IFNULL(@u, 1.5), IFNULL(@u, 7)
a: SELECT @u, IFNULL(@u, x'41')
b: SELECT @d
b: SELECT IFNULL(@d, x'ff')
b: SELECT IFNULL(@d, 1.5), IFNULL(@d, 7)
a: SELECT @d, IFNULL(@d, x'41')
b: SELECT @f
b: SELECT IFNULL(@f, x'ff')
b: SELECT IFNULL(@f, 1.5), IFNULL(@f, 7)
a: SELECT @f, IFNULL(@f, x'41')
b: SELECT @t
b: SELECT IFNULL(@t, x'ff')
b: SELECT IFNULL(@t, 1.5), IFNULL(@t, 7)
a: SELECT @t, IFNULL(@t, x'41')
b: SELECT @b
b: SELECT IFNULL(@b, x'ff')
b: SELECT IFNULL(@b, 1.5), IFNULL(@b, 7)
a: SELECT @b, IFNULL(@b, x'41')
b: SELECT @z
b: SELECT IFNULL(@z, x'ff')
b: SELECT IFNULL(@z, 1.5), IFNULL(@z, 7)
a: SELECT @z, IFNULL(@z, x'41')
a: SELECT @i, @u, @d, @f, @t, @b, @z

story a_sum_over_rows_begins_as_on_a_connection_of_its_own
a: CREATE TABLE t (id INT PRIMARY KEY) ENGINE=InnoDB
a: INSERT INTO t VALUES (1), (2), (3)
for who:
- a
- b
- c
- a
- b
  $who: SELECT id, @n := IFNULL(@n, 0) + 1 FROM t ORDER BY id
  $who: SELECT id, @r := @r + 1 FROM t, (SELECT @r := 0) AS x ORDER BY id
  $who: SELECT @n, @r
end

story a_variable_that_is_set_to_null_is_set
a: CREATE TABLE t (id INT PRIMARY KEY) ENGINE=InnoDB
a: INSERT INTO t VALUES (1), (2), (3)
a: SET @n = NULL, @i = 5
b: SET @n = 'x'
b: SET @i = NULL
a: SELECT id, @n := IFNULL(@n, 0) + 1 FROM t ORDER BY id
b: SELECT @n, @i
a: SET @i = NULL
a: SELECT @n, @i
a: SELECT id INTO @v FROM t WHERE id = 9
b: SELECT @v
b: SELECT id INTO @v FROM t WHERE id = 9
a: SELECT @v
a: SELECT @w := id FROM t WHERE id = 9
b: SELECT @v, @w
b: SET @w = (SELECT 5 FROM t WHERE id = 9)
a: SELECT @v, @w
a: SELECT @w := NULL
a: SELECT @w

# On MySQL a NULL has the type of what was there before it.
story a_null_has_the_type_of_the_value_before_it
for what, sql:
- 5 | SET @v = NULL
- 5 | SELECT NULL INTO @v
- 5 | DO @v := NULL
- CAST(7 AS UNSIGNED) | SET @v = NULL
- CAST(7 AS UNSIGNED) | SELECT NULL INTO @v
- CAST(7 AS UNSIGNED) | DO @v := NULL
- 1.50 | SET @v = NULL
- 1.50 | SELECT NULL INTO @v
- 1.50 | DO @v := NULL
- 1e2 | SET @v = NULL
- 1e2 | SELECT NULL INTO @v
- 1e2 | DO @v := NULL
- 'text' | SET @v = NULL
- 'text' | SELECT NULL INTO @v
- 'text' | DO @v := NULL
- _latin1'x' | SET @v = NULL
- _latin1'x' | SELECT NULL INTO @v
- _latin1'x' | DO @v := NULL
- x'00ff' | SET @v = NULL
- x'00ff' | SELECT NULL INTO @v
- x'00ff' | DO @v := NULL
- DATE'2020-01-02' | SET @v = NULL
- DATE'2020-01-02' | SELECT NULL INTO @v
- DATE'2020-01-02' | DO @v := NULL
- TIME'11:22:33' | SET @v = NULL
- TIME'11:22:33' | SELECT NULL INTO @v
- TIME'11:22:33' | DO @v := NULL
- NULL | SET @v = NULL
- NULL | SELECT NULL INTO @v
- NULL | DO @v := NULL
  a: SET @v = $what
  a: $sql
  b: SET @v = 'other'
  a: SELECT @v
  a: SELECT IFNULL(@v, 5), IFNULL(@v, 'a')
  a: SET @v = NULL
  a: SELECT @v, COLLATION(@v)
  a reset
end

story what_else_a_session_has_outlives_a_backend_that_begins_anew
let probe = SELECT @mine, @@sql_mode, @@time_zone, @@character_set_results, DATABASE(), \
    @@div_precision_increment, LAST_INSERT_ID(), @@autocommit, @@wait_timeout
a: CREATE TABLE t (id INT PRIMARY KEY, v INT) ENGINE=InnoDB
a: INSERT INTO t VALUES (1, 10), (2, 20)
b: SET @mine = 'b', time_zone = '+05:00', sql_mode = 'ANSI_QUOTES'
b: SET div_precision_increment = 9, wait_timeout = 777
b: SELECT LAST_INSERT_ID(42)
b prepare p: SELECT v + ? FROM t WHERE id = ?
b execute p ('1', '2')
b: SET @id = 2
for what:
- other0
- other1
- other2
  a: SET @$what = 'a', time_zone = '+01:00'
  b: SELECT @$what
  b: $probe
  b execute p ('5', '1')
  b: SELECT v FROM t WHERE id = @id
  b: SELECT @$what, "id" FROM t
  a: $probe
end

story a_prepared_text_finds_no_variable_of_another
a: SET @i = 5, @u = CAST(7 AS UNSIGNED), @d = 1.50, @f = 1e2, @t = 'text', @b = x'00ff', @z = NULL
b prepare p: SELECT @i, IFNULL(@t, 5)
a: SELECT @i, @t
b execute p ()
a: SELECT @i, @t
# Such a client keeps its backend, on which no variable of another is left.
b: PREPARE named FROM 'SELECT @u, IFNULL(@d, ''x'')'
b: EXECUTE named
b reset
a: SELECT @u, @d
b: EXECUTE IMMEDIATE 'SELECT @f'
b reset
a: SELECT @i, @t

story a_change_that_reads_a_variable_leaves_it_as_on_a_connection_of_its_own
a: CREATE TABLE t (id INT PRIMARY KEY, v TEXT) ENGINE=InnoDB
a: SET @i = 5, @u = CAST(7 AS UNSIGNED), @d = 1.50, @f = 1e2, @t = 'text', @b = x'00ff', @z = NULL
b: INSERT INTO t VALUES (1, @t), (2, IFNULL(@i, 'none'))
a: SELECT @i, @t
b: SELECT @t, @i
b: UPDATE t SET v = @d WHERE id = 1
a: SELECT @d
b: SELECT @d, @t
b: SELECT id, v FROM t

story a_question_about_the_statement_before_is_answered_beside_an_unset_variable
a: CREATE TABLE t (id INT PRIMARY KEY) ENGINE=InnoDB
a: INSERT INTO t VALUES (1), (2), (3)
a: SET @i = 5, @u = CAST(7 AS UNSIGNED), @d = 1.50, @f = 1e2, @t = 'text', @b = x'00ff', @z = NULL
b: SELECT id FROM t LIMIT 2
b: SELECT FOUND_ROWS(), @i
a: SELECT 1
b: SELECT SQL_CALC_FOUND_ROWS id FROM t LIMIT 1
b: SELECT @u, FOUND_ROWS()
b: SELECT id FROM t WHERE id = 'x'
b: SELECT @d
b: SHOW WARNINGS

# Servers may take a name with an accent for another one (`@ä` is `@a` on some), so a backend that
# has had one may have to start over. What the client itself has set is no reason for that: it
# would be set again, and again be one.
story a_client_with_a_name_beyond_ascii_reads_one_that_it_has_never_set
a: SET @ä = 6
# Not known to succeed again, so that it is waited for.
a: SET optimizer_prune_level = 0
a: SELECT @c
a: SELECT @ä, @@optimizer_prune_level
b: SET @ö = 'b', @`x ` = 5
a: SELECT @c, @`y `
a: SELECT @o, @ö, @ä
a: SELECT @a
b: SELECT @x, @`x `
b: SELECT @ä, @a, @o
a: SELECT @ä, @@optimizer_prune_level, @c

# The servers' lists of user variables name those of the client, and no others.
story lists_of_user_variables_name_nobody_elses
a: SET @mine = 1, @more = 'x'
a: SELECT no_such_column
b: SET @of_b = 5
b: SELECT CAST('x' AS SIGNED)
a, b: SELECT VARIABLE_NAME FROM information_schema.USER_VARIABLES ORDER BY 1
a, b: SELECT variable_name FROM `information_schema`.`user_variables` ORDER BY 1
a, b: SELECT VARIABLE_NAME FROM performance_schema.user_variables_by_thread WHERE THREAD_ID = \
    PS_CURRENT_THREAD_ID() ORDER BY 1
if mariadb
  a prepare p: SELECT VARIABLE_NAME FROM information_schema.USER_VARIABLES ORDER BY 1
  b: SELECT @of_b
  a execute p ()
end
a: SELECT @mine, @more
a reset
a: SELECT VARIABLE_NAME FROM information_schema.USER_VARIABLES ORDER BY 1

# A server makes a user variable when it prepares a text that would set it, executed or not.
story what_another_client_has_only_prepared_is_not_there
let probe = SELECT @n := IFNULL(@n, 0) + 1 FROM (SELECT 1 UNION SELECT 2) t
a prepare p: SELECT @n := 5
b: $probe
b reset
a: SELECT 1
b: SELECT CHARSET(@n), IFNULL(@n, 1.5), @n
a execute p ()
a reset
a: PREPARE p FROM 'SELECT @n := 5'
a reset
b: $probe
b reset
a: SELECT 1
b: SELECT CHARSET(@n), IFNULL(@n, 1.5), @n
a reset
if mariadb
  for sql:
  - SET @n = 5
  - SELECT 5 INTO @n
    a prepare p: $sql
    b: $probe
    b reset
    a: SELECT 1
    b: SELECT CHARSET(@n), IFNULL(@n, 1.5), @n
    a execute p ()
    a reset
    a: PREPARE p FROM '$sql'
    a reset
    b: $probe
    b reset
    a: SELECT 1
    b: SELECT CHARSET(@n), IFNULL(@n, 1.5), @n
    a reset
  end
end

# What its client has prepared on one backend is prepared on another before it is executed there,
# which makes the variables again: they are that client's alone.
story what_is_prepared_again_elsewhere_makes_its_clients_variables_alone
backends 2
a prepare p: SELECT @n := CAST(IFNULL(@n, 0) + 1 AS SIGNED) FROM (SELECT 1 UNION SELECT 2) t
# It goes elsewhere: the backend that it had is in another's transaction.
b: BEGIN
b: SELECT 1
a execute p ()
b: ROLLBACK
c: BEGIN
c: SELECT 1
a execute p ()
c: ROLLBACK
a: SELECT @n
b: BEGIN
b: SELECT 1
c: SELECT @n := CAST(IFNULL(@n, 0) + 1 AS SIGNED) FROM (SELECT 1 UNION SELECT 2) t
c: SELECT CHARSET(@n), @n
b: ROLLBACK
c: BEGIN
c: SELECT 1
b: SELECT @n := CAST(IFNULL(@n, 0) + 1 AS SIGNED) FROM (SELECT 1 UNION SELECT 2) t
b: SELECT CHARSET(@n), @n
c: ROLLBACK
a: SELECT @n

# On MariaDB a PREPARE of a SET makes what that would set, without a value; on MySQL nothing.
story a_set_that_is_only_prepared_makes_what_it_makes_on_a_connection_of_its_own
for what, what2:
- 5 | 5
- ''x'' | 'x'
- ? | ?
- NULL | NULL
  a: SET @k = 'other'
  b: PREPARE p FROM 'SET @k = $what'
  b: SELECT @k, IFNULL(@k, 1.5)
  b: SELECT @k := IFNULL(@k, 0) + 1 FROM (SELECT 1 UNION SELECT 2) t
  b: SELECT @k
  b reset
  a: SET @k = 'other'
  b prepare p: SET @k = $what2
  a: SELECT @k
  b: SELECT @k, IFNULL(@k, 1.5)
  b: SELECT @k := IFNULL(@k, 0) + 1 FROM (SELECT 1 UNION SELECT 2) t
  b: SELECT @k
  b reset
end

# Where a SET fails decides about the variables that it names. Whatever another client has had on the
# backend, it does so as on a connection of one's own. The pool keeps a client that sends one of the
# last six.
story a_set_that_fails_makes_what_it_makes_on_a_connection_of_its_own
let counts = SELECT @k := IFNULL(@k, 0) + 1 FROM (SELECT 1 UNION SELECT 2) t
let digits = 9999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999
for leaves, set:
- b: SELECT @k, @l | SET @k = 1, nosuch = 1
- b: SELECT @k, @l | SET time_zone = 'bad', @k = 1
- b: SELECT @k, @l | SET @k = 1, time_zone = 'bad'
- b: SELECT @k, @l | SET NAMES nosuch, @k = 1
- b: SELECT @k, @l | SET @k = 1, NAMES nosuch
- b: SELECT @k, @l | SET @k = (SELECT nosuch)
- b: SELECT @k, @l | SET @k = @@nosuch
- b: SELECT @k, @l | SET @l = 1, @k = (SELECT 1 UNION SELECT 2)
- b: SELECT @k, @l | SET @k = 1, @l = (SELECT 1 UNION SELECT 2)
- b: SELECT @k, @l | SET @k = (SELECT 1 UNION SELECT 2), @l = 1
- b: SELECT @k, @l | SET @k = = 1
- b: SELECT @k, @l | SET @k = 1, @l
- b: SELECT @k, @l | SET @k = 1 @l = 2
- b: SELECT @k, @l | SET @k = 1e400
- b: SELECT @k, @l | SET @k = 'x', @l = 0x1g
- b: SELECT @k, @l | SET @k = $digits, @l = -$digits.9
- watch nothing | SET @k = nosuch()
- watch nothing | SET @k = 'open
- watch nothing | SET @k = 'open\'
- watch nothing | SET @k = 1, @`` = 2
- watch nothing | SET @k = 1, @ = 2
- watch nothing | SET @k = 1, @l = 2, @xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx = 3
  for sends:
  - a: $set
  - a prepare p: $set
    b: SET @k = 'other', @l = 'of it'
    $sends
    $leaves
    a: SELECT @k, IFNULL(@k, 1.5), @l ;; $counts ;; SELECT @k
    a reset
  end
end
# What it has set before it keeps, and what it sets behind it.
a: SET @k = 7 ;; SET @k = 8, nosuch = 1
b: SELECT @k
a: SELECT @k ;; SET @m = 1, nosuch = 1 ;; SET @m = NULL
b: SET @m = 'other'
a: SELECT @m, IFNULL(@m, 1.5)
