//! Our server asked for its counters while a run goes on.

use crate::certificate::Certificate;
use crate::topology::Topology;
use pushlab_link::namespace::Namespace;
use pushlab_record::CounterSample;
use pushlab_wire::http::{BodyKind, Headers, parse_response};
use rustls::pki_types::{CertificateDer, ServerName, pem::PemObject as _};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

/// Time to answer.
const TIMEOUT: Duration = Duration::from_millis(500);

/// Asks our server for its counters, over one connection that stays open and beside the link, if there is one.
pub struct CounterReader {
    address: SocketAddr,
    tls: Option<Arc<ClientConfig>>,
    namespace: Option<Namespace>,
    stream: Option<Box<dyn Stream>>,
    /// Bytes that it has sent and received: they are in the server's counts.
    sent_bytes: u64,
    received_bytes: u64,
}

const REQUEST: &[u8] = b"GET /stats HTTP/1.1\r\nHost: lab\r\n\r\n";

trait Stream: Read + Write + Send {}
impl<T: Read + Write + Send> Stream for T {}

impl CounterReader {
    /// A reader; connects when first used, over TLS if the server itself has a certificate.
    ///
    /// # Errors
    /// When the run's certificate or namespace cannot be used.
    pub fn new(address: SocketAddr, topology: &Topology, certificate: Option<&Certificate>) -> io::Result<Self> {
        let tls = match certificate {
            None => None,
            Some(certificate) => {
                let mut roots = RootCertStore::empty();
                let trusted = CertificateDer::from_pem_file(&certificate.certificate).map_err(io::Error::other)?;
                roots.add(trusted).map_err(io::Error::other)?;
                let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
                Some(Arc::new(config))
            }
        };
        Ok(Self {
            address,
            tls,
            namespace: topology.subject_namespace().cloned(),
            stream: None,
            sent_bytes: 0,
            received_bytes: 0,
        })
    }

    /// Asks another server from now on, at the same address.
    pub fn begin_anew(&mut self) {
        (self.stream, self.sent_bytes, self.received_bytes) = (None, 0, 0);
    }

    /// The counters now; `None` when the server did not answer in time. Bytes are without the reader's own, but over
    /// TLS, where it does not see them all.
    pub fn read(&mut self) -> Option<CounterSample> {
        let sample = self.try_read().ok();
        if sample.is_none() {
            self.stream = None;
        }
        sample
    }

    fn connect(&self) -> io::Result<Box<dyn Stream>> {
        let address = self.address;
        let connect = || TcpStream::connect_timeout(&address, TIMEOUT);
        let stream = match &self.namespace {
            None => connect()?,
            Some(namespace) => namespace.in_it(connect).map_err(io::Error::other)??,
        };
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        stream.set_nodelay(true)?;
        let Some(tls) = &self.tls else { return Ok(Box::new(stream)) };
        let name = ServerName::from(self.address.ip());
        let connection = ClientConnection::new(tls.clone(), name).map_err(io::Error::other)?;
        Ok(Box::new(StreamOwned::new(connection, stream)))
    }

    fn try_read(&mut self) -> io::Result<CounterSample> {
        let stream = match &mut self.stream {
            Some(stream) => stream,
            None => {
                let stream = self.connect()?;
                self.stream.insert(stream)
            }
        };
        stream.write_all(REQUEST)?;
        self.sent_bytes += REQUEST.len() as u64;
        // What it is answered now is written after the server has counted.
        let received_before = self.received_bytes;
        let mut bytes = Vec::new();
        let mut buffer = [0; 4096];
        loop {
            let n = stream.read(&mut buffer)?;
            if n == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.received_bytes += n as u64;
            bytes.extend_from_slice(&buffer[..n]);
            let mut headers = Headers::default();
            let head = parse_response(&bytes, &mut headers).map_err(io::Error::other)?;
            let Some((head, size)) = head else { continue };
            let BodyKind::Length(length) = head.body else { return Err(io::ErrorKind::InvalidData.into()) };
            if let Some(body) = bytes.get(size..size + length as usize) {
                let mut sample: CounterSample = serde_json::from_slice(body)?;
                sample.bytes_received = sample.bytes_received.saturating_sub(self.sent_bytes);
                sample.bytes_sent = sample.bytes_sent.saturating_sub(received_before);
                return Ok(sample);
            }
        }
    }
}
