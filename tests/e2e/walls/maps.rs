//! vm.max_map_count: two mappings for each thread, and errno 12 or 11 by who says it.
//!
//! The setting is the whole machine's, so it is not touched here. Instead a process fills its
//! mappings up to a little below the limit, and then starts threads, which meet the limit at its
//! real value. A real server does so too: a library that is loaded in front of it fills them before
//! its main() begins. With `ONRAMP_WALLS=1` sysbench meets the limit as in the article, and pid_max
//! before it.

use super::crowd::Crowd;
use super::threads::has_own_pid_max;
use super::{Forecast, compare, doctor, explained, has, is_root, is_soak};
use crate::world::*;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

/// Fills its mappings but for `argv[1]`, says so, waits for a line, and starts threads until one
/// fails. Then says how many there are, what pthread_create returned, and what it left in errno.
/// The threads are plain ones of the C library, since an interpreter's have mappings of their own.
const FILLER: &str = r#"
import ctypes, mmap, os, resource, sys
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
libc = ctypes.CDLL(None, use_errno=True)
limit = int(open("/proc/sys/vm/max_map_count").read())
maps = sum(1 for _ in open("/proc/self/maps"))
def one_more(at):
    # Neighbours with unlike rights are never merged into one mapping.
    rights = mmap.PROT_READ if at % 2 else mmap.PROT_READ | mmap.PROT_WRITE
    return mmap.mmap(-1, mmap.PAGESIZE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, rights)
held = [one_more(at) for at in range(limit - maps - int(sys.argv[1]))]
attributes, thread = ctypes.create_string_buffer(256), ctypes.c_ulong()
libc.pthread_attr_init(attributes)
libc.pthread_attr_setstacksize(attributes, ctypes.c_size_t(64 * 1024))
pause = ctypes.cast(libc.pause, ctypes.c_void_p)
print("ready", flush=True)
sys.stdin.readline()
count, returned = 0, 0
while returned == 0:
    ctypes.set_errno(0)
    returned = libc.pthread_create(ctypes.byref(thread), attributes, pause, None)
    count += returned == 0
print(count, returned, ctypes.get_errno(), flush=True)
os._exit(0)
"#;

const EAGAIN: u64 = 11;
const ENOMEM: u64 = 12;

#[test]
fn mappings_of_a_process_end_its_threads_where_the_doctor_says() {
    if !has(&["python3"]) {
        return;
    }
    let limit: u64 = fs::read_to_string("/proc/sys/vm/max_map_count")
        .ok()
        .and_then(|text| text.trim().parse().ok())
        .unwrap();
    if limit > 300_000 {
        skip("vm.max_map_count is too large to be filled quickly");
        return;
    }
    let child = Command::new("python3")
        .args(["-c", FILLER, "6000"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut child = Ended(child);
    let mut lines = BufReader::new(child.0.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "ready");
    let pid = child.0.id().to_string();
    let forecast = doctor(&[], &["--role", "server", "--server-pid", &pid]);
    child.0.stdin.as_mut().unwrap().write_all(b"go\n").unwrap();
    let said = lines.next().unwrap().unwrap();
    let said: Vec<u64> = said.split(' ').map(|word| word.parse().unwrap()).collect();
    // A server prints the first (error 1135), sysbench the second.
    assert_eq!(
        said[1..],
        [EAGAIN, ENOMEM],
        "returned by pthread_create, and left in errno"
    );
    compare(&forecast, "max_map_count", said[0]);
}

/// Library like [`FILLER`], before a program's own first line. Once: what the program starts itself
/// has its own mappings.
const PRELOADED: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

__attribute__((constructor)) static void fill(void) {
    const char *leave = getenv("MAPS_TO_LEAVE");
    FILE *file = fopen("/proc/sys/vm/max_map_count", "r");
    long limit = 0, maps = 0;
    if (!leave || !file || fscanf(file, "%ld", &limit) != 1) return;
    fclose(file);
    file = fopen("/proc/self/maps", "r");
    for (int byte; (byte = fgetc(file)) != EOF;) maps += byte == '\n';
    fclose(file);
    unsetenv("MAPS_TO_LEAVE");
    unsetenv("LD_PRELOAD");
    for (long at = maps; at < limit - atol(leave); at++) {
        int rights = at % 2 ? PROT_READ : PROT_READ | PROT_WRITE;
        if (mmap(NULL, 4096, rights, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED) abort();
    }
}
"#;

/// The server's own `Can't create a new thread (errno 11)`, at vm.max_map_count and nothing else.
#[test]
fn mappings_of_a_server_end_its_connections_where_the_doctor_says() {
    if !has(&["cc", "env"]) {
        return;
    }
    if number_of("/proc/sys/vm/max_map_count") > 300_000 {
        skip("vm.max_map_count is too large to be filled quickly");
        return;
    }
    let folder = Folder::new("maps");
    let (source, library) = (folder.0.join("fill.c"), folder.0.join("fill.so"));
    fs::write(&source, PRELOADED).unwrap();
    let mut compiler = Command::new("cc");
    compiler
        .args(["-shared", "-fPIC", "-o"])
        .args([&library, &source]);
    assert!(compiler.status().unwrap().success());
    let preload = format!("LD_PRELOAD={}", library.display());
    let prefix = ["env", "MAPS_TO_LEAVE=6000", &preload];
    let extra = ["--max-connections=5000", "--table-open-cache=400"];
    let real = or_return!(own(Real::start_behind(&prefix, &extra)));
    let pid = real.pid().to_string();
    let forecast = doctor(&[], &["--role", "server", "--server-pid", &pid]);
    let crowd = Crowd::gather(&real, &forecast, "");
    let words = &crowd.words;
    assert!(words.starts_with("ERROR 1135: "), "{words}");
    assert!(words.contains("errno 11"), "{words}");
    assert_eq!(explained(words), ["server-1135"], "{words}");
    compare(&forecast, "max_map_count", crowd.count());
    let nearest = nearest_limit(&["1135", "--server-pid", &pid]);
    assert!(nearest.contains("/proc/sys/vm/max_map_count"), "{nearest}");
}

/// The command of the limit that `onramp explain` marks as the nearest.
fn nearest_limit(asked: &[&str]) -> String {
    let text = onramp(&format!("explain {}", asked.join(" "))).stdout;
    let (above, _) = text.split_once("<-- the nearest").expect(&text);
    let command = above.lines().rfind(|line| line.starts_with("    $ "));
    command.expect(&text).to_owned()
}

/// kernel.pid_max raised for as long as this lives, and a shell that restores it if we are killed.
struct RaisedPidMax {
    before: String,
    shell: Child,
}

const PID_MAX: &str = "/proc/sys/kernel/pid_max";

impl RaisedPidMax {
    fn new() -> RaisedPidMax {
        let before = fs::read_to_string(PID_MAX).unwrap();
        let part = before.trim();
        let script = format!("trap '' INT TERM HUP; read -r _; echo {part} > {PID_MAX}");
        let shell = Command::new("sh")
            .args(["-c", &script])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        fs::write(PID_MAX, "400000").unwrap();
        RaisedPidMax { before, shell }
    }
}

impl Drop for RaisedPidMax {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        let _ = self.shell.wait();
        assert_eq!(fs::read_to_string(PID_MAX).unwrap(), self.before);
    }
}

/// Runs sysbench with more threads than there can be.
const SYSBENCH: &str = "sysbench cpu --threads=60000 --time=1 run";

/// Asks the doctor. sysbench's threads have no descriptors, so that limit is taken out of the
/// facts.
const ASK: &str = r#"facts=$(mktemp)
"$0" doctor --role server --server-pid $$ --save-facts "$facts" > /dev/null
sed -i 's/"nofile_\([a-z]*\)": [0-9]*/"nofile_\1": 1000000000/' "$facts"
"$0" doctor --json --way direct --role server --facts "$facts"
rm "$facts""#;

/// Gives the first 300 numbers out once, as on a host that has been up for a while.
const FEW_NUMBERS: &str = "n=0; while [ $n -lt 320 ]; do ( : ); n=$((n+1)); done
    echo 32768 > /proc/sys/kernel/pid_max";

/// Asks the doctor and then runs sysbench, both behind `first`, in process numbers of their own if
/// `is_inside`. The forecast, and the line that says which thread could not be started.
fn sysbench(is_inside: bool, first: &str) -> (Forecast, String) {
    let script = format!("{first}\n{ASK}\necho END\n{SYSBENCH} 2>&1");
    let shell = ["sh", "-c", &script, binary().to_str().unwrap()];
    let own = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"];
    let line = [&own[..if is_inside { own.len() } else { 0 }], &shell].concat();
    let longest = Duration::from_secs(120);
    let said = run(Path::new(line[0]), &line[1..], longest).stdout;
    let (answer, rest) = said.split_once("END\n").unwrap_or_else(|| panic!("{said}"));
    let failed = rest.lines().find(|line| line.contains("for thread #"));
    let failed = failed.unwrap_or_else(|| panic!("{said}")).to_owned();
    (Forecast::of(answer), failed)
}

/// The threads that stood when the one in the line failed.
fn threads_before(line: &str) -> u64 {
    let number = line.split_once("for thread #").unwrap().1;
    let number: u64 = number.split(' ').next().unwrap().parse().unwrap();
    number - 1
}

fn number_of(file: &str) -> u64 {
    fs::read_to_string(file).unwrap().trim().parse().unwrap()
}

/// The article's `pthread_create() for thread #32352 failed. errno = 12`, and its other half. While
/// it runs, kernel.pid_max is raised, so that everybody else can go on starting processes.
#[test]
fn sysbench_ends_at_max_map_count_with_errno_12_and_at_pid_max_with_errno_11() {
    if !is_soak() || !is_root() || !has(&["sysbench", "unshare"]) {
        return;
    }
    if number_of("/proc/sys/vm/max_map_count") > 70_000 {
        skip("vm.max_map_count is not at its small default");
        return;
    }
    let raised = RaisedPidMax::new();
    let (forecast, line) = sysbench(false, "");
    assert!(line.contains("errno = 12"), "{line}");
    assert_eq!(explained(&line), ["sysbench-threads-maps"], "{line}");
    compare(&forecast, "max_map_count", threads_before(&line));

    if has_own_pid_max() {
        let (forecast, line) = sysbench(true, FEW_NUMBERS);
        assert!(line.contains("errno = 11"), "{line}");
        assert_eq!(explained(&line), ["sysbench-threads"], "{line}");
        compare(&forecast, "pid_max", threads_before(&line));
    }
    drop(raised);
}
