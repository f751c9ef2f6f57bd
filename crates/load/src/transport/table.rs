//! Which transport is received how.

use super::{ReceiverVisitor, foreign, http_streaming, long_polling, polling, sse, websocket, websocket_polling};
use pushlab_wire::transport::Transport;
use pushlab_workload::plan::Speaks;

/// The table of transports: the only place that knows them all.
pub fn with_receiver<V: ReceiverVisitor>(transport: Transport, speaks: Option<&Speaks>, visitor: V) -> V::Output {
    if let Some(speaks) = speaks {
        return foreign::with_receiver(transport, speaks, visitor);
    }
    match transport {
        Transport::WebSocket => visitor.visit::<websocket::WebSocket>(),
        Transport::Sse => visitor.visit::<sse::Sse>(),
        Transport::HttpStreaming => visitor.visit::<http_streaming::HttpStreaming>(),
        Transport::LongPolling => visitor.visit::<long_polling::LongPolling>(),
        Transport::Polling => visitor.visit::<polling::Polling>(),
        Transport::WebSocketPolling => visitor.visit::<websocket_polling::WebSocketPolling>(),
    }
}
