"""What scripts/pools.sh shows, behind its preparations: see there."""

import argparse
import collections
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import threading
import time
import urllib.error
import urllib.request

import pymysql

LIMIT = 60
ACCOUNTS = 50


class Pool:
    """A pool of the fleet; a successor has its ports."""

    def __init__(self, scene, name, port):
        self.scene, self.name, self.port, self.http, self.console = scene, name, port, port + 1, port + 2
        self.file = scene.folder / f"{name}.toml"
        # The second address is one of those that the names of scripts/pools.sh have.
        self.file.write_text(f'''
listen = ["127.0.0.1:{self.port}", "127.0.1.{'abc'.index(name) + 1}:{scene.named_port}"]
http = "127.0.0.1:{self.http}"
backends_max = {scene.args.backends}
groups = 2
wait_ms_max = 30000
drain_wait_s = 3
drain_s = 3
[backend]
address = "127.0.0.1:{scene.args.server}"
monitor_user = "monitor"
monitor_password = "monitor"
[fleet]
name = "shown"
[console]
listen = "127.0.0.1:{self.console}"
admin_user = "admin"
admin_password = "admin"
[[user]]
name = "app"
password = "app"
''')
        self.start()

    def start(self):
        log = open(self.scene.folder / f"{self.name}.log", "ab")
        self.process = self.scene.started(subprocess.Popen(
            [self.scene.args.onramp, "pool", "--config", self.file], stderr=log, stdout=log))
        self.pid = self.process.pid
        until(f"{self.name} is ready", lambda: self.ready())

    def ready(self):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.http}/readyz", timeout=1) as answer:
                return answer.status == 200
        except (OSError, urllib.error.HTTPError):
            return False

    def fleet(self):
        """What the fleet is by this pool: (own, demand, held, share) of each."""
        connection = pymysql.connect(host="127.0.0.1", port=self.console, user="admin", password="admin")
        with connection, connection.cursor() as cursor:
            cursor.execute("SELECT is_self, demand, held, share FROM fleet")
            return [tuple(int(value) for value in row) for row in cursor.fetchall()]


    def clients(self):
        connection = pymysql.connect(host="127.0.0.1", port=self.console, user="admin", password="admin")
        with connection, connection.cursor() as cursor:
            cursor.execute("SELECT SUM(clients) FROM `groups`")
            return int(cursor.fetchone()[0])


def until(what, is_so):
    end = time.monotonic() + LIMIT
    while not is_so():
        if time.monotonic() > end:
            raise SystemExit(f"pools: {what} did not come")
        time.sleep(0.05)


class Scene:
    def __init__(self, args):
        self.args = args
        self.folder = pathlib.Path(args.folder)
        self.named_port = 24000 + os.getpid() % 1000
        self.children, self.over = [], threading.Event()
        self.phase = "start"
        self.most = collections.Counter()
        self.bank, self.acknowledged, self.doubtful = collections.Counter(), set(), set()
        self.lock = threading.Lock()

    def started(self, child):
        self.children.append(child)
        return child

    def admin(self):
        return pymysql.connect(unix_socket=str(self.folder / "socket"), user="root", autocommit=True)

    def count(self):
        """The server's connections of the pools' account, each 100 ms."""
        connection = self.admin()
        with connection.cursor() as cursor:
            while not self.over.wait(0.1):
                cursor.execute("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE USER = 'app'")
                self.most[self.phase] = max(self.most[self.phase], cursor.fetchone()[0])

    def transfer(self, seed, host, port):
        """A client of the bank: a transfer with its line in the ledger, again and again."""
        dice, number, connection = random.Random(seed), 0, None
        while not self.over.is_set():
            tag, number, asked = f"{seed}-{number}", number + 1, False
            try:
                connection = connection or pymysql.connect(
                    host=host, port=port, user="app", password="app", database="sbtest",
                    connect_timeout=5, read_timeout=40)
                one, two = dice.sample(range(ACCOUNTS), 2)
                with connection.cursor() as cursor:
                    connection.begin()
                    cursor.execute("INSERT INTO ledger VALUES (%s)", (tag,))
                    for account, sum_ in sorted([(one, -1), (two, 1)]):
                        cursor.execute("UPDATE account SET v = v + %s WHERE id = %s", (sum_, account))
                asked = True
                connection.commit()
                with self.lock:
                    self.acknowledged.add(tag)
            except (pymysql.Error, OSError) as error:
                with self.lock:
                    self.bank[f"{self.phase}: {error.args[0]}"] += 1
                    if asked:
                        self.doubtful.add(tag)
                if not isinstance(error, pymysql.Error) or error.args[0] not in (1213, 1205):
                    connection = None
        return connection

    def check_bank(self):
        connection = self.admin()
        with connection.cursor() as cursor:
            cursor.execute("SELECT SUM(v) FROM sbtest.account")
            assert cursor.fetchone()[0] == ACCOUNTS * 1000, "money was made or lost"
            cursor.execute("SELECT tag, COUNT(*) FROM sbtest.ledger GROUP BY tag")
            found = dict(cursor.fetchall())
        assert max(found.values()) == 1, "a transfer was done twice"
        lost = self.acknowledged - set(found)
        assert not lost, f"lost: {list(lost)[:5]}"
        other = set(found) - self.acknowledged - self.doubtful
        assert not other, f"done, and reported as not done: {list(other)[:5]}"
        print(f"bank: {len(self.acknowledged)} transfers, {len(self.doubtful)} of unknown end; none lost,"
              f" doubled or wrongly reported; errors {dict(self.bank)}", flush=True)

    def start_haproxy(self, pools):
        self.haproxy = pools[0].port + 900
        servers = "\n".join(f"    server {it.name} 127.0.0.1:{it.port} check port {it.http} inter 500ms"
                            f" fall 2 rise 1 on-marked-down shutdown-sessions" for it in pools)
        (self.folder / "haproxy.cfg").write_text(f'''
global
    maxconn 8000
defaults
    mode tcp
    timeout connect 2s
    timeout client 1h
    timeout server 1h
listen mysql
    bind 127.0.0.1:{self.haproxy}
    balance leastconn
    option httpchk GET /readyz
    option redispatch 1
    default-server init-addr none
{servers}
'''.replace(" on-marked-down shutdown-sessions", ""))
        self.started(subprocess.Popen(["haproxy", "-db", "-f", self.folder / "haproxy.cfg"],
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        until("HAProxy", lambda: self.answers())

    def answers(self):
        try:
            pymysql.connect(host="127.0.0.1", port=self.haproxy, user="app", password="app").close()
        except pymysql.Error:
            return False
        return True

    def load(self, name, line, seconds):
        log = open(self.folder / f"{name}.out", "ab")
        return self.started(subprocess.Popen([str(it) for it in line], stdout=log, stderr=log)), name

    def loads(self, pools, seconds):
        port, total = self.haproxy, self.args.connections
        yield self.load("load", [
            self.args.onramp, "load", "oltp_point_select", "run", "--target",
            f"mysql://app:app@127.0.0.1:{port}/sbtest", "--table-size", 10000, "--connections",
            total - 180, "--time", seconds, "--rate", 400, "--live", "never",
            "--ignore-errors", "all"], seconds)
        # Debian's 1.0.20 dies of a signal where it connects again: it calls mysql_real_connect() with
        # a handle that it has closed, which libmariadb does not take. So a lost connection ends it,
        # and it is started again.
        yield self.load("sysbench", ["bash", "-c", """
            end=$((SECONDS + $1)) port=$2
            while ((SECONDS < end)); do
                echo "a run begins"
                sysbench oltp_read_write --db-driver=mysql --mysql-host=127.0.0.1 --mysql-port="$port" \
                    --mysql-user=app --mysql-password=app --mysql-db=sbtest --tables=1 --table-size=10000 \
                    --threads=100 --time=$((end - SECONDS)) --rate=100 --report-interval=1 run
                sleep 0.2
            done""", "sysbench", seconds, port], seconds)
        jars = next((it for it in (pathlib.Path("target/drivers/jdbc/lib"),) if it.is_dir()), None)
        if not jars or not shutil.which("java"):
            print("skipped: HikariCP: scripts/drivers.sh fetches it", flush=True)
            return
        several = ",".join(f"127.0.0.1:{it.port}" for it in pools)
        for name, url in (("hikari", f"jdbc:mariadb://127.0.0.1:{port}/sbtest"),
                          ("hikari-list", f"jdbc:mariadb:loadbalance://{several}/sbtest"),
                          ("hikari-name", f"jdbc:mysql://pools2:{self.named_port}/sbtest"
                                          "?connectTimeout=5000&socketTimeout=40000")):
            yield self.load(name, ["java", "-cp", f"{jars}/*", "tests/drivers/jdbc/Hikari.java", url,
                                   20, seconds], seconds)

    def show_shares(self, pools):
        """What each pool has five seconds after each change of a demand that is known: clients
        without a pause, whose statements sleep at the server, straight at each."""
        (self.folder / "sleep.lua").write_text('''
function thread_init() con = sysbench.sql.driver():connect() end
function event() con:query("SELECT SLEEP(0.05)") end
''')
        for clients in ((60, 30, 10), (10, 60, 30), (30, 30, 30)):
            clients = clients[:len(pools)]
            self.phase = f"{len(pools)} pools with {clients} clients"
            loads = [self.load("sleep", [
                self.args.onramp, "load", self.folder / "sleep.lua", "run", "--target",
                f"mysql://app:app@127.0.0.1:{it.port}/sbtest", "--connections", number, "--time", 7,
                "--live", "never"], 7)[0] for it, number in zip(pools, clients)]
            time.sleep(5)
            held = [next(row[2] for row in it.fleet() if row[0] == 1) for it in pools]
            fair = [self.args.backends * number / sum(clients) for number in clients]
            print(f"{self.phase}: {held} backends, {[round(it, 1) for it in fair]} by demand", flush=True)
            off = [abs(one - other) for one, other in zip(held, fair)]
            assert all(it <= max(1, other / 10) for it, other in zip(off, fair)), "shares are off"
            for child in loads:
                assert child.wait() == 0, (self.folder / "sleep.out").read_text()

    def show_connections(self, pools):
        """How many clients there are of each pool, of those that were to connect."""
        counts = {it.name: it.clients() for it in pools}
        print(f"  clients {counts}: {sum(counts.values())} of {self.args.connections}", flush=True)

    def act(self, words, act):
        self.phase = words
        print(f"{words}", flush=True)
        act()
        time.sleep(self.args.seconds)

    def show(self, pools):
        one, two = pools[:2]
        self.show_shares(pools)
        self.phase = f"{len(pools)} pools"
        seconds = 5 + 7 * self.args.seconds + 45
        loads = list(self.loads(pools, seconds))
        ways = [("127.0.0.1", self.haproxy), *((f"pools{n}", self.named_port) for n in range(3))]
        clients = [threading.Thread(target=self.transfer, args=(f"{len(pools)}.{n}", *ways[n % 4]))
                   for n in range(20)]
        [it.start() for it in clients]
        print(f"{len(pools)} pools under load", flush=True)
        # HikariCP gives up if its first connection fails, as one does that HAProxy sends to a pool
        # that was killed just before.
        expected = self.args.connections - (60 if len(loads) == 2 else 0)
        until("all clients", lambda: sum(it.clients() for it in pools) >= expected)
        time.sleep(5)
        self.show_connections(pools)
        self.act("one is killed", one.process.kill)
        one.process.wait()
        self.act("it is started again", one.start)
        self.act("one is stopped", lambda: os.kill(two.pid, signal.SIGSTOP))
        self.act("it goes on", lambda: os.kill(two.pid, signal.SIGCONT))
        self.act("one is upgraded", lambda: self.upgrade(two))
        self.act("one is drained", one.process.terminate)
        until("the end of the drain", lambda: one.process.poll() is not None)
        assert one.process.returncode == 0, one.process.returncode
        self.phase = "after"
        for child, name in loads:
            child.wait()
            text = (self.folder / f"{name}.out").read_text().strip().splitlines()
            if name == "sysbench":
                text = self.told_by_sysbench("\n".join(text))
            words = ("transactions", "ignored errors", "errors", "reconnects", "failed")
            told = [it.strip() for it in text if any(word in it for word in words)]
            if child.returncode != 0:
                told = [it for it in text if "Exception" in it or "Error" in it] or told
            print(f"  {name}, exit status {child.returncode}: {'; '.join(told[-4:] or text[-2:])}", flush=True)
            (self.folder / f"{name}.out").unlink()
        self.over.set()
        [it.join() for it in clients]
        self.over.clear()
        self.check_bank()
        self.bank.clear()
        one.start()

    @staticmethod
    def told_by_sysbench(text):
        """Totals of its runs, of which those that a lost connection has ended print none."""
        done = sum(float(it) for it in re.findall(r"tps: ([0-9.]+)", text))
        ends = collections.Counter(re.findall(r"FATAL: .*?error (\d+)", text))
        runs = text.count("a run begins")
        assert done > 0, f"sysbench has done nothing: {text[-2000:]}"
        return [f"{done:.0f} transactions in {runs} runs, errors {dict(ends)}"]

    def upgrade(self, pool):
        before, log = pool.pid, self.folder / f"{pool.name}.log"
        told = lambda: [it for it in log.read_text().splitlines() if "handed over: " in it]
        count = len(told())
        os.kill(before, signal.SIGUSR2)
        until("the upgrade", lambda: len(told()) > count)
        print(f"  {told()[-1].split('message=')[-1]}", flush=True)
        # The successor is a child of the process before, and so nobody's.
        line = ["pgrep", "-f", f"{self.args.onramp} pool.*{pool.file}"]
        found = lambda: subprocess.run(line, capture_output=True, text=True).stdout.split()
        until("one process", lambda: pool.process.poll() is not None and found() != [str(before)]
              and len(found()) == 1)
        pool.pid = int(found()[0])
        self.successors.append(pool.pid)

    successors = []

    def end(self):
        self.over.set()
        for pid in self.successors:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        for child in self.children:
            if child.poll() is None:
                child.kill()
            child.wait()


def main():
    parser = argparse.ArgumentParser()
    for name in ("onramp", "folder"):
        parser.add_argument(f"--{name}", required=True)
    for name in ("server", "connections", "backends", "seconds"):
        parser.add_argument(f"--{name}", type=int, required=True)
    scene = Scene(parser.parse_args())
    first = 21000 + os.getpid() % 3000
    try:
        pools = [Pool(scene, name, first + 10 * at) for at, name in enumerate("ab")]
        counter = threading.Thread(target=scene.count, daemon=True)
        counter.start()
        scene.start_haproxy(pools)
        scene.show(pools)
        pools.append(Pool(scene, "c", first + 40))
        scene.children[:] = [it for it in scene.children if it.poll() is None]
        haproxy = next(it for it in scene.children if "haproxy" in str(it.args[0]))
        haproxy.terminate()
        haproxy.wait()
        counter = threading.Thread(target=scene.count, daemon=True)
        counter.start()
        scene.start_haproxy(pools)
        scene.show(pools)
        print(f"connections of the server, at most, of {scene.args.backends}: {dict(scene.most)}", flush=True)
        assert max(scene.most.values()) <= scene.args.backends, "the limit was exceeded"
        print("pools: passed", flush=True)
    finally:
        scene.end()


main()
