# uWebSockets through its Python binding: publish/subscribe is uWebSockets' own.
import os

from socketify import App, AppListenOptions, CompressOptions

app = App()
# Messages of at least so many characters are compressed, each by itself.
COMPRESSION_FROM = int(os.environ.get("COMPRESSION_FROM", "0"))


def upgrade(echo):
    def handler(res, req, context):
        query = req.get_queries() or {}
        channels = query.get("channel", [])
        target = query.get("publish", channels[:1] or [""])[0]
        key = req.get_header("sec-websocket-key")
        protocol = req.get_header("sec-websocket-protocol")
        extensions = req.get_header("sec-websocket-extensions")
        res.upgrade(key, protocol, extensions, context, (channels, None if echo else target))

    return handler


def subscribe(ws):
    for channel in ws.get_user_data()[0]:
        ws.subscribe(channel)


def message(ws, data, opcode):
    target = ws.get_user_data()[1]
    compress = 0 < COMPRESSION_FROM <= len(data)
    if target is None:
        ws.send(data, opcode, compress)
    else:
        app.publish(target, data, opcode, compress)


for path, echo in (("/ws", False), ("/ws/echo", True)):
    app.ws(
        path,
        {
            "compression": CompressOptions.SHARED_COMPRESSOR if COMPRESSION_FROM else CompressOptions.DISABLED,
            "idle_timeout": 960,
            # What a client is behind by more than this is not sent to it; the default are four messages of 16 KiB.
            "max_backpressure": 16 << 20,
            "upgrade": upgrade(echo),
            "open": subscribe,
            "message": message,
        },
    )


def listening(options):
    print(f'{{"listening":"{host}:{options.port}"}}', flush=True)


host, port = os.environ.get("HOST", "127.0.0.1"), int(os.environ.get("PORT", "0"))
app.listen(AppListenOptions(port=port, host=host), listening)
# libuv waits in the kernel. `app.run()` asks it 10,000 times after each event whether there is another: for coroutines,
# of which there are none here.
app.loop.uv_loop.run()
