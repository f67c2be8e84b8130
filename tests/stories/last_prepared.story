# MariaDB's id -1: the statement that this connection prepared last, so that a driver can prepare and
# execute in one write, before it knows the id.
#
# Each client's last one is its own, whatever others prepare on the same backend meanwhile, and
# whatever else it says itself between the two: the server decides. Everything is told in bytes: one
# INT, 7, with its type; and 8 without; no value.
let seven = command 0x17: \xff\xff\xff\xff\x00\x01\x00\x00\x00\x00\x01\x03\x00\x07\x00\x00\x00
let eight = command 0x17: \xff\xff\xff\xff\x00\x01\x00\x00\x00\x00\x00\x08\x00\x00\x00
let plain = command 0x17: \xff\xff\xff\xff\x00\x01\x00\x00\x00

story a_statement_is_prepared_and_executed_in_one_write
only mariadb
for who:
- a
- b
- c
  # With parameters, and again with the types of the execution before.
  $who writes
    prepare p: SELECT ? + 1
    $seven
    $eight
  end
end
for who:
- a
- b
- c
  # Others have prepared in between, on the same backend.
  $who $eight
  for between:
  - : SELECT 'between'
  - : SELECT * FROM missing
  - : SET @x = 1
  - ping
  - init_db: missing
  - command 0x1a: \xff\xff\xff\xff
    $who writes
      prepare p: SELECT ? * 2
      $between
      $seven
    end
  end
  $who writes
    prepare p: SELECT 'first'
    prepare p: SELECT
    $plain
  end
  $who writes
    $plain
    prepare p: SELECT 'then'
    $plain
  end
end
for who:
- a
- b
- c
  $who writes
    prepare p: SELECT CONCAT(?, '!')
    command 0x18: \xff\xff\xff\xff\x00\x00long\x20
    command 0x18: \xff\xff\xff\xff\x00\x00data
    command 0x17: \xff\xff\xff\xff\x00\x01\x00\x00\x00\x00\x01\xfd\x00
  end
  $who writes
    prepare p: SELECT seq FROM seq_1_to_3
    command 0x17: \xff\xff\xff\xff\x01\x01\x00\x00\x00
  end
  $who command 0x1a: \xff\xff\xff\xff
  $who writes
    command 0x19: \xff\xff\xff\xff
    $plain
  end
  $who writes
    prepare p: SELECT 'gone'
    reset
  end
  $who $plain
end

# With what is prepared by name in between, which keeps its client on its backend.
story a_name_between_makes_a_difference_or_not
only mariadb
backends 4
for who:
- a
- b
- c
  for between:
  - PREPARE named FROM 'SELECT 9'
  - EXECUTE named
  - PREPARE bad FROM 'SELEC'
  - DEALLOCATE PREPARE named
    $who writes
      prepare p: SELECT ? * 2
      : $between
      $seven
    end
  end
end

# Types are sent; two rows, each with no indicator.
story bulk_executions_need_no_id_either
only mariadb
a, b joins extended 0x4
a: CREATE TABLE t (who INT, v INT)
for who, number:
- a | 1
- b | 2
- a | 3
  $who writes
    prepare p: INSERT INTO t VALUES ($number, ?)
    command 0xfa: \xff\xff\xff\xff\x80\x00\x03\x00\x00\x05\x00\x00\x00\x00\x06\x00\x00\x00
    command 0xfa: \xff\xff\xff\xff\x00\x00\x00\x07\x00\x00\x00
  end
end
b: SELECT * FROM t ORDER BY who, v

# MySQL knows no such id.
story mysql_takes_the_last_id_for_an_unknown_one
only mysql
for who:
- a
- b
- a
  $who writes
    prepare p: SELECT 'once'
    $plain
  end
  $who writes
    command 0x1a: \xff\xff\xff\xff
    : SELECT 2
  end
  $who command 0x1c: \xff\xff\xff\xff\x01\x00\x00\x00
end
