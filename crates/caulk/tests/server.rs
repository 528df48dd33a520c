//! `caulk server`, driven as an editor does it.

#[allow(dead_code, reason = "shared by several test programs, none of which needs all of it")]
mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};
use support::Place;

/// A file with one finding, at line 3, behind a character that encodings count differently.
const LEAKY: &str = "from functools import cache; run = lambda loader: [(A().f(), A().g()) for batch in loader]\nclass A:\n    @cache\n    def f(self): pass\n";

struct Editor {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    id: u64,
    uri: String,
}

impl Editor {
    /// An editor that has introduced itself; its file is `a.py` of the place.
    fn new(place: &Place, encodings: &[&str]) -> (Self, Value) {
        let mut command = place.command(&["server"]);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the binary starts");
        let to = child.stdin.take().expect("a pipe");
        let from = BufReader::new(child.stdout.take().expect("a pipe"));
        let uri = format!("file://{}", place.path("a.py").display());
        let mut editor = Self { child, to, from, id: 0, uri };
        let root = format!("file://{}", place.path("").display());
        let answer = editor.ask(
            "initialize",
            &json!({
                "processId": null,
                "rootUri": null,
                "workspaceFolders": [{"uri": root.trim_end_matches('/'), "name": "x"}],
                "capabilities": {"general": {"positionEncodings": encodings}},
            }),
        );
        editor.tell("initialized", &json!({}));
        (editor, answer["result"]["capabilities"].clone())
    }

    fn send(&mut self, message: &Value) {
        let text = message.to_string();
        write!(self.to, "Content-Length: {}\r\n\r\n{text}", text.len()).expect("a reader");
        self.to.flush().expect("a reader");
    }

    fn tell(&mut self, method: &str, params: &Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Sends a question and waits for its answer.
    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.id += 1;
        let id = self.id;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        self.wait(|message| message["id"] == id)
    }

    fn wait(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let mut length = 0;
            loop {
                let mut line = String::new();
                assert!(self.from.read_line(&mut line).expect("UTF-8") > 0, "the server has gone away");
                match line.trim().split_once(": ") {
                    Some(("Content-Length", number)) => length = number.parse().expect("a number"),
                    _ if line.trim().is_empty() => break,
                    _ => (),
                }
            }
            let mut text = vec![0; length];
            self.from.read_exact(&mut text).expect("a whole message");
            let message = serde_json::from_slice(&text).expect("JSON");
            if wanted(&message) {
                return message;
            }
        }
    }

    fn open(&mut self, text: &str) {
        let document = json!({"uri": self.uri, "languageId": "python", "version": 1, "text": text});
        self.tell("textDocument/didOpen", &json!({"textDocument": document}));
    }

    /// Replaces everything from one place to another.
    fn change(&mut self, version: i32, from: (u32, u32), to: (u32, u32), text: &str) {
        let at = |(line, character)| json!({"line": line, "character": character});
        let change = json!({"range": {"start": at(from), "end": at(to)}, "text": text});
        let document = json!({"uri": self.uri, "version": version});
        self.tell("textDocument/didChange", &json!({"textDocument": document, "contentChanges": [change]}));
    }

    /// Findings of a version of the file.
    fn findings(&mut self, version: i32) -> Vec<Value> {
        let message = self.wait(|message| {
            message["method"] == "textDocument/publishDiagnostics" && message["params"]["version"] == version
        });
        message["params"]["diagnostics"].as_array().expect("a list").clone()
    }

    fn at(&self, line: u32, character: u32) -> Value {
        json!({"textDocument": {"uri": self.uri}, "position": {"line": line, "character": character}})
    }

    fn goodbye(mut self) {
        assert_eq!(self.ask("shutdown", &Value::Null)["error"], Value::Null);
        self.tell("exit", &Value::Null);
        assert!(self.child.wait().expect("an end").success());
    }
}

fn project() -> Place {
    let place = Place::new();
    place.write("pyproject.toml", "");
    place
}

#[test]
fn unsaved_text_is_looked_at_as_it_is_typed() {
    let place = project();
    place.write("a.py", "x = 1\n");
    let (mut editor, _) = Editor::new(&place, &[]);
    editor.open(LEAKY);
    let found = editor.findings(1);
    assert_eq!(found[0]["code"], "cached-method");
    assert_eq!(found[0]["range"]["start"], json!({"line": 2, "character": 4}));
    assert_eq!(found[0]["range"]["end"], json!({"line": 2, "character": 10}));
    editor.change(2, (2, 0), (3, 0), "");
    assert_eq!(editor.findings(2), Vec::<Value>::new());
    editor.change(3, (2, 0), (2, 0), "    x = '😀'; y = 1\n    @cache\n");
    assert_eq!(editor.findings(3)[0]["range"]["start"]["line"], 3);
    editor.tell("textDocument/didClose", &json!({"textDocument": {"uri": editor.uri}}));
    let closed = editor.wait(|message| message["method"] == "textDocument/publishDiagnostics");
    assert_eq!(closed["params"]["diagnostics"], json!([]));
    editor.goodbye();
}

#[test]
fn columns_are_counted_as_agreed() {
    for (offered, agreed, character) in
        [(&["utf-8", "utf-16"][..], "utf-8", 21), (&["utf-16"], "utf-16", 19), (&[], "utf-16", 19)]
    {
        let place = project();
        let (mut editor, capabilities) = Editor::new(&place, offered);
        assert_eq!(capabilities["positionEncoding"], agreed);
        editor.open("class A: s = '😀'; # caulk: ignore\n");
        let found = editor.findings(1);
        assert_eq!(found[0]["message"], "unused suppression: nothing is found here");
        let (start, end) = (&found[0]["range"]["start"], &found[0]["range"]["end"]);
        assert_eq!((&start["character"], &end["character"]), (&json!(character), &json!(character + 15)));
        editor.goodbye();
    }
}

#[test]
fn rules_are_explained_and_fixes_offered() {
    let place = project();
    let (mut editor, _) = Editor::new(&place, &[]);
    editor.open(LEAKY);
    editor.findings(1);
    let hover = editor.ask("textDocument/hover", &editor.at(2, 6));
    let page = hover["result"]["contents"]["value"].as_str().expect("a page");
    assert!(page.starts_with("# cached-method"), "{page}");
    assert_eq!(editor.ask("textDocument/hover", &editor.at(0, 0))["result"], Value::Null);
    let range = json!({"start": {"line": 2, "character": 4}, "end": {"line": 2, "character": 4}});
    let question =
        json!({"textDocument": {"uri": editor.uri}, "range": range, "context": {"diagnostics": []}});
    let actions = editor.ask("textDocument/codeAction", &question);
    let ignore = &actions["result"].as_array().expect("a list").last().expect("an action").clone();
    assert_eq!(ignore["title"], "caulk: ignore `cached-method` here");
    let edit = &ignore["edit"]["changes"][&editor.uri][0];
    assert_eq!(edit["newText"], "  # caulk: ignore[cached-method]");
    assert_eq!(edit["range"]["start"], json!({"line": 2, "character": 10}));
    editor.goodbye();
}

/// Two losses whose graphs nobody looks at, and one that is given away.
const GATHERS: &str = "import torch.nn.functional as F\n\n\ndef validate(model, loader):\n    losses, errors, kept = [], [], []\n    for x, y in loader:\n        losses.append(F.mse_loss(model(x), y))\n        errors.append(F.l1_loss(model(x), y))\n        kept.append(F.l1_loss(model(x), y))\n    print(sum(losses).item(), sum(errors).item())\n    return kept\n";

#[test]
fn what_is_safe_is_fixed_all_at_once() {
    let place = project();
    let (mut editor, capabilities) = Editor::new(&place, &[]);
    assert_eq!(capabilities["codeActionProvider"]["codeActionKinds"][1], "source.fixAll.caulk");
    editor.open(GATHERS);
    assert_eq!(editor.findings(1).len(), 3);
    let zero = json!({"line": 0, "character": 0});
    let question = json!({
        "textDocument": {"uri": editor.uri},
        "range": {"start": zero, "end": zero},
        "context": {"diagnostics": [], "only": ["source.fixAll"]},
    });
    let actions = editor.ask("textDocument/codeAction", &question)["result"].clone();
    assert_eq!(actions.as_array().expect("a list").len(), 1);
    assert_eq!(actions[0]["kind"], "source.fixAll.caulk");
    let edits = actions[0]["edit"]["changes"][&editor.uri].as_array().expect("edits").clone();
    let mut lines: Vec<_> = edits.iter().map(|edit| edit["range"]["start"]["line"].clone()).collect();
    lines.sort_by_key(Value::as_u64);
    assert_eq!(lines, [6, 7]);
    editor.goodbye();
}

#[test]
fn other_files_of_the_project_are_looked_at_again_when_one_is_saved() {
    let place = project();
    place.write("pyproject.toml", "[tool.caulk]\nselct = []\n");
    let (mut editor, _) = Editor::new(&place, &[]);
    editor.open(LEAKY);
    let error = editor.wait(|message| message["method"] == "window/showMessage");
    assert!(error["params"]["message"].as_str().expect("a text").contains("did you mean `select`?"));
    place.write("pyproject.toml", "");
    editor.tell("textDocument/didSave", &json!({"textDocument": {"uri": editor.uri}}));
    while editor.findings(1).is_empty() {}
    editor.goodbye();
}

#[test]
fn questions_can_be_taken_back() {
    let place = project();
    let (mut editor, _) = Editor::new(&place, &[]);
    editor.open(LEAKY);
    editor.findings(1);
    // In one piece, so that both are there before the first is answered.
    let hover =
        json!({"jsonrpc": "2.0", "id": 77, "method": "textDocument/hover", "params": editor.at(2, 6)});
    let cancel = json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": 77}});
    let frame = |message: &Value| {
        let text = message.to_string();
        format!("Content-Length: {}\r\n\r\n{text}", text.len())
    };
    let text = frame(&hover) + &frame(&cancel);
    editor.to.write_all(text.as_bytes()).expect("a reader");
    let answer = editor.wait(|message| message["id"] == 77);
    // Cancelled, unless the answer was faster.
    assert!(answer["error"]["code"] == -32800 || answer["result"].is_object(), "{answer}");
    assert_eq!(editor.ask("textDocument/unknown", &json!({}))["error"]["code"], -32601);
    assert_eq!(editor.ask("textDocument/hover", &json!(3))["error"]["code"], -32602);
    editor.goodbye();
}
