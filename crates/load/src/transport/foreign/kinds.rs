//! Clients of other people's servers, by when they ask and how they send.

use crate::transport::{Asking, Uplink};
use std::fmt::Debug;

/// When clients ask and how they send: what the loop must know when it is compiled.
pub trait Kind: Debug + Send + 'static {
    /// When they ask.
    const ASKING: Asking;
    /// How they send.
    const UPLINK: Uplink;
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident $asking:ident $uplink:ident;)*) => {
        $($(#[$doc])*
        #[derive(Debug)]
        pub struct $name;
        impl Kind for $name {
            const ASKING: Asking = Asking::$asking;
            const UPLINK: Uplink = Uplink::$uplink;
        })*
    };
}

kinds! {
    /// A WebSocket, both ways.
    TwoWay Never Frames;
    /// The server pushes, and clients post.
    Pushed Never Posts;
    /// Long polling.
    Held AtOnce Posts;
    /// Polling.
    Asked AtInterval Posts;
}
