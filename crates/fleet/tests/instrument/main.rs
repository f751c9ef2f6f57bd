//! The instrument is tested: what a fake server does on purpose must come out as it was put in.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod backend;
mod bytes;
mod chat;
mod clocks;
mod compression;
mod feed_server;
mod feeders;
mod feeds;
mod foreign;
mod foreign_server;
mod hosts;
mod http2;
mod lanes;
mod measured;
mod native_server;
mod plans;
mod refusals;
mod rooms;
mod shapes;
mod sockets;
mod storms;
mod tls_front;
