#!/usr/bin/env python3
"""Runs drivers' own test suites, each directly and through the pool, and compares them by test.

What: fetches the suites from their registries, and starts a fresh MariaDB, and a MySQL where
  scripts/get-mysql.sh has put one, for each run. Every suite is told once to the server itself and
  once to `onramp pool` with four backends in front of an equal server. Tests whose outcome differs
  are printed; the run fails if one of them is not in the table of tests/drivers/known.md, or if the
  pool's memory at the end is above its bound.
Why: a driver's suite asks what nobody thought of here.
Changes on the machine: writes target/suites (some 500 MB) and the caches of pip and go; servers
  and pools run on free ports of the loopback address.
Restores: ends the servers and the pools. Remove target/suites, and it is gone.

Usage: python3 scripts/suites.py [SUITE...]; suites are named below. A suite that cannot be fetched
is left out, and said to be. SUITES_LIMIT (1800) is the longest that one run of a suite may take, in
seconds. ONRAMP names a binary of the pool; without it target/debug/onramp is built.
"""

import functools
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import venv
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET = ROOT / "target" / "suites"
ONRAMP = os.environ.get("ONRAMP", str(ROOT / "target" / "debug" / "onramp"))
KNOWN = ROOT / "tests" / "drivers" / "known.md"
LIMIT_S = int(os.environ.get("SUITES_LIMIT", "1800"))
BACKENDS = 4
# The pool's resident memory at the end of a suite, in MiB.
RSS_MAX_MIB = 256
SCHEMAS = ["test", "test1", "test2", "test_schema", "test_schema_2", "gotest", "test_pymysql",
           "test_pymysql2", "django", "django_other"]
ENV = {**os.environ, "PATH": os.environ["PATH"] + ":/usr/sbin"}


class Missing(Exception):
    """Something that cannot be had on this machine."""


def say(text):
    print(f"onramp: {text}", flush=True)


def run(command, cwd=None, env=None, limit=600):
    done = subprocess.run(command, cwd=cwd, env=env or ENV, timeout=limit, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if done.returncode:
        last = (done.stdout.strip().splitlines() or ["nothing was said"])[-1]
        raise Missing(f"{command[0]} ended with {done.returncode}: {last}")
    return done.stdout


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


class Process:
    """A program that is ended, with those that it has started, with the `with` block."""

    def __init__(self, command, log):
        self.log = log
        with open(log, "w", encoding="utf-8") as out:
            self.child = subprocess.Popen(command, stdout=out, stderr=out, env=ENV,
                                          start_new_session=True)

    def wait_until(self, ready, what):
        until = time.monotonic() + 60
        while not ready():
            if self.child.poll() is not None or time.monotonic() > until:
                raise SystemExit(f"{what} did not start: {self.said()}")
            time.sleep(0.1)

    def said(self):
        return pathlib.Path(self.log).read_text(encoding="utf-8", errors="replace")[-400:]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end(signal.SIGTERM)
        try:
            self.child.wait(30)
        except subprocess.TimeoutExpired:
            self.end(signal.SIGKILL)
            self.child.wait()

    def end(self, with_signal):
        try:
            os.killpg(self.child.pid, with_signal)
        except ProcessLookupError:
            pass


class Server(Process):
    """A fresh server with the accounts and schemas that the suites want."""

    def __init__(self, flavour, folder):
        self.flavour, self.port = flavour, free_port()
        self.socket = str(folder / "server.sock")
        data = folder / "data"
        user = ["--user=root"] if os.geteuid() == 0 else []
        common = ["--no-defaults", f"--datadir={data}", *user]
        serve = [*common, f"--port={self.port}", f"--socket={self.socket}",
                 "--bind-address=127.0.0.1", "--local-infile=1",
                 "--innodb-buffer-pool-size=64M", "--innodb-flush-log-at-trx-commit=0"]
        if flavour == "mariadb":
            run(["mariadb-install-db", *common, "--skip-test-db",
                 "--auth-root-authentication-method=normal"])
            command = ["mariadbd", *serve]
        else:
            launcher = str((ROOT / "target" / "mysql" / "run").resolve())
            run([launcher, "mysqld", *common, "--initialize-insecure"])
            command = [launcher, "mysqld", *serve, "--mysqlx=OFF", "--skip-log-bin", "--secure-file-priv="]
        super().__init__(command, folder / "server.log")
        self.wait_until(lambda: self.admin("SELECT 1", check=False), flavour)
        charset = "utf8mb4"
        sql = [f"CREATE DATABASE {schema} CHARACTER SET {charset};" for schema in SCHEMAS]
        sql += ["CREATE USER app@'%' IDENTIFIED BY 'app';", "GRANT ALL ON *.* TO app@'%';"]
        self.admin(" ".join(sql))

    def admin(self, sql, check=True):
        command = ["mariadb", "--no-defaults", "-S", self.socket, "-uroot", "-e", sql]
        plugins = "/usr/lib/x86_64-linux-gnu/libmariadb3/plugin"
        if self.flavour == "mysql":
            command.insert(2, f"--plugin-dir={plugins}")
        done = subprocess.run(command, capture_output=True, text=True, env=ENV, check=False)
        if check and done.returncode:
            raise SystemExit(f"{self.flavour}: {done.stderr}")
        return done.returncode == 0


class Pool(Process):
    """The pool in front of a server; `settings` are further lines of its configuration."""

    def __init__(self, server, folder, settings=""):
        self.port = free_port()
        self.socket = str(folder / "pool.sock")
        file = folder / "pool.toml"
        file.write_text(
            f'listen = ["127.0.0.1:{self.port}", "{self.socket}"]\nbackends_max = {BACKENDS}\n'
            f'{settings}[backend]\naddress = "127.0.0.1:{server.port}"\n'
            '[[user]]\nname = "app"\npassword = "app"\n', encoding="utf-8")
        file.chmod(0o600)
        super().__init__([ONRAMP, "pool", "--config", str(file)], folder / "pool.log")
        self.wait_until(lambda: "listening on" in self.said_all(), "the pool")

    def said_all(self):
        return pathlib.Path(self.log).read_text(encoding="utf-8", errors="replace")

    def rss_mib(self):
        status = pathlib.Path(f"/proc/{self.child.pid}/status").read_text(encoding="utf-8")
        return int(re.search(r"VmRSS:\s+(\d+)", status).group(1)) // 1024


def outcomes_of_junit(file):
    """Name and outcome of each test in a JUnit file."""
    found = {}
    for case in xml.etree.ElementTree.parse(file).iter("testcase"):
        name = f"{case.get('classname')}::{case.get('name')}"
        kinds = {child.tag for child in case}
        outcome = next((kind for kind in ("failure", "error", "skipped") if kind in kinds), "passed")
        found[name] = outcome
    return found


@functools.cache
def python(suite, *requirements):
    """A Python of the suite's own with these packages: MySQLdb shadows what PyMySQL installs itself as."""
    folder = TARGET / "venv" / suite
    program = folder / "bin" / "python"
    if not program.exists():
        venv.create(folder, with_pip=True)
    run([str(program), "-m", "pip", "install", "-q", "--disable-pip-version-check", "pytest",
         "cryptography", *requirements])
    return str(program)


@functools.cache
def source_of(package, version):
    """The unpacked source distribution of a Python package."""
    folder = TARGET / "sources" / f"{package}-{version}"
    if folder.exists():
        return folder
    files = TARGET / "sources" / "files"
    files.mkdir(parents=True, exist_ok=True)
    run([python("sources", "wheel", "setuptools"), "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps",
         "--no-binary", package, "-d", str(files),
         f"{package}=={version}"])
    archive = next(file for file in files.iterdir()
                   if file.name.lower().startswith(f"{package}-{version}".lower()))
    shutil.unpack_archive(archive, TARGET / "sources")
    unpacked = next(found for found in (TARGET / "sources").iterdir()
                    if found.name.lower() == f"{package}-{version}".lower())
    unpacked.rename(folder)
    return folder


def pytest(program, where, report, arguments, env=None):
    """Runs pytest; what fails there is in the report."""
    command = [program, "-m", "pytest", "-q", "--tb=short",
               "-p", "no:cacheprovider", f"--junitxml={report}", *arguments]
    with open(f"{report}.log", "w", encoding="utf-8") as out:
        subprocess.run(command, cwd=where, env={**ENV, **(env or {})}, stdout=out, stderr=out,
                       timeout=LIMIT_S, check=False)
    if not pathlib.Path(report).exists():
        raise Missing(f"pytest wrote no report, see {report}.log")
    return outcomes_of_junit(report)


def suite_pymysql(end, report):
    source = source_of("PyMySQL", "0.10.1")
    program = python("pymysql")
    databases = [{"host": "127.0.0.1", "port": end.port, "user": "app", "passwd": "app",
                  "database": schema, "use_unicode": True, "local_infile": True}
                 for schema in ("test1", "test2")]
    (source / "pymysql" / "tests" / "databases.json").write_text(json.dumps(databases))
    return pytest(program, source, report, ["pymysql/tests"], {"PYTHONPATH": str(source)})


def suite_aiomysql(end, report):
    source = source_of("aiomysql", "0.3.2")
    program = python("aiomysql", "PyMySQL", "aiomysql==0.3.2", "uvloop", "pytest-asyncio", "sqlalchemy<2")
    # The account of the tests is root, with the password of the environment.
    conftest = source / "tests" / "conftest.py"
    text = conftest.read_text().replace("'user': 'root'", "'user': 'app'")
    conftest.write_text(text)
    return pytest(program, source, report,
                  ["tests", f"--mysql-unix-socket=server={end.socket}"],
                  {"MYSQL_ROOT_PASSWORD": "app"})


def suite_sqlalchemy(end, report):
    version = "2.0.44"
    source = source_of("SQLAlchemy", version)
    program = python("sqlalchemy", "PyMySQL", f"sqlalchemy=={version}", "typing_extensions", "greenlet", "mypy")
    url = f"mysql+pymysql://app:app@127.0.0.1:{end.port}/test?charset=utf8mb4"
    return pytest(program, source, report,
                  ["-p", "no:warnings", f"--dburi={url}", "--maxfail=10000",
                   "test/dialect/mysql", "test/dialect/test_suite.py", "test/engine",
                   "test/sql/test_resultset.py", "test/sql/test_query.py"])


def suite_django(end, report):
    version = "5.2.8"
    source = source_of("Django", version)
    program = python("django", "PyMySQL", f"Django=={version}")
    settings = source / "tests" / "suite_settings.py"
    database = {"ENGINE": "django.db.backends.mysql", "HOST": "127.0.0.1", "PORT": end.port,
                "USER": "app", "PASSWORD": "app", "OPTIONS": {"charset": "utf8mb4"}}
    databases = {"default": {**database, "NAME": "django"},
                 "other": {**database, "NAME": "django_other"}}
    settings.write_text(
        "import pymysql\npymysql.version_info = (2, 2, 7, 'final', 0)\n"
        f"pymysql.install_as_MySQLdb()\nDATABASES = {databases!r}\nSECRET_KEY = 'suite'\n"
        "DEFAULT_AUTO_FIELD = 'django.db.models.AutoField'\nUSE_TZ = False\n"
        "PASSWORD_HASHERS = ['django.contrib.auth.hashers.MD5PasswordHasher']\n")
    labels = ["backends", "basic", "bulk_create", "custom_columns", "delete", "expressions",
              "get_or_create", "introspection", "lookup", "many_to_many", "queries",
              "schema", "select_for_update", "transactions", "transaction_hooks", "update"]
    command = [program, "runtests.py", "--settings=suite_settings", "--parallel=1", "--noinput",
               "-v", "2", *labels]
    log = f"{report}.log"
    with open(log, "w", encoding="utf-8") as out:
        subprocess.run(command, cwd=source / "tests", env={**ENV, "PYTHONPATH": str(source)},
                       stdout=out, stderr=out, timeout=LIMIT_S, check=False)
    text = pathlib.Path(log).read_text(encoding="utf-8", errors="replace")
    line = re.compile(r"^(\w+ \([\w.]+\))(?:\n[^\n]*?)? \.\.\. (ok|FAIL|ERROR|skipped|expected)",
                      re.MULTILINE)
    found = {name: outcome for name, outcome in line.findall(text)}
    if not found:
        raise Missing(f"Django's suite said nothing, see {log}")
    return found


def suite_go(end, report):
    if not shutil.which("go"):
        raise Missing("go is not installed")
    version = "v1.9.3"
    module = f"github.com/go-sql-driver/mysql@{version}"
    told = json.loads(run(["go", "mod", "download", "-json", module]))
    source = TARGET / "sources" / "go-sql-driver"
    if not source.exists():
        shutil.copytree(told["Dir"], source)
        run(["chmod", "-R", "u+w", str(source)])
    env = {**ENV, "MYSQL_TEST_USER": "app", "MYSQL_TEST_PASS": "app",
           "MYSQL_TEST_ADDR": f"127.0.0.1:{end.port}"}
    done = subprocess.run(["go", "test", "-json", "-count=1",
                           # It dials an address of the Internet, and ends the run without one.
                           "-skip", "TestConnectorReturnsTimeout", "-timeout", f"{LIMIT_S}s", "./..."],
                          cwd=source, env=env, capture_output=True, text=True,
                          timeout=LIMIT_S + 60, check=False)
    pathlib.Path(f"{report}.log").write_text(done.stdout + done.stderr)
    found = {}
    for line in done.stdout.splitlines():
        event = json.loads(line) if line.startswith("{") else {}
        if event.get("Test") and event.get("Action") in ("pass", "fail", "skip"):
            found[event["Test"]] = event["Action"]
    if not found:
        raise Missing(f"go test said nothing: {done.stderr[-200:]}")
    return found


@functools.cache
def debian(*packages):
    """The folder, named by the first, with the files of these packages of Debian: they are not installed."""
    if not shutil.which("apt-get"):
        raise Missing("there is no apt-get here")
    root = TARGET / "debian" / packages[0]
    if root.exists():
        return root
    files = TARGET / "debian" / "files"
    files.mkdir(parents=True, exist_ok=True)
    work = root.with_suffix(".part")
    shutil.rmtree(work, ignore_errors=True)
    for package in packages:
        run(["apt-get", "-q", "download", package], cwd=files)
        run(["dpkg", "-x", str(max(files.glob(f"{package}_*.deb"))), str(work)])
    work.rename(root)
    return root


@functools.cache
def debian_source(package, parts):
    """The parts of the source of a package of Debian, from the mirror that apt uses here."""
    unpacked = TARGET / "debian" / f"{package}-source"
    if unpacked.exists():
        return unpacked
    work = TARGET / "debian" / "apt"
    (work / "lists" / "partial").mkdir(parents=True, exist_ok=True)
    (work / "cache").mkdir(exist_ok=True)
    lists = [pathlib.Path("/etc/apt/sources.list"),
             *sorted(pathlib.Path("/etc/apt/sources.list.d").glob("*"))]
    said = "\n".join(file.read_text(encoding="utf-8") for file in lists if file.is_file())
    mirror = re.search(r"^(?:deb |URIs:).*?(\w+://\S+/debian)/?\s", said, re.MULTILINE)
    system = pathlib.Path("/etc/os-release").read_text(encoding="utf-8")
    suite = re.search(r"^VERSION_CODENAME=(\w+)", system, re.MULTILINE)
    if not mirror or not suite:
        raise Missing("no Debian mirror in apt's lists")
    (work / "list").write_text(
        "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] "
        f"{mirror.group(1)} {suite.group(1)} main\n", encoding="utf-8")
    apt = ["apt-get", "-q", "-o", f"Dir::Etc::sourcelist={work}/list",
           "-o", "Dir::Etc::sourceparts=/dev/null", "-o", f"Dir::State::lists={work}/lists",
           "-o", f"Dir::Cache={work}/cache"]
    run([*apt, "update"])
    run([*apt, "--download-only", "source", package], cwd=work)
    archive = max(work.glob(f"{package}_*.orig.tar.*[!c]"))
    shutil.rmtree(work / "unpacked", ignore_errors=True)
    (work / "unpacked").mkdir()
    run(["tar", "-xf", str(archive), "-C", str(work / "unpacked"), "--strip-components=1",
         "--wildcards", *parts])
    (work / "unpacked").rename(unpacked)
    return unpacked


def programs(runs, where, env, limit_s, log):
    """Runs a program for each test; its outcome is how the program ends."""
    found = {}
    with open(log, "w", encoding="utf-8") as out:
        for name, command in runs:
            print(f"=== {name}", file=out, flush=True)
            try:
                done = subprocess.run(command, cwd=where, env={**ENV, **env}, stdout=out,
                                      stderr=out, timeout=limit_s, check=False)
                found[name] = "passed" if done.returncode == 0 else "failure"
            except subprocess.TimeoutExpired:
                found[name] = f"longer than {limit_s} s"
    return found


def debian_php():
    """What the packages of Debian's PHP begin with."""
    if not shutil.which("apt-cache"):
        raise Missing("there is no apt-cache here")
    version = re.search(r"Depends: (php\d\.\d)-cli", run(["apt-cache", "depends", "php-cli"]))
    if not version:
        raise Missing("apt knows no PHP")
    return version.group(1)


def suite_php(end, report):
    php = debian_php()
    root = debian(f"{php}-cli", f"{php}-common", f"{php}-mysql")
    # The tests are of the version that Debian's main archive has, which may be a little older.
    source = debian_source(php, ("*/ext/mysqli/tests", "*/ext/pdo_mysql/tests", "*/ext/pdo/tests",
                                 "*/run-tests.php"))
    program = str(root / "usr" / "bin" / php)
    extensions = next((root / "usr" / "lib" / "php").glob("20*"))
    options = [f"extension_dir={extensions}"]
    options += [f"extension={name}" for name in ("mysqlnd", "mysqli", "pdo", "pdo_mysql")]
    options = [word for option in options for word in ("-d", option)]
    account = {"HOST": "127.0.0.1", "PORT": str(end.port), "USER": "app", "PASSWD": "app",
               "DB": "test"}
    env = {f"MYSQL_TEST_{name}": value for name, value in account.items()}
    env |= {"PDO_MYSQL_TEST_DSN": f"mysql:host=127.0.0.1;port={end.port};dbname=test",
            "PDO_MYSQL_TEST_HOST": "127.0.0.1", "PDO_MYSQL_TEST_PORT": str(end.port),
            "PDO_MYSQL_TEST_USER": "app", "PDO_MYSQL_TEST_PASS": "app",
            "PDO_MYSQL_TEST_DB": "test", "TEST_PHP_EXECUTABLE": program, "NO_INTERACTION": "1",
            "TEST_PHP_JUNIT": str(report), "SKIP_SLOW_TESTS": "1", "SKIP_ONLINE_TESTS": "1"}
    with open(f"{report}.log", "w", encoding="utf-8") as out:
        subprocess.run([program, "-n", "run-tests.php", "-q", "-n", *options,
                        "ext/mysqli/tests", "ext/pdo_mysql/tests"],
                       cwd=source, env={**ENV, **env}, stdout=out, stderr=out, timeout=LIMIT_S,
                       check=False)
    if not pathlib.Path(report).exists():
        raise Missing(f"PHP's tests wrote no report, see {report}.log")
    return {re.sub(r"^.*/(ext/)", r"\1", name): outcome
            for name, outcome in outcomes_of_junit(report).items()}


def suite_mysql2(end, report):
    if not shutil.which("npm"):
        raise Missing("npm is not installed")
    # The tests of the last version whose package has them, with the driver of today.
    folder = TARGET / "sources" / "mysql2"
    driver = folder / "node_modules" / "mysql2"
    if not (driver / "test").exists():
        folder.mkdir(parents=True, exist_ok=True)
        run(["npm", "pack", "--silent", "mysql2@0.15.8"], cwd=folder)
        run(["tar", "-xzf", "mysql2-0.15.8.tgz"], cwd=folder)
        run(["npm", "install", "--silent", "--ignore-scripts", "--no-save", "--prefix", ".",
             "mysql2@3.24.6"], cwd=folder)
        # What the tests take from the driver's own files has moved to a package of its own.
        moved = driver / "lib" / "sql_string.js"
        moved.write_text('module.exports = require("sql-escaper");\n', encoding="utf-8")
        shutil.move(folder / "package" / "test", driver / "test")
    tests = sorted((driver / "test" / "integration").glob("**/test-*.js"))
    env = {"CI": "1", "MYSQL_HOST": "127.0.0.1", "MYSQL_PORT": str(end.port),
           "MYSQL_USER": "app", "MYSQL_PASSWORD": "app", "MYSQL_DATABASE": "test"}
    return programs([(test.stem, ["node", str(test)]) for test in tests], driver, env, 60,
                    f"{report}.log")


def suite_mysqlclient(end, report):
    root = debian("libmariadb-dev", "libmariadb3")
    libraries = next((root / "usr" / "lib").glob("*/libmariadb.so.3")).parent
    # pip builds a little of it to read its metadata, too.
    ENV.update(MYSQLCLIENT_CFLAGS=f"-I{root}/usr/include/mariadb",
               MYSQLCLIENT_LDFLAGS=f"-L{libraries} -lmariadb")
    source = source_of("mysqlclient", "2.2.7")
    program = python("mysqlclient", str(source))
    # The account and the schema are those of the file that TESTDB names.
    settings = source / "tests" / "suite.cnf"
    settings.write_text(f"[MySQLdb-tests]\nhost=127.0.0.1\nport={end.port}\nuser=app\n"
                        "password=app\ndatabase=test\ndefault-character-set=utf8mb4\n")
    return pytest(program, source / "tests", report, ["."],
                  {"TESTDB": "suite.cnf", "LD_LIBRARY_PATH": str(libraries)})


def suite_client_test(end, report):
    root = debian("mariadb-test")
    program = str(root / "usr" / "bin" / "mariadb-client-test")
    named = run([program, "--no-defaults", "--show-tests"]).splitlines()
    names = [name for name in named if re.fullmatch(r"\w+", name)]
    if not names:
        raise Missing("mariadb-client-test names no tests")
    folder = pathlib.Path(report).parent / "vardir"
    for part in ("tmp", "log"):
        (folder / part).mkdir(parents=True)
    plugins = "/usr/lib/x86_64-linux-gnu/libmariadb3/plugin"
    common = [program, "--no-defaults", f"--plugin-dir={plugins}", "--testcase", "--silent",
              "--host=127.0.0.1", f"--port={end.port}", "--user=app", "--password=app",
              f"--vardir={folder}"]
    # What one test leaves of its tables when it fails is gone with their schema.
    return programs([(name, [*common, name]) for name in names], folder, {}, 60,
                    f"{report}.log")


SUITES = {"pymysql": suite_pymysql, "aiomysql": suite_aiomysql, "go-sql-driver": suite_go,
          "mysqlclient": suite_mysqlclient, "mysql2": suite_mysql2, "php": suite_php,
          "mariadb-client-test": suite_client_test,
          "sqlalchemy": suite_sqlalchemy, "django": suite_django}


def known():
    """Tests that are known to differ, with their reasons, from the table of the page."""
    row = re.compile(r"^\| ([\w-]+) \| (mariadb|mysql|both) \| `(.+?)` \| (.+) \|$", re.MULTILINE)
    found = {}
    for suite, server, test, reason in row.findall(KNOWN.read_text(encoding="utf-8")):
        for flavour in ("mariadb", "mysql") if server == "both" else (server,):
            found[suite, flavour, test] = reason
    return found


def tell(suite, flavour, through):
    """One run; the outcome of each test, and the pool's memory."""
    way = "pool" if through else "direct"
    folder = TARGET / "runs" / f"{suite}-{flavour}-{way}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    report = folder / "report.xml"
    with Server(flavour, folder) as server:
        if not through:
            return SUITES[suite](server, report), 0
        with Pool(server, folder) as pool:
            found = SUITES[suite](pool, report)
            if pool.child.poll() is not None:
                raise SystemExit(f"{suite} on {flavour}: the pool ended: {pool.said()}")
            return found, pool.rss_mib()


def main():
    wanted = sys.argv[1:] or list(SUITES)
    unknown = [name for name in wanted if name not in SUITES]
    if unknown:
        raise SystemExit(f"no such suite: {', '.join(unknown)}; there are {', '.join(SUITES)}")
    TARGET.mkdir(parents=True, exist_ok=True)
    if "ONRAMP" not in os.environ:
        run(["cargo", "build", "--locked", "--bin", "onramp"], cwd=ROOT, limit=1800)
    flavours = ["mariadb"]
    if (ROOT / "target" / "mysql" / "run").exists():
        flavours.append("mysql")
    else:
        say("MySQL is left out: scripts/get-mysql.sh has not put one into target/mysql")
    explained, wrong = known(), []
    for suite in wanted:
        for flavour in flavours:
            try:
                direct, _ = tell(suite, flavour, False)
                through, rss = tell(suite, flavour, True)
            except (Missing, subprocess.TimeoutExpired) as missing:
                say(f"{suite} on {flavour} is left out: {missing}")
                continue
            passed = sum(outcome in ("passed", "pass", "ok") for outcome in direct.values())
            differ = sorted(name for name in direct.keys() | through.keys()
                            if direct.get(name) != through.get(name))
            say(f"{suite} on {flavour}: {len(direct)} tests, {passed} pass directly, {len(differ)} "
                f"differ through the pool, which has {rss} MiB at the end")
            for name in differ:
                reason = explained.get((suite, flavour, name))
                print(f"  {name}: directly {direct.get(name)}, through the pool "
                      f"{through.get(name)}{f' ({reason})' if reason else ''}")
                if not reason:
                    wrong.append(f"{suite} {flavour} {name}")
            if rss > RSS_MAX_MIB:
                wrong.append(f"{suite} {flavour}: {rss} MiB, {RSS_MAX_MIB} allowed")
    if wrong:
        raise SystemExit("not explained in tests/drivers/known.md:\n  " + "\n  ".join(wrong))


if __name__ == "__main__":
    main()
