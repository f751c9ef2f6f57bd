//! The server over real sockets, with clients made of the wire's codecs.

mod delivery;
mod ending;
mod feed;
mod harness;
mod limits;
mod requests;
mod resume;
mod slow;
