//! Codecs of every protocol Pushlab speaks: bytes in, events out, no socket and no clock.
//!
//! Decoders give the same events however the bytes were split; encoders append to a `Vec<u8>`.
//!
//! ```
//! use pushlab_wire::websocket::{Config, Decoded, Decoder, Event, Opcode, Role, encode};
//!
//! let mut bytes = Vec::new();
//! encode(&mut bytes, Opcode::Text, b"[\"ping\",1]", Some([1, 2, 3, 4]));
//! let mut decoder = Decoder::default();
//! let config = Config::new(Role::Server);
//! let Ok(Decoded::Frame { consumed, event }) = decoder.decode(&mut bytes, &config) else { panic!() };
//! assert_eq!(event, Some(Event::Text("[\"ping\",1]")));
//! assert_eq!(consumed, 16);
//! ```

pub mod channel;
pub mod codes;
pub mod cursor;
pub mod deflate;
pub mod event_stream;
pub mod exposition;
pub mod fields;
pub mod gzip;
pub mod http;
pub mod lines;
pub mod native;
pub mod pieces;
pub mod receipt;
pub mod stamp;
pub mod transport;
pub mod websocket;
