-- What a sysbench script finds in its world: `sysbench.*`, the globals of 0.5, and the loop that
-- calls event().
--
-- A script is written as if each of its connections had a thread. Here each has a coroutine and an
-- environment: what it would wait for it asks of the event loop, by yielding MARK with the number
-- of a request, and goes on with what the loop answers. One state holds the connections of a whole
-- group, so the functions of a script are compiled once a group.
--
-- The interface follows what sysbench's scripts use and what its manual says; none of it is
-- sysbench's own code.

local core, config = ...

local MARK = {}
local yield, resume, create = coroutine.yield, coroutine.resume, coroutine.create
local running, status = coroutine.running, coroutine.status
local setmetatable, getmetatable, setfenv, getfenv = setmetatable, getmetatable, setfenv, getfenv
local error, pcall, select, type, tostring, tonumber = error, pcall, select, type, tostring, tonumber
local pairs, ipairs, next, unpack, loadstring = pairs, ipairs, next, unpack, loadstring
local format, sub, concat = string.format, string.sub, table.concat
local open, popen, os_execute = io.open, io.popen, os.execute

-- Requests; crates/load/src/lua/interpreter.rs has the same numbers.
local NEXT, READY, CONNECT, QUERY, PREPARE, EXECUTE, CLOSE = 1, 2, 3, 4, 5, 6, 7
local DISCONNECT, RECONNECT, SLEEP, FAILED, COUNT, LEAVING = 8, 9, 10, 11, 12, 13
local RETURNED, DIED = 100, 101

local threads, envs = {}, {}
local current = 0

local function ask(...)
  if running() == nil then
    error("the server cannot be asked here: do it in thread_init(), event() or a command", 3)
  end
  return yield(MARK, ...)
end

-- A level (for error()) counts from the function that passes it on, so that an error names the line
-- of the script. Calls on that way are in parentheses: a tail call would take a level away.

-- Errors ------------------------------------------------------------------------------------------

local ERROR = { NONE = 0, RESTART_EVENT = 1 }
local SQL_ERROR = { NONE = 0, IGNORABLE = 1, FATAL = 2 }

-- Ends the event, to be run again, or the run. The connection has been lost where `lost` is set.
local function failed(con, query, level, errno, state, message, ignorable, lost)
  con.sql_errno, con.sql_state, con.sql_errmsg = errno, state, message
  local desc = {
    connection = con, query = query, sql_errno = errno, sql_state = state, sql_errmsg = message,
  }
  if not ignorable then
    local hook = envs[current].sysbench.hooks.sql_error_ignorable
    ignorable = hook ~= nil and hook(desc) and true or false
  end
  ask(FAILED, ignorable, errno, state, message)
  if ignorable then
    con.error = SQL_ERROR.IGNORABLE
    if lost then
      ask(RECONNECT, con.id)
    end
    desc.errcode = ERROR.RESTART_EVENT
    error(desc, 0)
  end
  con.error = SQL_ERROR.FATAL
  local text = format("SQL error, errno = %d, state = '%s': %s", errno, state, message)
  core.note(format("error %d (%s) for query '%s'", errno, message, tostring(query)))
  error(text, level + 1)
end

-- Results -----------------------------------------------------------------------------------------

local Rs = { __tostring = function() return "<sql_result>" end }
Rs.__index = Rs

-- The next row as a table; a NULL is a hole.
function Rs:fetch_row()
  local bytes = self.bytes
  if bytes == nil then return nil end
  local at, row = core.row(bytes, self.at, self.nfields, self.binary)
  if at == nil then
    self.bytes = nil
    return nil
  end
  self.at = at
  return row
end

function Rs:free()
  self.bytes = nil
end

local function result(con, count, columns, bytes, binary, more)
  con.more, con.error = more, 0
  if count == nil then return nil end
  return setmetatable({ nrows = count, nfields = columns, bytes = bytes, at = 0, binary = binary }, Rs)
end

-- Prepared statements -----------------------------------------------------------------------------

local TYPE = {
  NONE = 0, TINYINT = 1, SMALLINT = 2, INT = 3, BIGINT = 4, FLOAT = 5, DOUBLE = 6, TIME = 7,
  DATE = 8, DATETIME = 9, TIMESTAMP = 10, CHAR = 11, VARCHAR = 12,
}

-- [1] the values of its statement, [2] its place there, [3] its type, [4] the bytes of a string that
-- it takes.
local Param = { __tostring = function() return "<sql_param>" end }
Param.__index = Param

function Param:set(value)
  if value == nil then value = false end
  local most = self[4]
  if most and type(value) == "string" and #value > most then value = sub(value, 1, most) end
  self[1][self[2]] = value
end

function Param:set_rand_str(text)
  self[1][self[2]] = core.string(text)
end

local Stmt = { __tostring = function() return "<sql_statement>" end }
Stmt.__index = Stmt

-- Longer strings of a CHAR or VARCHAR are cut at `most`, as in sysbench, whose parameter is a buffer
-- of that size.
function Stmt:bind_create(kind, most)
  if type(kind) ~= "number" or kind < 1 or kind > 12 then
    error("bind_create() takes one of sysbench.sql.type, got " .. tostring(kind), 2)
  end
  if kind ~= TYPE.CHAR and kind ~= TYPE.VARCHAR then most = nil end
  return setmetatable({ { false }, 1, kind, most }, Param)
end

function Stmt:bind_param(...)
  local values = {}
  for at = 1, select("#", ...) do
    local param = select(at, ...)
    if getmetatable(param) ~= Param then
      error("bind_param() takes what bind_create() returned, got " .. type(param), 2)
    end
    values[at] = param[1][param[2]]
    if values[at] == nil then values[at] = false end
    param[1], param[2] = values, at
  end
  self.values = values
end

local function execute(stmt, level)
  local con = stmt.con
  local live = stmt.live
  if live then
    for at = 1, #live do stmt.values[at] = live[at] end
  end
  local ok, a, b, c, d, e = ask(EXECUTE, con.id, stmt.id, stmt.values)
  if ok then return result(con, a, b, c, d, e) end
  failed(con, stmt.query, level + 1, a, b, c, d, e)
end

function Stmt:execute()
  return (execute(self, 2))
end

function Stmt:close()
  local con = self.con
  if con.id ~= nil then ask(CLOSE, con.id, self.id) end
end

function Stmt:next_result()
  return self.con:next_result()
end

-- Connections -------------------------------------------------------------------------------------

-- Bytes of a multi-row INSERT.
local BULK_MAX = 512 * 1024

local Con = { __tostring = function() return "<sql_connection>" end }
Con.__index = Con

local function standing(con, level)
  if con.id == nil then
    error("the connection was closed by disconnect()", level + 1)
  end
  return con.id
end

local function query(con, text, level)
  local ok, a, b, c, d, e = ask(QUERY, standing(con, level + 1), text)
  if ok then return result(con, a, b, c, d, e) end
  failed(con, text, level + 1, a, b, c, d, e)
end

function Con:query(text)
  return (query(self, text, 2))
end

function Con:query_row(text)
  local rs = query(self, text, 2)
  local row = rs and rs:fetch_row()
  if not row then return nil end
  return unpack(row, 1, rs.nfields)
end

function Con:prepare(text)
  local ok, a, b, c, d, e = ask(PREPARE, standing(self, 2), text)
  if not ok then failed(self, text, 2, a, b, c, d, e) end
  return setmetatable({ con = self, id = a, query = text, values = false }, Stmt)
end

function Con:disconnect()
  if self.id ~= nil then
    ask(DISCONNECT, self.id)
    self.id = nil
  end
end

local function connect(con, level)
  local ok, a, b, c = ask(CONNECT)
  if not ok then
    core.note(a)
    core.note(format("error %d: %s", b, c))
    error("connection creation failed", level + 1)
  end
  con.id = a
  con.error, con.sql_errno = 0, 0
  return con
end

function Con:reconnect()
  self:disconnect()
  connect(self, 2)
  return true
end

function Con:more_results()
  return self.more ~= nil and self.more[1] ~= nil
end

function Con:next_result()
  local more = self.more
  local one = more and table.remove(more, 1)
  if not one then return nil end
  return result(self, one[1], one[2], one[3], one[4], more)
end

function Con:check_error() end

function Con:free_results() end

local function flush(bulk, con, level)
  if bulk.count > 0 then
    local text = concat(bulk, "", 0, bulk.count * 2 - 1)
    for at = 1, bulk.count * 2 do bulk[at] = nil end
    bulk.count, bulk.size = 0, #bulk[0]
    query(con, text, level + 1)
  end
end

function Con:bulk_insert_init(text)
  standing(self, 2)
  self.bulk = { [0] = text, count = 0, size = #text }
end

function Con:bulk_insert_next(values)
  local bulk = self.bulk or error("bulk_insert_next() without bulk_insert_init()", 2)
  if bulk.count > 0 and bulk.size + #values + 1 >= BULK_MAX then
    flush(bulk, self, 2)
  end
  local count = bulk.count
  if count > 0 then bulk[count * 2] = "," end
  bulk[count * 2 + 1] = values
  bulk.count, bulk.size = count + 1, bulk.size + #values + 1
end

function Con:bulk_insert_done()
  if self.bulk then
    local bulk = self.bulk
    self.bulk = nil
    flush(bulk, self, 2)
  end
end

local Driver = { __tostring = function() return "<sql_driver>" end }
Driver.__index = Driver

function Driver:name()
  return "mysql"
end

function Driver:connect()
  return (connect(setmetatable({ error = 0, sql_errno = 0 }, Con), 2))
end

local driver = setmetatable({}, Driver)

-- Histograms --------------------------------------------------------------------------------------

local Histogram = {}
Histogram.__index = Histogram

-- sysbench's histograms have several sets of counters, and draw which one counts a value from the
-- generator that the script draws from, too.
local function draw_as_histograms_do()
  core.rand.uniform_double()
end

function Histogram:update(value)
  draw_as_histograms_do()
  local at = math.floor((math.log(value) - self.low) * self.scale + 0.5)
  at = math.max(0, math.min(self.size - 1, at))
  self.counts[at] = (self.counts[at] or 0) + 1
end

function Histogram:print()
  local most = 0
  for _, count in pairs(self.counts) do most = math.max(most, count) end
  core.print("       value  ------------- distribution ------------- count\n")
  for at = 0, self.size - 1 do
    local count = self.counts[at]
    if count then
      local stars = string.rep("*", math.floor(count / most * 40 + 0.5))
      core.print(format("%12.3f |%-40s %d\n", math.exp(at / self.scale + self.low), stars, count))
    end
  end
end

local options = {}

-- sysbench ----------------------------------------------------------------------------------------

local shared = {
  version = config.version, version_string = "sysbench " .. config.version, error = ERROR,
  sql = {
    type = TYPE, error = SQL_ERROR,
    driver = function(name)
      if name ~= nil and name ~= "mysql" then
        error("the only database driver here is mysql; got " .. tostring(name), 2)
      end
      return driver
    end,
  },
  rand = core.rand,
  histogram = {
    new = function(size, low, high)
      local from = math.log(low)
      local scale = (size - 1) / (math.log(high) - from)
      return setmetatable({ size = size, low = from, scale = scale, counts = {} }, Histogram)
    end,
  },
}

-- Ready-made functions for the hooks of reports.
function shared.report_default(stat)
  local seconds = stat.time_interval
  core.print(format(
    "[ %.0fs ] thds: %u tps: %4.2f qps: %4.2f (r/w/o: %4.2f/%4.2f/%4.2f) lat (ms,%u%%): %4.2f " ..
    "err/s %4.2f reconn/s: %4.2f\n", stat.time_total, stat.threads_running, stat.events / seconds,
    (stat.reads + stat.writes + stat.other) / seconds, stat.reads / seconds,
    stat.writes / seconds, stat.other / seconds, options.percentile, stat.latency_pct * 1000,
    stat.errors / seconds, stat.reconnects / seconds))
end

function shared.report_csv(stat)
  local seconds = stat.time_interval
  core.print(format("%.0f,%u,%4.2f,%4.2f,%4.2f,%4.2f,%4.2f,%4.2f,%4.2f,%4.2f\n", stat.time_total,
    stat.threads_running, stat.events / seconds,
    (stat.reads + stat.writes + stat.other) / seconds, stat.reads / seconds,
    stat.writes / seconds, stat.other / seconds, stat.latency_pct * 1000,
    stat.errors / seconds, stat.reconnects / seconds))
end

-- An array of objects; its end comes with the last report.
local json_begun = false

function shared.report_json(stat)
  local seconds = stat.time_interval
  core.print(json_begun and ",\n" or "[\n")
  json_begun = true
  core.print(format(
    '  {\n    "time": %4.0f,\n    "threads": %u,\n    "tps": %4.2f,\n    "qps": {\n' ..
    '      "total": %4.2f,\n      "reads": %4.2f,\n      "writes": %4.2f,\n' ..
    '      "other": %4.2f\n    },\n    "latency": %4.2f,\n    "errors": %4.2f,\n' ..
    '    "reconnects": %4.2f\n  }', stat.time_total, stat.threads_running, stat.events / seconds,
    (stat.reads + stat.writes + stat.other) / seconds, stat.reads / seconds,
    stat.writes / seconds, stat.other / seconds, stat.latency_pct * 1000,
    stat.errors / seconds, stat.reconnects / seconds))
end

shared.db = shared.sql
shared.__index = shared

local cmdline = {
  ARG_NULL = 0, ARG_BOOL = 1, ARG_INT = 2, ARG_INTEGER = 2, ARG_SIZE = 3, ARG_DOUBLE = 4,
  ARG_STRING = 5, ARG_LIST = 6, ARG_FILE = 7, ARG_MAX = 8, PARALLEL_COMMAND = true,
  argv = config.argv, command = config.command, script_path = config.path,
}
cmdline.__index = cmdline

-- Names that a script finds where it has not made them itself: what comes with Lua, what 0.5 had,
-- and each option.
local base, option_globals = {}, {}
setmetatable(base, { __index = option_globals })
for name, value in pairs(_G) do base[name] = value end

local function set_options(new)
  for name, value in pairs(new) do
    options[name] = value
    option_globals[name] = value
  end
  for _, env in pairs(envs) do
    for name, value in pairs(new) do env.sysbench.opt[name] = value end
  end
end

-- Files -------------------------------------------------------------------------------------------

-- Compiled once a group: called, each gives a function with an environment of its own.
local factories = {}

local function factory(path)
  local made = factories[path]
  if made then return made end
  local file, reason = open(path, "rb")
  if not file then return nil, reason end
  local text = file:read("*a")
  file:close()
  if text == nil then return nil, path .. ": it cannot be read" end
  -- A line for the kernel (#!) is none for Lua.
  text = text:gsub("^#[^\n]*", "")
  local name = "@" .. path
  local plain, wrong = loadstring(text, name)
  if not plain then error(wrong, 0) end
  -- On the first line, so that lines keep their numbers.
  local wrapped = loadstring("return function(...) " .. text .. "\nend", name)
  made = wrapped or function() return loadstring(text, name) end
  factories[path] = made
  return made
end

local function load_into(env, path, ...)
  local make, reason = factory(path)
  if not make then error(reason, 0) end
  return setfenv(make(), env)(...)
end

-- The environment of whoever called a function of this file.
local function caller()
  local env = getfenv(3)
  if rawget(env, "sysbench") == nil then env = envs[current] end
  return env
end

function base.dofile(path)
  return load_into(caller(), path)
end

function base.loadfile(path)
  local ok, make, reason = pcall(factory, path)
  if not ok then return nil, make end
  if not make then return nil, reason end
  return setfenv(make(), caller())
end

function base.load(chunk, name)
  local made, reason = load(chunk, name)
  if not made then return nil, reason end
  return setfenv(made, caller())
end

function base.loadstring(text, name)
  local made, reason = loadstring(text, name)
  if not made then return nil, reason end
  return setfenv(made, caller())
end

-- Modules that an environment has.
local loaded = setmetatable({}, { __mode = "k" })
local package_table = { path = config.package_path, cpath = "", preload = {}, loaded = {} }
base.package = package_table

function base.require(name)
  local env = caller()
  local own = loaded[env]
  if own == nil then
    own = {}
    loaded[env] = own
  end
  if own[name] ~= nil then return own[name] end
  local value = rawget(base, name)
  if type(value) == "table" then return value end
  local preload, tried = package_table.preload[name], {}
  if preload then
    value = preload(name)
  else
    local file = name:gsub("%.", "/")
    local make
    for pattern in package_table.path:gmatch("[^;]+") do
      local path = pattern:gsub("%?", function() return file end)
      local opened = factories[path] or open(path, "rb")
      if opened then
        if type(opened) ~= "function" then opened:close() end
        make = factory(path)
        break
      end
      tried[#tried + 1] = "\n\tno file '" .. path .. "'"
    end
    if not make then
      error("module '" .. name .. "' not found (modules written in C are not loaded here):" ..
        concat(tried), 2)
    end
    own[name] = true
    value = setfenv(make(), env)(name)
  end
  if value ~= nil then own[name] = value end
  return own[name]
end

-- Coroutines of a script's own: what they ask of the event loop goes through to it.
local function pass_through(co, ok, mark, ...)
  if ok and mark == MARK then
    return pass_through(co, resume(co, yield(MARK, ...)))
  end
  return ok, mark, ...
end

local own_coroutines = {}
for name, value in pairs(coroutine) do own_coroutines[name] = value end

function own_coroutines.resume(co, ...)
  return pass_through(co, resume(co, ...))
end

local function unwrap(ok, ...)
  if not ok then error((...), 0) end
  return ...
end

function own_coroutines.wrap(body)
  local co = create(body)
  return function(...)
    return unwrap(pass_through(co, resume(co, ...)))
  end
end
base.coroutine = own_coroutines

-- What blocks -------------------------------------------------------------------------------------

local said = {}

-- Says once a group that a call makes all its connections wait.
local function blocks(what)
  if not said[what] then
    said[what] = true
    core.note_once(what)
  end
end

base.os = setmetatable({}, { __index = os })

function base.os.execute(command)
  if command == nil then return os_execute() end
  local seconds = tostring(command):match("^%s*sleep%s+([%d.]+)%s*$")
  if tonumber(seconds) and running() then
    ask(SLEEP, tonumber(seconds) * 1e6)
    return 0
  end
  blocks("os.execute()")
  return os_execute(command)
end

function base.os.exit(code)
  error("the script called os.exit(" .. tostring(code or 0) .. ")", 2)
end

base.io = setmetatable({}, { __index = io })

function base.io.popen(...)
  blocks("io.popen()")
  return popen(...)
end

function base.io.write(...)
  for at = 1, select("#", ...) do core.print(tostring((select(at, ...)))) end
  return io.stdout
end

function base.print(...)
  local parts = {}
  for at = 1, select("#", ...) do parts[at] = tostring((select(at, ...))) end
  core.print(concat(parts, "\t") .. "\n")
end

-- FFI ---------------------------------------------------------------------------------------------

-- Declarations are taken and not looked at; the functions that published scripts call are here.
local C = {
  SB_CNT_OTHER = 0, SB_CNT_READ = 1, SB_CNT_WRITE = 2, SB_CNT_ERROR = 3, SB_CNT_RECONNECT = 4,
}

function C.usleep(micros)
  ask(SLEEP, tonumber(micros))
  return 0
end

function C.sleep(seconds)
  ask(SLEEP, tonumber(seconds) * 1e6)
  return 0
end

function C.sb_counter_inc(_, counter)
  ask(COUNT, tonumber(counter))
end

function C.sb_rand_uniform(low, high) return core.rand.uniform(low, high) end
function C.sb_rand_default(low, high) return core.rand.default(low, high) end
function C.sb_rand_uniform_double() return core.rand.uniform_double() end

-- sb_more_events() has begun the event, and its end is the next one's question.
function C.sb_more_events() return ask(NEXT) and true or false end
function C.sb_event_start() end
function C.sb_event_stop()
  if options.percentile > 0 then draw_as_histograms_do() end
end

local function no_ffi(name)
  error("ffi." .. name .. " is not here: of LuaJIT's FFI there are cdef and the functions " ..
    "usleep, sleep and sb_*", 3)
end

setmetatable(C, { __index = function(_, name) no_ffi("C." .. tostring(name)) end })
base.ffi = setmetatable({ C = C, cdef = function() end, os = "Linux", arch = config.arch }, {
  __index = function(_, name) no_ffi(tostring(name)) end,
})
base.jit = setmetatable({ on = function() end, off = function() end }, { __index = jit })

-- What 0.5 had ------------------------------------------------------------------------------------

base.test = config.path
base.db_driver = "mysql"
base.DB_ERROR_NONE, base.DB_ERROR_RESTART_TRANSACTION, base.DB_ERROR_FAILED = 0, 1, 2
base.sb_rand = core.rand.default
base.sb_rand_uniform = core.rand.uniform
base.sb_rand_gaussian = core.rand.gaussian
base.sb_rand_special = core.rand.special
base.sb_rand_pareto = core.rand.pareto
base.sb_rand_uniq = core.rand.unique
base.sb_rand_str = core.string
base.sb_rnd = function() return core.rand.uniform(0, 0x3FFFFFFF - 1) end

function base.db_connect()
  local env = envs[current]
  local con = connect(setmetatable({ error = 0, sql_errno = 0 }, Con), 2)
  rawset(env, " con", con)
  return con
end

local function own_connection(level)
  local env = envs[current]
  local con = rawget(env, " con")
  if con == nil then
    con = connect(setmetatable({ error = 0, sql_errno = 0 }, Con), level + 1)
    rawset(env, " con", con)
  end
  return con
end

function base.db_disconnect()
  local env = envs[current]
  local con = rawget(env, " con")
  if con then con:disconnect() end
  rawset(env, " con", nil)
end

function base.db_query(text)
  query(own_connection(2), text, 2)
end

function base.db_bulk_insert_init(text) own_connection(2):bulk_insert_init(text) end
function base.db_bulk_insert_next(text) own_connection(2):bulk_insert_next(text) end
function base.db_bulk_insert_done() own_connection(2):bulk_insert_done() end

function base.db_prepare(text)
  return own_connection(2):prepare(text)
end

-- The values of the table are those of each execution.
function base.db_bind_param(stmt, values)
  stmt.live, stmt.values = values, {}
end

function base.db_bind_result() end

function base.db_execute(stmt)
  return (execute(stmt, 2))
end

function base.db_store_results(rs) return rs end
function base.db_free_results() end
function base.db_close(stmt) stmt:close() end

-- Environments ------------------------------------------------------------------------------------

local env_meta = { __index = base }
-- Of the first environment: all others have the same, so they need not keep their own.
local declared_options, declared_commands

local function new_env(uid, tid)
  local opt = {}
  for name, value in pairs(options) do opt[name] = value end
  local env = setmetatable({
    sysbench = setmetatable({
      tid = tid, opt = opt, hooks = {}, cmdline = setmetatable({}, cmdline),
    }, shared),
    thread_id = tid,
  }, env_meta)
  env._G = env
  envs[uid] = env
  return env
end

local function share_declarations(env)
  local own = env.sysbench.cmdline
  if declared_options == nil then
    declared_options, declared_commands = rawget(own, "options"), rawget(own, "commands")
  end
  own.options, own.commands = declared_options, declared_commands
end

local function command_of(env, name)
  local commands = env.sysbench.cmdline.commands
  local entry = commands and commands[name]
  if type(entry) == "table" and type(entry[1]) == "function" then
    return entry[1], entry[2] == true
  end
  local plain = rawget(env, name)
  if type(plain) == "function" then return plain, false end
  return nil
end

function cmdline.call_command(name)
  local command = command_of(envs[current], name)
  if not command then return false end
  command()
  return true
end

function cmdline.command_defined(name)
  return command_of(envs[current], name) ~= nil
end

function cmdline.command_parallel(name)
  local _, parallel = command_of(envs[current], name)
  return parallel or false
end

function cmdline.read_cmdline_options() end

function cmdline.print_test_options()
  core.print(core.options_text(envs[current].sysbench.cmdline.options or {}))
end

-- What a coroutine runs ---------------------------------------------------------------------------

local function events(env, tid)
  local event = env.event
  local hooks = env.sysbench.hooks
  while ask(NEXT) do
    local ok, value
    repeat
      ok, value = pcall(event, tid)
      if not ok then
        if type(value) ~= "table" or value.errcode ~= ERROR.RESTART_EVENT then error(value, 0) end
        local hook = hooks.before_restart_event
        if hook then hook(value) end
      end
    until ok
    if value then return end
    C.sb_event_stop()
  end
end

local function thread(uid, tid)
  local env = new_env(uid, tid)
  load_into(env, config.path)
  share_declarations(env)
  local init = rawget(env, "thread_init")
  if init then init(tid) end
  ask(READY)
  local run = rawget(env, "thread_run")
  if run then
    run(tid)
  else
    if type(env.event) ~= "function" then
      error(config.path .. ": the script has no function event()", 0)
    end
    events(env, tid)
  end
  local done = rawget(env, "thread_done")
  ask(LEAVING)
  if done then done(tid) end
end

-- The script itself, once, for what it declares.
local function main(uid)
  local env = new_env(uid, 0)
  load_into(env, config.path)
  share_declarations(env)
end

-- A function of the script in an environment that is there.
local function call(uid, _, name)
  local f = rawget(envs[uid], name)
  if f then return f() end
end

-- A hook of reports in an environment that is there, with the numbers that were set.
local numbers

local function hook(uid, _, name)
  envs[uid].sysbench.hooks[name](numbers)
end

-- A command in an environment of its own, as one of several.
local function parallel(uid, tid, name)
  local env = new_env(uid, tid)
  load_into(env, config.path)
  local command = command_of(env, name)
  command()
end

-- A command in the environment of the script itself.
local function single(uid, _, name)
  command_of(envs[uid], name)()
end

local bodies = {
  thread = thread, main = main, call = call, hook = hook, parallel = parallel, single = single,
}

-- For the event loop ------------------------------------------------------------------------------

local function settle(uid, co, ok, mark, ...)
  if ok and status(co) ~= "dead" then
    if mark == MARK then return ... end
    ok, mark = false, "coroutine.yield() outside of a coroutine of the script"
  end
  threads[uid] = nil
  if ok then return RETURNED, mark end
  if type(mark) == "table" and mark.sql_errmsg then
    mark = format("SQL error, errno = %d, state = '%s': %s", mark.sql_errno, mark.sql_state,
      mark.sql_errmsg)
  end
  return DIED, tostring(mark)
end

local loop = {}

function loop.begin(uid, body)
  threads[uid] = create(bodies[body])
end

function loop.step(uid, ...)
  current = uid
  local co = threads[uid]
  return settle(uid, co, resume(co, ...))
end

-- Forgets a coroutine that nobody will resume, with all that it has.
function loop.forget(uid)
  threads[uid], envs[uid] = nil, nil
end

function loop.is_command(uid, name)
  local command, is_parallel = command_of(envs[uid], name)
  return command ~= nil, is_parallel or false
end

function loop.has(uid, name)
  return type(rawget(envs[uid], name)) == "function"
end

function loop.has_hook(uid, name)
  return type(envs[uid].sysbench.hooks[name]) == "function"
end

function loop.set_numbers(new)
  numbers = new
end

function loop.declared(uid)
  return envs[uid].sysbench.cmdline.options
end

-- What has been begun by report_json().
function loop.end_of_reports()
  if json_begun then core.print("\n]\n") end
end

loop.set_options = set_options
set_options(config.options)
return loop
