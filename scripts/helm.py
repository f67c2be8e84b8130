"""Runs a pod as its manifest says, behind scripts/helm.sh: see there."""

import ctypes
import errno
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request

import yaml

FOLDER = pathlib.Path(sys.argv[2])


class Comparison(ctypes.Structure):
    """Of an argument of a system call, as libseccomp has it."""

    _fields_ = [("arg", ctypes.c_uint), ("op", ctypes.c_int), ("a", ctypes.c_uint64), ("b", ctypes.c_uint64)]


def start(root, user, group, file_group, profile, command):
    """Becomes the container's process, under a filter that a runtime's profile describes."""
    comparisons = {"SCMP_CMP_NE": 1, "SCMP_CMP_EQ": 4, "SCMP_CMP_MASKED_EQ": 7}
    library, profile = ctypes.CDLL("libseccomp.so.2"), json.loads(pathlib.Path(profile).read_text())
    library.seccomp_init.restype = ctypes.c_void_p
    library.seccomp_rule_add_array.argtypes = [
        ctypes.c_void_p, ctypes.c_uint32, ctypes.c_int, ctypes.c_uint, ctypes.POINTER(Comparison)]
    library.seccomp_load.argtypes = [ctypes.c_void_p]
    action = lambda word, number: 0x7FFF0000 if word == "SCMP_ACT_ALLOW" else 0x50000 | number
    default = action(profile["defaultAction"], errno.EPERM)
    rules = library.seccomp_init(default)
    for rule in profile["syscalls"]:
        args = [Comparison(it["index"], comparisons[it["op"]], it["value"], it.get("valueTwo", 0))
                for it in rule.get("args") or []]
        does = action(rule["action"], rule.get("errnoRet", errno.EPERM))
        for name in rule["names"]:
            number = library.seccomp_syscall_resolve_name(name.encode())
            if number != -1 and does != default:
                library.seccomp_rule_add_array(rules, does, number, len(args), (Comparison * len(args))(*args))
    os.chroot(root)
    os.chdir("/")
    os.setgroups([int(file_group)])
    os.setgid(int(group))
    os.setuid(int(user))
    assert library.seccomp_load(rules) == 0
    os.execv(command[0], command)


if sys.argv[1] == "settings":
    # Those of the manifests on standard input, with its files in the folder.
    config = next(it for it in yaml.safe_load_all(sys.stdin) if it and "pool.toml" in it.get("data", {}))
    text = config["data"]["pool.toml"].replace("/etc/onramp/", f"{FOLDER}/").replace("/var/lib/onramp", str(FOLDER))
    for file in re.findall(r'password_file = "(.*)"', text):
        pathlib.Path(file).write_text("password")
        pathlib.Path(file).chmod(0o600)
    (FOLDER / "settings.toml").write_text(text)
    sys.exit(0)
if sys.argv[1] == "start":
    start(*sys.argv[2:7], sys.argv[7:])
IMAGE, SERVER_PORT = pathlib.Path(sys.argv[3]), sys.argv[4]
MANIFESTS = [it for it in yaml.safe_load_all((FOLDER / "manifests.yaml").read_text()) if it]
LIMIT = 60


def kind(name):
    return next(it for it in MANIFESTS if it["kind"] == name)


def until(what, is_so):
    end = time.monotonic() + LIMIT
    while time.monotonic() < end:
        if is_so():
            return
        time.sleep(0.05)
    raise SystemExit(f"chart: {what} did not come; the log:\n{(FOLDER / 'pod.log').read_text()}")


def put_config(number):
    """As the kubelet writes a projected volume: all files anew, then a link is swapped."""
    config, secret = kind("ConfigMap")["data"], kind("Secret")["stringData"]
    files = {**config, **secret}
    # The server of this test; nothing else differs.
    files["pool.toml"] = files["pool.toml"].replace("mysql:3306", f"127.0.0.1:{SERVER_PORT}")
    place = FOLDER / "config" / f"..{number}"
    place.mkdir(parents=True)
    for name, text in files.items():
        file = place / name
        file.write_text(text)
        file.chmod(VOLUMES["config"]["projected"]["defaultMode"])
        os.chown(file, 0, POD["securityContext"]["fsGroup"])
        if not (FOLDER / "config" / name).is_symlink():
            (FOLDER / "config" / name).symlink_to(f"..data/{name}")
    link = FOLDER / "config" / "..data.new"
    link.symlink_to(place.name)
    link.rename(FOLDER / "config" / "..data")


POD = kind("Deployment")["spec"]["template"]["spec"]
BOX = POD["containers"][0]
VOLUMES = {it["name"]: it for it in POD["volumes"]}
PORTS = {it["name"]: it["containerPort"] for it in BOX["ports"]}
put_config(1)
(FOLDER / "state").mkdir()
os.chown(FOLDER / "state", 0, POD["securityContext"]["fsGroup"])
(FOLDER / "state").chmod(0o2770)

# What the manifest has and this does not know is not tested.
assert set(POD["securityContext"]) == {
    "runAsNonRoot", "runAsUser", "runAsGroup", "fsGroup", "seccompProfile"}
assert POD["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
assert BOX["securityContext"] == {
    "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]}}
root, user, group = FOLDER / "root", POD["securityContext"]["runAsUser"], POD["securityContext"]["runAsGroup"]
root.mkdir()
mounts = [f"mount --bind {IMAGE} {root}"]
for mount in BOX["volumeMounts"]:
    source = FOLDER / mount["name"]
    (IMAGE / mount["mountPath"].lstrip("/")).mkdir(parents=True, exist_ok=True)
    mounts.append(f"mount --bind {source} {root}{mount['mountPath']}")
    if mount.get("readOnly"):
        mounts.append(f"mount -o remount,bind,ro {root}{mount['mountPath']}")
mounts.append(f"mount -o remount,bind,ro {root}")
command = " ".join(["/usr/bin/onramp", *BOX["args"]])
limit = BOX["resources"]["limits"]["memory"]
bytes_max = int(re.fullmatch(r"(\d+)Mi", limit).group(1)) * 2**20
group_folder = pathlib.Path("/sys/fs/cgroup/memory") / FOLDER.name
join = ""
try:
    group_folder.mkdir()
    (group_folder / "memory.limit_in_bytes").write_text(str(bytes_max))
    join = f"echo $$ >{group_folder}/cgroup.procs;"
except OSError as error:
    print(f"without a control group for {limit} of memory: {error}")
script = f"""{join} set -e; {'; '.join(mounts)}
exec setpriv --no-new-privs --bounding-set=-all,+sys_chroot,+setuid,+setgid \
    {sys.executable} {pathlib.Path(__file__).absolute()} start {root} {user} {group} \
    {POD['securityContext']['fsGroup']} {pathlib.Path('target/tools/seccomp.json').absolute()} {command}"""
log = open(FOLDER / "pod.log", "w", encoding="utf-8")
started = subprocess.Popen(
    ["unshare", "--mount", "--ipc", "--uts", "--propagation", "private", "sh", "-c", script],
    stderr=log, stdout=log)


def said(words):
    return words in (FOLDER / "pod.log").read_text()


def probe(name):
    path = BOX[name]["httpGet"]["path"]
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{PORTS['http']}{path}", timeout=5) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return 0


def client(password, sql):
    line = ["mariadb", "--no-defaults", "-h127.0.0.1", f"-P{PORTS['mysql']}", "-uapp",
            f"-p{password}", "-N", "-e", sql]
    return subprocess.run(line, capture_output=True, text=True, check=False)


try:
    until("readiness", lambda: probe("readinessProbe") == 200)
    assert probe("livenessProbe") == 200
    assert client("app", "SELECT 6 * 7").stdout == "42\n"
    status = pathlib.Path(f"/proc/{started.pid}/status").read_text()
    for line in (r"CapEff:\t0000000000000000", r"NoNewPrivs:\t1", r"Seccomp:\t2", rf"Uid:\t{user}\t{user}\t{user}\t{user}"):
        assert re.search(line, status), (line, status)
    seen = pathlib.Path(f"/proc/{started.pid}/mountinfo").read_text()
    assert re.search(r" / ro,", seen), seen
    # ConfigMap and Secret change.
    config = kind("ConfigMap")["data"]
    config["pool.toml"] = config["pool.toml"].replace("clients_max = 10000", "clients_max = 9000")
    kind("Secret")["stringData"]["app.password"] = "another"
    subprocess.run(["mariadb", "--no-defaults", "-S", FOLDER / "socket", "-uroot", "-e",
                    "ALTER USER app@'%' IDENTIFIED BY 'another'"], check=True)
    put_config(2)
    until("the reload", lambda: said("clients_max: 10000 -> 9000"))
    until("the new password", lambda: client("another", "SELECT 1").stdout == "1\n")
    assert client("app", "SELECT 1").returncode != 0
    # Drain: not ready at once, still served, ended in time.
    began = time.monotonic()
    started.send_signal(signal.SIGTERM)
    until("unreadiness", lambda: probe("readinessProbe") == 503)
    assert client("another", "SELECT 1").stdout == "1\n"
    code = started.wait(POD["terminationGracePeriodSeconds"])
    took = time.monotonic() - began
    assert code == 0 and said("event=ended"), code
    wait = int(re.search(r"drain_wait_s = (\d+)", config["pool.toml"]).group(1))
    assert took >= wait, took
    print(f"chart: drained in {took:.1f} s of {POD['terminationGracePeriodSeconds']}; "
          f"memory limit {limit}, peak "
          + (open(group_folder / "memory.max_usage_in_bytes").read().strip() if join else "unknown"))
finally:
    if started.poll() is None:
        started.kill()
        started.wait()
    if join:
        group_folder.rmdir()
