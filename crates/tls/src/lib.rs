//! The server's side of TLS on a socket: a certificate that may be read again while the server runs, and connections
//! that hold no bytes while nothing is under way.

pub mod certificate;
pub mod secure;
