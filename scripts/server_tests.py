#!/usr/bin/env python3
"""Runs the tests of MariaDB's own server through the pool, and compares what they print.

What: fetches Debian's mariadb-test, of the release of the server that is installed, and runs each of its
  files of tests with mysqltest: on a fresh server, and through `onramp pool` in front of an equal one.
  Beside it a few clients of another account make noise in a schema of their own: states, errors,
  warnings, transactions. So the tested client hardly ever meets the backend as it left it. The two
  prints must be equal line by line. A test that differs is run once more on a server, with the noise
  there: where that differs too it is not deterministic and left out, as are tests that fail on a server.
Why: the server's authors have asked their server everything that a session can be asked.
Changes on the machine: writes target/suites (some 400 MB), and some 100 MB for each worker in /dev/shm;
  servers and pools run on free ports of the loopback address.
Restores: ends all that it started, and removes its folder in /dev/shm.

Usage: python3 scripts/server_tests.py [--only REGEX] [--protocol ps-protocol] [--suite SUITE] ...
A test that differs and is not in the table of tests/drivers/known.md fails the run. What differs is written
to target/suites/server-tests. ONRAMP names a binary of the pool, as for scripts/suites.py.
"""

import argparse
import collections
import concurrent.futures
import difflib
import json
import os
import pathlib
import random
import re
import shlex
import shutil
import signal
import subprocess
import threading
import time

from suites import ENV, KNOWN, ONRAMP, TARGET, debian, free_port, run, say

# Backends of a pool, besides one for each further connection that the test opens.
BACKENDS = 2
BACKENDS_MAX = 12
# Noise: clients, and the mean pause between two of their statements.
NOISE_MAX = 5
PAUSE_S = 0.008
# How long a test may take on a server, and at least through the pool.
DIRECT_S = 20
POOL_S = 40
# The pool reads accounts once a second. So long a test waits in front of a connection by another account
# than root; where there are more than so many of these, less.
NOTICED_S, NOTICED_MANY_S, MANY = 1.1, 0.3, 12
LOOK_S = 0.02
PLACE = pathlib.Path("/dev/shm") / f"onramp-server-tests-{os.getpid()}"
OUT = TARGET / "server-tests"
# Tests that need more than one server as it is started here.
NEEDS = re.compile(
    r"restart_mysqld|shutdown_server|kill_mysqld|master-slave|have_debug|wsrep|have_ssl|"
    r"mysqld\.1\.expect|start_mysqld|rpl_init|have_perfschema|DEBUG_SYNC|debug_dbug|have_plugin_auth",
    re.IGNORECASE)
LONG = re.compile(r"source\s+include/(big_test|long_test)")


def noise_text(rng, tables):
    """What one client of the noise does: states, errors, warnings, transactions; its own tables only."""
    settings = """SET sql_mode = 'ANSI_QUOTES,PIPES_AS_CONCAT'|SET sql_mode = ''|SET sql_mode = 'NO_BACKSLASH_ESCAPES'
SET sql_mode = 'ORACLE'|SET sql_mode = 'TRADITIONAL'|SET sql_mode = 'IGNORE_SPACE,NO_UNSIGNED_SUBTRACTION'
SET sql_mode = DEFAULT|SET time_zone = '+0{n}:00'|SET NAMES latin1|SET NAMES utf8mb4|SET NAMES cp1251|SET NAMES koi8r
SET NAMES utf8mb4 COLLATE utf8mb4_bin|SET CHARACTER SET latin2|SET character_set_results = NULL
SET collation_connection = latin1_bin|SET div_precision_increment = {n}|SET @@div_precision_increment = 1{n}
SET sql_select_limit = {n}|SET sql_select_limit = DEFAULT|SET max_error_count = {n}|SET max_error_count = DEFAULT
SET last_insert_id = 7{n}|SET group_concat_max_len = 1{n}|SET sql_notes = 0|SET sql_notes = 1|SET no_such_variable = 1
USE noise|USE noise2|USE no_such_schema|SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED
SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE|SET timestamp = 100000000{n}|SET timestamp = DEFAULT
SET optimizer_switch = 'index_merge=off,mrr=on,derived_merge=off'|SET optimizer_switch = DEFAULT
SET join_cache_level = {n}|SET join_buffer_size = 12{n}00|SET sort_buffer_size = 2{n}0000|SET tmp_table_size = 1{n}000
SET max_heap_table_size = 2{n}000|SET default_storage_engine = MEMORY|SET default_storage_engine = InnoDB
SET foreign_key_checks = 0|SET unique_checks = 0|SET lc_time_names = 'de_DE'|SET lc_messages = 'fr_FR'
SET default_week_format = {n}|SET max_sp_recursion_depth = 1{n}|SET sql_safe_updates = 1|SET big_tables = 1
SET low_priority_updates = 1|SET sql_buffer_result = 1|SET sql_quote_show_create = 0|SET old_mode = ''
SET use_stat_tables = NEVER|SET histogram_size = {n}|SET auto_increment_increment = {n}|SET auto_increment_offset = {n}
SET max_join_size = 100{n}|SET sql_big_selects = 1|SET updatable_views_with_limit = NO|SET lock_wait_timeout = 1
SET innodb_lock_wait_timeout = 1|SET max_length_for_sort_data = 1{n}|SET max_sort_length = 10{n}|SET in_predicate_conversion_threshold = {n}
SET completion_type = CHAIN|SET completion_type = NO_CHAIN|SET alter_algorithm = COPY|SET check_constraint_checks = 0
SET column_compression_threshold = {n}|SET default_regex_flags = 'DOTALL'|SET eq_range_index_dive_limit = {n}
SET explicit_defaults_for_timestamp = 0|SET keep_files_on_create = 1|SET max_statement_time = 10|SET optimizer_prune_level = 0
SET optimizer_search_depth = {n}|SET optimizer_use_condition_selectivity = 1|SET query_prealloc_size = 3{n}000
SET sql_auto_is_null = 0|SET sql_warnings = 1|SET standard_compliant_cte = 0|SET storage_engine = MyISAM
SET system_versioning_alter_history = KEEP|SET tx_read_only = 0|SET wait_timeout = 2{n}0|SET character_set_filesystem = latin1
SET STATEMENT sql_mode = 'ANSI' FOR SELECT {n}|SET @@session.insert_id = 4{n}; INSERT INTO {t} (v) VALUES (1)""".replace("\n", "|").split("|")
    variables = """SET @a = {n}|SET @b = 'noise', @c = 1.5|SET @x = NULL|SELECT {n} INTO @v|SET @i := 5{n}|SELECT @a, @x, @n
SET @id = 9{n}, @var = 'n', @y = x'ff', @t1 = 3, @d = NOW()|SET @old_sql_mode = 'noise', @save = 3, @tmp = 'x', @str = 'y'
PREPARE stmt FROM 'SELECT {n}'|PREPARE stmt1 FROM 'SELECT ?'|EXECUTE stmt|EXECUTE stmt1 USING @a|DEALLOCATE PREPARE stmt
PREPARE s FROM 'DO {n}'|EXECUTE s|EXECUTE IMMEDIATE 'SELECT {n}'|DEALLOCATE PREPARE stmt1""".replace("\n", "|").split("|")
    work = """SELECT 1/0|SELECT CAST('x{n}' AS SIGNED)|SELEC {n}|SELECT * FROM missing|SELECT no_such FROM {t}
INSERT INTO {t} (v) VALUES ({n}), ({n})|UPDATE {t} SET v = v + 1 LIMIT 2|DELETE FROM {t} LIMIT 3
INSERT IGNORE INTO {t} (v) VALUES ('x')|SELECT LAST_INSERT_ID(12{n})|SELECT SQL_CALC_FOUND_ROWS * FROM {t} LIMIT 1
SELECT FOUND_ROWS(), ROW_COUNT()|SHOW WARNINGS|SHOW ERRORS|SELECT * FROM {t} LIMIT {n}|DO 1, 2|SHOW TABLES
SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'noise'|SIGNAL SQLSTATE '01000' SET MESSAGE_TEXT = 'noise'
GET DIAGNOSTICS CONDITION 1 @m = MESSAGE_TEXT|CALL fails()|CALL sets({n})|CALL rows_of({n})|SELECT twice({n})
INSERT INTO fires (x) VALUES ({n})|SELECT * FROM seen|EXPLAIN SELECT * FROM {t}|SELECT REPEAT('x', 3000)
DO GET_LOCK('noise{c}', 0); DO SLEEP(0.002); DO RELEASE_LOCK('noise{c}')|DO SLEEP(0.00{n})|SELECT SLEEP(0.00{n})
CREATE TEMPORARY TABLE t1 (noise INT); INSERT INTO t1 VALUES (1); DROP TEMPORARY TABLE t1
LOCK TABLES {t} READ; SELECT COUNT(*) FROM {t}; UNLOCK TABLES|BEGIN; SELECT * FROM {t} LIMIT 1; DO SLEEP(0.00{n}); COMMIT
BEGIN; INSERT INTO {t} (v) VALUES (3); DO SLEEP(0.00{n}); ROLLBACK|SET autocommit = 0; SELECT 1 FROM {t} LIMIT 1; ROLLBACK; SET autocommit = 1
BEGIN NOT ATOMIC SET @a = {n}; SELECT @a; END|TRUNCATE TABLE {t}|ALTER TABLE {t} COMMENT '{n}'""".replace("\n", "|").split("|")
    while True:
        which = rng.choice([settings, variables, work, work])
        text = rng.choice(which).replace("{n}", str(rng.randint(1, 5))).replace("{t}", tables)
        text = text.replace("{c}", tables)
        # A block's text has semicolons inside of it.
        if text.startswith("BEGIN NOT"):
            yield f"delimiter //\n{text}//\ndelimiter ;\n"
        else:
            yield f"{text};\n"


class Noise(threading.Thread):
    """A client that says what `noise_text` draws, with small pauses, to a command line that goes on at errors."""

    def __init__(self, socket, seed, tables):
        super().__init__(daemon=True)
        self.socket, self.rng, self.tables = socket, random.Random(seed), tables
        self.ended = threading.Event()
        self.start()

    def run(self):
        said = noise_text(self.rng, self.tables)
        while not self.ended.is_set():
            try:
                self.talk(said)
            except OSError:
                self.ended.wait(0.05)

    def talk(self, said):
        with subprocess.Popen(["mariadb", "--no-defaults", "--force", "-S", str(self.socket), "-unoise", "noise"],
                              stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              env=ENV, text=True) as client:
            try:
                for _ in range(self.rng.randint(50, 400)):
                    if self.ended.wait(self.rng.random() * 2 * PAUSE_S):
                        break
                    client.stdin.write(next(said))
                    client.stdin.flush()
            finally:
                if self.ended.is_set():
                    client.kill()

    def end(self):
        self.ended.set()
        self.join()


NOISE_GROUND = """
CREATE DATABASE noise CHARACTER SET utf8mb4; CREATE DATABASE noise2 CHARACTER SET latin1;
CREATE USER noise@localhost IDENTIFIED BY '';
GRANT ALL ON noise.* TO noise@localhost; GRANT ALL ON noise2.* TO noise@localhost;
GRANT SUPER ON *.* TO noise@localhost;
USE noise;
CREATE TABLE fires (x INT, c INT) ENGINE=InnoDB;
delimiter //
CREATE TRIGGER asks BEFORE INSERT ON fires FOR EACH ROW SET NEW.c = @a, @b = 17//
CREATE PROCEDURE fails() BEGIN DECLARE EXIT HANDLER FOR SQLEXCEPTION RESIGNAL; SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'noise', MYSQL_ERRNO = 3456; END//
CREATE PROCEDURE sets(x INT) BEGIN SET @inside = x, div_precision_increment = 7; END//
CREATE PROCEDURE rows_of(x INT) BEGIN SELECT x; SELECT x + 1; END//
CREATE FUNCTION twice(x INT) RETURNS INT DETERMINISTIC RETURN x * 2//
CREATE VIEW seen AS SELECT x, twice(x) FROM fires//
delimiter ;
"""


class Child:
    """A program that is ended with those that it has started."""

    def __init__(self, command, log, env=None):
        with open(log, "ab") as out:
            self.child = subprocess.Popen(command, stdout=out, stderr=out, env=env or ENV,
                                          stdin=subprocess.DEVNULL, start_new_session=True)

    def end(self, how=signal.SIGKILL):
        try:
            os.killpg(self.child.pid, how)
        except ProcessLookupError:
            pass
        self.child.wait()


class Tree:
    """A copy of the tests. What counts all connections of the server is emptied in it, since a pool has
    its own; and what waits for a state of the server that may never come does so for four seconds."""

    def __init__(self, base):
        test = debian("mariadb-test-data", "mariadb-test", "libpcre2-posix3")
        source = test / "usr" / "share" / "mysql" / "mysql-test"
        self.root = base / "mysql-test"
        self.bin = test / "usr" / "bin"
        ENV["LD_LIBRARY_PATH"] = str(next((test / "usr" / "lib").glob("*/libpcre2-posix.so.3")).parent)
        self.mysqltest = next(self.bin / name for name in ("mariadb-test", "mysqltest")
                              if (self.bin / name).exists())
        if not self.root.exists():
            shutil.copytree(source, self.root, symlinks=True)
            for name in ("count_sessions.inc", "wait_until_count_sessions.inc"):
                (self.root / "include" / name).write_text("")
        for name in ("wait_condition.inc", "wait_condition_sp.inc"):
            file = self.root / "include" / name
            text = file.read_text(encoding="latin1")
            text = text.replace("$wait_counter= 300;", "$wait_counter= 40;")
            text = text.replace("let $wait_counter= `SELECT $wait_timeout * 10`", "let $wait_counter= 40")
            file.write_text(text, encoding="latin1")

    def tests(self, suite):
        folder = self.root / suite if suite == "main" else self.root / "suite" / suite
        if (folder / "t").exists():
            folder = folder / "t"
        return sorted(folder.glob("*.test"))

    def sourced(self, file, seen):
        """The text of a test with that of all files that it sources."""
        if file in seen or len(seen) > 60:
            return ""
        seen.append(file)
        text = file.read_text(encoding="latin1")
        whole = text
        for name in re.findall(r"^\s*(?:--)?\s*source\s+([\w./-]+\.(?:inc|test))", text, re.M | re.I):
            for folder in (file.parent, self.root, self.root.parent):
                if (folder / name).exists():
                    whole += self.sourced(folder / name, seen)
                    break
        return whole

    def options(self, files):
        """Options of the server that a test wants: of these files, the test and what it sources, and the
        first of their combinations."""
        found = []
        for part in reversed(files):
            stem = part.with_suffix("")
            for name in (f"{stem}.opt", f"{stem}-master.opt"):
                if pathlib.Path(name).exists():
                    text = pathlib.Path(name).read_text(encoding="latin1")
                    found += shlex.split(re.sub(r"^#.*$", "", text, flags=re.M))
            combos = part.with_suffix(".combinations")
            if combos.exists():
                text = combos.read_text(encoding="latin1")
                first = re.split(r"^\[.*\]\s*$", text, flags=re.M)
                if len(first) > 1:
                    found += [f"--{line.strip().lstrip('-')}" for line in first[1].splitlines()
                              if line.strip() and not line.startswith("#")]
        return found


# A connection by another account than root, with the words in front that are about the next command.
CONNECT = re.compile(
    r"^((?:[ \t]*(?:--)?[ \t]*(?:error|replace_\w+)\b[^\n]*\n)*)"
    r"([ \t]*(?:--[ \t]*)?(?:connect(?:\s*\(\s*|\s+)\$?\w+\s*,[^,\n]*,\s*(?!root\b)[^,\n]*"
    r"|change_user\s+['\"]?(?!['\"]|root\b)\w+))", re.M | re.I)


def patient(file):
    """The test with a moment in front of connections by other accounts: the pool reads them once a second."""
    text = file.read_text(encoding="latin1")
    found = len(CONNECT.findall(text))
    if not found:
        return file
    longer = NOTICED_S if found <= MANY else NOTICED_MANY_S
    patched = CONNECT.sub(lambda m: f"real_sleep {longer};\n{m.group(0)}", text)
    beside = file.with_name(f"{file.stem}.patient")
    beside.write_text(patched, encoding="latin1")
    return beside


def mtr_mysqld_options(root):
    """What the include files of the tests start every server with."""
    text = (root / "include" / "default_mysqld.cnf").read_text()
    found, inside = [], False
    for line in text.splitlines():
        line = line.strip()
        if line.startswith("["):
            inside = line in ("[mysqld]", "[mariadb]")
        elif inside and line and not line.startswith(("#", "!")) and "@" not in line:
            name, _, value = line.partition("=")
            name, value = name.strip(), value.strip()
            found.append(f"--{name}={value}" if value else f"--{name}")
    return found


class Place:
    """A worker's folder, with a template of a data directory that each run copies."""

    def __init__(self, tree, number, template):
        self.tree = tree
        self.var = PLACE / f"w{number}"
        self.template = template
        self.port = free_port()
        self.inner = free_port()

    def fresh(self):
        shutil.rmtree(self.var, ignore_errors=True)
        for part in ("tmp/mysqld.1", "log", "run", "mysqld.1"):
            (self.var / part).mkdir(parents=True)
        # A copy: `secure_file_priv` is this folder, and a server follows links before it compares.
        shutil.copytree(self.tree.root / "std_data", self.var / "std_data")
        run(["cp", "-a", "--reflink=auto", str(self.template), str(self.var / "mysqld.1" / "data")])

    def server_command(self, options, port, socket):
        data = self.var / "mysqld.1" / "data"
        expanded = [re.sub(r"\$(\w+)", lambda m: self.env("").get(m.group(1), ""), option) for option in options]
        return ["/usr/sbin/mariadbd", "--no-defaults", f"--datadir={data}", "--user=root",
                "--basedir=/usr", "--character-set-server=latin1",
                *mtr_mysqld_options(self.tree.root),
                f"--port={port}", f"--socket={socket}", "--bind-address=127.0.0.1",
                f"--tmpdir={self.var}/tmp/mysqld.1", f"--secure-file-priv={self.var}",
                f"--plugin-dir=/usr/lib/mysql/plugin", "--innodb-flush-log-at-trx-commit=0",
                f"--pid-file={self.var}/run/mysqld.1.pid", "--server-id=1", "--skip-name-resolve",
                f"--general-log-file={self.var}/mysqld.1/mysqld.log", f"--slow-query-log-file={self.var}/mysqld.1/mysqld-slow.log",
                f"--log-error={self.var}/log/mysqld.1.err", *expanded]

    def env(self, socket):
        root = self.tree.root
        config = f"--defaults-file={self.var}/my.cnf"
        tool = lambda name: f"/usr/bin/mariadb{name} {config}"
        own = lambda name: str(self.tree.bin / name) if (self.tree.bin / name).exists() else f"/usr/bin/{name}"
        return {
            **ENV, "TZ": "MET", "LC_ALL": "C", "UMASK": "0660", "UMASK_DIR": "0770",
            "MYSQL_TEST_DIR": str(root), "MYSQLTEST_VARDIR": str(self.var),
            "MYSQL_TMP_DIR": f"{self.var}/tmp", "MASTER_MYPORT": str(self.port),
            "MASTER_MYSOCK": str(socket), "MASTER_MYPORT1": str(self.port), "USE_RUNNING_SERVER": "0",
            "DEFAULT_MASTER_PORT": str(self.port), "CHARSETSDIR": "/usr/share/mysql/charsets",
            "MYSQL_SHAREDIR": "/usr/share/mysql", "MYSQL_BINDIR": "/usr/bin", "MYSQL_LIBDIR": "/usr/lib",
            "MYSQL": tool(""), "EXE_MYSQL": "/usr/bin/mariadb", "MYSQL_DUMP": tool("-dump"),
            "MYSQL_ADMIN": tool("-admin"), "MYSQL_CHECK": tool("-check"),
            "MYSQL_IMPORT": tool("-import"), "MYSQL_SHOW": tool("-show"),
            "MYSQL_SLAP": tool("-slap"), "MYSQL_BINLOG": f"/usr/bin/mariadb-binlog {config}",
            "MYSQL_UPGRADE": tool("-upgrade"), "MYSQL_PLUGIN": tool("-plugin"),
            "MYSQL_TEST": f"{self.tree.mysqltest} {config}",
            "EXE_MYSQL_TEST": str(self.tree.mysqltest),
            "MYSQL_CLIENT_TEST": f"{self.tree.bin}/mariadb-client-test {config}",
            "MY_PERROR": "/usr/bin/perror", "REPLACE": own("replace"), "MYISAMCHK": "/usr/bin/myisamchk",
            "MYISAMPACK": "/usr/bin/myisampack", "MYISAM_FTDUMP": "/usr/bin/myisam_ftdump",
            "MARIA_CHK": "/usr/bin/aria_chk", "MARIA_PACK": "/usr/bin/aria_pack",
            "MYSQL_MY_PRINT_DEFAULTS": "/usr/bin/my_print_defaults", "MYSQL_TZINFO_TO_SQL": "/usr/bin/mariadb-tzinfo-to-sql",
            "MYSQLD_BOOTSTRAP_CMD": "false", "MTR_VERSION": "1", "MYSQL_VERSION_ID": "101119",
            "NODE_UUID": "", "MYSQLTEST_FILE": "", "DEFAULT_SIGNATURE": "", "MYSQL_SYSVAR": "",
            "INNODB_PAGE_SIZE": "", "MARIADB_UPGRADE_EXE": "/usr/bin/mariadb-upgrade",
            "PLUGINDIR": "/usr/lib/mysql/plugin", "MYSQL_SOCKET": str(socket)}


def admin(socket, sql):
    return subprocess.run(["mariadb", "--no-defaults", "-S", str(socket), "-uroot"], input=sql,
                          capture_output=True, text=True, env=ENV, check=False)


def wait_for(ready, child):
    until = time.monotonic() + 60
    while not ready():
        if child.poll() is not None or time.monotonic() > until:
            return False
        time.sleep(LOOK_S)
    return True


def make_template(tree):
    """A data directory as the tests expect one."""
    place = PLACE / "template"
    place.mkdir(parents=True)
    data = place / "data"
    run(["mariadb-install-db", "--no-defaults", f"--datadir={data}", "--user=root", "--skip-test-db",
         "--auth-root-authentication-method=normal", "--innodb_data_file_path=ibdata1:12M:autoextend",
         "--innodb_log_file_size=10M", "--character-set-server=latin1"])
    socket = place / "s.sock"
    server = Child(["/usr/sbin/mariadbd", "--no-defaults", f"--datadir={data}", "--user=root", "--skip-networking",
                    f"--socket={socket}", "--innodb_data_file_path=ibdata1:12M:autoextend",
                    "--innodb_log_file_size=10M", "--character-set-server=latin1",
                    f"--log-error={place}/err"], place / "log")
    try:
        if not wait_for(lambda: admin(socket, "SELECT 1").returncode == 0, server.child):
            raise SystemExit((place / "err").read_text()[-2000:])
        include = tree.root / "include"
        zones = pathlib.Path("/usr/share/mysql/mysql_test_data_timezone.sql").read_text()
        sql = ("CREATE DATABASE test CHARACTER SET latin1 COLLATE latin1_swedish_ci;\n"
               "CREATE DATABASE mtr CHARACTER SET latin1;\n"
               "DROP USER IF EXISTS ''@localhost; DELETE FROM mysql.global_priv WHERE User = '';\n"
               "DELETE FROM mysql.global_priv WHERE User = 'root' AND Host <> 'localhost';\n"
               "DELETE FROM mysql.proxies_priv WHERE Host <> 'localhost';\n"
               "FLUSH PRIVILEGES;\n"
               "CREATE USER IF NOT EXISTS root@'127.0.0.1'; GRANT ALL ON *.* TO root@'127.0.0.1' WITH GRANT OPTION;\n"
               "CREATE USER IF NOT EXISTS root@'::1'; GRANT ALL ON *.* TO root@'::1' WITH GRANT OPTION;\n"
               "USE mysql;\n" + zones + "\n"
               + "".join(re.sub(r"^delimiter \|\|;", "delimiter ||", re.sub(r"^\s*--.*$", "", (include / name).read_text(), flags=re.M), flags=re.M) + "\ndelimiter ;\n"
                         for name in ("mtr_warnings.sql", "mtr_check.sql")) + NOISE_GROUND
               + "".join(f"CREATE TABLE n{n} (id INT AUTO_INCREMENT PRIMARY KEY, v INT) ENGINE=InnoDB;\n"
                         f"INSERT INTO n{n} (v) VALUES (1),(2),(3);\n"
                         f"CREATE TABLE noise2.n{n} LIKE n{n};\n" for n in range(NOISE_MAX)))
        done = admin(socket, sql)
        if done.returncode:
            raise SystemExit(f"template: {done.stderr}")
    finally:
        server.end(signal.SIGTERM)
    return data


class Run:
    """One run of a test: a fresh server, perhaps the pool, perhaps noise."""

    def __init__(self, place, test, pooled=False, noise=None, settings="", limit=DIRECT_S):
        self.code, self.said, self.erred, self.log, self.seconds = None, "", "", "", 0.0
        place.fresh()
        socket = place.var / "tmp" / "mysqld.1.sock"
        behind = place.var / "tmp" / "inner.sock" if pooled else socket
        children = []
        try:
            port = place.inner if pooled else place.port
            server = Child(place.server_command(test.options, port, behind),
                           place.var / "log" / "server.out", env={**ENV, "TZ": "MET"})
            children.append(server)
            if not wait_for(lambda: admin(behind, "SELECT 1").returncode == 0, server.child):
                self.code = "no server"
                return
            log = place.var / "log" / "pool.log"
            if pooled:
                pool = Child([ONRAMP, "pool", "--config", self.configured(place, test, settings)], log)
                children.append(pool)
                if not wait_for(lambda: b"listening on" in log.read_bytes(), pool.child):
                    self.code, self.log = "no pool", log.read_text(errors="replace")
                    return
            (place.var / "my.cnf").write_text(
                f"[client]\nuser=root\npassword=\nhost=localhost\nport={place.port}\n"
                f"socket={socket}\ncharacter-sets-dir=/usr/share/mysql/charsets\n"
                "[mysql]\ndefault-character-set=latin1\n[mysqldump]\ndefault-character-set=latin1\n")
            if noise:
                children += [Noise(socket, f"{noise}/{n}", f"n{n}")
                             for n in range(min(NOISE_MAX, test.backends + 1))]
            self.tell(place, test, pooled, socket, limit)
            if pooled:
                self.log = log.read_text(errors="replace")
                if pool.child.poll() is not None:
                    self.code = "the pool ended"
        finally:
            for child in reversed(children):
                child.end()

    def configured(self, place, test, settings):
        file = place.var / "pool.toml"
        file.write_text(
            f'listen = ["127.0.0.1:{place.port}", "{place.var}/tmp/mysqld.1.sock"]\n'
            f'backends_max = {test.backends}\ngroups = 1\nauth = "server"\n{settings}'
            f'[backend]\naddress = "unix:{place.var}/tmp/inner.sock"\n'
            'monitor_user = "root"\nmonitor_password = ""\n'
            '[[user]]\nname = "root"\npassword = ""\n[[user]]\nname = "noise"\npassword = ""\n')
        file.chmod(0o600)
        return str(file)

    def tell(self, place, test, pooled, socket, limit):
        root, var = place.tree.root, place.var
        file = patient(test.file) if pooled else test.file
        command = [str(place.tree.mysqltest), f"--defaults-file={var}/my.cnf", "--silent",
                   f"--tmpdir={var}/tmp", f"--logdir={var}/log", "--database=test",
                   "--character-sets-dir=/usr/share/mysql/charsets", f"--basedir={root}/",
                   f"--test-file={file}", *test.protocol]
        out, err = var / "log" / "test.out", var / "log" / "test.err"
        started = time.monotonic()
        with open(out, "wb") as to, open(err, "wb") as to_err:
            told = subprocess.Popen(command, stdout=to, stderr=to_err, cwd=root, env=place.env(socket),
                                    stdin=subprocess.DEVNULL, start_new_session=True)
            try:
                self.code = told.wait(limit)
            except subprocess.TimeoutExpired:
                self.code = f"longer than {limit:.0f} s"
                os.killpg(told.pid, signal.SIGKILL)
                told.wait()
        self.seconds = time.monotonic() - started
        self.said, self.erred = (file.read_text(encoding="latin1") for file in (out, err))


class Test:
    """A file of tests, and what it wants."""

    def __init__(self, tree, suite, file, protocol):
        self.name, self.file = f"{suite}.{file.stem}", file
        self.protocol = [f"--{protocol}"] if protocol else []
        files = []
        whole = tree.sourced(file, files)
        connects = re.findall(r"^\s*(?:--)?\s*connect(?:\s*\(|\s)\s*(\w+)", whole, re.M | re.I)
        self.backends = min(BACKENDS + len(set(connects)), BACKENDS_MAX)
        self.patience = NOTICED_S * min(MANY, len(CONNECT.findall(whole)))
        needs = NEEDS.search(whole) or LONG.search(file.read_text(encoding="latin1"))
        self.needs = needs and needs.group(0)
        if file.with_suffix(".cnf").exists() or file.with_suffix(".sh").exists():
            self.needs = "files of its own"
        self.options = []
        try:
            self.options = tree.options(files)
        except ValueError:
            self.needs = "options that cannot be read"


def compare(test, place, args):
    """What becomes of a test: a word, and what differs."""
    if test.needs:
        return "left out", test.needs
    direct = Run(place, test)
    if direct.code != 0:
        return ("left out", "skipped") if direct.code == 62 else ("fails directly", direct.erred)
    if direct.seconds > args.longest:
        return "left out", "long"
    limit = max(POOL_S, 3 * direct.seconds) + test.patience
    pooled = Run(place, test, True, args.noise, args.settings.replace(";", "\n"), limit)
    if (pooled.code, pooled.said) == (0, direct.said):
        return "equal", ""
    again = Run(place, test, False, args.noise, limit=limit)
    if (again.code, again.said) != (0, direct.said):
        return "not deterministic", ""
    lines = (text.splitlines() for text in (direct.said, pooled.said))
    diff = "\n".join(difflib.unified_diff(*lines, "direct", "pool", lineterm=""))
    return "differs", (f"it ended with {pooled.code}\n{diff}\n--- what mysqltest says\n{pooled.erred}\n"
                       f"--- what the pool says\n{pooled.log[-3000:]}")


def known():
    """Tests that are known to differ, by the table of the page: a reason, and names behind it."""
    page = KNOWN.read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([^|]+) \| ((?:`[\w./-]+`(?:, )?)+) \|$", page, re.MULTILINE)
    return {name: reason for reason, names in rows for name in re.findall(r"`([\w./-]+)`", names)}


def main():
    parser = argparse.ArgumentParser(description="Runs MariaDB's own tests through the pool.")
    parser.add_argument("--suite", action="append", help="main, or a folder of suite/; default: main")
    parser.add_argument("--only", default="", help="tests whose names this regular expression finds")
    parser.add_argument("--protocol", help="a protocol of mysqltest: ps-protocol, view-protocol, ...")
    parser.add_argument("--quiet", dest="noise", action="store_const", const=None, help="without noise")
    parser.add_argument("--noise", default="1", help="the seed of the noise")
    parser.add_argument("--settings", default="", help="lines of the pool's file, separated by ;")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--longest", type=float, default=4, help="seconds that a test may take directly")
    args = parser.parse_args()
    PLACE.mkdir()
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    try:
        tree = Tree(TARGET / "server-tests-tree")
        template = make_template(tree)
        places = [Place(tree, number, template) for number in range(args.workers)]
        tests = [Test(tree, suite, file, args.protocol) for suite in args.suite or ["main"]
                 for file in tree.tests(suite)]
        tests = [test for test in tests if re.search(args.only, test.name)]
        counts, wrong, explained = collections.Counter(), [], known()

        def one(test):
            place = places.pop()
            try:
                return test.name, *compare(test, place, args)
            finally:
                places.append(place)

        with concurrent.futures.ThreadPoolExecutor(args.workers) as workers:
            for name, became, why in workers.map(one, tests):
                counts[became] += 1
                if became == "differs":
                    (OUT / f"{name.replace('/', '_')}.diff").write_text(why, encoding="utf-8")
                    print(f"  {name} differs ({explained.get(name, 'not explained')})", flush=True)
                    if name not in explained:
                        wrong.append(name)
    finally:
        shutil.rmtree(PLACE, ignore_errors=True)
    say(", ".join(f"{number} {became}" for became, number in counts.most_common()))
    if wrong:
        raise SystemExit(f"not explained in tests/drivers/known.md: {', '.join(wrong)}; see {OUT}")


if __name__ == "__main__":
    main()
