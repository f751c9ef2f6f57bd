//! The instrument is tested: what a fake server does on purpose must come out as it was put in.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod backend;
mod chat;
mod feed_server;
mod feeds;
mod native_server;
mod plans;
mod rooms;
mod shapes;
