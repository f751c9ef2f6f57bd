import io.undertow.Handlers;
import io.undertow.Undertow;
import io.undertow.UndertowOptions;
import io.undertow.server.HttpServerExchange;
import io.undertow.server.handlers.sse.ServerSentEventHandler;
import io.undertow.server.protocol.http.HttpServerConnection;
import io.undertow.util.AttachmentKey;
import io.undertow.util.Headers;
import io.undertow.util.SameThreadExecutor;
import io.undertow.websockets.WebSocketProtocolHandshakeHandler;
import io.undertow.websockets.core.AbstractReceiveListener;
import io.undertow.websockets.core.BufferedTextMessage;
import io.undertow.websockets.core.WebSocketChannel;
import io.undertow.websockets.core.WebSockets;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.xnio.IoUtils;
import org.xnio.Options;
import org.xnio.XnioExecutor;
import org.xnio.conduits.ConduitStreamSourceChannel;

/** Undertow's own WebSockets and server-sent events, and long polls whose exchanges are dispatched. */
public final class Server {
  private static final AttachmentKey<Subscriber> SUBSCRIBER = AttachmentKey.create(Subscriber.class);
  private static final Map<String, Set<Subscriber>> CHANNELS = new HashMap<>();

  // The lock of CHANNELS guards these too.
  private static final Map<String, Set<Poll>> POLLS = new HashMap<>();
  /** The last publications: the one numbered n is at (n - 1) % length, {@code count} is the number of the newest. */
  private static final Kept[] HISTORY = new Kept[1000];
  private static long count;

  /** One message: as text, and encoded for all who get it as a frame. */
  private record Publication(String text, ByteBuffer bytes) {}

  private record Kept(String channel, String text) {}

  /**
   * Undertow answers before it hands the connection over, and the client counts as subscribed from that answer on: what
   * is published between is kept.
   */
  private static final class Subscriber {
    private final Collection<String> channels;
    private final String target;
    private List<Publication> early = new ArrayList<>();
    private Consumer<Publication> sink;

    Subscriber(HttpServerExchange exchange) {
      channels = exchange.getQueryParameters().getOrDefault("channel", new ArrayDeque<>());
      target = parameter(exchange, "publish", parameter(exchange, "channel", ""));
    }

    synchronized void open(Consumer<Publication> sink) {
      this.sink = sink;
      early.forEach(sink);
      early = null;
    }

    synchronized void deliver(Publication publication) {
      if (sink == null) early.add(publication);
      else sink.accept(publication);
    }
  }

  /** A poll that is held. Whoever takes its timer away answers it, on the I/O thread of its connection. */
  private static final class Poll {
    private final HttpServerExchange exchange;
    private final Collection<String> channels;
    private final XnioExecutor.Key timer;

    Poll(HttpServerExchange exchange, Collection<String> channels, long after, long seconds) {
      this.exchange = exchange;
      this.channels = channels;
      timer = exchange.getIoThread().executeAfter(() -> poll(exchange, channels, after, 0), seconds, TimeUnit.SECONDS);
      // Also when the client is gone.
      exchange.addExchangeCompleteListener(
          (ended, next) -> {
            timer.remove();
            synchronized (CHANNELS) {
              leave();
            }
            next.proceed();
          });
    }

    void join() {
      channels.forEach(channel -> POLLS.computeIfAbsent(channel, name -> new HashSet<>()).add(this));
    }

    void leave() {
      for (var channel : channels) {
        var polls = POLLS.get(channel);
        if (polls != null) polls.remove(this);
      }
    }

    void answer(ByteBuffer reply) {
      exchange
          .getIoThread()
          .execute(
              () -> {
                if (timer.remove()) exchange.getResponseSender().send(reply.duplicate());
              });
    }
  }

  private static String parameter(HttpServerExchange exchange, String name, String otherwise) {
    var values = exchange.getQueryParameters().get(name);
    return values == null ? otherwise : values.getFirst();
  }

  private static void publish(String channel, String data) {
    var publication = new Publication(data, ByteBuffer.wrap(data.getBytes(StandardCharsets.UTF_8)));
    synchronized (CHANNELS) {
      HISTORY[(int) (count++ % HISTORY.length)] = new Kept(channel, data);
      CHANNELS.getOrDefault(channel, Set.of()).forEach(subscriber -> subscriber.deliver(publication));
      var polls = POLLS.remove(channel);
      if (polls != null) {
        var reply = ByteBuffer.wrap(("[" + count + "," + data + "]").getBytes(StandardCharsets.UTF_8));
        for (var poll : polls) {
          poll.leave();
          poll.answer(reply);
        }
      }
    }
  }

  /** What was published in these channels since the publication of that number, with a comma before each. */
  private static String missed(Collection<String> channels, long after) {
    var missed = new StringBuilder();
    for (var n = Math.max(after, Math.max(0, count - HISTORY.length)); n < count; n++) {
      var kept = HISTORY[(int) (n % HISTORY.length)];
      if (channels.contains(kept.channel())) missed.append(',').append(kept.text());
    }
    return missed.toString();
  }

  private static void poll(HttpServerExchange exchange) {
    exchange.getResponseHeaders().put(Headers.CONTENT_TYPE, "application/json");
    var channels = exchange.getQueryParameters().getOrDefault("channel", new ArrayDeque<>());
    var after = parameter(exchange, "after", null);
    // Who does not say what it has seen asks only where the end is.
    if (after == null) poll(exchange, channels, Long.MAX_VALUE, 0);
    else poll(exchange, channels, Long.parseLong(after), Long.parseLong(parameter(exchange, "wait", "0")));
  }

  private static void poll(HttpServerExchange exchange, Collection<String> channels, long after, long seconds) {
    String reply;
    synchronized (CHANNELS) {
      var missed = missed(channels, after);
      if (missed.isEmpty() && seconds > 0) {
        new Poll(exchange, channels, after, seconds).join();
        watch((HttpServerConnection) exchange.getConnection());
        return;
      }
      reply = "[" + count + missed + "]";
    }
    exchange.getResponseSender().send(reply);
  }

  /** Undertow does not read while an exchange is under way, and so would not see that the client of a poll is gone. */
  private static void watch(HttpServerConnection connection) {
    var source = connection.getChannel().getSourceChannel();
    source.setReadListener(channel -> readAhead(connection, channel));
    source.resumeReads();
  }

  private static void readAhead(HttpServerConnection connection, ConduitStreamSourceChannel source) {
    var ahead = connection.getByteBufferPool().allocate();
    var size = -1;
    try {
      size = source.read(ahead.getBuffer());
    } catch (IOException reset) {
      // Gone as well.
    }
    if (size > 0) {
      // The next request: Undertow takes it when this one is answered.
      ahead.getBuffer().flip();
      connection.ungetRequestBytes(ahead);
      source.suspendReads();
      return;
    }
    ahead.close();
    if (size < 0) IoUtils.safeClose(connection);
  }

  private static Subscriber join(HttpServerExchange exchange) {
    var subscriber = new Subscriber(exchange);
    synchronized (CHANNELS) {
      for (var channel : subscriber.channels) {
        CHANNELS.computeIfAbsent(channel, name -> new LinkedHashSet<>()).add(subscriber);
      }
    }
    exchange.putAttachment(SUBSCRIBER, subscriber);
    // Who is gone before the connection is handed over has nothing to close.
    exchange.addExchangeCompleteListener(
        (ended, next) -> {
          if (!ended.isUpgrade()) leave(subscriber);
          next.proceed();
        });
    return subscriber;
  }

  private static void leave(Subscriber subscriber) {
    synchronized (CHANNELS) {
      subscriber.channels.forEach(channel -> CHANNELS.get(channel).remove(subscriber));
    }
  }

  private static void receive(WebSocketChannel channel, Consumer<String> receiver) {
    channel
        .getReceiveSetter()
        .set(
            new AbstractReceiveListener() {
              @Override
              protected void onFullTextMessage(WebSocketChannel channel, BufferedTextMessage message) {
                receiver.accept(message.getData());
              }
            });
    channel.resumeReceives();
  }

  private static WebSocketProtocolHandshakeHandler websocket() {
    return Handlers.websocket(
        (exchange, channel) -> {
          var subscriber = exchange.getAttachment(SUBSCRIBER);
          channel.addCloseTask(closed -> leave(subscriber));
          subscriber.open(publication -> WebSockets.sendText(publication.bytes().duplicate(), channel, null));
          receive(channel, data -> publish(subscriber.target, data));
        });
  }

  private static WebSocketProtocolHandshakeHandler websocketEcho() {
    return Handlers.websocket(
        (exchange, channel) -> receive(channel, data -> WebSockets.sendText(data, channel, null)));
  }

  public static void main(String[] arguments) {
    var host = System.getenv().getOrDefault("HOST", "127.0.0.1");
    var port = Integer.parseInt(System.getenv().getOrDefault("PORT", "0"));
    var websocket = websocket();
    var routes = Handlers.path();
    routes.addExactPath(
        "/ws",
        exchange -> {
          join(exchange);
          websocket.handleRequest(exchange);
        });
    routes.addExactPath("/ws/echo", websocketEcho());
    routes.addExactPath(
        "/sse",
        exchange -> {
          var subscriber = join(exchange);
          var events =
              new ServerSentEventHandler(
                  (connection, lastEventId) -> {
                    connection.addCloseTask(closed -> leave(subscriber));
                    subscriber.open(publication -> connection.send(publication.text()));
                  });
          events.handleRequest(exchange);
        });
    // Dispatched, an exchange does not end with its handler.
    routes.addExactPath("/poll", exchange -> exchange.dispatch(SameThreadExecutor.INSTANCE, () -> poll(exchange)));
    routes.addExactPath(
        "/publish",
        posted ->
            posted.getRequestReceiver().receiveFullString(
                (exchange, data) -> {
                  publish(parameter(exchange, "channel", ""), data);
                  exchange.setStatusCode(204).endExchange();
                },
                StandardCharsets.UTF_8));
    routes.addExactPath(
        "/echo",
        posted ->
            posted.getRequestReceiver().receiveFullBytes(
                (exchange, data) -> exchange.getResponseSender().send(ByteBuffer.wrap(data))));
    var undertow =
        Undertow.builder()
            .addHttpListener(port, host)
            .setHandler(routes)
            // Thousands come at once, and post now and then.
            .setSocketOption(Options.BACKLOG, 4096)
            .setServerOption(UndertowOptions.NO_REQUEST_TIMEOUT, 3_600_000)
            .build();
    undertow.start();
    var address = (InetSocketAddress) undertow.getListenerInfo().get(0).getAddress();
    System.out.printf(
        "{\"listening\":\"%s:%d\"}%n", address.getAddress().getHostAddress(), address.getPort());
  }
}
