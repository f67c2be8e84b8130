# Roles follow their client: clients of one account on one backend, compared with connections of
# their own. A client that was pinned for its role would keep the other waiting.
#
# The account is this file's own; its two roles open a schema each.
let role = SELECT CURRENT_ROLE()
let looks = $role ;; SELECT v FROM ${schema}_a.t ;; SELECT v FROM ${schema}_b.t ;; SELECT DATABASE()
for role:
- ${schema}_a
- ${schema}_b
  server: DROP ROLE IF EXISTS $role
  server: DROP DATABASE IF EXISTS $role
  server: CREATE ROLE $role
  server: CREATE DATABASE $role
  server: CREATE TABLE $role.t (v INT)
  server: GRANT SELECT, INSERT ON $role.* TO $role
  server: GRANT $role TO roled@'%'
end

story a_role_follows_its_client
a, b joins user roled schema shop with MULTI_STATEMENTS
a: $looks
for who, sql:
- a | SET ROLE ${schema}_a
- b | SET ROLE `${schema}_b`
- a | SET ROLE ${schema}_b_not
- a | SELECT 1
- b | SET ROLE NONE
- a | SET ROLE ${schema}_b
- a | SET ROLE ${schema}_a; $role; SET ROLE ${schema}_b; SELECT 2
- b | SELECT 1; SET ROLE ${schema}_a; SELECT v FROM nowhere.t; SET ROLE ${schema}_b
- a | BEGIN; SET ROLE ${schema}_a; ROLLBACK
- b | SET sql_mode = 'ANSI_QUOTES'
- b | SET ROLE "${schema}_a"
  $who: $sql
  a, b: $looks
end
if mysql
  for who, sql:
  - a | SET ROLE ${schema}_b, ${schema}_a@'%'
  - b | SET ROLE ALL EXCEPT ${schema}_b
  - a | SET ROLE DEFAULT
  - b | SET ROLE ALL
    $who: $sql
    a, b: $looks
  end
end
if mariadb
  for who, sql:
  - a | SET @x = 5, ROLE ${schema}_a, time_zone = '+01:00'
  - b | SET ROLE ${schema}_b, time_zone = 'No/Such'
  - b | SET ROLE ${schema}_b, @y = 1
    $who: $sql
    a, b: $looks
  end
end
a: SELECT @x, @@time_zone ;; SELECT @y

# A statement that is prepared by a client that may is executed by none that may not.
story prepared_statements_run_in_the_role_of_their_execution
a, b joins user roled schema shop
a, b: SET ROLE ${schema}_a
a, b prepare p: SELECT v FROM ${schema}_a.t
a prepare sets: SET ROLE ${schema}_b
a execute p ()
a: SET ROLE NONE
for round:
- 1
- 2
  a, b execute p ()
  a: $role
end
a execute sets ()
b, a execute p ()
a: $role ;; SET ROLE ${schema}_a
a execute p ()
b: SET ROLE NONE
b execute p ()

# What a change of user makes of a role is the server's.
story a_role_outlives_a_reset
a, b joins user roled schema shop
a: SET ROLE ${schema}_a
b: $looks
a reset
a: $looks
# Not read back when the reset comes.
for held:
- BEGIN /* now */
- CREATE TEMPORARY TABLE shop.roles_held (v INT)
  a: $held ;; SET ROLE ${schema}_b
  a reset
  a, b: $looks
  a: $held ;; SET ROLE NONE
  a becomes user roled schema shop
  a: $looks
end
a: SET ROLE ${schema}_a
a becomes user roled schema shop
a, b: $looks
if mariadb
  a: SET ROLE ${schema}_b
  a becomes no_schema user roled password wrong
  a: $looks
end

# A pool of its own: another one learns from a server's counters that accounts have changed.
story the_role_of_a_login_is_that_of_its_account
pool wait_ms_max = 9000
if mysql
  server: SET DEFAULT ROLE ${schema}_b TO roled@'%'
end
if mariadb
  server: SET DEFAULT ROLE ${schema}_b FOR roled@'%'
end
a, b, c joins user roled schema shop
a: $looks ;; SET ROLE ${schema}_a
c: SET ROLE NONE
b, a, c, a, b, c, b: $looks
a, b reset
a, b: $looks
a becomes user roled schema shop
a: $looks
# A schema that one may use is not open to a login without the role.
a: SET ROLE ${schema}_a ;; USE ${schema}_a
d joins user roled schema ${schema}_a
if mysql
  server: SET DEFAULT ROLE NONE TO roled@'%'
end
if mariadb
  server: SET DEFAULT ROLE NONE FOR roled@'%'
end
