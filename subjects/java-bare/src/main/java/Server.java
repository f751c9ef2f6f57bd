import io.undertow.Handlers;
import io.undertow.Undertow;
import io.undertow.UndertowOptions;
import io.undertow.server.HttpServerExchange;
import io.undertow.server.handlers.sse.ServerSentEventHandler;
import io.undertow.util.AttachmentKey;
import io.undertow.websockets.WebSocketProtocolHandshakeHandler;
import io.undertow.websockets.core.AbstractReceiveListener;
import io.undertow.websockets.core.BufferedTextMessage;
import io.undertow.websockets.core.WebSocketChannel;
import io.undertow.websockets.core.WebSockets;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Consumer;
import org.xnio.Options;

/** Undertow's own WebSockets and server-sent events. */
public final class Server {
  private static final AttachmentKey<Subscriber> SUBSCRIBER = AttachmentKey.create(Subscriber.class);
  private static final Map<String, Set<Subscriber>> CHANNELS = new HashMap<>();

  /** One message: as text, and encoded for all who get it as a frame. */
  private record Publication(String text, ByteBuffer bytes) {}

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

  private static String parameter(HttpServerExchange exchange, String name, String otherwise) {
    var values = exchange.getQueryParameters().get(name);
    return values == null ? otherwise : values.getFirst();
  }

  private static void publish(String channel, String data) {
    var publication = new Publication(data, ByteBuffer.wrap(data.getBytes(StandardCharsets.UTF_8)));
    synchronized (CHANNELS) {
      CHANNELS.getOrDefault(channel, Set.of()).forEach(subscriber -> subscriber.deliver(publication));
    }
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
