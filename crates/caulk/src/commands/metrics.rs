//! `caulk run --metrics`: where the figures of a run are served.

use std::io::ErrorKind;
use std::net::SocketAddr;

use anyhow::{Context, anyhow, ensure};
use caulk_supervise::{BoundAddress, Exporter};

use crate::printer::Printer;

/// Takes the address.
///
/// # Errors
/// If other machines can reach it and the user does not want that, or the system does not give it.
pub(super) fn bind(address: SocketAddr, public: bool) -> anyhow::Result<BoundAddress> {
    ensure!(
        public || address.ip().is_loopback(),
        "other machines can reach {address}\nhint: serve to this one with `--metrics 127.0.0.1:{}`, or to all with \
         `--metrics-public`",
        address.port()
    );
    BoundAddress::new(address).map_err(|error| {
        let hint = match error.kind() {
            ErrorKind::AddrInUse => "\nhint: `--metrics 127.0.0.1:0` takes a free port",
            _ => "",
        };
        anyhow!(error).context(format!("failed to serve metrics at {address}{hint}"))
    })
}

/// Serves, and prints the place.
///
/// # Errors
/// If the system starts no thread.
pub(super) fn serve(bound: BoundAddress, run: &str, printer: Printer) -> anyhow::Result<Exporter> {
    let address = bound.address();
    let exporter = bound.serve(run, env!("CARGO_PKG_VERSION")).context("failed to serve metrics")?;
    printer.note(&format!("metrics at http://{address}/metrics"));
    Ok(exporter)
}
