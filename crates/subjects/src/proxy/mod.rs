//! Proxies between clients and a server, such as stand in front of servers and in companies: what gets through them?

mod buffering;
mod nginx;

use buffering::Buffering;
use nginx::Nginx;
pub use nginx::find as find_nginx;
use pushlab_experiment::Proxy as Kind;
use std::net::SocketAddr;
use std::path::Path;

/// A proxy that runs until it is dropped.
pub struct Proxy {
    /// Where it listens.
    pub address: SocketAddr,
    running: Running,
}

/// What keeps it running.
enum Running {
    Nginx(Nginx),
    Buffering(Buffering),
}

impl Proxy {
    /// Starts a proxy of a kind on these cores, in front of a server. With a certificate chain and its key, clients speak
    /// TLS with it. It makes the folder and removes it.
    ///
    /// # Errors
    /// As a sentence.
    pub fn start(
        kind: Kind,
        server: SocketAddr,
        certificate: Option<(&Path, &Path)>,
        folder: &Path,
        cores: &[usize],
    ) -> Result<Self, String> {
        let (address, running) = match kind {
            Kind::Nginx => {
                let (address, nginx) = Nginx::start(server, certificate, folder, cores)?;
                (address, Running::Nginx(nginx))
            }
            Kind::Buffering => {
                let (address, proxy) =
                    Buffering::start(server).map_err(|error| format!("the buffering proxy cannot start: {error}"))?;
                (address, Running::Buffering(proxy))
            }
        };
        Ok(Self { address, running })
    }

    /// Ends it.
    pub fn stop(self) {
        match self.running {
            Running::Nginx(nginx) => nginx.stop(),
            Running::Buffering(proxy) => drop(proxy),
        }
    }
}
