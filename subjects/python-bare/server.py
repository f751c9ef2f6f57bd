# Starlette on uvicorn with uvloop, httptools and websockets, which `uvicorn[standard]` takes too.
import asyncio
import os
from collections import defaultdict
from contextlib import contextmanager, suppress

import uvicorn
from starlette.applications import Starlette
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocketDisconnect

# What each subscriber has not been sent yet, by channel: texts and encoded events.
texts, events = defaultdict(set), defaultdict(set)


def publish(channel, data):
    for queue in texts[channel]:
        queue.put_nowait(data)
    if events[channel]:
        event = f"data: {data}\n\n".encode()
        for queue in events[channel]:
            queue.put_nowait(event)


@contextmanager
def subscribed(subscribers, channels):
    queue = asyncio.Queue()
    for channel in channels:
        subscribers[channel].add(queue)
    try:
        yield queue
    finally:
        for channel in channels:
            subscribers[channel].discard(queue)


async def send(websocket, queue):
    # Who is gone ends the receiving side, and with it this one.
    with suppress(WebSocketDisconnect, RuntimeError):
        while True:
            await websocket.send_text(await queue.get())


async def websocket_channels(websocket):
    query = websocket.query_params
    channels = query.getlist("channel")
    target = query.get("publish", channels[0] if channels else "")
    with subscribed(texts, channels) as queue:
        await websocket.accept()
        sender = asyncio.create_task(send(websocket, queue))
        try:
            async for text in websocket.iter_text():
                publish(target, text)
        finally:
            sender.cancel()


async def websocket_echo(websocket):
    await websocket.accept()
    async for text in websocket.iter_text():
        await websocket.send_text(text)


async def sse(request):
    async def stream():
        with subscribed(events, request.query_params.getlist("channel")) as queue:
            yield b":\n\n"
            while True:
                yield await queue.get()

    return StreamingResponse(stream(), media_type="text/event-stream", headers={"Cache-Control": "no-cache"})


async def post(request):
    publish(request.query_params["channel"], (await request.body()).decode())
    return Response(status_code=204)


async def echo(request):
    return Response(await request.body())


class Server(uvicorn.Server):
    async def startup(self, sockets=None):
        await super().startup(sockets=sockets)
        host, port = self.servers[0].sockets[0].getsockname()[:2]
        print(f'{{"listening":"{host}:{port}"}}', flush=True)


app = Starlette(
    routes=[
        WebSocketRoute("/ws", websocket_channels),
        WebSocketRoute("/ws/echo", websocket_echo),
        Route("/sse", sse),
        Route("/publish", post, methods=["POST"]),
        Route("/echo", echo, methods=["POST"]),
    ]
)
config = uvicorn.Config(
    app,
    host=os.environ.get("HOST", "127.0.0.1"),
    port=int(os.environ.get("PORT", "0")),
    log_level="warning",
    access_log=False,
    lifespan="off",
    backlog=4096,
    # Pings and deadlines would end clients that are silent or behind.
    ws_ping_interval=None,
    timeout_keep_alive=3600,
    timeout_graceful_shutdown=0,
    ws_per_message_deflate=False,
)
Server(config).run()
