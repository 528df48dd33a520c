//! Messages from and to an editor, as the Language Server Protocol frames them, whatever comes in.
//!
//! Memory is bounded by what a message may be, not by what its header says. A message that is too much, or no JSON, is
//! read past and answered with an error; a header that makes no sense ends the session, because nobody knows where the
//! next message begins.

use std::io::{self, BufRead, Read, Write};
use std::thread;

use crossbeam_channel::{Receiver, Sender, bounded, never, select, unbounded};
use lsp_server::{Connection, ErrorCode, Message, Notification, Request, RequestId};
use serde::Deserialize;
use serde_json::{Value, json};

use super::outline::Outline;

/// Largest message that is taken, in bytes.
const LARGEST: u64 = 64 << 20;
/// Largest message that is read past: nobody means to send more.
const LONGEST: u64 = 1 << 30;
/// Values that a message may have: a text is one, however long; each takes up to a hundred bytes.
const MOST_VALUES: usize = 1 << 20;
/// Longest line of a header, in bytes.
const LINE: u64 = 1 << 10;
/// Lines that a header may have.
const LINES: usize = 16;
/// Messages that wait for the session.
const WAITING: usize = 16;
/// Answers that wait for an editor to read them.
const MOST_ANSWERS: usize = 10_000;

/// Why there is no next message.
#[derive(Debug, thiserror::Error)]
pub(super) enum HeaderError {
    #[error("the editor's input cannot be read: {0}")]
    Io(#[from] io::Error),
    #[error(
        "the editor sent a header that is not of this protocol\nhint: the server speaks the Language Server Protocol on standard input: an editor starts it"
    )]
    Malformed,
    #[error("the editor announced a message of {0} bytes; at most {LARGEST} are taken")]
    Absurd(String),
    #[error("the editor reads no answers: more than {MOST_ANSWERS} wait for it")]
    Deaf,
}

/// Both directions.
pub(super) struct Transport {
    /// For the session. The receiver ends with the input.
    pub(super) connection: Connection,
    /// Says once how the input ended.
    pub(super) ended: Receiver<Result<(), HeaderError>>,
    /// Says once that everything was written.
    pub(super) written: Receiver<()>,
}

impl Transport {
    /// Reads and writes on threads of its own. The one that reads never writes, so the end of the input is noticed although
    /// an editor reads nothing.
    pub(super) fn new(
        mut from: impl BufRead + Send + 'static,
        to: impl Write + Send + 'static,
    ) -> io::Result<Self> {
        let mut to = to;
        let (out, answers) = unbounded::<Message>();
        let (refusals, mut refused) = unbounded::<Value>();
        let (incoming, messages) = bounded(WAITING);
        let (say_end, ended) = bounded(1);
        let (say_written, written) = bounded(1);
        let waiting = answers.clone();
        thread::Builder::new().name("editor to caulk".into()).spawn(move || {
            let result = read_all(&mut from, &incoming, &mut |id, code, why| {
                let error = json!({"code": code as i32, "message": why});
                // Whoever writes has gone only with the session.
                let _ = refusals.send(json!({"jsonrpc": "2.0", "id": id, "error": error}));
                if refusals.len() + waiting.len() > MOST_ANSWERS { Err(HeaderError::Deaf) } else { Ok(()) }
            });
            // Nobody may be left to hear it.
            let _ = say_end.send(result);
        })?;
        thread::Builder::new().name("caulk to editor".into()).spawn(move || {
            // An editor that does not listen any more will end its input.
            loop {
                select! {
                    recv(answers) -> answer => {
                        let Ok(answer) = answer else { break };
                        if let Ok(mut answer) = serde_json::to_value(&answer) {
                            answer["jsonrpc"] = "2.0".into();
                            let _ = write(&mut to, &answer.to_string());
                        }
                    }
                    recv(refused) -> refusal => match refusal {
                        Ok(refusal) => drop(write(&mut to, &refusal.to_string())),
                        Err(_) => refused = never(),
                    },
                }
            }
            for refusal in refused.try_iter() {
                let _ = write(&mut to, &refusal.to_string());
            }
            let _ = say_written.send(());
        })?;
        Ok(Self { connection: Connection { sender: out, receiver: messages }, ended, written })
    }
}

fn write(to: &mut impl Write, text: &str) -> io::Result<()> {
    write!(to, "Content-Length: {}\r\n\r\n{text}", text.len())?;
    to.flush()
}

/// Answers a message that is not taken: its id, what is wrong, and the same for people.
type Refuse<'a> = dyn FnMut(Value, ErrorCode, &str) -> Result<(), HeaderError> + 'a;

/// Hands on every message until the input or the session ends.
fn read_all(
    from: &mut impl BufRead,
    to: &Sender<Message>,
    refuse: &mut Refuse<'_>,
) -> Result<(), HeaderError> {
    while let Some(length) = header(from)? {
        let mut body = from.by_ref().take(length);
        if length > LARGEST {
            let outline = Outline::of(&mut io::BufReader::new(&mut body))?;
            if outline.wants_answer() {
                let why = format!("messages of more than {LARGEST} bytes are not taken");
                refuse(outline.id(), ErrorCode::RequestFailed, &why)?;
            }
            continue;
        }
        let mut bytes = Vec::new();
        body.read_to_end(&mut bytes)?;
        if (bytes.len() as u64) < length {
            return Ok(());
        }
        match message(&bytes) {
            Ok(Some(message)) => {
                let exit = matches!(&message, Message::Notification(note) if note.method == "exit");
                // Behind the goodbye nothing more is read.
                if to.send(message).is_err() || exit {
                    return Ok(());
                }
            }
            Ok(None) => (),
            Err((id, code, why)) => refuse(id, code, &why)?,
        }
    }
    Ok(())
}

/// The length of the next message; `None` at the end of the input.
fn header(from: &mut impl BufRead) -> Result<Option<u64>, HeaderError> {
    let mut length = None;
    for number in 0..=LINES {
        let mut line = Vec::new();
        from.by_ref().take(LINE).read_until(b'\n', &mut line)?;
        if line.is_empty() && number == 0 {
            return Ok(None);
        }
        let line = line.strip_suffix(b"\r\n").ok_or(HeaderError::Malformed)?;
        if line.is_empty() {
            return length.map(Some).ok_or(HeaderError::Malformed);
        }
        let line = std::str::from_utf8(line).map_err(|_| HeaderError::Malformed)?;
        let (name, value) = line.split_once(':').ok_or(HeaderError::Malformed)?;
        if name.eq_ignore_ascii_case("Content-Length") {
            length = Some(bytes(value.trim())?);
        }
    }
    Err(HeaderError::Malformed)
}

fn bytes(text: &str) -> Result<u64, HeaderError> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(HeaderError::Malformed);
    }
    // More digits than a number has are too many bytes, too.
    match text.parse() {
        Ok(length) if length <= LONGEST => Ok(length),
        _ => Err(HeaderError::Absurd(text.to_owned())),
    }
}

/// Anything that an editor may send.
#[derive(Deserialize)]
struct Envelope {
    id: Option<RequestId>,
    method: Option<String>,
    #[serde(default)]
    params: Value,
}

/// A message; `None` for an answer, since nothing is asked. What is not taken has an id and a reason.
fn message(bytes: &[u8]) -> Result<Option<Message>, (Value, ErrorCode, String)> {
    let outline = Outline::of(&mut &*bytes).unwrap_or_default();
    let refused = |code, why: String| Err((outline.id(), code, why));
    if outline.values > MOST_VALUES {
        return refused(
            ErrorCode::RequestFailed,
            format!("messages of more than {MOST_VALUES} values are not taken"),
        );
    }
    // It gives up where values are nested deeper than 128 levels.
    let read = serde_json::from_slice(bytes);
    Ok(match read {
        Ok(Envelope { id: Some(id), method: Some(method), params }) => {
            Some(Request { id, method, params }.into())
        }
        Ok(Envelope { id: None, method: Some(method), params }) => {
            Some(Notification { method, params }.into())
        }
        Ok(_) => None,
        Err(error) => return refused(ErrorCode::ParseError, format!("the message cannot be read: {error}")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What comes of an input: methods, refusals, and how it ends.
    fn check(input: &str, expected: &str) {
        let (to, messages) = unbounded();
        let mut refused = Vec::new();
        let end = read_all(&mut input.as_bytes(), &to, &mut |id, code, _| {
            refused.push(format!("{id}:{}", code as i32));
            Ok(())
        });
        drop(to);
        let taken = messages.iter().map(|message| match message {
            Message::Request(request) => format!("{}={}", request.method, request.id),
            Message::Notification(note) => note.method,
            Message::Response(_) => "?".to_owned(),
        });
        let end =
            end.map_or_else(|error| error.to_string().chars().take(24).collect(), |()| "end".to_owned());
        let said: Vec<String> = taken.chain(refused).chain([end]).collect();
        assert_eq!(said.join(" "), expected, "{input}");
    }

    fn framed(text: &str) -> String {
        format!("Content-Length: {}\r\n\r\n{text}", text.len())
    }

    #[test]
    fn messages_are_taken_one_after_the_other() {
        let text =
            framed(r#"{"id": 1, "method": "a"}"#) + &framed(r#"{"method": "b"}"#) + &framed(r#"{"id": 7}"#);
        check(&text, "a=1 b end");
        let named = text.replace("Content-Length: ", "content-type: x\r\ncontent-length:");
        check(&named, "a=1 b end");
        check(&(framed(r#"{"method": "exit"}"#) + "rest"), "exit end");
        check("", "end");
        check("Content-Length: 20\r\n\r\nhalf", "end");
    }

    #[test]
    fn what_is_no_message_is_answered_and_the_next_one_is_taken() {
        let next = framed(r#"{"method": "b"}"#);
        check(&(framed("{") + &next), "b null:-32700 end");
        check(
            &(framed(&format!(
                r#"{{"id": "x", "method": "a", "params": {}1{}}}"#,
                "[".repeat(200),
                "]".repeat(200)
            )) + &next),
            "b \"x\":-32700 end",
        );
        let many = "0,".repeat(MOST_VALUES);
        check(
            &(framed(&format!(r#"{{"params": [{many}0], "method": "a", "id": 3}}"#)) + &next),
            "b 3:-32803 end",
        );
    }

    #[test]
    fn a_header_that_makes_no_sense_ends_the_session() {
        for length in ["-1", "+1", "", "1e3", "0x10", "1 2"] {
            check(&format!("Content-Length: {length}\r\n\r\n"), "the editor sent a header");
        }
        for length in ["99999999999", "99999999999999999999999999", "1073741825"] {
            check(&format!("Content-Length: {length}\r\n\r\n"), "the editor announced a m");
        }
        for header in ["X: 1\r\n\r\n", "\r\n", "Content-Length: 1\n\n1", "GET / HTTP/1.1\r\n\r\n", "{}"] {
            check(header, "the editor sent a header");
        }
        check(&"X: 1\r\n".repeat(100), "the editor sent a header");
        check(&"X".repeat(100_000), "the editor sent a header");
    }
}
