//! Answers `GET /metrics`.

use std::io;
use std::net::{IpAddr, TcpListener};
use std::sync::Arc;
use std::thread;

use tiny_http::{Header, Method, Request, Response, Server, StatusCode};

use super::families;
use super::shared::Shared;
use crate::signals;

const OPEN_METRICS: &[u8] = b"application/openmetrics-text; version=1.0.0; charset=utf-8";
const PLAIN: &[u8] = b"text/plain; charset=utf-8";

/// Starts the threads. They end with the process, and no signal reaches them.
pub(super) fn start(listener: TcpListener, shared: Arc<Shared>, any_host: bool) -> io::Result<()> {
    let before = signals::change_mask(libc::SIG_SETMASK, &signals::all())?;
    let started = Server::from_listener(listener, None).map_err(io::Error::other).and_then(|server| {
        let serve = move || {
            for request in server.incoming_requests() {
                answer(request, &shared, any_host);
            }
        };
        thread::Builder::new().name("caulk-metrics".into()).spawn(serve).map(drop)
    });
    signals::change_mask(libc::SIG_SETMASK, &before)?;
    started
}

fn answer(request: Request, shared: &Arc<Shared>, any_host: bool) {
    let path = request.url().split('?').next().unwrap_or_default();
    let is_read = matches!(request.method(), Method::Get | Method::Head);
    let (status, kind, text) = if !any_host && !is_local(host(&request)) {
        (403, PLAIN, "caulk answers to localhost alone; see --metrics-public\n".to_owned())
    } else if path != "/metrics" {
        (404, PLAIN, "metrics are at /metrics\n".to_owned())
    } else if !is_read {
        (405, PLAIN, "metrics can be read alone\n".to_owned())
    } else {
        match families::text(shared) {
            Ok(text) => (200, OPEN_METRICS, text),
            Err(error) => (500, PLAIN, format!("{error}\n")),
        }
    };
    let response = Response::from_string(text).with_status_code(StatusCode(status));
    let header = Header::from_bytes(&b"Content-Type"[..], kind).ok();
    // A client that has hung up needs no answer.
    let _ = request.respond(header.into_iter().fold(response, Response::with_header));
}

fn host(request: &Request) -> Option<&str> {
    let header = request.headers().iter().find(|header| header.field.equiv("Host"));
    header.map(|header| header.value.as_str())
}

/// A page in a browser can give its own name the address of this machine, and read the answers.
fn is_local(host: Option<&str>) -> bool {
    let Some(host) = host else { return true };
    let bare = match host.rsplit_once(':') {
        Some((bare, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => bare,
        _ => host,
    };
    let bare = bare.trim_start_matches('[').trim_end_matches(']');
    bare.eq_ignore_ascii_case("localhost") || bare.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_others_are_refused() {
        for host in ["localhost:9464", "LOCALHOST", "127.0.0.1:1", "[::1]:9464", "[::1]"] {
            assert!(is_local(Some(host)), "{host}");
        }
        assert!(is_local(None));
        for host in ["evil.example:9464", "localhost.evil.example", ""] {
            assert!(!is_local(Some(host)), "{host}");
        }
    }
}
