//! The place where figures are served.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, MutexGuard};

use super::figures::Figures;
use super::server;
use super::shared::Shared;

/// An address that is taken and not yet served.
#[derive(Debug)]
pub struct BoundAddress {
    listener: TcpListener,
    address: SocketAddr,
}

impl BoundAddress {
    /// Takes an address. Port 0 takes a free port.
    ///
    /// # Errors
    /// The error of the system: the port is in use, or not allowed.
    pub fn new(address: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address })
    }

    /// Where it is.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers requests from now on. `run` is the name of the run, `version` that of caulk.
    ///
    /// # Errors
    /// The error of the system if it starts no thread.
    pub fn serve(self, run: &str, version: &str) -> io::Result<Exporter> {
        let shared = Arc::new(Shared::new(run, version, Figures::default()));
        // Others than this machine's programs may ask by any name.
        let any_host = !self.address.ip().is_loopback();
        server::start(self.listener, Arc::clone(&shared), any_host)?;
        Ok(Exporter(shared))
    }
}

/// Serves the figures of a run until the process ends.
#[derive(Debug, Clone)]
pub struct Exporter(Arc<Shared>);

impl Exporter {
    pub(super) fn figures(&self) -> MutexGuard<'_, Figures> {
        self.0.figures()
    }
}
