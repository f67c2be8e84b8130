# User variables of great length, with great names, and many of them: at the bounds of what
# follows a client, and beyond.

story values_that_are_together_longer_than_an_answer_keep_their_client
backends 2
for who, sql, who2:
- a | SET @q = REPEAT('b', 9000000), @r = REPEAT('b', 9000000) | b
- b | SET @v0 = 'of b', @q = 1 | a
- a | SELECT 1 | b
- a | SET @s = REPEAT('s', 40000000), @v0 = 'short' | b
- b | SET @v0 = 'of b', @q = 1 | a
- a | SELECT 1 | b
- a | SET @q = 'short' | b
- b | SET @v0 = 'of b', @q = 1 | a
- a | SELECT 1 | b
- a | SELECT NULL, 7 INTO @r, @s | b
- b | SET @v0 = 'of b', @q = 1 | a
- a | SELECT 1 | b
- a | SET @q = REPEAT('b', 16777216) | b
- b | SET @v0 = 'of b', @q = 1 | a
- a | SELECT 1 | b
- a | SET @q = NULL | b
- b | SET @v0 = 'of b', @q = 1 | a
- a | SELECT 1 | b
  $who: $sql
  $who2: SELECT LENGTH(@q), LENGTH(@r), LENGTH(@s), LEFT(MD5(@q), 8), LEFT(@v0, 9)
end
a reset
b, a: SELECT LENGTH(@q), LENGTH(@r), LENGTH(@s), LEFT(MD5(@q), 8), LEFT(@v0, 9)

story numbers_keep_their_types_beside_long_texts
backends 2
for what:
-
- , @q = REPEAT('q', 70000)
- , @q = 'short'
  a: SET @i = -5, @u = 18446744073709551615, @d = 1.50, @e = \
      99999999999999999999999999999999999999999999999999999999999999999, @f = \
      0.123456789012345678901234567890, @g = -1.7976931348623157e308, @h = \
      2.2250738585072014e-308, @j = 1e100, @k = CAST(5 AS DECIMAL(65,0)), @l = 1/3, @m = '', @n = \
      x'', @o = NULL, @p = 1.5, @p = NULL, @t = REPEAT('t', 129)$what
  b: SET @i = 'b', @d = 'b', @p = 'b', @o = 2.5
  b: SELECT @o
  a: SELECT @i, @u, @d, @e, @f, @g, @h, @j, @k, @l, @m, @n, @p, @t
  a: CREATE TEMPORARY TABLE t AS SELECT @d AS d, @g AS g, @k AS k
  a: SHOW CREATE TABLE t
  a: SELECT d, g, k FROM t
  a: DROP TEMPORARY TABLE t
  b: SELECT @i, @d, @o
end
