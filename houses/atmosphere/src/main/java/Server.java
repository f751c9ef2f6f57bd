import java.io.IOException;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.PropertyNamingStrategies;
import jakarta.servlet.ServletException;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import org.atmosphere.cache.UUIDBroadcasterCache;
import org.atmosphere.client.TrackMessageSizeInterceptor;
import org.atmosphere.cpr.ApplicationConfig;
import org.atmosphere.cpr.AtmosphereFramework;
import org.atmosphere.cpr.AtmosphereRequest;
import org.atmosphere.cpr.AtmosphereResource;
import org.atmosphere.cpr.AtmosphereResourceEvent;
import org.atmosphere.cpr.AtmosphereResourceEventListenerAdapter.OnDisconnect;
import org.atmosphere.cpr.AtmosphereServlet;
import org.atmosphere.cpr.Broadcaster;
import org.atmosphere.handler.AbstractReflectorAtmosphereHandler;
import org.atmosphere.util.SimpleBroadcaster;
import org.eclipse.jetty.ee10.servlet.ServletContextHandler;
import org.eclipse.jetty.ee10.servlet.ServletHolder;
import org.eclipse.jetty.ee10.websocket.jakarta.server.config.JakartaWebSocketServletContainerInitializer;
import org.eclipse.jetty.server.ServerConnector;

/** The auction house on Atmosphere: a GET hears the changes, a POST or a message of a WebSocket is a call. */
public final class Server extends AbstractReflectorAtmosphereHandler {
    private static final String PATH = "/house";
    private static final long POLL_MS = 25_000;
    /** Who has not polled or called for so long is gone. */
    private static final long GONE_MS = 60_000;
    private static final int MAX_CALL_CHARACTERS = 64 * 1024;
    /** How long one client may hold up all others. */
    private static final int WRITE_MS = 5_000;

    private static final class Connection {
        final House.Session session = new House.Session();
        final boolean polls;
        volatile long seenNs = System.nanoTime();
        /** What waits for a change, and since when; guarded by `order`. */
        AtmosphereResource poll;
        long polledNs;

        Connection(boolean polls) {
            this.polls = polls;
        }

        boolean isGone() {
            return polls && isPast(seenNs, GONE_MS);
        }

        void endLongPoll() {
            if (poll != null && isPast(polledNs, POLL_MS)) {
                poll.resume();
                poll = null;
            }
        }

        private static boolean isPast(long sinceNs, long ms) {
            return System.nanoTime() - sinceNs > TimeUnit.MILLISECONDS.toNanos(ms);
        }
    }

    private final ObjectMapper json =
            new ObjectMapper().setPropertyNamingStrategy(PropertyNamingStrategies.SNAKE_CASE);
    /** By what Atmosphere calls its clients: the requests of one that polls have nothing else in common. */
    private final Map<String, Connection> connections = new ConcurrentHashMap<>();
    private final ScheduledExecutorService teller = Executors.newSingleThreadScheduledExecutor();
    private final House house = new House(change -> teller.execute(() -> tell(change)));
    private Broadcaster everybody;
    /**
     * Who suspends a request holds it, and who resumes one. Between a look into the cache and the entry among those
     * who hear, a change would go to neither, and come after the next one; and what is resumed before Atmosphere has
     * done with the request is written twice or never ends (Servlet30CometSupport.service).
     */
    private final Object order = new Object();

    void start(AtmosphereFramework framework) {
        everybody = framework.getBroadcasterFactory().lookup(PATH, true);
        teller.scheduleWithFixedDelay(house::endDue, 100, 100, TimeUnit.MILLISECONDS);
        teller.scheduleWithFixedDelay(this::sweep, 1, 1, TimeUnit.SECONDS);
    }

    /**
     * Ends what has waited long enough: after a timeout of the container's, Atmosphere would take the client's next
     * poll for the one that ended, as both have the client's name (AtmosphereResourceImpl._destroy).
     */
    private void sweep() {
        synchronized (order) {
            connections.values().forEach(Connection::endLongPoll);
        }
        connections.values().removeIf(Connection::isGone);
    }

    @Override
    public void onRequest(AtmosphereResource resource) throws IOException {
        resource.getResponse().setCharacterEncoding("UTF-8");
        if (resource.getRequest().getMethod().equals("GET")) {
            synchronized (order) {
                hear(resource);
            }
        } else {
            resource.write(text(answer(resource)));
        }
    }

    private void hear(AtmosphereResource resource) {
        var uuid = resource.uuid();
        var polls = resource.transport() == AtmosphereResource.TRANSPORT.LONG_POLLING;
        var known = connections.get(uuid);
        if (known == null) {
            connections.put(uuid, new Connection(polls));
            if (polls) { // answered at once, or the client would know of no connection before the first change
                everybody.getBroadcasterConfig().getBroadcasterCache().cacheCandidate(everybody.getID(), uuid);
                return;
            }
        } else {
            known.seenNs = known.polledNs = System.nanoTime();
            known.poll = polls ? resource : null;
        }
        resource.addEventListener(new OnDisconnect() {
            @Override
            public void onDisconnect(AtmosphereResourceEvent event) {
                connections.remove(uuid);
            }
        });
        resource.setBroadcaster(everybody).suspend();
    }

    private void tell(House.Change change) {
        synchronized (order) {
            everybody.broadcast(text(List.of("change", change)));
        }
    }

    private Object answer(AtmosphereResource resource) throws IOException {
        var call = parsed(body(resource.getRequest()));
        var connection = connections.get(resource.uuid());
        if (connection == null || !call.path(0).asText().equals("call") || !call.path(1).isNumber()
                || !call.path(2).isTextual() || call.size() != 4) {
            return Arrays.asList("answer", null, new House.Refusal("bad-request", "that is not a call").answer());
        }
        connection.seenNs = System.nanoTime();
        return List.of("answer", call.get(1), house.call(connection.session, call.get(2).textValue(), call.get(3)));
    }

    private JsonNode parsed(String text) {
        try {
            return json.readTree(text);
        } catch (JsonProcessingException notJson) {
            return json.nullNode();
        }
    }

    private String text(Object message) {
        try {
            return json.writeValueAsString(message);
        } catch (JsonProcessingException impossible) {
            throw new AssertionError("records and maps can be written", impossible);
        }
    }

    /** Nothing, which is no call, if it is too long. */
    private static String body(AtmosphereRequest request) throws IOException {
        var characters = new char[MAX_CALL_CHARACTERS];
        var reader = request.getReader();
        var length = 0;
        int read;
        while (length < characters.length && (read = reader.read(characters, length, characters.length - length)) > 0) {
            length += read;
        }
        return length < characters.length ? new String(characters, 0, length) : "";
    }

    public static void main(String[] arguments) throws Exception {
        var server = new org.eclipse.jetty.server.Server();
        var connector = new ServerConnector(server);
        connector.setHost(System.getenv("HOST"));
        connector.setPort(Integer.parseInt(System.getenv("PORT")));
        connector.setIdleTimeout(120_000);
        server.addConnector(connector);

        var context = new ServletContextHandler("/");
        server.setHandler(context);
        JakartaWebSocketServletContainerInitializer.configure(context, null);
        var house = new Server();
        var atmosphere = new AtmosphereServlet() {
            @Override
            public void doGet(HttpServletRequest request, HttpServletResponse response)
                    throws IOException, ServletException {
                synchronized (house.order) {
                    super.doGet(request, response);
                }
            }
        };
        var servlet = new ServletHolder(atmosphere);
        servlet.setAsyncSupported(true);
        servlet.setInitOrder(1);
        // The default broadcaster may write to a client by two threads, which changes the order.
        servlet.setInitParameter(ApplicationConfig.BROADCASTER_CLASS, SimpleBroadcaster.class.getName());
        servlet.setInitParameter(ApplicationConfig.BROADCASTER_CACHE, UUIDBroadcasterCache.class.getName());
        servlet.setInitParameter(ApplicationConfig.WEBSOCKET_IDLETIME, "120000");
        servlet.setInitParameter(ApplicationConfig.WEBSOCKET_MAXTEXTSIZE, String.valueOf(MAX_CALL_CHARACTERS));
        servlet.setInitParameter(ApplicationConfig.WEBSOCKET_WRITE_TIMEOUT, String.valueOf(WRITE_MS));
        context.addServlet(servlet, "/*");
        atmosphere.framework().addAtmosphereHandler(PATH, house, List.of(new TrackMessageSizeInterceptor()));

        server.start();
        house.start(atmosphere.framework());
        System.out.println("{\"listening\":\"" + connector.getHost() + ":" + connector.getLocalPort() + "\"}");
    }
}
