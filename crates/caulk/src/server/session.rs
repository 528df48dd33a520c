//! One editor: its open files, what was seen in them, and the questions that wait.

use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use anyhow::Context;
use camino::Utf8PathBuf;
use crossbeam_channel::{Receiver, Sender, after, bounded, never, select};
use lsp_server::{Connection, ErrorCode, Message, Notification, Request, RequestId, Response};
use lsp_types::notification::{self as notice, Notification as _};
use lsp_types::request::{self, Request as _};
use lsp_types::{
    DidChangeTextDocumentParams, DidCloseTextDocumentParams, DidOpenTextDocumentParams, MessageType,
    PublishDiagnosticsParams, ShowMessageParams, Uri,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::look::{Seen, Snapshot, look};
use super::position::{self, Encoding};
use super::{requests, uri};

/// Time without a change after which it is worth looking.
const QUIET: Duration = Duration::from_millis(150);

/// Messages that are looked ahead at.
const MOST_WAITING: usize = 64;

/// Stack of a worker, in bytes.
const STACK: usize = 16 << 20;

/// An open file.
#[derive(Debug)]
struct Open {
    uri: Uri,
    version: i32,
    text: String,
}

/// Everything between an editor's hello and its goodbye.
pub(super) struct Session<'a> {
    connection: &'a Connection,
    folder: Utf8PathBuf,
    encoding: Encoding,
    open: BTreeMap<Utf8PathBuf, Open>,
    seen: Seen,
    /// Counts changes.
    generation: u64,
    /// A worker is looking.
    looking: bool,
    /// Messages that came while others were answered.
    inbox: VecDeque<Message>,
    results: (Sender<Seen>, Receiver<Seen>),
}

impl<'a> Session<'a> {
    pub(super) fn new(connection: &'a Connection, folder: Utf8PathBuf, encoding: Encoding) -> Self {
        let seen = Seen { generation: 0, files: BTreeMap::new(), error: None };
        let (open, inbox, results) = (BTreeMap::new(), VecDeque::new(), bounded(1));
        Self { connection, folder, encoding, open, seen, generation: 0, looking: false, inbox, results }
    }

    /// Serves until the editor says goodbye.
    pub(super) fn serve(mut self) -> anyhow::Result<()> {
        loop {
            let due = self.generation > self.seen.generation && !self.looking;
            let quiet = if due { after(QUIET) } else { never() };
            let results = self.results.1.clone();
            select! {
                recv(self.connection.receiver) -> message => {
                    // An editor that has gone away has nothing more to say.
                    let Ok(message) = message else { return Ok(()) };
                    self.inbox.push_back(message);
                    if self.answer_all()? {
                        return Ok(());
                    }
                }
                recv(results) -> seen => {
                    self.looking = false;
                    if let Ok(seen) = seen {
                        self.show(seen)?;
                    }
                }
                recv(quiet) -> _ => self.start(),
            }
        }
    }

    /// Handles what has come in; true at the goodbye.
    fn answer_all(&mut self) -> anyhow::Result<bool> {
        loop {
            // Cancellations overtake the questions that they are about.
            let room = MOST_WAITING.saturating_sub(self.inbox.len());
            self.inbox.extend(self.connection.receiver.try_iter().take(room));
            let Some(message) = self.inbox.pop_front() else { return Ok(false) };
            match message {
                Message::Request(request) => {
                    if self.connection.handle_shutdown(&request).context("the editor's goodbye")? {
                        return Ok(true);
                    }
                    let response = self.respond(request);
                    self.send(Message::Response(response))?;
                }
                Message::Notification(notification) => self.note(notification),
                Message::Response(_) => (),
            }
        }
    }

    fn respond(&self, request: Request) -> Response {
        let id = request.id.clone();
        if self.is_cancelled(&id) {
            return Response::new_err(id, ErrorCode::RequestCanceled as i32, "cancelled".to_owned());
        }
        match request.method.as_str() {
            request::HoverRequest::METHOD => answer(request, |params: &lsp_types::HoverParams| {
                requests::hover(self.shown(&params.text_document_position_params.text_document.uri), params)
            }),
            request::CodeActionRequest::METHOD => answer(request, |params: &lsp_types::CodeActionParams| {
                requests::code_actions(self.shown(&params.text_document.uri), params)
            }),
            method => {
                let text = format!("`{method}` is nothing that caulk can do");
                Response::new_err(id, ErrorCode::MethodNotFound as i32, text)
            }
        }
    }

    fn is_cancelled(&self, id: &RequestId) -> bool {
        self.inbox.iter().any(|message| match message {
            Message::Notification(note) if note.method == notice::Cancel::METHOD => {
                serde_json::from_value::<RequestId>(note.params["id"].clone()).is_ok_and(|other| other == *id)
            }
            _ => false,
        })
    }

    /// What is known of a file, unless it has changed since.
    fn shown(&self, uri: &Uri) -> &[super::convert::Shown] {
        let path = uri::to_path(uri);
        let shown = path.and_then(|path| self.seen.files.get(&path)).map(Vec::as_slice);
        shown.filter(|_| self.seen.generation == self.generation).unwrap_or_default()
    }

    fn note(&mut self, notification: Notification) {
        match notification.method.as_str() {
            notice::DidOpenTextDocument::METHOD => self.take(notification, Self::opened),
            notice::DidChangeTextDocument::METHOD => self.take(notification, Self::changed),
            notice::DidCloseTextDocument::METHOD => self.take(notification, Self::closed),
            // Other files on disk may be others now.
            notice::DidSaveTextDocument::METHOD | notice::DidChangeWatchedFiles::METHOD => {
                self.generation += 1;
            }
            _ => (),
        }
    }

    /// What an editor says wrongly is left alone: there is nobody to answer to.
    fn take<P: DeserializeOwned>(&mut self, notification: Notification, act: impl FnOnce(&mut Self, P)) {
        if let Ok(params) = serde_json::from_value(notification.params) {
            act(self, params);
            self.generation += 1;
        }
    }

    fn opened(&mut self, params: DidOpenTextDocumentParams) {
        let document = params.text_document;
        if let Some(path) = uri::to_path(&document.uri) {
            let open = Open { uri: document.uri, version: document.version, text: document.text };
            self.open.insert(path, open);
        }
    }

    fn changed(&mut self, params: DidChangeTextDocumentParams) {
        let path = uri::to_path(&params.text_document.uri);
        let Some(open) = path.and_then(|path| self.open.get_mut(&path)) else { return };
        open.version = params.text_document.version;
        for change in params.content_changes {
            match change.range {
                Some(range) => position::replace(&mut open.text, range, &change.text, self.encoding),
                None => open.text = change.text,
            }
        }
    }

    fn closed(&mut self, params: DidCloseTextDocumentParams) {
        let uri = params.text_document.uri;
        if let Some(path) = uri::to_path(&uri) {
            self.open.remove(&path);
        }
        // What cannot be sent now cannot be sent later either; the loop will find out.
        let _ = self.publish(uri, Vec::new(), None);
    }

    /// Lets a worker look at everything as it is now.
    fn start(&mut self) {
        let buffers = self.open.iter().map(|(path, open)| (path.clone(), open.text.clone())).collect();
        let (generation, folder, encoding) = (self.generation, self.folder.clone(), self.encoding);
        let snapshot = Snapshot { generation, folder, buffers, encoding };
        let results = self.results.0.clone();
        let work = move || {
            // A defect of caulk must not end the editor's session.
            let seen = catch_unwind(AssertUnwindSafe(|| look(&snapshot)));
            let failed = Some("failed on this code; the log has more".to_owned());
            let none = Seen { generation: snapshot.generation, files: BTreeMap::new(), error: failed };
            results.send(seen.unwrap_or(none))
        };
        // Deeply nested code needs the room that a main thread has.
        let started = std::thread::Builder::new().stack_size(STACK).spawn(work);
        self.looking = started.is_ok();
    }

    fn show(&mut self, seen: Seen) -> anyhow::Result<()> {
        if let Some(error) = &seen.error
            && self.seen.error.as_ref() != Some(error)
        {
            let params = ShowMessageParams { typ: MessageType::ERROR, message: format!("caulk: {error}") };
            self.notify::<notice::ShowMessage>(params)?;
        }
        // Places in a text that has changed since are wrong; another look is due.
        if seen.generation == self.generation {
            for (path, shown) in &seen.files {
                if let Some(open) = self.open.get(path) {
                    let diagnostics = shown.iter().map(|shown| shown.diagnostic.clone()).collect();
                    self.publish(open.uri.clone(), diagnostics, Some(open.version))?;
                }
            }
        }
        self.seen = seen;
        Ok(())
    }

    fn publish(
        &self,
        uri: Uri,
        diagnostics: Vec<lsp_types::Diagnostic>,
        version: Option<i32>,
    ) -> anyhow::Result<()> {
        self.notify::<notice::PublishDiagnostics>(PublishDiagnosticsParams { uri, diagnostics, version })
    }

    fn notify<N: notice::Notification>(&self, params: N::Params) -> anyhow::Result<()> {
        self.send(Message::Notification(Notification::new(N::METHOD.to_owned(), params)))
    }

    fn send(&self, message: Message) -> anyhow::Result<()> {
        self.connection.sender.send(message).context("the editor has gone away")
    }
}

/// Answers a question whose parameters make sense.
fn answer<P: DeserializeOwned, R: Serialize>(request: Request, act: impl FnOnce(&P) -> R) -> Response {
    match serde_json::from_value::<P>(request.params) {
        Ok(params) => Response::new_ok(request.id, act(&params)),
        Err(error) => Response::new_err(request.id, ErrorCode::InvalidParams as i32, error.to_string()),
    }
}
