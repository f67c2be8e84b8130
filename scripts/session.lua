-- What of a session its client keeps behind a proxy that shares connections between clients; for
-- scripts/peers.sh. Each client has one of the checks, so that what a proxy does about one of them
-- does not hide another. Of the first two checks every second client sets nothing, and must see nothing.
--
-- A check that shows another's state, or none, raises an error of the script's own number for it, with
-- the message NAME: wrong; one of which a statement is refused, with NAME: error and its number. So the
-- errors of a run tell what was kept.

local FIRST_ERROR = 50001

function prepare()
  local made = sysbench.sql.driver():connect()
  made:query("CREATE TABLE session (id INT AUTO_INCREMENT PRIMARY KEY, owner INT NOT NULL)")
end

function thread_init()
  con = sysbench.sql.driver():connect()
end

-- The first value of an answer; nil for NULL and for no row.
local function value(text)
  local rows = con:query(text)
  local row = rows and rows:fetch_row()
  return row and row[1]
end

local CHECKS = {
  { "user variable", function(id, sets)
    if sets then con:query("SET @mine = " .. id) end
    return value("SELECT @mine") == (sets and tostring(id) or nil)
  end },
  { "session variable", function(id, sets)
    local zone = sets and string.format("+00:%02d", id % 60) or "SYSTEM"
    if sets then con:query("SET time_zone = '" .. zone .. "'") end
    return value("SELECT @@time_zone") == zone
  end },
  { "temporary table", function(id)
    con:query("DROP TEMPORARY TABLE IF EXISTS mine")
    con:query("CREATE TEMPORARY TABLE mine (n INT)")
    con:query("INSERT INTO mine VALUES (" .. id .. ")")
    local found = value("SELECT SUM(n) FROM mine")
    con:query("DROP TEMPORARY TABLE mine")
    return found == tostring(id)
  end },
  { "PREPARE as text", function(id)
    con:query("PREPARE mine FROM 'SELECT " .. id .. "'")
    local found = value("EXECUTE mine")
    con:query("DEALLOCATE PREPARE mine")
    return found == tostring(id)
  end },
  { "LAST_INSERT_ID()", function(id)
    con:query("INSERT INTO session (owner) VALUES (" .. id .. ")")
    local last = value("SELECT LAST_INSERT_ID()")
    return value("SELECT owner FROM session WHERE id = " .. tostring(last)) == tostring(id)
  end },
  { "ROW_COUNT()", function(id)
    con:query("INSERT INTO session (owner) VALUES (" .. id .. "), (" .. id .. ")")
    return value("SELECT ROW_COUNT()") == "2"
  end },
  { "SHOW WARNINGS", function()
    con:query("SELECT CAST('x' AS SIGNED)")
    return value("SHOW WARNINGS") == "Warning"
  end },
  { "GET_LOCK()", function(id)
    local name = "'session " .. id .. "'"
    local got = value("SELECT GET_LOCK(" .. name .. ", 0)")
    value("SELECT 1")
    return value("SELECT RELEASE_LOCK(" .. name .. ")") == "1" and got == "1"
  end },
  { "CONNECTION_ID()", function()
    local before = value("SELECT CONNECTION_ID()")
    return value("SELECT CONNECTION_ID()") == before
  end },
}

function event(id)
  local number = id % #CHECKS + 1
  local name, check = unpack(CHECKS[number])
  local fine, found = pcall(check, id, math.floor(id / #CHECKS) % 2 == 0)
  local wrong = not fine and "error " .. tostring(type(found) == "table" and found.sql_errno or found)
    or found ~= true and "wrong"
  if wrong then
    pcall(con.query, con, string.format(
      "SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = %d, MESSAGE_TEXT = '%s: %s'",
      FIRST_ERROR - 1 + number, name, wrong))
  end
end

function cleanup()
  local made = sysbench.sql.driver():connect()
  made:query("DROP TABLE IF EXISTS session")
end
