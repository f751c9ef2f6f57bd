use std::{convert::Infallible, env};

use axum::{Router, serve::ListenerExt};
use serde_json::Value;
use socketioxide::{
    SocketIo,
    extract::{Data, SocketRef},
    handler::ConnectHandler,
};
use tokio::net::TcpListener;

const MAX_BUFFERED_PACKETS: usize = 16_384;

/// As middleware of the connection: its handler runs when the client already knows that it is connected, and a first
/// event that came sooner would be dropped.
async fn listen(socket: SocketRef) -> Result<(), Infallible> {
    socket.on("join", async |socket: SocketRef, Data(channel): Data<String>| {
        socket.join(channel.clone());
        socket.emit("joined", &channel).ok();
    });
    socket.on("pub", async |socket: SocketRef, Data((channel, data)): Data<(String, Value)>| {
        socket.within(channel).emit("msg", &data).await.ok();
    });
    socket.on("echo", async |socket: SocketRef, Data(data): Data<Value>| {
        socket.emit("echo", &data).ok();
    });
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Beyond its 128 packets, what is emitted to a client that is slow for a moment is dropped.
    let (layer, io) = SocketIo::builder().max_buffer_size(MAX_BUFFERED_PACKETS).build_layer();
    io.ns("/", (async || {}).with(listen));

    let address = format!("{}:{}", env::var("HOST")?, env::var("PORT")?);
    let listener = TcpListener::bind(address).await?;
    println!(r#"{{"listening":"{}"}}"#, listener.local_addr()?);
    let listener = listener.tap_io(|stream| {
        stream.set_nodelay(true).ok();
    });
    axum::serve(listener, Router::new().layer(layer)).await?;
    Ok(())
}
