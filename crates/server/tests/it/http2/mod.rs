//! HTTP/2: many exchanges on one connection.

mod bodies;
mod ending;
mod floods;
mod slow;
mod streams;
