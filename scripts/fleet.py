"""What scripts/fleet.sh measures, behind its preparations: see there."""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request

TICKS = os.sysconf("SC_CLK_TCK")
LIMIT = 180

PYTHON_USERS = '''
import random
import time

import pymysql
from locust import User, task


class Python(User):
    def on_start(self):
        self.connection = pymysql.connect(
            host="{host}", port={port}, user="app", password="app", database="sbtest")
        self.cursor = self.connection.cursor()

    @task
    def select(self):
        began = time.perf_counter()
        self.cursor.execute("SELECT c FROM sbtest1 WHERE id=%s", (random.randint(1, 100000),))
        self.cursor.fetchall()
        self.environment.events.request.fire(
            request_type="SQL", name="select", response_length=0, exception=None,
            response_time=(time.perf_counter() - began) * 1000)
'''


class Scene:
    """Everything that runs, so that all of it ends."""

    def __init__(self, args):
        self.args = args
        self.children = []
        self.port = 27000 + os.getpid() % 3000
        self.web = self.port + 3000

    def start(self, line, log):
        with open(os.path.join(self.args.folder, log), "ab") as out:
            child = subprocess.Popen(line, stdout=out, stderr=out)
        self.children.append(child)
        return child

    def end(self, *children):
        for child in children or tuple(self.children):
            if child.poll() is None:
                child.terminate()
        for child in children or tuple(self.children):
            try:
                child.wait(20)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
            if child in self.children:
                self.children.remove(child)

    def master(self, file):
        return self.start(
            [self.args.locust, "-f", file, "--master", "--master-bind-host", "127.0.0.1",
             "--master-bind-port", str(self.port), "--web-host", "127.0.0.1",
             "--web-port", str(self.web)], "master.log")

    def python_worker(self, file):
        return self.start(
            [self.args.locust, "-f", file, "--worker", "--master-host", "127.0.0.1",
             "--master-port", str(self.port)], "python.log")

    def load(self, target, users, *more):
        return [self.args.onramp, "load", "oltp_point_select", "run", "--target", target,
                "--table-size", "100000", "--connections", str(users), "--groups", "1",
                "--connect-rate", "0", "--live", "never", *more]

    def onramp_worker(self, target, users):
        place = f"127.0.0.1:{self.port}"
        return self.start(self.load(target, users, "--locust-master", place), "onramp.log")

    def locustfile(self):
        line = self.load(self.args.pool, 1, "--print-locustfile")
        path = os.path.join(self.args.folder, "locustfile.py")
        with open(path, "wb") as out:
            subprocess.run(line, stdout=out, check=True)
        return path

    def python_file(self):
        host, port = re.search(r"@([^:/]+):(\d+)/", self.args.pool).groups()
        path = os.path.join(self.args.folder, "python_users.py")
        with open(path, "w", encoding="utf-8") as out:
            out.write(PYTHON_USERS.format(host=host, port=port))
        return path

    def ask(self, path, **form):
        data = "&".join(f"{name}={value}" for name, value in form.items()).encode() or None
        try:
            url = f"http://127.0.0.1:{self.web}{path}"
            with urllib.request.urlopen(url, data, timeout=20) as answer:
                return answer.read()
        except OSError:
            return None

    def until(self, what, is_so):
        end = time.monotonic() + LIMIT
        stats = None
        while time.monotonic() < end:
            answer = self.ask("/stats/requests")
            stats = json.loads(answer) if answer else None
            if stats and is_so(stats):
                return stats
            time.sleep(0.1)
        raise SystemExit(f"{what} did not come: {str(stats)[:2000]}")

    def statements(self):
        """Selects that the server has run so far."""
        line = ["mariadb", "--no-defaults", "-S", self.args.socket, "-uroot", "-N", "-e",
                "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS "
                "WHERE VARIABLE_NAME = 'COM_SELECT'"]
        return int(float(subprocess.run(line, capture_output=True, check=True).stdout))

    def until_connected(self, users):
        """Waits until so many connections to the pool stand, and for their logins: a worker reports
        its users as soon as it has been told of them, and logins cost as much as statements."""
        port = f":{int(re.search(r':([0-9]+)/', self.args.pool).group(1)):04X} 01 "
        end = time.monotonic() + LIMIT
        while time.monotonic() < end:
            with open("/proc/net/tcp", encoding="ascii") as table:
                if sum(port in line for line in table) >= users:
                    time.sleep(15)
                    return
            time.sleep(0.5)
        raise SystemExit(f"{users} connections did not come to stand")

    def rate(self):
        """Statements a second of the server, over the time of one measurement, and the CPU seconds
        for a million of them of all that takes part."""
        before, began, used = self.statements(), time.monotonic(), self.cpu()
        time.sleep(self.args.seconds)
        count = max(self.statements() - before, 1)
        seconds = time.monotonic() - began
        cost = [(now - then) / count * 1e6 for now, then in zip(self.cpu(), used)]
        return count / seconds, cost

    def cpu(self):
        """CPU seconds of the server, the pool and everything else."""
        own = [cpu(int(pid)) for pid in self.args.pids.split(",")]
        return own + [sum(cpu(child.pid) for child in self.children)]


def shown(numbers):
    return " + ".join(f"{number:.1f}" for number in numbers)


def median(numbers):
    return sorted(numbers)[len(numbers) // 2]


def workers(stats, *states):
    return sum(worker["state"] in states for worker in stats["workers"])


def cpu(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def with_locust(scene, file):
    users = scene.args.users
    master = scene.master(file)
    fleet = [scene.onramp_worker(scene.args.pool, users // 4) for _ in range(4)]
    scene.until("four workers", lambda stats: workers(stats, "ready") == 4)
    scene.ask("/swarm", user_count=users, spawn_rate=users)
    scene.until("the users", lambda s: s["user_count"] == users and s["state"] == "running")
    scene.until_connected(users)
    before = scene.until("its numbers", lambda s: s["stats"])["stats"][-1]
    began, own = time.monotonic(), cpu(master.pid)
    rate, cost = scene.rate()
    # Locust has the numbers of a worker up to three seconds later.
    after = scene.until("its numbers", lambda s: s["stats"])["stats"][-1]
    seconds = time.monotonic() - began
    asked = (after["num_requests"] - before["num_requests"]) / seconds
    failed = after["num_failures"]
    own = (cpu(master.pid) - own) / seconds
    scene.end(*fleet, master)
    return rate, cost, asked, failed, own


def without(scene):
    users = scene.args.users
    fleet = [scene.start(scene.load(scene.args.pool, users // 4, "--time", "0"), f"alone{n}.log")
             for n in range(4)]
    scene.until_connected(users)
    measured = scene.rate()
    for child in fleet:
        child.send_signal(signal.SIGINT)
    scene.end(*fleet)
    return measured


def measure_rate(scene):
    file = scene.locustfile()
    ratios, costs = [], []
    for number in range(scene.args.rounds):
        # Whoever comes first differs, so that a trend of the machine helps neither.
        first = without(scene) if number % 2 == 0 else None
        rate, cost, asked, failed, own = with_locust(scene, file)
        alone, alone_cost = first or without(scene)
        ratios.append(rate / alone)
        costs.append(sum(alone_cost) / sum(cost))
        print(f"{scene.args.users} users, 4 workers: {rate:.0f} requests/s under Locust "
              f"({asked:.0f} by its own count, {failed} failed), {alone:.0f} without: "
              f"{ratios[-1]:.3f}; CPU seconds for a million of them, of server, pool, and workers "
              f"with master: {shown(cost)}, without {shown(alone_cost)}: {costs[-1]:.3f}; the "
              f"master used {own:.2f} of a core", flush=True)
    print(f"median of {len(ratios)} pairs: {median(ratios):.3f}; on cores that do nothing else, by "
          f"the CPU time: {median(costs):.3f}", flush=True)


def cost(scene, file, worker, users):
    """Requests for each second of a worker's CPU, and a second."""
    master, child = scene.master(file), worker()
    scene.until("a worker", lambda stats: workers(stats, "ready") == 1)
    # A Python worker that connects all its users at once misses its heartbeats.
    scene.ask("/swarm", user_count=users, spawn_rate=max(users // 5, 1))
    scene.until("the users", lambda s: s["user_count"] == users and s["state"] == "running")
    time.sleep(2)
    before, began = cpu(child.pid), time.monotonic()
    rate, _ = scene.rate()
    used, seconds = cpu(child.pid) - before, time.monotonic() - began
    stats = scene.until("an answer", lambda stats: True)
    if (stats["state"], stats["user_count"]) != ("running", users):
        raise SystemExit(f"the master has stopped the users: {stats['state']}; is the machine busy?")
    scene.end(child, master)
    return rate * seconds / used, rate


def measure_cost(scene):
    file, python = scene.locustfile(), scene.python_file()
    users = 100
    ratios = []
    for _ in range(scene.args.rounds):
        theirs = cost(scene, python, lambda: scene.python_worker(python), users)
        ours = cost(scene, file, lambda: scene.onramp_worker(scene.args.pool, users), users)
        ratios.append(ours[0] / theirs[0])
        print(f"{users} users: onramp's worker {ours[0]:.0f} requests for each CPU-second "
              f"({ours[1]:.0f}/s), Locust's Python client {theirs[0]:.0f} ({theirs[1]:.0f}/s): "
              f"{ratios[-1]:.1f} times", flush=True)
    print(f"median of {len(ratios)} pairs: {median(ratios):.1f} times", flush=True)


def killed(scene, file, start):
    """Seconds from the kill of one of three workers until the master missed it, and until the
    others had all users."""
    users = 90
    master, fleet = scene.master(file), [start() for _ in range(3)]
    scene.until("three workers", lambda stats: workers(stats, "ready") == 3)
    scene.ask("/swarm", user_count=users, spawn_rate=users)
    scene.until("the users", lambda s: s["user_count"] == users and s["state"] == "running")
    fleet[0].kill()
    began = time.monotonic()
    scene.until("the loss", lambda s: workers(s, "missing") == 1 or len(s["workers"]) == 2)
    missed = time.monotonic() - began
    scene.until("the users elsewhere", lambda s: sum(
        worker["user_count"] for worker in s["workers"]
        if worker["state"] in ("running", "spawning")) == users)
    moved = time.monotonic() - began
    scene.end(*fleet, master)
    return missed, moved


def measure_kill(scene):
    file, python = scene.locustfile(), scene.python_file()
    for name, args in (
            ("Locust's own workers", (python, lambda: scene.python_worker(python))),
            ("onramp's workers", (file, lambda: scene.onramp_worker(scene.args.pool, 1000)))):
        missed, moved = killed(scene, *args)
        print(f"one of three {name} killed: missed after {missed:.1f} s, its users on the others "
              f"after {moved:.1f} s", flush=True)


def admin(scene, sql):
    line = ["mariadb", "--no-defaults", "-S", scene.args.socket, "-uroot", "-N", "-e", sql]
    subprocess.run(line, check=True)


def measure_page(scene):
    """The master's own page in headless Chromium: start, watch, change the number, failures, stop."""
    # Wanted here only: the other parts need no browser.
    from playwright.sync_api import sync_playwright

    users = scene.args.users
    master = scene.master(scene.locustfile())
    fleet = [scene.onramp_worker(scene.args.pool, users // 4) for _ in range(4)]
    scene.until("four workers", lambda stats: workers(stats, "ready") == 4)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=scene.args.chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1400, "height": 900})
        page.set_default_timeout(60_000)

        def shoot(name):
            if scene.args.pictures:
                page.screenshot(path=os.path.join(scene.args.pictures, f"{name}.png"))

        def fill(count):
            page.locator('input[name="userCount"]:visible').fill(str(count))
            page.locator('input[name="spawnRate"]:visible').fill(str(users))

        def shows(*words):
            for word in words:
                page.wait_for_function(
                    "word => document.body.innerText.toLowerCase().includes(word)",
                    arg=word.lower())

        page.goto(f"http://127.0.0.1:{scene.web}/")
        fill(users)
        shoot("locust-start")
        page.get_by_role("button", name=re.compile("^start", re.I)).click()
        shows("running", str(users), "oltp_point_select")
        scene.until("the users", lambda s: s["user_count"] == users and s["state"] == "running")
        time.sleep(5)
        shoot("locust-running")
        print(f"the page started {users} users on 4 workers and shows them", flush=True)
        # What fails is seen with the server's words.
        admin(scene, "RENAME TABLE sbtest.sbtest1 TO sbtest.away")
        scene.until("failures", lambda s: s["errors"])
        admin(scene, "RENAME TABLE sbtest.away TO sbtest.sbtest1")
        page.get_by_role("tab", name=re.compile("failures", re.I)).click()
        shows("1146", "doesn't exist")
        shoot("locust-failures")
        found = page.evaluate("() => document.body.innerText").splitlines()
        print("the table of failures:", next(line for line in found if "1146" in line), flush=True)
        page.get_by_role("tab", name=re.compile("charts", re.I)).click()
        time.sleep(3)
        shoot("locust-charts")
        page.get_by_role("button", name=re.compile("^edit", re.I)).click()
        fill(users // 4)
        page.get_by_role("button", name=re.compile("^update", re.I)).click()
        scene.until("fewer users", lambda s: s["user_count"] == users // 4)
        shows(str(users // 4))
        shoot("locust-fewer")
        print(f"the page changed the number to {users // 4}", flush=True)
        page.get_by_role("button", name=re.compile("^stop", re.I)).click()
        scene.until("the end", lambda s: s["state"] == "stopped")
        shows("stopped")
        scene.until("workers that are ready", lambda s: workers(s, "ready") == 4)
        shoot("locust-stopped")
        print("the page stopped them; the workers are ready again", flush=True)
        browser.close()
    scene.end(*fleet, master)


def main():
    parser = argparse.ArgumentParser()
    for name in ("onramp", "locust", "folder", "pool", "socket", "parts", "pids"):
        parser.add_argument(f"--{name}", required=True)
    for name in ("chromium", "pictures"):
        parser.add_argument(f"--{name}", default="")
    for name in ("users", "seconds", "rounds"):
        parser.add_argument(f"--{name}", type=int, required=True)
    scene = Scene(parser.parse_args())
    # What it has started ends with it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        for part in scene.args.parts.split():
            PARTS[part](scene)
    finally:
        scene.end()


PARTS = {"rate": measure_rate, "cost": measure_cost, "kill": measure_kill, "page": measure_page}

main()
