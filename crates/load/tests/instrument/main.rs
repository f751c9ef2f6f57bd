//! The instrument is tested: what a fake server does on purpose must come out as it was put in.

mod backend;
mod chat;
mod feed_server;
mod feeds;
mod native_server;
mod plans;
