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

HISTORY_MAX = 1000

# What each subscriber has not been sent yet, by channel: texts and encoded events.
texts, events = defaultdict(set), defaultdict(set)
# The futures of those who wait for the next message, by channel.
polls = defaultdict(set)
# The last messages with their channels. `count` is the number of the newest; number n is at (n - 1) % HISTORY_MAX.
history = [None] * HISTORY_MAX
count = 0


def publish(channel, data):
    global count
    history[count % HISTORY_MAX] = channel, data
    count += 1
    for queue in texts[channel]:
        queue.put_nowait(data)
    if events[channel]:
        event = f"data: {data}\n\n".encode()
        for queue in events[channel]:
            queue.put_nowait(event)
    if polls[channel]:
        reply = f"[{count},{data}]".encode()
        for future in polls[channel]:
            # Who has been answered leaves in a later turn; more messages may come before that.
            if not future.done():
                future.set_result(reply)


@contextmanager
def subscribed(subscribers, channels, subscriber):
    for channel in channels:
        subscribers[channel].add(subscriber)
    try:
        yield subscriber
    finally:
        for channel in channels:
            subscribers[channel].discard(subscriber)


async def send(websocket, queue):
    # Who is gone ends the receiving side, and with it this one.
    with suppress(WebSocketDisconnect, RuntimeError):
        while True:
            await websocket.send_text(await queue.get())


async def websocket_channels(websocket):
    query = websocket.query_params
    channels = query.getlist("channel")
    target = query.get("publish", channels[0] if channels else "")
    with subscribed(texts, channels, asyncio.Queue()) as queue:
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
        with subscribed(events, request.query_params.getlist("channel"), asyncio.Queue()) as queue:
            yield b":\n\n"
            while True:
                yield await queue.get()

    return StreamingResponse(stream(), media_type="text/event-stream", headers={"Cache-Control": "no-cache"})


def missed(channels, after):
    kept = (history[n % HISTORY_MAX] for n in range(max(after, count - HISTORY_MAX, 0), count))
    return [data for channel, data in kept if channel in channels]


async def gone(request):
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def held(request, channels, wait):
    # The next reply, or None if there is none in time, or nobody left to get it.
    with subscribed(polls, channels, asyncio.get_running_loop().create_future()) as future:
        leaving = asyncio.create_task(gone(request))
        await asyncio.wait((future, leaving), timeout=wait, return_when=asyncio.FIRST_COMPLETED)
        leaving.cancel()
        return future.result() if future.done() else None


async def poll(request):
    query = request.query_params
    channels, after = query.getlist("channel"), int(query.get("after", count))
    data, reply = missed(channels, after), None
    if not data and "after" in query and "wait" in query:
        reply = await held(request, channels, float(query["wait"]))
    return Response(reply or f"[{','.join([str(count), *data])}]", media_type="application/json")


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
        Route("/poll", poll),
        Route("/publish", post, methods=["POST"]),
        Route("/echo", echo, methods=["POST"]),
    ]
)
config = uvicorn.Config(
    app,
    host=os.environ.get("HOST", "127.0.0.1"),
    port=int(os.environ.get("PORT", "0")),
    ssl_certfile=os.environ.get("TLS_CERTIFICATE"),
    ssl_keyfile=os.environ.get("TLS_KEY"),
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
