//! Settings (RFC 9113, section 6.5; RFC 8441, section 3).

use crate::event::ConnectionError;
use crate::frame::{Code, MAX, MAX_FRAME_BYTES};
use crate::hpack::INITIAL_TABLE_BYTES;

const HEADER_TABLE_SIZE: u16 = 1;
const ENABLE_PUSH: u16 = 2;
const MAX_CONCURRENT_STREAMS: u16 = 3;
const INITIAL_WINDOW_SIZE: u16 = 4;
const MAX_FRAME_SIZE: u16 = 5;
const MAX_HEADER_LIST_SIZE: u16 = 6;
const ENABLE_CONNECT_PROTOCOL: u16 = 8;

/// The window that everything begins with.
pub const FIRST_WINDOW: u32 = 65_535;
/// Entries of one frame that are read: as many as there are frames for a peer that says each setting twice.
const MAX_ENTRIES: usize = 32;

/// The peer's, as far as they concern us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    pub table_bytes: u32,
    pub max_streams: u32,
    pub window: u32,
    pub frame_bytes: u32,
    pub takes_connect: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            table_bytes: INITIAL_TABLE_BYTES,
            max_streams: u32::MAX,
            window: FIRST_WINDOW,
            frame_bytes: MAX_FRAME_BYTES as u32,
            takes_connect: false,
        }
    }
}

impl Settings {
    /// Takes over what a frame says. `smallest_table` becomes the smallest size of the table that it names.
    pub fn update(&mut self, payload: &[u8], smallest_table: &mut u32) -> Result<(), ConnectionError> {
        if !payload.len().is_multiple_of(6) {
            return Err(ConnectionError::new(Code::FrameSize, "SETTINGS whose length is not a multiple of 6"));
        }
        if payload.len() > 6 * MAX_ENTRIES {
            return Err(ConnectionError::new(Code::EnhanceYourCalm, "SETTINGS with too many entries"));
        }
        for entry in payload.chunks_exact(6) {
            let name = u16::from_be_bytes([entry[0], entry[1]]);
            let value = u32::from_be_bytes([entry[2], entry[3], entry[4], entry[5]]);
            match name {
                HEADER_TABLE_SIZE => {
                    self.table_bytes = value;
                    *smallest_table = value.min(*smallest_table);
                }
                ENABLE_PUSH if value > 1 => return Err(bad("SETTINGS_ENABLE_PUSH must be 0 or 1")),
                MAX_CONCURRENT_STREAMS => self.max_streams = value,
                INITIAL_WINDOW_SIZE if value > MAX => {
                    return Err(ConnectionError::new(
                        Code::FlowControl,
                        "SETTINGS_INITIAL_WINDOW_SIZE above 2,147,483,647",
                    ));
                }
                INITIAL_WINDOW_SIZE => self.window = value,
                MAX_FRAME_SIZE if !(MAX_FRAME_BYTES as u32..1 << 24).contains(&value) => {
                    return Err(bad("SETTINGS_MAX_FRAME_SIZE must be between 16,384 and 16,777,215"));
                }
                MAX_FRAME_SIZE => self.frame_bytes = value,
                ENABLE_CONNECT_PROTOCOL if value > 1 => {
                    return Err(bad("SETTINGS_ENABLE_CONNECT_PROTOCOL must be 0 or 1"));
                }
                ENABLE_CONNECT_PROTOCOL if value == 0 && self.takes_connect => {
                    return Err(bad("SETTINGS_ENABLE_CONNECT_PROTOCOL must not change from 1 to 0"));
                }
                ENABLE_CONNECT_PROTOCOL => self.takes_connect = value == 1,
                _ => {}
            }
        }
        Ok(())
    }
}

fn bad(reason: &'static str) -> ConnectionError {
    ConnectionError::new(Code::Protocol, reason)
}

/// Ours, as a frame's payload.
pub fn encode(is_server: bool, limits: &crate::limits::Limits) -> Vec<u8> {
    let mut payload = Vec::new();
    let own = if is_server {
        [(MAX_CONCURRENT_STREAMS, limits.max_streams), (ENABLE_CONNECT_PROTOCOL, 1)]
    } else {
        [(ENABLE_PUSH, 0), (MAX_CONCURRENT_STREAMS, 0)]
    };
    let both = [(INITIAL_WINDOW_SIZE, limits.stream_window), (MAX_HEADER_LIST_SIZE, limits.max_head_bytes)];
    for (name, value) in own.into_iter().chain(both) {
        payload.extend_from_slice(&name.to_be_bytes());
        payload.extend_from_slice(&value.to_be_bytes());
    }
    payload
}

#[cfg(test)]
mod tests {
    use super::*;

    fn update(entries: &[(u16, u32)]) -> Result<Settings, Code> {
        let mut payload = Vec::new();
        for (name, value) in entries {
            payload.extend_from_slice(&name.to_be_bytes());
            payload.extend_from_slice(&value.to_be_bytes());
        }
        let mut settings = Settings::default();
        let mut smallest = u32::MAX;
        settings.update(&payload, &mut smallest).map(|()| settings).map_err(|error| error.code)
    }

    #[test]
    fn settings_are_taken_over_in_their_order() {
        let settings =
            update(&[(1, 10), (1, 20), (2, 0), (3, 5), (4, 6), (5, 20_000), (6, 7), (8, 1), (99, 1)]).unwrap();
        let expected =
            Settings { table_bytes: 20, max_streams: 5, window: 6, frame_bytes: 20_000, takes_connect: true };
        assert_eq!(settings, expected);
    }

    #[test]
    fn settings_that_cannot_be_are_refused() {
        for (name, value, code) in [
            (2, 2, Code::Protocol),
            (4, 1 << 31, Code::FlowControl),
            (5, 16_383, Code::Protocol),
            (5, 1 << 24, Code::Protocol),
            (8, 2, Code::Protocol),
        ] {
            assert_eq!(update(&[(name, value)]), Err(code), "{name}");
        }
        assert_eq!(update(&[(8, 1), (8, 0)]), Err(Code::Protocol));
        assert_eq!(update(&[(9, 0); MAX_ENTRIES + 1]), Err(Code::EnhanceYourCalm));
        let mut settings = Settings::default();
        assert_eq!(settings.update(&[0; 5], &mut 0).unwrap_err().code, Code::FrameSize);
    }
}
