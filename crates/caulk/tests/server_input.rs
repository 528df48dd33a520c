//! `caulk server` and an editor that sends what no editor should, or nothing more.

#[allow(dead_code, reason = "shared by several test programs, none of which needs all of it")]
mod support;

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::Place;

/// Time after which a server that should have ended hangs.
const PATIENCE: Duration = Duration::from_mins(1);

/// A server whose answers are collected.
struct Server {
    child: Child,
    answers: Receiver<Value>,
    errors: Receiver<String>,
    _place: Place,
}

impl Server {
    fn new() -> Self {
        let place = Place::new();
        place.write("pyproject.toml", "");
        Self::of(place)
    }

    fn of(place: Place) -> Self {
        let mut command = place.command(&["server"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary starts");
        let (out, answers) = channel();
        let stdout = child.stdout.take().expect("a pipe");
        std::thread::spawn(move || {
            let mut from = std::io::BufReader::new(stdout);
            while let Some(message) = receive(&mut from) {
                let _ = out.send(message);
            }
        });
        let (say, errors) = channel();
        let mut stderr = child.stderr.take().expect("a pipe");
        std::thread::spawn(move || {
            let mut text = String::new();
            let _ = stderr.read_to_string(&mut text);
            let _ = say.send(text);
        });
        Self { child, answers, errors, _place: place }
    }

    fn send(&mut self, bytes: &[u8]) {
        let mut stdin = self.child.stdin.as_ref().expect("not closed yet");
        // A server that has ended already is what some tests wait for.
        let _ = stdin.write_all(bytes).and_then(|()| stdin.flush());
    }

    fn say(&mut self, message: &Value) {
        self.send(framed(&message.to_string()).as_bytes());
    }

    fn hello(&mut self) {
        self.say(&json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"processId": null, "rootUri": null, "capabilities": {}}}));
        assert!(self.answer(&json!(1))["result"]["capabilities"].is_object());
        self.say(&json!({"jsonrpc": "2.0", "method": "initialized", "params": {}}));
    }

    /// The answer with an id.
    #[track_caller]
    fn answer(&self, id: &Value) -> Value {
        loop {
            let message = self.answers.recv_timeout(PATIENCE).expect("an answer");
            if message["id"] == *id && message.get("method").is_none() {
                return message;
            }
        }
    }

    /// The most memory that it held so far, in megabytes.
    fn most(&self) -> u64 {
        let status = PathBuf::from(format!("/proc/{}/status", self.child.id()));
        support::high_water(&status).expect("a running process") >> 20
    }

    /// The exit code and what was said on standard error.
    #[track_caller]
    fn end(&mut self) -> (Option<i32>, String) {
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            if let Some(status) = self.child.try_wait().expect("a child") {
                return (status.code(), self.errors.recv_timeout(PATIENCE).unwrap_or_default());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = self.child.kill();
        panic!("the server goes on");
    }

    fn goodbye(mut self) {
        self.say(&json!({"jsonrpc": "2.0", "id": "bye", "method": "shutdown"}));
        self.answer(&json!("bye"));
        self.say(&json!({"jsonrpc": "2.0", "method": "exit"}));
        assert_eq!(self.end().0, Some(0));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn framed(text: &str) -> String {
    format!("Content-Length: {}\r\n\r\n{text}", text.len())
}

fn receive(from: &mut impl std::io::BufRead) -> Option<Value> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if from.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim().split_once(": ") {
            Some(("Content-Length", number)) => length = number.parse().ok()?,
            _ if line.trim().is_empty() => break,
            _ => (),
        }
    }
    let mut text = vec![0; length];
    from.read_exact(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

#[test]
fn a_header_that_makes_no_sense_ends_the_server_with_an_error() {
    let huge = "X".repeat(1 << 20);
    let many = "X: 1\r\n".repeat(1 << 18);
    for (header, said) in [
        ("Content-Length: 99999999999\r\n\r\n", "a message of 99999999999 bytes"),
        ("Content-Length: -1\r\n\r\n", "not of this protocol"),
        ("Content-Type: x\r\n\r\n", "not of this protocol"),
        (huge.as_str(), "not of this protocol"),
        (many.as_str(), "not of this protocol"),
    ] {
        for greeted in [false, true] {
            let mut server = Server::new();
            if greeted {
                server.hello();
            }
            server.send(header.as_bytes());
            // The input stays open: nothing else ends it.
            let (code, errors) = server.end();
            assert_eq!(code, Some(2), "{errors}");
            assert!(errors.contains("error: the editor") && errors.contains(said), "{errors}");
        }
    }
}

#[test]
fn what_a_header_announces_is_not_allocated() {
    let mut server = Server::new();
    server.send(b"Content-Length: 1000000000\r\n\r\n{");
    server.send(b"Content-Length: 60000000\r\n\r\n{");
    std::thread::sleep(Duration::from_millis(300));
    assert!(server.most() < 60, "{} MB", server.most());
}

#[test]
fn a_message_that_is_too_long_is_read_past() {
    let mut server = Server::new();
    server.hello();
    let text = "x".repeat(100 << 20);
    let open = json!({"uri": "file:///a.py", "languageId": "python", "version": 1, "text": text});
    server
        .say(&json!({"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": {"textDocument": open}}));
    server.say(&json!({"jsonrpc": "2.0", "method": "textDocument/hover", "params": {"x": text}, "id": 7}));
    assert_eq!(server.answer(&json!(7))["error"]["code"], -32803);
    assert!(server.most() < 100, "{} MB", server.most());
    server.goodbye();
}

#[test]
fn what_is_no_message_does_not_end_the_session() {
    let mut server = Server::new();
    server.hello();
    let deep = format!(
        "{{\"id\": 3, \"method\": \"x\", \"params\": {}{}}}",
        "[".repeat(30 << 20),
        "]".repeat(30 << 20)
    );
    let wide = format!("{{\"id\": 4, \"method\": \"x\", \"params\": [{}0]}}", "0,".repeat(30 << 20));
    for (text, id, code) in [("{", Value::Null, -32700), (&deep, json!(3), -32803), (&wide, json!(4), -32803)]
    {
        server.send(framed(text).as_bytes());
        assert_eq!(server.answer(&id)["error"]["code"], code);
    }
    assert!(server.most() < 300, "{} MB", server.most());
    server.goodbye();
}

#[test]
fn the_server_ends_with_its_input() {
    for greeted in [false, true] {
        let mut server = Server::new();
        if greeted {
            server.hello();
        }
        drop(server.child.stdin.take());
        assert_eq!(server.end().0, Some(if greeted { 0 } else { 2 }));
    }
}

#[test]
fn the_server_ends_with_its_input_whatever_it_is_doing() {
    let place = Place::new();
    let mut command = place.command(&["server"]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the binary starts");
    // Nobody reads its answers: the pipe is full after some of them.
    let mut stdin = child.stdin.take().expect("a pipe");
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"processId": null, "rootUri": null, "capabilities": {}}});
    stdin.write_all(framed(&hello.to_string()).as_bytes()).expect("a reader");
    stdin
        .write_all(framed(r#"{"jsonrpc":"2.0","method":"initialized","params":{}}"#).as_bytes())
        .expect("a reader");
    let question = framed(&json!({"jsonrpc": "2.0", "id": 2, "method": "x".repeat(2000)}).to_string());
    for _ in 0..200 {
        stdin.write_all(question.as_bytes()).expect("a reader");
    }
    drop(stdin);
    let start = Instant::now();
    while child.try_wait().expect("a child").is_none() {
        if start.elapsed() > PATIENCE {
            let _ = child.kill();
            panic!("the server goes on");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn open_files_take_no_more_memory_than_they_are_worth() {
    let mut server = Server::new();
    server.hello();
    let brackets = 1 << 20;
    let text = format!("x = {}{}\n", "(".repeat(brackets), ")".repeat(brackets));
    for (version, text) in [&text, &"x = 1\n".repeat(4 << 20)].into_iter().enumerate() {
        let uri = format!("file:///a{version}.py");
        let open = json!({"uri": uri, "languageId": "python", "version": 1, "text": text});
        server.say(
            &json!({"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": {"textDocument": open}}),
        );
        loop {
            let message = server.answers.recv_timeout(PATIENCE).expect("a message");
            if message["params"]["uri"] == uri.as_str() {
                break;
            }
        }
    }
    assert!(server.most() < 400, "{} MB", server.most());
    server.goodbye();
}

#[test]
fn pipes_and_devices_stop_no_editor() {
    let place = Place::new();
    let settings = place.path("pyproject.toml");
    rustix::fs::mknodat(rustix::fs::CWD, &settings, rustix::fs::FileType::Fifo, 0o600.into(), 0)
        .expect("a pipe");
    for name in [".gitignore", "b.py", ".ignore"] {
        std::os::unix::fs::symlink("/dev/zero", place.path(name)).expect("a link");
    }
    let uri = format!("file://{}", place.path("a.py").display());
    let mut server = Server::of(place);
    server.hello();
    let open = json!({"uri": uri, "languageId": "python", "version": 1, "text": "x = 1\n"});
    server
        .say(&json!({"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": {"textDocument": open}}));
    let wait = |server: &Server, method: &str| loop {
        let message = server.answers.recv_timeout(PATIENCE).expect("a message");
        if message["method"] == method {
            return message;
        }
    };
    let error = wait(&server, "window/showMessage");
    assert!(error.to_string().contains("not a plain file, but a pipe"), "{error}");
    std::fs::remove_file(&settings).expect("a pipe");
    std::fs::write(&settings, "").expect("a writable folder");
    server.say(&json!({"jsonrpc": "2.0", "method": "textDocument/didSave", "params": {"textDocument": {"uri": uri}}}));
    wait(&server, "textDocument/publishDiagnostics");
    assert!(server.most() < 200, "{} MB", server.most());
    server.goodbye();
}
