//! Load under TLS: long connections and HTTP, and HTTP/2, against HAProxy, nginx and OpenSSL's
//! server; MySQL connections against MariaDB and MySQL.
//!
//! What is late depends on the machine, so no test asserts that something was in time.

use crate::long::{number, target};
use crate::world::*;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use testkit::guard::Guard;
use testkit::onramp::terminate;
use testkit::output::Output;

/// Certificates in a folder of the test's own: an authority `ca`, another one `other`, and those of
/// servers that `ca` has signed: `good` for localhost and 127.0.0.1, `expired`, and `elsewhere`.
const CERTIFICATES: &str = r"
key='-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes'
for name in ca other; do
    openssl req -x509 $key -keyout $name.key -out $name.pem -subj /CN=$name -days 10
done
openssl req -new $key -keyout server.key -out server.csr -subj /CN=server
cat > ca.conf <<END
[a]
database=index
serial=serial
new_certs_dir=.
policy=p
default_md=sha256
[p]
commonName=supplied
END
echo 01 > serial
sign() {
    : > index
    echo subjectAltName=$2 > names
    openssl ca -batch -config ca.conf -name a -extfile names -notext -cert ca.pem -keyfile ca.key \
        -in server.csr -out $1.crt -startdate $3 -enddate $4
    cat $1.crt server.key > $1.pem
}
sign good DNS:localhost,IP:127.0.0.1 20200101000000Z 20490101000000Z
sign expired DNS:localhost,IP:127.0.0.1 20200101000000Z 20210101000000Z
sign elsewhere DNS:elsewhere.example 20200101000000Z 20490101000000Z
";

/// Servers and files of one test, which are gone behind it.
struct Scene {
    folder: Folder,
    children: Vec<Child>,
    guards: Vec<Guard>,
}

impl Drop for Scene {
    fn drop(&mut self) {
        for child in &mut self.children {
            terminate(child);
            let _ = child.wait();
        }
        for guard in &mut self.guards {
            guard.watch(0);
        }
    }
}

impl Scene {
    /// `None`, said by name, where one of the programs is not installed.
    fn new(name: &str, programs: &[&str]) -> Option<Scene> {
        for program in [&["openssl"], programs].concat() {
            // All of them end at once with this.
            if Command::new(program).arg("-v").output().is_err() {
                skip(&format!("{program} is not installed"));
                return None;
            }
        }
        let folder = Folder::new(&format!("tls-{name}"));
        let mut make = Command::new("sh");
        make.args(["-ec", CERTIFICATES]).current_dir(&folder.0);
        let made = make.output().unwrap();
        assert!(made.status.success(), "{made:?}");
        Some(Scene {
            folder,
            children: Vec::new(),
            guards: Vec::new(),
        })
    }

    fn file(&self, name: &str) -> String {
        self.folder.0.join(name).to_str().unwrap().to_owned()
    }

    /// Starts a server in the folder and waits until it has said `words`.
    fn start(&mut self, line: &[&str], words: &str) {
        let mut server = Command::new(line[0]);
        let server = server.args(&line[1..]).current_dir(&self.folder.0);
        let server = server.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = server.stderr(Stdio::piped()).spawn().unwrap();
        let mut guard = Guard::new(None);
        guard.watch(child.id());
        let pipes = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        let outputs = (Output::of(pipes.0), Output::of(pipes.1));
        self.children.push(child);
        self.guards.push(guard);
        let waited = match line[0] {
            "openssl" => outputs.0.wait_for(words, 0, LIMIT),
            _ => outputs.1.wait_for(words, 0, LIMIT),
        };
        waited.unwrap_or_else(|said| panic!("{line:?}: {said}"));
    }

    /// HAProxy with these lines behind its defaults.
    fn haproxy(&mut self, lines: &str) {
        let defaults = "defaults\n timeout connect 10s\n timeout client 1h\n timeout server 1h\n";
        let text = format!("global\n maxconn 500\n{defaults}{lines}");
        self.folder.put("haproxy.cfg", &text);
        let line = ["haproxy", "-W", "-db", "-V", "-f", "haproxy.cfg"];
        self.start(&line, "Loading success");
    }

    /// nginx with these lines in its server; it answers `hello`.
    fn nginx(&mut self, lines: &str) {
        let folders: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .iter()
            .map(|name| format!("{name}_temp_path {name};\n"))
            .collect();
        let text = format!(
            "daemon off; master_process off; pid nginx.pid; error_log stderr notice;\n\
             events {{}}\nhttp {{ access_log off; {folders} server {{ {lines}\n\
             ssl_certificate good.crt; ssl_certificate_key server.key;\n\
             location / {{ return 200 hello; }} }} }}\n"
        );
        self.folder.put("nginx.conf", &text);
        let prefix = format!("{}/", self.folder.0.display());
        let line = ["nginx", "-p", &prefix, "-c", "nginx.conf"];
        // It says this when it listens.
        self.start(&line, "RLIMIT_NOFILE");
    }

    fn load(&self, arguments: &[&str]) -> Ran {
        let all = [&["load"], arguments, &["--report-interval", "0"]].concat();
        run(binary(), &all, LIMIT)
    }
}

/// That it ran, something came, and nothing was wrong, lost or without a connection.
fn assert_all_came(ran: &Ran, line: &str, at_least: u64) {
    assert_eq!(ran.status.code(), Some(0), "{ran:?}");
    let of = |word| number(ran, line, word);
    assert_eq!((of("wrong"), of("lost")), (0, 0), "{ran:?}");
    assert!(of("right") + of("late") >= at_least, "{ran:?}");
    assert_eq!(number(ran, "connections:", "lost"), 0, "{ran:?}");
}

#[test]
fn messages_under_tls_are_counted_like_others() {
    let mut scene = or_return!(Scene::new("counted", &["haproxy"]));
    // More than one record of TLS has room for.
    let size = ["--every", "300ms", "--payload-size", "40000"];
    let target = target("tcp", &size);
    let port = free_port();
    scene.haproxy(&format!(
        "listen a\n mode tcp\n bind 127.0.0.1:{port} ssl crt good.pem\n server t {}\n",
        target.address
    ));
    let (place, ca) = (format!("tls://127.0.0.1:{port}"), scene.file("ca.pem"));
    let usual = ["tcp-hold", "--target", &place, "--ca", &ca, "--time", "1s"];
    let rest = ["--connections", "50", "--late-after", "20s"];
    let ran = scene.load(&[&usual, &size[..], &rest].concat());
    assert_all_came(&ran, "messages:", 50);
    assert_eq!(number(&ran, "connections:", "stood"), 50, "{ran:?}");
    assert!(ran.stdout.contains("certificate is checked"), "{ran:?}");
}

#[test]
fn answers_come_in_either_version_of_http() {
    let mut scene = or_return!(Scene::new("versions", &["haproxy"]));
    // Longer than a frame, and than the window that HTTP/2 begins with.
    let target = target("http", &["--payload-size", "100000"]);
    let (port, plain, old) = (free_port(), free_port(), free_port());
    scene.haproxy(&format!(
        "listen b\n mode http\n bind 127.0.0.1:{port} ssl crt good.pem alpn h2,http/1.1\n \
         bind 127.0.0.1:{plain} proto h2\n bind 127.0.0.1:{old} ssl crt good.pem\n \
         server t {}\n",
        target.address
    ));
    let ca = scene.file("ca.pem");
    let secure = format!("https://localhost:{port}/x");
    let plain = format!("http://127.0.0.1:{plain}/");
    let two = ["--http-version", "2", "--streams", "8"];
    let thinking = ["--think-time", "1ms-20ms"];
    let once = ["--http-version", "2", "--no-keep-alive"];
    for (url, more) in [
        (&secure, &[][..]),
        (&secure, &["--no-keep-alive", "--think-time", "20ms"]),
        (&secure, &two),
        (&secure, &[&two[..], &thinking].concat()),
        (&secure, &[&once[..], &thinking].concat()),
        (&plain, &two),
    ] {
        let usual = [url, "--ca", &ca, "--time", "1s", "--connections", "10"];
        let rest = ["--expect-size", "100000", "--late-after", "20s"];
        let ran = scene.load(&[&usual, &rest[..], more].concat());
        assert_all_came(&ran, "answers:", 10);
    }
    // A body that differs in its length is found in HTTP/2 too.
    let usual = [&*plain, "--time", "1s", "--expect-size", "99999"];
    let ran = scene.load(&[&usual[..], &two].concat());
    assert_eq!(number(&ran, "answers:", "right"), 0, "{ran:?}");
    assert!(number(&ran, "answers:", "wrong") > 0, "{ran:?}");
    assert!(ran.stdout.contains("another body"), "{ran:?}");
    // A server that has no HTTP/2 to offer.
    let old = format!("https://127.0.0.1:{old}/");
    let ran = scene
        .load(&[&old, "--ca", &ca, "--http-version", "2"])
        .ends(1);
    assert!(ran.stdout.contains("does not offer HTTP/2"), "{ran:?}");
}

#[test]
fn a_server_that_takes_so_many_requests_only_costs_no_answer() {
    let mut scene = or_return!(Scene::new("requests", &["nginx"]));
    let port = free_port();
    scene.nginx(&format!(
        "listen 127.0.0.1:{port} ssl http2; keepalive_requests 20; http2_max_concurrent_streams 3;"
    ));
    let (url, ca) = (format!("https://127.0.0.1:{port}/"), scene.file("ca.pem"));
    for more in [
        &["--http-version", "1.1"][..],
        // More than the server allows.
        &["--http-version", "2", "--streams", "10"],
    ] {
        let usual = [&*url, "--ca", &ca, "--connections", "4", "--time", "2s"];
        let rest = ["--expect", "hello", "--late-after", "20s"];
        let ran = scene.load(&[&usual, &rest[..], more].concat());
        // Several connections' worth.
        assert_all_came(&ran, "answers:", 200);
    }
}

#[test]
fn a_certificate_that_proves_nothing_is_refused_with_the_reason() {
    let mut scene = or_return!(Scene::new("refused", &[]));
    let mut serve = |certificate: &str, more: &[&str]| {
        let port = free_port();
        let accept = format!("127.0.0.1:{port}");
        let usual = ["openssl", "s_server", "-www", "-accept", &accept];
        let keys = ["-cert", certificate, "-key", "server.key"];
        scene.start(&[&usual[..], &keys, more].concat(), "ACCEPT");
        port
    };
    let good = serve("good.crt", &[]);
    let expired = serve("expired.crt", &[]);
    let elsewhere = serve("elsewhere.crt", &[]);
    let old = serve("good.crt", &["-tls1_2"]);
    let (ca, other) = (scene.file("ca.pem"), scene.file("other.pem"));
    let ask = |port: &str, more: &str| {
        let line = format!("https://127.0.0.1:{port}/ --time 1s --think-time 100ms {more}");
        scene.load(&words(&line))
    };
    let refused = format!(
        "{good} => --ca {other} => not signed by an authority
         {good} => --ca {ca} --tls-name db.example => 'db.example'
         {expired} => --ca {ca} => has expired
         {elsewhere} => --ca {ca} => elsewhere.example"
    );
    for [port, more, part] in table(&refused) {
        let ran = ask(port, more).ends(1);
        assert_eq!(number(&ran, "connections:", "stood"), 0, "{part}: {ran:?}");
        says(&ran.stdout, "1 x 2026 TLS: ");
        says(&ran.stdout, part);
    }
    // The same servers, where nobody checks, or with the name that the certificate has.
    let taken = format!(
        "{expired} => --insecure => INSECURE: no certificate was checked
         {elsewhere} => --insecure => INSECURE
         {elsewhere} => --ca {ca} --tls-name elsewhere.example => certificate is checked
         {old} => --ca {ca} => certificate is checked"
    );
    for [port, more, part] in table(&taken) {
        let ran = ask(port, more);
        assert_all_came(&ran, "answers:", 1);
        says(&ran.stdout, part);
    }
    // Files that are none, and options that contradict each other.
    let request = scene.file("server.csr");
    let mistakes = format!(
        "--ca /nowhere.pem => 1 => /nowhere.pem
         --ca {request} => 1 => no certificate in it
         --ca {ca} --insecure => 2 => cannot be used with
         --tls-name a,b => 1 => no name that a certificate
         --streams 2 => 2 => --http-version 2"
    );
    for [more, code, part] in table(&mistakes) {
        let ran = ask(&good.to_string(), more);
        assert_eq!(ran.status.code(), code.parse().ok(), "{part}: {ran:?}");
        says(&ran.stderr, part);
    }
}

#[test]
fn a_server_without_tls_or_http2_is_said_to_be_one() {
    let held = target("tcp", &["--every", "100ms"]);
    let asked = target("http", &[]);
    let load = |line: String| onramp(&format!("load {line} --report-interval 0"));
    let ran = load(format!(
        "tcp-hold --target tls://{} --insecure",
        held.address
    ))
    .ends(1);
    assert!(ran.stdout.contains("is no TLS"), "{ran:?}");
    let ran = load(format!(
        "http://{}/ --http-version 2 --time 2s",
        asked.address
    ));
    says(&ran.stdout, "look whether it speaks HTTP/2");
    assert_eq!(number(&ran, "answers:", "right"), 0, "{ran:?}");
}

#[test]
fn a_client_s_certificate_is_shown_to_a_server_that_wants_one() {
    let mut scene = or_return!(Scene::new("shown", &["haproxy"]));
    let target = target("tcp", &["--every", "100ms"]);
    let port = free_port();
    scene.haproxy(&format!(
        "listen a\n mode tcp\n \
         bind 127.0.0.1:{port} ssl crt good.pem ca-file ca.pem verify required\n server t {}\n",
        target.address
    ));
    let (place, ca) = (format!("tls://127.0.0.1:{port}"), scene.file("ca.pem"));
    let usual = ["tcp-hold", "--target", &place, "--ca", &ca, "--time", "1s"];
    let rest = ["--every", "100ms", "--late-after", "20s"];
    let hold = |more: &[&str]| scene.load(&[&usual[..], &rest, more].concat());
    let (certificate, key) = (scene.file("good.crt"), scene.file("server.key"));
    let ran = hold(&["--tls-cert", &certificate, "--tls-key", &key]);
    assert_all_came(&ran, "messages:", 1);
    let ran = hold(&[]);
    says(&ran.stdout, "wants a certificate of this client");
    let (foreign, its_key) = (scene.file("other.pem"), scene.file("other.key"));
    let ran = hold(&["--tls-cert", &foreign, "--tls-key", &its_key]);
    says(&ran.stdout, "does not accept this client's");
    let mistakes = format!(
        "--tls-cert {certificate} => 2 => --tls-key
         --tls-cert {certificate} --tls-key {its_key} => 1 => --tls-key
         --tls-cert {certificate} --tls-key {certificate} => 1 => BEGIN PRIVATE KEY
         --tls-cert {key} --tls-key {key} => 1 => no certificate in it"
    );
    for [more, code, part] in table(&mistakes) {
        let ran = hold(&words(more));
        assert_eq!(ran.status.code(), code.parse().ok(), "{part}: {ran:?}");
        says(&ran.stderr, part);
    }
}

#[test]
fn sessions_are_resumed_where_that_is_wanted() {
    let mut scene = or_return!(Scene::new("resumed", &["haproxy"]));
    let target = target("http", &[]);
    let (new, old) = (free_port(), free_port());
    scene.haproxy(&format!(
        "listen b\n mode http\n bind 127.0.0.1:{new} ssl crt good.pem ssl-min-ver TLSv1.3\n \
         bind 127.0.0.1:{old} ssl crt good.pem ssl-max-ver TLSv1.2\n server t {}\n",
        target.address
    ));
    let ca = scene.file("ca.pem");
    for port in [new, old] {
        let url = format!("https://127.0.0.1:{port}/");
        let usual = [&*url, "--ca", &ca, "--no-keep-alive", "--time", "1s"];
        let rest = ["--late-after", "20s", "--think-time", "1ms"];
        let ask = |more: &[&str]| scene.load(&[&usual[..], &rest, more].concat());
        let ran = ask(&["--tls-resume"]);
        assert_all_came(&ran, "answers:", 10);
        let line = ran
            .stdout
            .lines()
            .find(|line| line.contains("handshakes resumed"));
        let count = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        // The first connection has nothing to resume; all others have, one after the other.
        assert!(count >= Some(9), "{ran:?}");
        let ran = ask(&[]);
        assert_all_came(&ran, "answers:", 2);
        assert!(!ran.stdout.contains("resumed"), "{ran:?}");
    }
}

#[test]
fn a_silent_server_is_not_said_to_owe_a_login() {
    // The system accepts for it, and nobody ever reads.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    for first in ["https://", "tcp-hold --target tls://"] {
        let rest = "--insecure --connect-timeout 1s --report-interval 0";
        let line = format!("load {first}127.0.0.1:{port} {rest}");
        let ran = onramp(&line).ends(1);
        says(&ran.stdout, "did not finish the TLS handshake within 1 s");
        assert!(!ran.stdout.contains("login"), "{ran:?}");
    }
}

/// Work for each connection, in a script of sysbench.
const SCRIPT: &str = "
function thread_init() con = sysbench.sql.driver():connect() end
function event() con:query('SELECT id FROM sbtest1 WHERE id = 1') end
function thread_done() con:disconnect() end
";

/// Statements under TLS, in all three ways in which this program speaks to a server.
fn statements_under_tls(scene: &Scene, real: &Real) {
    real.script("CREATE DATABASE sbtest; SET GLOBAL require_secure_transport = 1");
    let port = real.port().to_string();
    let target = format!("mysql://app:app@127.0.0.1:{port}/sbtest");
    let ca = scene.file("ca.pem");
    let load = |line: String| {
        let line =
            format!("load --target {target} --live never {line} --tables 2 --table-size 300");
        onramp(&line)
    };
    let checked = format!("--tls --ca {ca}");
    load("oltp_read_write prepare".to_owned()).ends(1);
    load(format!("oltp_read_write prepare {checked}")).ends(0);
    let runs = format!("oltp_read_write run --connections 8 --events 80 --time 0 {checked}");
    for mode in ["disable", "auto"] {
        // The first login asks for the whole password, which goes under TLS.
        real.execute(&["FLUSH PRIVILEGES"]);
        let ran = load(format!("{runs} --db-ps-mode {mode}")).ends(0);
        assert!(ran.stderr.contains("connects: 8 ok, 0 failed"), "{ran:?}");
        assert!(ran.stderr.contains(", 0 failed, 0 ignored"), "{ran:?}");
    }
    let script = scene.file("script.lua");
    std::fs::write(&script, SCRIPT).unwrap();
    let line = format!(
        "sysbench {script} --mysql-host=127.0.0.1 --mysql-port={port} --mysql-user=app \
         --mysql-password=app --mysql-db=sbtest --threads=4 --events=40 --time=0"
    );
    for more in [
        "--mysql-ssl=REQUIRED".to_owned(),
        format!("--mysql-ssl=VERIFY_IDENTITY --mysql-ssl-ca={ca}"),
    ] {
        let ran = onramp(&format!("{line} {more} run")).ends(0);
        says(&ran.stdout, "total number of events:              40");
        let is_checked = !ran.stderr.contains("INSECURE");
        assert_eq!(is_checked, more.contains("-ca="), "{ran:?}");
    }
    modes_of_tls(scene, real);
}

/// The modes of MySQL's clients, in a target and on a line of sysbench, with certificates of
/// clients, towards a server that lets nobody in without TLS.
fn modes_of_tls(scene: &Scene, real: &Real) {
    real.script("CREATE USER shown IDENTIFIED BY 'app' REQUIRE X509; GRANT ALL ON *.* TO shown");
    let (ca, other) = (scene.file("ca.pem"), scene.file("other.pem"));
    let (certificate, key) = (scene.file("good.crt"), scene.file("server.key"));
    let port = real.port().to_string();
    let own = format!("--tls-cert {certificate} --tls-key {key}");
    let load = |user: &str, mode: &str, more: &str| {
        // The login asks for the whole password, which must not go out in clear.
        real.execute(&["FLUSH PRIVILEGES"]);
        let target = format!("mysql://{user}:app@127.0.0.1:{port}/sbtest?ssl-mode={mode}");
        let rest = "oltp_point_select run --table-size 300 --events 4 --time 0 --live never";
        onramp(&format!("load --target {target} {rest} {more}"))
    };
    let elsewhere = format!("--ca {ca} --tls-name db.example");
    let taken = format!(
        "app => PREFERRED =>
         app => REQUIRED =>
         app => verify_ca => {elsewhere}
         app => VERIFY_IDENTITY => --ca {ca}
         shown => PREFERRED => {own}
         shown => VERIFY_CA => {elsewhere} {own}"
    );
    for [user, mode, more] in table(&taken) {
        let ran = load(user, mode, more).ends(0);
        says(&ran.stderr, "4 succeeded, 0 failed");
    }
    let refused = format!(
        "app => DISABLED => => error 3159
         app => VERIFY_CA => --ca {other} => not signed by
         app => VERIFY_IDENTITY => {elsewhere} => 'db.example'
         shown => REQUIRED => => 1045
         app => REQUIRED => --tls => leave one out
         app => VERIFY_CA => --insecure => leave one out
         app => REQUIRED => --ca {ca} => checks no certificate
         app => on => => expected one of DISABLED, PREFERRED"
    );
    for [user, mode, more, part] in table(&refused) {
        let ran = load(user, mode, more);
        assert!(matches!(ran.status.code(), Some(1 | 2)), "{mode}: {ran:?}");
        let is_other_number = part == "error 3159" && ran.stderr.contains("1045");
        let is_said = ran.stderr.contains(part) || is_other_number;
        assert!(is_said, "{mode}: {ran:?}");
    }
    let sysbench = |mode: &str, more: &str| {
        let line = format!(
            "sysbench oltp_point_select --mysql-host=127.0.0.1 --mysql-port={port} \
             --mysql-user=shown --mysql-password=app --mysql-db=sbtest --table-size=300 \
             --events=4 --time=0 --mysql-ssl={mode} {more} run"
        );
        onramp(&line)
    };
    let shown = format!("--mysql-ssl-cert={certificate} --mysql-ssl-key={key} --mysql-ssl-ca={ca}");
    for mode in "on PREFERRED REQUIRED VERIFY_CA VERIFY_IDENTITY".split(' ') {
        sysbench(mode, &shown).ends(0);
    }
    sysbench("REQUIRED", "").ends(1);
    // The doctor takes the same targets.
    let target = format!("mysql://app:app@127.0.0.1:{port}?ssl-mode=REQUIRED");
    run(binary(), &["doctor", "--target", &target], LIMIT).ends(0);
}

/// The server's options for its certificate.
fn secured(scene: &Scene) -> [String; 3] {
    [
        format!("--ssl-ca={}", scene.file("ca.pem")),
        format!("--ssl-cert={}", scene.file("good.crt")),
        format!("--ssl-key={}", scene.file("server.key")),
    ]
}

/// A server that offers no TLS: PREFERRED goes on in clear, REQUIRED does not.
fn in_clear_where_there_is_no_tls(real: &Real) {
    real.execute(&["CREATE DATABASE sbtest"]);
    for (mode, code) in [("PREFERRED", 0), ("REQUIRED", 1)] {
        real.execute(&["FLUSH PRIVILEGES"]);
        let port = real.port();
        let target = format!("mysql://app:app@127.0.0.1:{port}/sbtest?ssl-mode={mode}");
        for job in ["prepare", "run --events 4 --time 0 --connections 2"] {
            let line = format!("load select --target {target} --table-size 9 {job}");
            onramp(&line).ends(code);
        }
    }
}

#[test]
fn statements_run_under_tls_on_mariadb() {
    let scene = or_return!(Scene::new("mariadb", &[]));
    let [authority, certificate, key] = secured(&scene);
    if let Some(real) = own(Real::start(&[&authority, &certificate, &key])) {
        statements_under_tls(&scene, &real);
    }
    // A server that offers none gets no login.
    if let Some(real) = own(Real::start(&["--skip-ssl"])) {
        in_clear_where_there_is_no_tls(&real);
        let target = format!("mysql://app:app@127.0.0.1:{}/mysql", real.port());
        let line = format!("load select run --target {target} --tls --insecure --time 1");
        let ran = onramp(&line).ends(1);
        says(&ran.stderr, "does not offer CLIENT_SSL (TLS)");
    }
}

#[test]
fn statements_run_under_tls_on_mysql() {
    let scene = or_return!(Scene::new("mysql", &[]));
    let [authority, certificate, key] = secured(&scene);
    if let Some(real) = own(Real::start_mysql(&[&authority, &certificate, &key])) {
        statements_under_tls(&scene, &real);
    }
    // Without TLS the server's key keeps the password from being read.
    if let Some(real) = own(Real::start_mysql(&["--tls-version="])) {
        in_clear_where_there_is_no_tls(&real);
    }
}
