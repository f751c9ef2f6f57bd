//! The server over real sockets, with clients made of the wire's codecs.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod access;
mod account;
mod addresses;
mod application;
mod compression;
mod delivery;
mod ending;
mod feed;
mod handover;
mod harness;
mod http2;
mod limits;
mod metrics;
mod recording;
mod replay;
mod requests;
mod resume;
mod site;
mod slow;
#[path = "../../../wire/src/exposition/strict.rs"]
mod strict;
mod tls;
mod tokens;
