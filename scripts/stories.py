#!/usr/bin/env python3
"""Tells random stories of six clients to a server and to the pool, and compares the replies' bytes.

What: starts a fresh server, and `onramp pool` with four backends in front of it. A story is a list of
  steps of six clients, drawn from a seed: statements of all kinds, multi-statements, prepared
  statements of both kinds, procedures, triggers, transactions, locks, temporary tables, resets,
  changes of user, connections cut in the middle of a packet. It is told once to the server, each
  client on a connection of its own, and once through the pool. Every packet of every reply must be
  the same, but for the ids of prepared statements. A story that differs, and that the server itself
  answers the same twice, is cut down and printed.
Why: it shares nothing with the oracle of testkit: neither client, catalogue nor comparison.
Changes on the machine: servers and pools run on free ports of the loopback address, with their data
  in a temporary folder.
Restores: ends the servers and the pools, and removes the folder.

  With --together each client tells its own steps without waiting for the others', so a client's
  next statement goes out while the pool still asks what the one before has left. Clients share no
  row, so what each is answered does not depend on the others.

Usage: python3 scripts/stories.py [--server mariadb|mysql] [--seed N] [--seconds S] [--stories N] [--together]
Needs PyMySQL and cryptography, by which the clients log in, and target/debug/onramp. Ends with
status 1 when a story differs. Error 1235 of the pool (docs/pool/limits.md) ends a story; such ends are
counted by the statement.
"""

import argparse
import collections
import pathlib
import random
import re
import sys
import tempfile
import threading
import time

import pymysql

from suites import Pool, Server, say

CLIENTS = 6
STEPS = (20, 60)
# Clients that may hold a backend at one time: fewer than the pool has.
HOLDERS_MAX = 2
PACKETS_MAX = 20_000
SHRINK_S = 60
DIFFERENT_MAX = 10
DEPRECATE_EOF, MULTI_STATEMENTS, LOCAL_FILES = 1 << 24, 1 << 16, 1 << 7
MORE_RESULTS, CURSOR_EXISTS, PS_OUT_PARAMS = 8, 64, 4096
QUERY, INIT_DB, PING, CHANGE_USER, PREPARE, EXECUTE = 3, 2, 14, 17, 22, 23
CLOSE, RESET_STATEMENT, SET_OPTION, RESET = 25, 26, 27, 31
SCHEMAS = ("test", "test1")

GROUND = [
    "CREATE TABLE {s}.kinds (id INT PRIMARY KEY, v DECIMAL(9,3), w VARCHAR(20), b BLOB)",
    "INSERT INTO {s}.kinds VALUES (1, 1.5, 'one', x'00ff'), (2, NULL, 'zw\u00f6lf', NULL), (3, -7, '', '')",
    "CREATE TABLE {s}.asked (x INT, c INT, f INT)",
    "CREATE TRIGGER {s}.asks BEFORE INSERT ON {s}.asked FOR EACH ROW SET NEW.c = ROW_COUNT(), "
    "NEW.f = FOUND_ROWS()",
    "CREATE TABLE {s}.log (x INT)",
    "CREATE PROCEDURE {s}.rows_of(x INT) BEGIN SELECT x; SELECT id, w FROM kinds WHERE id <= x; END",
    "CREATE PROCEDURE {s}.gives(IN x INT, OUT y INT, INOUT z INT) BEGIN SET y = x + 1, z = z * 2; END",
    "CREATE PROCEDURE {s}.warns() BEGIN SELECT CAST('warned' AS SIGNED); END",
    "CREATE PROCEDURE {s}.fails() BEGIN DECLARE EXIT HANDLER FOR SQLEXCEPTION RESIGNAL; "
    "SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'own', MYSQL_ERRNO = 3456; END",
    "CREATE PROCEDURE {s}.reads() BEGIN DECLARE y INT; DECLARE own CURSOR FOR SELECT id FROM kinds; "
    "OPEN own; FETCH own INTO y; SELECT y; CLOSE own; SELECT 2; END",
    "CREATE PROCEDURE {s}.sets(x INT) BEGIN SET @inside = x, div_precision_increment = 7; END",
    "CREATE FUNCTION {s}.twice(x INT) RETURNS INT DETERMINISTIC RETURN x * 2",
    "CREATE VIEW {s}.seen AS SELECT id, w, twice(id) FROM kinds",
]

# Texts that leave nothing but what questions can ask for. {t}: the client's own table.
PLAIN = """SELECT id, v FROM {t} ORDER BY id|SELECT * FROM kinds|SELECT * FROM kinds LIMIT {n}
SELECT id FROM kinds WHERE id > {n} UNION SELECT {n}|SELECT CAST('{w}' AS SIGNED)|SELECT 1/{n}, {n}/7
SELECT CAST('{w}' AS SIGNED), id FROM kinds|INSERT INTO {t} (v) VALUES ({n})
INSERT INTO {t} (v) VALUES ({n}), ({n}), ('{w}')|INSERT IGNORE INTO {t} (v) VALUES ('{w}')
INSERT INTO {t} (id, v) VALUES ({n}, {n})|REPLACE INTO {t} (id, v) VALUES ({n}, 5)
INSERT INTO {t} (id, v) VALUES ({n}, 1) ON DUPLICATE KEY UPDATE v = v + 1
UPDATE {t} SET v = v + {n}|UPDATE {t} SET v = {n} WHERE id = {n}|DELETE FROM {t} WHERE id = {n}
INSERT INTO {t} (v) SELECT id FROM kinds WHERE id < {n}|SELECT * FROM missing|SELEC {n}|DO {n}
SELECT no_such_column FROM {t}|INSERT INTO asked (x) VALUES ({n})|SELECT SQL_CALC_FOUND_ROWS id FROM kinds LIMIT 1
SELECT twice({n})|SELECT * FROM seen WHERE id = {n}|CALL rows_of({n})|CALL warns()|CALL fails()|CALL reads()
CALL rows_of('{w}')|CALL missing({n})|SHOW TABLES LIKE 'k%'|EXPLAIN SELECT * FROM kinds WHERE id = {n}
SELECT '{w}', _utf8mb4'\u20ac', x'c3a9', N'{w}'|SELECT @@sql_mode, @@time_zone, @@autocommit
SELECT @@character_set_client, @@collation_connection, @@character_set_results|SELECT DATABASE(), CURRENT_USER()
SELECT w FROM kinds WHERE w = 'zw\u00f6lf'|SELECT REPEAT('{w}', 20000)|SELECT "{w}"|SELECT 'a' 'b', '{w}' || '{w}'
SELECT FROM_UNIXTIME({n}00000)|TRUNCATE TABLE {t}|ANALYZE TABLE {t}|CHECK TABLE kinds|VALUES ROW({n}, 2)
SELECT id INTO @into FROM kinds WHERE id = {n}|SELECT GROUP_CONCAT(w ORDER BY id) FROM kinds""".replace("\n", "|").split("|")
QUESTIONS = """SHOW WARNINGS|SHOW ERRORS|SHOW COUNT(*) WARNINGS|SELECT @@warning_count, @@error_count
SELECT ROW_COUNT()|SELECT FOUND_ROWS()|SELECT LAST_INSERT_ID(), @@identity|SHOW WARNINGS LIMIT 1
GET DIAGNOSTICS @n = NUMBER, @r = ROW_COUNT|GET DIAGNOSTICS CONDITION 1 @m = MESSAGE_TEXT, @e = MYSQL_ERRNO
SELECT ROW_COUNT(), FOUND_ROWS()""".replace("\n", "|").split("|")
SETTINGS = """SET sql_mode = 'ANSI_QUOTES'|SET sql_mode = 'PIPES_AS_CONCAT,NO_BACKSLASH_ESCAPES'|SET sql_mode = ''
SET sql_mode = DEFAULT|SET time_zone = '+0{n}:00'|SET NAMES latin1|SET NAMES utf8mb4|SET NAMES utf8mb4 COLLATE utf8mb4_bin
SET CHARACTER SET latin1|SET character_set_results = NULL|SET div_precision_increment = {n}|SET @@div_precision_increment = {n}
SET sql_select_limit = {n}|SET sql_select_limit = DEFAULT|SET max_error_count = 1|SET max_error_count = DEFAULT
SET last_insert_id = {n}|SET autocommit = 1|SET group_concat_max_len = 5|SET sql_notes = 0|SET sql_notes = 1
SET no_such_variable = 1|SET time_zone = 'No/Where'|USE test|USE test1|USE no_such_schema|SET collation_connection = latin1_bin
SET NAMES utf8mb4, time_zone = '+00:30', sql_mode = 'ANSI'|CALL sets({n})|SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED
SET insert_id = {n}1|SET timestamp = 100000000{n}|SET timestamp = DEFAULT|SET character_set_results = utf16""".replace("\n", "|").split("|")
VARIABLES = """SET @a = {n}|SET @a = '{w}'|SET @a = NULL|SET @a = 1.50, @b = x'ff'|SELECT {n} INTO @a|SET @a := @a|DO @b := {n}
SELECT @a := {n}|CALL gives({n}, @a, @b)""".replace("\n", "|").split("|")
HOLDING = """BEGIN|START TRANSACTION READ ONLY|SET autocommit = 0|LOCK TABLES {t} WRITE|DO GET_LOCK('{w}{c}', 0)
CREATE TEMPORARY TABLE own (x INT)|XA START 'x{c}'|HANDLER kinds OPEN|SET TRANSACTION READ ONLY|SAVEPOINT s""".replace("\n", "|").split("|")
HELD = """COMMIT|ROLLBACK|ROLLBACK TO s|SAVEPOINT s|UNLOCK TABLES|DO RELEASE_ALL_LOCKS()|INSERT INTO own VALUES ({n})
SELECT * FROM own|DROP TEMPORARY TABLE own|HANDLER kinds READ FIRST|HANDLER kinds CLOSE|COMMIT AND CHAIN
XA END 'x{c}'|XA ROLLBACK 'x{c}'|SELECT COUNT(*) FROM {t}|INSERT INTO {t} (v) VALUES ({n})""".replace("\n", "|").split("|")
PREPARABLE = """SELECT ?, id FROM kinds WHERE id < ?|INSERT INTO {t} (v) VALUES (?)|UPDATE {t} SET v = ?|SELECT {n}
CALL rows_of(?)|CALL gives(?, ?, ?)|CALL reads()|SELECT CAST('{w}' AS SIGNED)|SELECT ROW_COUNT()|SHOW WARNINGS
SET @a = ?|SELECT * FROM kinds WHERE w = ?|DELETE FROM {t} WHERE id = ?|SELECT * FROM missing|DO ?""".replace("\n", "|").split("|")


def values_for(said, mysql, rng):
    """How to draw the values of an execution of a statement, for one preparation."""
    kinds = [[None], [1, 2], ["x", "3z"]]
    # MySQL derives types from all executions so far: docs/pool/limits.md has those that change them.
    own = [rng.choice(kinds) if mysql else sum(kinds, []) for _ in range(said.count("?"))]
    return lambda: [rng.choice(kind) for kind in own]


def draw(seed, mysql):
    """The steps of a story: client, kind, and what it says."""
    rng = random.Random(seed)
    steps, holders, variables = [], set(), collections.defaultdict(set)
    habits = rng.sample([PLAIN, QUESTIONS, SETTINGS, VARIABLES, HOLDING, PREPARABLE], 4)
    habits += [PLAIN, QUESTIONS]

    def text(of, who):
        form = rng.choice(of)
        return form.replace("{t}", f"own{who}").replace("{c}", str(who)).replace(
            "{n}", str(rng.randint(1, 5))).replace("{w}", rng.choice(["x", "12y", "\u00e9t\u00e9"]))

    for _ in range(rng.randint(*STEPS)):
        who = rng.randrange(CLIENTS)
        if who in holders and rng.random() < 0.3:
            steps.append((who, "reset", ""))
            holders.discard(who)
            variables.pop(who, None)
            continue
        habit = HELD if who in holders and rng.random() < 0.5 else rng.choice(habits)
        if habit is HOLDING and who not in holders:
            if len(holders) >= HOLDERS_MAX:
                habit = PLAIN
            else:
                holders.add(who)
        said = text(habit, who)
        chance = rng.random()
        if habit is VARIABLES:
            names = set(re.findall("@([ab])", said))
            # A variable that was never set, named first by a client that holds its backend, is
            # documented to differ; of the others a SET @a := @a does.
            held = who in holders and not names <= variables[who]
            if held or "@a := @a" in said and "a" not in variables[who]:
                said, names = "SET @a = 1, @b = 2", {"a", "b"}
            variables[who] |= names
            steps.append((who, "query", said))
            if rng.random() < 0.4:
                steps.append((who, "query", text(SETTINGS, who)))
            if "@b" in said:
                steps.append((who, "query", "SELECT @b"))
            elif "@a" in said:
                steps.append((who, "query", "SELECT @a, @a + 1"))
        elif habit is PREPARABLE and chance < 0.7:
            slot = rng.randint(1, 3)
            steps.append((who, "prepare", (slot, said)))
            values = values_for(said, mysql, rng)
            if rng.random() < 0.3:
                steps.append((who, "query", text(SETTINGS, who)))
            # Executed in a transaction that began where autocommit was on.
            manual = rng.random() < 0.2 and who not in holders
            if manual:
                steps.append((who, "query", "SET autocommit = 0"))
                steps.append((who, "query", text(["INSERT INTO {t} (v) VALUES ({n})"], who)))
            for _ in range(rng.randint(0, 2)):
                steps.append((who, "execute", (slot, values())))
            if manual:
                steps.append((who, "query", "ROLLBACK"))
                steps.append((who, "query", text(["SELECT COUNT(*) FROM {t}"], who)))
                steps.append((who, "query", "SET autocommit = 1"))
            if chance < 0.2:
                steps.append((who, rng.choice(["close", "reset statement"]), slot))
        elif habit is PREPARABLE and "?" not in said:
            quoted = said.replace("'", "''")
            steps.append((who, "query", f"PREPARE p FROM '{quoted}'"))
            steps += [(who, "query", "EXECUTE p")] * rng.randint(1, 2)
            steps.append((who, "query", rng.choice(["DEALLOCATE PREPARE p", "DO 0", "SHOW WARNINGS"])))
        elif chance < 0.08 and habit in (PLAIN, QUESTIONS):
            steps.append((who, "query", f"{said}; {text(PLAIN, who)}; {text(QUESTIONS, who)}"))
        elif chance < 0.12:
            steps.append((who, rng.choice(["ping", "reset", "use", "option", "user"]), rng.choice(SCHEMAS)))
            if steps[-1][1] in ("reset", "user"):
                holders.discard(who)
                variables.pop(who, None)
        elif chance < 0.14:
            steps.append((who, "cut", (said, rng.randint(0, len(said) + 4))))
            holders.discard(who)
            variables.pop(who, None)
        else:
            steps.append((who, "query", said))
    return steps


def length(buffer, at):
    """A length-encoded integer, and where it ends."""
    first = buffer[at]
    size = {0xFC: 2, 0xFD: 3, 0xFE: 8}.get(first, 0)
    if not size:
        return first, at + 1
    return int.from_bytes(buffer[at + 1:at + 1 + size], "little"), at + 1 + size


class Peer:
    """One client: PyMySQL logs in, the rest is this file's own."""

    def __init__(self, port, who):
        self.deprecates = who % 2 == 0
        flags = MULTI_STATEMENTS | LOCAL_FILES | (DEPRECATE_EOF if self.deprecates else 0)
        self.connection = pymysql.connect(
            host="127.0.0.1", port=port, user="app", password="app", database="test",
            client_flag=flags, autocommit=None, charset="utf8mb4")
        self.socket, self.file = self.connection._sock, self.connection._rfile
        self.socket.settimeout(30)
        self.statements, self.texts = {}, {}
        # What a session has found before its first SELECT is documented to differ.
        self.do("query", "SELECT 1")

    def packet(self):
        payload = b""
        while True:
            header = self.file.read(4)
            if len(header) < 4:
                raise EOFError("the connection was closed")
            size = int.from_bytes(header[:3], "little")
            payload += self.file.read(size)
            self.sequence = header[3]
            if size < 0xFFFFFF:
                return payload

    def send(self, command, body=b""):
        payload = bytes([command]) + body
        self.socket.sendall(len(payload).to_bytes(3, "little") + b"\0" + payload)

    def status(self, payload):
        """The status flags in an OK or EOF packet."""
        if payload[0] == 0xFE and len(payload) == 5:
            return int.from_bytes(payload[3:5], "little")
        _, at = length(payload, 1)
        _, at = length(payload, at)
        return int.from_bytes(payload[at:at + 2], "little")

    def results(self):
        """All packets of a reply to a statement, with their numbers."""
        out = []

        def take():
            if len(out) > PACKETS_MAX:
                raise EOFError(f"more than {PACKETS_MAX} packets")
            payload = self.packet()
            if payload[0] == 0xFE and len(payload) == 5:
                # What an EOF packet says of a changed session is documented to differ.
                payload = payload[:4] + bytes([payload[4] & ~0x40])
            # "at row N" is documented to differ where no row is meant.
            out.append((self.sequence, re.sub(rb"at row \d+", b"at row N", payload)))
            return payload

        while True:
            first = take()
            if first[0] == 0xFF:
                return out
            if first[0] == 0xFB:
                answer = b"7\n8\n"
                self.socket.sendall(len(answer).to_bytes(3, "little") + bytes([self.sequence + 1]) + answer)
                self.socket.sendall(b"\0\0\0" + bytes([self.sequence + 2]))
                first = take()
            if first[0] == 0:
                status = self.status(first)
            else:
                columns, _ = length(first, 0)
                for _ in range(columns):
                    if take()[0] == 0xFF:
                        return out
                outs = 0 if self.deprecates else self.status(take()) & PS_OUT_PARAMS
                while True:
                    row = take()
                    if row[0] == 0xFF:
                        return out
                    if row[0] == 0xFE and len(row) < (0xFFFFFF if self.deprecates else 9):
                        break
                status = self.status(row) | (MORE_RESULTS if outs else 0)
            if not status & MORE_RESULTS:
                return out

    def prepare(self, slot, sql):
        old = self.statements.pop(slot, None)
        if old:
            self.send(CLOSE, old)
        self.send(PREPARE, sql.encode())
        head = self.packet()
        if head[0] == 0xFF:
            return [head]
        self.statements[slot], self.texts[slot] = head[1:5], sql
        columns, params = (int.from_bytes(head[at:at + 2], "little") for at in (5, 7))
        out = [head[:1] + head[5:]]
        for count in (params, columns):
            out += [self.packet() for _ in range(count + (bool(count) and not self.deprecates))]
        return out

    def execute(self, slot, values):
        statement = self.statements.get(slot)
        if not statement:
            return ["no statement"]
        nulls = bytearray((len(values) + 7) // 8)
        types, data = b"", b""
        for place, value in enumerate(values):
            if value is None:
                nulls[place // 8] |= 1 << place % 8
                types += b"\x06\0"
            elif isinstance(value, int):
                types, data = types + b"\x08\0", data + value.to_bytes(8, "little")
            else:
                types, data = types + b"\xfd\0", data + bytes([len(value)]) + value.encode()
        bound = bytes(nulls) + b"\x01" + types + data if values else b""
        self.send(EXECUTE, statement + b"\0\x01\0\0\0" + bound)
        return self.uncounted(self.texts[slot], self.results())

    def uncounted(self, sql, reply):
        """A CALL that counts nothing says what was counted before: documented to differ."""
        at, last = reply[-1]
        if sql.startswith("CALL gives") and last[:1] == b"\0":
            reply[-1] = at, b"\0\0" + last[2:]
        return reply

    def change_user(self, schema):
        self.send(CHANGE_USER, b"app\0\0" + schema.encode() + b"\0\x2d\0mysql_native_password\0\0")
        while True:
            payload = self.packet()
            if payload[0] == 0xFE:
                plugin, nonce = payload[1:].split(b"\0", 1)
                nonce = nonce.rstrip(b"\0")[:20]
                if plugin == b"mysql_native_password":
                    answer = pymysql._auth.scramble_native_password(b"app", nonce)
                else:
                    answer = pymysql._auth.scramble_caching_sha2(b"app", nonce)
                self.socket.sendall(len(answer).to_bytes(3, "little") + bytes([self.sequence + 1]) + answer)
            elif payload[0] != 1:
                self.statements = {}
                return [payload]
            elif payload[1:2] == b"\x04":
                raise EOFError("the server wants the password in full")

    def one(self):
        return [self.packet()]

    def do(self, kind, said):
        """What a step is answered; `None` after a cut."""
        if kind == "query":
            self.send(QUERY, said.encode())
            return self.uncounted(said, self.results())
        if kind == "prepare":
            return self.prepare(*said)
        if kind == "execute":
            return self.execute(*said)
        if kind in ("close", "reset statement"):
            statement = self.statements.get(said)
            if not statement:
                return ["no statement"]
            if kind == "close":
                del self.statements[said]
                self.send(CLOSE, statement)
                return []
            self.send(RESET_STATEMENT, statement)
            return self.one()
        if kind == "cut":
            text, at = said
            payload = bytes([QUERY]) + text.encode()
            whole = len(payload).to_bytes(3, "little") + b"\0" + payload
            # Never the whole: who is cut behind it may or may not have run it.
            self.socket.sendall(whole[:min(at, len(whole) - 1)])
            self.connection._force_close()
            return None
        if kind == "user":
            return self.change_user(said)
        if kind == "reset":
            self.statements = {}
        command, body = {"ping": (PING, b""), "reset": (RESET, b""), "use": (INIT_DB, said.encode()),
                         "option": (SET_OPTION, b"\0\0")}[kind]
        self.send(command, body)
        return self.one()


def ground(admin):
    """Empties what the story before has written."""
    cursor = admin.cursor()
    until = time.monotonic() + 20
    cursor.execute("XA RECOVER")
    for row in cursor.fetchall():
        cursor.execute(f"XA ROLLBACK '{row[3].decode() if isinstance(row[3], bytes) else row[3]}'")
    for schema in SCHEMAS:
        for table in [f"own{who}" for who in range(CLIENTS)] + ["asked"]:
            while True:
                try:
                    cursor.execute(f"TRUNCATE TABLE {schema}.{table}")
                    break
                except pymysql.err.OperationalError:
                    if time.monotonic() > until:
                        cursor.execute("SHOW FULL PROCESSLIST")
                        raise SystemExit(f"{schema}.{table} is held by somebody who has left: {cursor.fetchall()}")


def tell(admin, port, steps, together):
    """The replies to the steps."""
    ground(admin)
    record = [None] * len(steps)

    def tell_some(places):
        peers = {}
        for place in places:
            who, kind, said = steps[place]
            try:
                if who not in peers:
                    peers[who] = Peer(port, who)
                reply = peers[who].do(kind, said)
                if reply is None:
                    del peers[who]
                    # The end of a connection takes its server a moment.
                    time.sleep(0.05)
                record[place] = reply
            except (EOFError, OSError, pymysql.err.Error) as error:
                record[place] = [f"lost: {error}".encode()]
                peers.pop(who, None)
        for peer in peers.values():
            peer.connection._force_close()

    clients = sorted({who for who, *_ in steps}) if together else [None]
    threads = []
    for client in clients:
        places = [place for place, step in enumerate(steps) if client in (None, step[0])]
        threads.append(threading.Thread(target=tell_some, args=(places,)))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return record


def code_of(reply):
    """The number of the error that ends a reply."""
    last = reply[-1] if reply else b""
    last = last[1] if isinstance(last, tuple) else last
    return int.from_bytes(last[1:3], "little") if isinstance(last, bytes) and last[:1] == b"\xff" else 0


def first_difference(direct, pooled):
    """The first step that was answered otherwise, or one that the pool has refused, with its number."""
    for place, (one, other) in enumerate(zip(direct, pooled)):
        code = code_of(other) if other else 0
        if code in (1235, 9501) and one != other:
            return place, code
        if one != other:
            return place, 0
    return None


def shrink(differs, steps):
    """The steps that are needed for a difference, as far as there is time."""
    until, size = time.monotonic() + SHRINK_S, len(steps) // 2
    while size and time.monotonic() < until:
        at = 0
        while at < len(steps) and time.monotonic() < until:
            fewer = steps[:at] + steps[at + size:]
            if fewer and differs(fewer):
                steps = fewer
            else:
                at += size
        size //= 2
    return steps


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--server", choices=("mariadb", "mysql"), default="mariadb")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--seconds", type=int, default=60)
    options.add_argument("--stories", type=int, default=1_000_000)
    options.add_argument("--together", action="store_true")
    options = options.parse_args()
    together = options.together
    refused, different, steps_told = collections.Counter(), 0, 0
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        with Server(options.server, folder) as server:
            server.admin("SET GLOBAL innodb_lock_wait_timeout = 1, GLOBAL lock_wait_timeout = 2")
            for schema in SCHEMAS:
                own = [f"CREATE TABLE {{s}}.own{who} (id INT AUTO_INCREMENT PRIMARY KEY, v INT)" for who in range(CLIENTS)]
                server.admin(f"USE {schema}; " + "".join(sql.replace("{s}", schema) + ";\n" if "BEGIN" not in sql else f"DELIMITER //\n{sql.replace('{s}', schema)}//\nDELIMITER ;\n" for sql in own + GROUND))
            with Pool(server, folder) as pool:
                admin = pymysql.connect(host="127.0.0.1", port=server.port, user="app", password="app", autocommit=True)
                began, seed = time.monotonic(), options.seed
                while seed < options.seed + options.stories and time.monotonic() - began < options.seconds:
                    steps = draw(seed, options.server == "mysql")
                    steps_told += len(steps)
                    direct, pooled = tell(admin, server.port, steps, together), tell(admin, pool.port, steps, together)
                    found = first_difference(direct, pooled)
                    if found and found[1]:
                        refused[f"{found[1]} {steps[found[0]][1]}: {str(steps[found[0]][2])[:60]}"] += 1
                    elif found and first_difference(direct[:found[0] + 1], tell(admin, server.port, steps, together)[:found[0] + 1]) is None:
                        different += 1

                        def differs(fewer):
                            one, other = tell(admin, server.port, fewer, together), tell(admin, pool.port, fewer, together)
                            found = first_difference(one, other)
                            return found is not None and not found[1]

                        fewer = shrink(differs, steps[:found[0] + 1])
                        one, other = tell(admin, server.port, fewer, together), tell(admin, pool.port, fewer, together)
                        last = first_difference(one, other)
                        say(f"seed {seed} differs at step {found[0]} of {len(steps)}: {steps[found[0]]}")
                        for step in fewer:
                            print(f"    {step}")
                        place = last[0] if last else None
                        shown = (one[place], other[place]) if last else (direct[found[0]], pooled[found[0]])
                        print(f"  at {fewer[place] if last else 'once only'}\n  directly:         {str(shown[0])[:1500]}\n  through the pool: {str(shown[1])[:1500]}", flush=True)
                        if different >= DIFFERENT_MAX:
                            break
                    if pool.child.poll() is not None:
                        raise SystemExit(f"seed {seed}: the pool ended: {pool.said()}")
                    seed += 1
                say(f"{options.server}: {seed - options.seed} stories from seed {options.seed}, {steps_told} steps, "
                    f"{different} differ, {sum(refused.values())} ended by a refusal")
                for form, count in refused.most_common(12):
                    print(f"{count:6}  {form}")
                admin.close()
    sys.exit(1 if different else 0)


if __name__ == "__main__":
    main()
