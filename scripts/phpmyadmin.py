#!/usr/bin/env python3
"""Uses phpMyAdmin as people do, on a server and through the pool, and counts the pool's refusals.

What: fetches Debian's phpMyAdmin and PHP, and starts a fresh MariaDB, and a MySQL where
  scripts/get-mysql.sh has put one. Four browsers at once log in and go through the pages of server,
  database and table, send statements from its console, search, export and import. They do so on the
  server and through `onramp pool` with four backends. The pages are compared by their words, without
  those that are of the connection or the moment. The statements and the refusals (error 1235) are
  those that the pool has counted.
Why: docs/decisions/0032-questions-about-the-statement-before.md says which programs meet error 1235.
Changes on the machine: writes target/suites; servers and pools run on free ports of the loopback.
Restores: ends all that it started.

Usage: python3 scripts/phpmyadmin.py [ROUNDS]. It ends with status 1 when a page differs. ONRAMP names a
binary of the pool, as for scripts/suites.py.
"""

import concurrent.futures
import html
import http.cookiejar
import json
import os
import pathlib
import re
import shutil
import sys
import urllib.parse
import urllib.request

from suites import ONRAMP, ROOT, TARGET, Pool, Process, Server, debian, debian_php, free_port, run, say

BROWSERS = 4
PHP_PACKAGES = "cli common mysql mbstring xml".split()
PACKAGES = """phpmyadmin php-composer-ca-bundle php-fig-http-message-util php-getallheaders php-google-recaptcha
php-mariadb-mysql-kbs php-nikic-fast-route php-psr-cache php-psr-log php-psr-container
php-symfony-cache-contracts php-symfony-deprecation-contracts php-symfony-service-contracts
php-symfony-var-exporter php-symfony-cache php-symfony-expression-language
php-phpmyadmin-motranslator php-phpmyadmin-shapefile php-phpmyadmin-sql-parser
php-symfony-polyfill-php80 php-psr-http-message php-psr-http-factory php-slim-psr7
php-symfony-filesystem php-symfony-config php-symfony-dependency-injection php-twig
php-twig-i18n-extension php-webmozart-assert""".split()
EXTENSIONS = """ctype iconv fileinfo tokenizer mysqlnd mysqli dom simplexml xml xmlreader xmlwriter
mbstring posix sockets""".split()
PAGES = {
    "": """/ /server/databases /server/sql /server/collations /server/engines
    /server/plugins /server/privileges /server/export /server/import /server/replication
    /navigation""",
    "db": """/database/structure /database/sql /database/search /database/export /database/import
    /database/operations /database/routines /database/triggers /database/events
    /database/designer /database/data-dictionary /database/multi-table-query
    /database/tracking""",
    "table": """/sql /table/structure /table/sql /table/search /table/change /table/export
    /table/import /table/operations /table/relation /table/triggers /table/tracking
    /table/chart /table/find-replace /table/zoom-search /table/indexes
    /table/partition/analyze""",
}
# What these show is of the moment, or of the pool's own (session_track_*): they are not compared.
LIVE = """/server/variables /server/status /server/status/processes /server/status/queries /server/status/variables
/server/status/advisor /server/status/monitor""".split()
STATEMENTS = """SELECT * FROM goods ORDER BY id
SELECT SQL_CALC_FOUND_ROWS id FROM goods LIMIT 2; SELECT FOUND_ROWS()
INSERT INTO goods (name, price) VALUES ('four', 4), ('five', 5)
INSERT IGNORE INTO goods (id, name, price) VALUES (1, 'again', 'none')
UPDATE goods SET price = price + 1 WHERE id < 3
UPDATE goods SET price = 'x' WHERE id = 1
DELETE FROM goods WHERE name = 'five'
SELECT CAST('x' AS SIGNED), 1/0; SHOW WARNINGS
SHOW WARNINGS
SELECT ROW_COUNT()
EXPLAIN SELECT * FROM goods WHERE id = 1
SET @a = 5; SELECT @a + 1
SELECT @a
SELECT * FROM missing
SELEC 1
INSERT INTO goods (name) VALUES ('six'); SELECT LAST_INSERT_ID(), ROW_COUNT()
BEGIN; UPDATE goods SET price = 0; ROLLBACK; SELECT SUM(price) FROM goods
CALL doubled(4)
SELECT twice(21)
CREATE TABLE made (a INT); INSERT INTO made VALUES (1); DROP TABLE made
SHOW TABLES
SHOW CREATE TABLE goods
ANALYZE TABLE goods
CREATE TEMPORARY TABLE own (x INT); INSERT INTO own VALUES (7); SELECT * FROM own
SET NAMES latin1; SELECT 'x'
SET time_zone = '+05:00'; SELECT @@time_zone
SELECT @@time_zone
DROP TABLE IF EXISTS missing; SHOW WARNINGS
GET DIAGNOSTICS @n = NUMBER; SELECT @n
SHOW VARIABLES LIKE 'sql_mode'""".splitlines()
GROUND = """CREATE DATABASE {db} CHARACTER SET utf8mb4;
USE {db};
CREATE TABLE goods (id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(20), price DECIMAL(9,2), KEY (name));
INSERT INTO goods (name, price) VALUES ('one', 1), ('two', 2.5), ('zw\u00f6lf', NULL);
CREATE TABLE sold (id INT PRIMARY KEY, good INT, FOREIGN KEY (good) REFERENCES goods (id));
CREATE VIEW cheap AS SELECT * FROM goods WHERE price < 2;
CREATE PROCEDURE doubled(x INT) SELECT x * 2;
CREATE FUNCTION twice(x INT) RETURNS INT DETERMINISTIC RETURN x * 2;
CREATE TRIGGER named BEFORE INSERT ON goods FOR EACH ROW SET NEW.name = UPPER(NEW.name);
ANALYZE TABLE goods, sold;"""


def phpmyadmin(port, folder):
    """phpMyAdmin on PHP's own web server; its process and port."""
    php = debian_php()
    root = debian(*PACKAGES, *(f"{php}-{part}" for part in PHP_PACKAGES))
    home, temp = folder / "phpmyadmin", folder / "tmp"
    temp.mkdir()
    shutil.copytree(root / "usr" / "share" / "phpmyadmin", home, symlinks=True)
    vendor = home / "libraries" / "vendor_config.php"
    vendor.write_text(vendor.read_text().replace("/etc/phpmyadmin/config.inc.php", f"{home}/config.inc.php")
                      .replace("/var/lib/phpmyadmin/tmp/", f"{temp}/"))
    (home / "config.inc.php").write_text(
        "<?php\n$cfg['blowfish_secret'] = str_repeat('s', 32);\n"
        "$cfg['Servers'][1] = ['auth_type' => 'cookie', 'host' => '127.0.0.1', "
        f"'port' => '{port}'];\n$cfg['SendErrorReports'] = 'never';\n"
        "$cfg['CheckConfigurationPermissions'] = false;\n")
    extensions = next((root / "usr" / "lib" / "php").glob("20*"))
    options = [f"extension_dir={extensions}", f"include_path={root}/usr/share/php",
               f"zend_extension={extensions}/opcache.so", "opcache.enable=1",
               f"session.save_path={temp}", "memory_limit=512M"]
    options += [f"extension={name}" for name in EXTENSIONS]
    web = free_port()
    command = ["env", f"PHP_CLI_SERVER_WORKERS={BROWSERS}", str(root / "usr" / "bin" / php), "-n"]
    for option in options:
        command += ["-d", option]
    server = Process([*command, "-S", f"127.0.0.1:{web}", "-t", str(home)], folder / "php.log")
    server.wait_until(lambda: "started" in server.said(), "PHP")
    return server, web


class Browser:
    """One login, with its cookies."""

    def __init__(self, web, db):
        self.base, self.db, self.token, self.pages = f"http://127.0.0.1:{web}/index.php", db, "", {}
        jar = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
        self.opener = urllib.request.build_opener(jar)

    def get(self, route, fields=None, **where):
        where = {"route": route, "server": 1, "lang": "en", **where}
        data = None
        if fields is not None:
            data = urllib.parse.urlencode({"token": self.token, **where, **fields}, doseq=True).encode()
        try:
            with self.opener.open(f"{self.base}?{urllib.parse.urlencode(where)}", data, timeout=120) as reply:
                text = reply.read().decode(errors="replace")
        except urllib.error.HTTPError as error:
            text = f"status {error.code}"
        if found := re.search(r'name="token" value="([^"]+)"', text):
            self.token = html.unescape(found.group(1))
        return text

    def keep(self, name, text):
        self.pages[name] = words(text, self.db)

    def login(self):
        text = self.get("/")
        session = re.search(r'name="set_session" value="([^"]+)"', text).group(1)
        text = self.get("/", {"pma_username": "app", "pma_password": "app", "set_session": session})
        if 'name="pma_username"' in text:
            raise SystemExit(f"no login: {text[-2000:]}")

    def visit(self, rounds):
        self.login()
        for number in range(rounds):
            for route in PAGES[""].split() + LIVE:
                text = self.get(route)
                if route not in LIVE:
                    self.keep(f"{number} {route}", text)
            for route in PAGES["db"].split():
                self.keep(f"{number} {route}", self.get(route, db=self.db))
            for table in ("goods", "sold", "cheap"):
                for route in PAGES["table"].split():
                    self.keep(f"{number} {route} {table}", self.get(route, db=self.db, table=table))
            for sql in STATEMENTS:
                said = {"sql_query": sql, "sql_delimiter": ";", "show_query": "1", "ajax_request": "1"}
                self.keep(f"{number} {sql}", self.get("/import", {**said, "db": self.db}))
            self.keep(f"{number} search", self.get("/database/search", {
                "db": self.db, "criteriaSearchString": "o", "criteriaSearchType": "1",
                "criteriaTables[]": ["goods", "sold"], "submit_search": "Go", "ajax_request": "1"}))
            for what in ("sql", "csv", "json"):
                told = self.get("/export", {
                    "db": self.db, "export_type": "database", "export_method": "quick",
                    "quick_or_custom": "quick", "what": what, "table_select[]": ["goods", "sold"],
                    "structure_or_data_forced": "1", "output_format": "sendit",
                    f"{what}_structure_or_data": "structure_and_data", "asfile": "sendit",
                    "filename_template": "all", "table_structure[]": ["goods", "sold"], "table_data[]": ["goods", "sold"],
                    "aliases_new": ""})
                self.keep(f"{number} export {what}", told)
                if what == "sql":
                    dump = f"DROP TABLE IF EXISTS sold, goods;\n{told}"
            said = {"sql_query": dump, "sql_delimiter": ";", "import_type": "database", "ajax_request": "1"}
            self.keep(f"{number} import", self.get("/import", {**said, "db": self.db}))
            self.keep(f"{number} imported", self.get("/sql", db=self.db, table="goods"))
        return self.pages


def words(text, db):
    """A page without what is of its moment: times, tokens, ports."""
    if text.startswith("{"):
        text = "\n".join(str(value) for value in json.loads(text).values())
    text = re.sub(r"(?s)<script.*?</script>|<link[^>]*>|<input[^>]*>|<form[^>]*>", " ", text)
    text = re.sub(r"\b[0-9a-f]{16,}\b|[?&](v|token|_nocache)=[^\"'&]*", " ", text)
    text = re.sub(r"took \d+\.\d+ sec|\w\w\w \d+, \d{4} at [\d:]+ [AP]M|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", " ", text)
    text = re.sub(r"127\.0\.0\.1:\d+", "HOST", text)
    text = html.unescape(re.sub(r"<[^>]+>", " ", text))
    return [line.strip() for line in text.replace(db, "DB").splitlines() if line.strip()]


def figures(port):
    """How many statements the pool has counted, and how many refusals of their kind."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as reply:
        text = reply.read().decode()
    statements = int(re.search(r"^onramp_pool_statements_total (\d+)", text, re.MULTILINE).group(1))
    gone = re.search(r'^onramp_pool_errors_total\{[^}]*previous-gone[^}]*\} (\d+)', text, re.MULTILINE)
    others = re.findall(r'^onramp_pool_errors_total\{reason="([^"]+)"[^}]*\} ([1-9]\d*)', text, re.MULTILINE)
    return statements, int(gone.group(1)) if gone else 0, others


def browse(port, folder, rounds):
    folder.mkdir()
    php, web = phpmyadmin(port, folder)
    with php, concurrent.futures.ThreadPoolExecutor(BROWSERS) as threads:
        browsers = [Browser(web, f"shop{number}") for number in range(BROWSERS)]
        return list(threads.map(lambda browser: browser.visit(rounds), browsers))


def compare(flavour, rounds):
    """Both ways on one server; how many pages differ."""
    folder = TARGET / "runs" / f"phpmyadmin-{flavour}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    http_port = free_port()
    with Server(flavour, folder) as server:
        def fresh():
            for number in range(BROWSERS):
                server.admin(f"DROP DATABASE IF EXISTS shop{number}; " + GROUND.format(db=f"shop{number}"))

        fresh()
        direct = browse(server.port, folder / "direct", rounds)
        fresh()
        with Pool(server, folder, f'http = "127.0.0.1:{http_port}"\n') as pool:
            pooled = browse(pool.port, folder / "pool", rounds)
            statements, gone, others = figures(http_port)
    differ = 0
    for one, other in zip(direct, pooled):
        for name, page in one.items():
            if page != other[name]:
                differ += 1
                lines = [pair for pair in zip(page, other[name]) if pair[0] != pair[1]]
                print(f"  {name}: {len(page)} and {len(other[name])} lines; {str(lines[:2])[:500]}")
    say(f"phpMyAdmin on {flavour}: {sum(map(len, direct))} pages, {differ} differ; {statements} statements "
        f"through the pool, {gone} refused with 1235; its errors: {others or 'none'}")
    return differ


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    if "ONRAMP" not in os.environ:
        run(["cargo", "build", "--locked", "--bin", "onramp"], cwd=ROOT, limit=1800)
    say(f"the pool is {ONRAMP}")
    flavours = ["mariadb"] + ["mysql"] * (ROOT / "target" / "mysql" / "run").exists()
    sys.exit(1 if sum(compare(flavour, rounds) for flavour in flavours) else 0)


if __name__ == "__main__":
    main()
