//! The table of dialects: the only place that knows them all.

use crate::client::ProtocolClient;
use crate::{
    atmosphere, bare, bayeux, centrifugo, ddp, mercure, nchan, primus, sails, signalr, socketio, socketio_0_9, sockjs,
};
use pushlab_wire::transport::Transport;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

macro_rules! dialects {
    ($($(#[$attribute:meta])* $name:ident: $client:ty, $headers:expr;)*) => {
        /// What a client speaks.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "lowercase")]
        pub enum Dialect {
            $($(#[$attribute])* $name),*
        }

        impl Dialect {
            /// Every dialect.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// Header fields of answers that its protocol clients want to see, in lower case.
            pub const fn wanted_headers(self) -> &'static [&'static str] {
                match self {
                    $(Self::$name => $headers),*
                }
            }

            /// A protocol client that has said nothing yet.
            pub fn protocol_client(self) -> Box<dyn ProtocolClient> {
                match self {
                    $(Self::$name => Box::new(<$client>::default())),*
                }
            }
        }
    };
}

dialects! {
    /// Raw frames and plain HTTP: the data and nothing else.
    Bare: bare::Bare, &[];
    /// Socket.IO 5 over Engine.IO 4, by events.
    SocketIo: socketio::SocketIo<socketio::Events>, &[];
    /// Socket.IO 0.9, by events.
    #[serde(rename = "socketio-0.9")]
    SocketIo09: socketio_0_9::SocketIo09, &[];
    /// Sails: requests over Socket.IO.
    Sails: socketio::SocketIo<sails::Requests>, &[];
    /// SockJS.
    SockJs: sockjs::SockJs, &[];
    /// Primus, over one of its transformers.
    Primus: primus::Primus, &[];
    /// The protocol of Meteor.
    Ddp: ddp::Ddp, &[];
    /// Bayeux: CometD and Faye.
    Bayeux: bayeux::Bayeux, &["set-cookie"];
    /// Atmosphere's broadcasters.
    Atmosphere: atmosphere::Atmosphere, &[atmosphere::TRACKING_ID];
    /// Centrifugo's JSON protocol.
    Centrifugo: centrifugo::Centrifugo, &[];
    /// Mercure.
    Mercure: mercure::Mercure, &[];
    /// nginx with nchan.
    Nchan: nchan::Nchan, &["etag", "last-modified"];
    /// SignalR's JSON protocol.
    Signalr: signalr::Signalr, &[];
}

impl Dialect {
    /// Whether publications go as frames on the WebSocket that receives; otherwise by POST on a second connection.
    pub fn publishes_in_frames(self, transport: Transport, how: &str) -> bool {
        match self {
            Self::Centrifugo => transport.is_bidirectional() && how != centrifugo::UNIDIRECTIONAL,
            Self::Nchan => false,
            _ => transport.is_bidirectional(),
        }
    }

    /// Whether a client can have its own message back alone.
    pub const fn has_echo(self) -> bool {
        !matches!(self, Self::Centrifugo | Self::Mercure | Self::Nchan)
    }

    /// The name used in files.
    pub fn name(self) -> String {
        serde_json::to_value(self).ok().and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default()
    }
}
