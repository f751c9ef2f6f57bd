//! Network namespaces and the packet link between them: an emulated network with every packet counted.
//!
//! [`profile`] says what a network is like, [`direction`] is one way through it as a value without socket or clock,
//! [`acks`] decides likewise when receivers acknowledge, and [`network`] joins two namespaces by a pair of TUN interfaces
//! and carries the packets.

pub mod acks;
mod buffers;
pub mod capture;
mod carrier;
pub mod core_wait;
pub mod direction;
pub mod error;
mod flow;
pub mod loss;
pub mod namespace;
pub mod network;
pub mod packet;
pub mod profile;
pub mod rights;
pub mod totals;
mod tun;
