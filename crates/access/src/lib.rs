//! Who may do what with which channels, and how much of it: the rules of an access file, the tokens by which clients say
//! who they are, the limits on what one of them may take up, and who is in a channel. It reads no clock, no file and no socket: whoever uses
//! it gives it the time, and the contents of what the file names.
//!
//! ```
//! use pushlab_access::{Access, Right};
//!
//! let text = r#"
//!     [[rule]]
//!     who = "anonymous"
//!     channels = ["news:*"]
//!     may = ["subscribe"]
//! "#;
//! let access = Access::read(text, "access.toml", &mut |_| unreachable!("it names no file"))?;
//! let stranger = access.anonymous();
//! assert!(stranger.may(Right::Subscribe, "news:sports"));
//! assert!(!stranger.may(Right::Publish, "news:sports"));
//! # Ok::<(), pushlab_access::AccessError>(())
//! ```

mod file;
#[cfg(test)]
mod fixtures;
mod keys;
mod ledger;
mod live;
mod pattern;
mod person;
pub mod presence;
pub mod proxies;
mod refusals;
mod ring_provider;
mod token;
mod unique;
mod written;

pub use file::{Access, AccessError, KeySet, NamedFile};
pub use keys::KeyError;
pub use ledger::{Holder, Ledger, LimitReached, Peer, Place, Quota};
pub use live::{LiveAccess, TICKET_S};
pub use pattern::{BadPattern, Pattern};
pub use person::{Person, Right};
pub use refusals::{Refusals, Untold};
pub use token::TokenError;
pub use written::Written;
