//! `caulk server`: findings in an editor, by the Language Server Protocol over standard input and output.
//!
//! The session talks to the editor and never waits for an analysis: a worker looks at a snapshot of all unsaved
//! buffers, and what it finds for an older snapshot is not shown. The main thread waits for the end of either.

mod convert;
mod look;
mod outline;
mod position;
mod requests;
mod session;
mod transport;
mod uri;

use std::io::BufReader;
use std::time::Duration;

use anyhow::Context;
use camino::{Utf8Path, Utf8PathBuf};
use crossbeam_channel::{bounded, select};
use lsp_server::Connection;
use lsp_types::{
    CodeActionKind, CodeActionOptions, CodeActionProviderCapability, HoverProviderCapability,
    InitializeParams, SaveOptions, ServerCapabilities, TextDocumentSyncCapability, TextDocumentSyncKind,
    TextDocumentSyncOptions, TextDocumentSyncSaveOptions,
};
use serde_json::json;

use self::position::Encoding;
use self::session::Session;
use self::transport::Transport;

/// How long a session may go on when its input has ended: it may be writing to an editor that does not read.
const GRACE: Duration = Duration::from_secs(2);

/// Serves one editor until it says goodbye, or its input ends.
///
/// # Errors
/// If the editor does not speak the protocol, or goes away without a word.
pub(crate) fn run(directory: &Utf8Path) -> anyhow::Result<()> {
    let Transport { connection, ended, written } =
        Transport::new(BufReader::new(std::io::stdin()), std::io::stdout())
            .context("failed to start a thread")?;
    let (say_done, done) = bounded(1);
    let directory = directory.to_owned();
    std::thread::Builder::new()
        .name("session".into())
        .spawn(move || {
            let result = serve(&connection, &directory);
            // Nothing more will be said.
            drop(connection);
            say_done.send(result)
        })
        .context("failed to start a thread")?;
    let result = select! {
        recv(ended) -> end => {
            end.context("the editor's input")??;
            // An editor that has gone away waits for nothing.
            done.recv_timeout(GRACE).unwrap_or(Ok(()))
        }
        recv(done) -> result => {
            // Why it ended, if that was the input.
            ended.try_recv().unwrap_or(Ok(()))?;
            result.context("the session failed")?
        }
    };
    // The last answers still have to be written.
    let _ = written.recv_timeout(GRACE);
    result
}

fn serve(connection: &Connection, directory: &Utf8Path) -> anyhow::Result<()> {
    let (id, params) = connection.initialize_start().context("the editor did not introduce itself")?;
    let params: InitializeParams = serde_json::from_value(params).context("the editor's introduction")?;
    let encoding = Encoding::negotiate(&params);
    let answer = json!({
        "capabilities": capabilities(encoding),
        "serverInfo": {"name": "caulk", "version": env!("CARGO_PKG_VERSION")},
    });
    connection.initialize_finish(id, answer).context("the editor's introduction")?;
    let folder = folder(&params).unwrap_or_else(|| directory.to_owned());
    Session::new(connection, folder, encoding).serve()
}

fn capabilities(encoding: Encoding) -> ServerCapabilities {
    ServerCapabilities {
        position_encoding: Some(encoding.kind()),
        text_document_sync: Some(TextDocumentSyncCapability::Options(TextDocumentSyncOptions {
            open_close: Some(true),
            change: Some(TextDocumentSyncKind::INCREMENTAL),
            save: Some(TextDocumentSyncSaveOptions::SaveOptions(SaveOptions { include_text: Some(false) })),
            ..TextDocumentSyncOptions::default()
        })),
        hover_provider: Some(HoverProviderCapability::Simple(true)),
        code_action_provider: Some(CodeActionProviderCapability::Options(CodeActionOptions {
            code_action_kinds: Some(vec![CodeActionKind::QUICKFIX, requests::FIX_ALL]),
            ..CodeActionOptions::default()
        })),
        ..ServerCapabilities::default()
    }
}

/// The folder that the editor works in.
fn folder(params: &InitializeParams) -> Option<Utf8PathBuf> {
    let folders = params.workspace_folders.iter().flatten();
    let first = folders.map(|folder| &folder.uri).next();
    #[expect(deprecated, reason = "older editors send nothing else")]
    let root = first.or(params.root_uri.as_ref());
    root.and_then(uri::to_path)
}
