//! `caulk run --metrics`, asked over HTTP while a command runs.

#[allow(dead_code, reason = "shared by several test programs, none of which needs all of it")]
mod support;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use support::Place;

/// A command that runs until it reads a line, and the address at which its figures are.
struct Served {
    child: Child,
    address: String,
}

impl Served {
    fn start(place: &Place) -> Self {
        let arguments = ["run", "--metrics", "127.0.0.1:0", "sh", "-c", "read line; exit 3"];
        let mut command = place.command(&arguments);
        command.stdin(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary starts");
        let mut line = String::new();
        BufReader::new(child.stderr.take().expect("a pipe")).read_line(&mut line).expect("text");
        let address = line.split("http://").nth(1).and_then(|rest| rest.split('/').next());
        let address = address.unwrap_or_else(|| panic!("{line}")).to_owned();
        Self { child, address }
    }

    fn ask(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).expect("somebody listens");
        stream.write_all(request.as_bytes()).expect("a connection");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer
    }

    fn get(&self, path: &str, host: &str) -> String {
        self.ask(&format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"))
    }

    fn end(mut self) -> Option<i32> {
        self.child.stdin.take().expect("a pipe").write_all(b"\n").expect("it reads");
        self.child.wait().expect("an end").code()
    }
}

#[test]
fn the_last_samples_are_served_while_the_command_runs() {
    let place = Place::new();
    let served = Served::start(&place);
    let start = Instant::now();
    let text = loop {
        let text = served.get("/metrics", "localhost");
        if text.contains("\nprocess_memory_usage_bytes{") && text.contains("\ncaulk_tree_memory_usage_bytes ")
        {
            break text;
        }
        assert!(start.elapsed() < Duration::from_mins(1), "{text}");
        std::thread::sleep(Duration::from_millis(50));
    };
    assert!(text.starts_with("HTTP/1.1 200 OK"), "{text}");
    assert!(text.contains("Content-Type: application/openmetrics-text; version=1.0.0"), "{text}");
    assert!(text.contains("caulk_memory_limit_bytes{caulk_limit=\"physical\"} "), "{text}");
    assert!(text.contains("# EOF"), "{text}");
    assert!(served.get("/", "localhost").starts_with("HTTP/1.1 404 "));
    assert!(served.get("/metrics", "evil.example").starts_with("HTTP/1.1 403 "));
    let post = "POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    assert!(served.ask(post).starts_with("HTTP/1.1 405 "));
    let address = served.address.clone();
    assert_eq!(served.end(), Some(3), "the command's own code");
    assert!(TcpStream::connect(address).is_err(), "nothing is served after the end");
}

#[test]
fn a_port_in_use_is_an_error_before_the_command_starts() {
    let place = Place::new();
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = taken.local_addr().expect("an address").to_string();
    let ended = place.caulk(&["run", "--metrics", &address, "touch", "started"]).code(125);
    ended.says(&format!("error: failed to serve metrics at {address}")).says("in use").says("hint: ");
    assert!(!place.path("started").exists());
    assert!(place.runs().is_empty());
}

#[test]
fn other_machines_reach_it_only_on_request() {
    let place = Place::new();
    let ended = place.caulk(&["run", "--metrics", "0.0.0.0:0", "touch", "started"]).code(125);
    ended.says("error: other machines can reach 0.0.0.0:0").says("hint: ");
    assert!(!place.path("started").exists());
    place
        .caulk(&["run", "--metrics", "0.0.0.0:0", "--metrics-public", "true"])
        .code(0)
        .says("metrics at http://");
    place.caulk(&["run", "--metrics-public", "true"]).code(2);
}
