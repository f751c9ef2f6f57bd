import java.io.IOException;
import java.util.ArrayList;

import org.atmosphere.cpr.ApplicationConfig;
import org.atmosphere.cpr.AtmosphereResource;
import org.atmosphere.cpr.AtmosphereServlet;
import org.atmosphere.cpr.Broadcaster;
import org.atmosphere.handler.AbstractReflectorAtmosphereHandler;
import org.atmosphere.interceptor.PaddingAtmosphereInterceptor;
import org.eclipse.jetty.ee10.servlet.ServletContextHandler;
import org.eclipse.jetty.ee10.servlet.ServletHolder;
import org.eclipse.jetty.ee10.websocket.jakarta.server.config.JakartaWebSocketServletContainerInitializer;
import org.eclipse.jetty.server.ServerConnector;

/** GET /chat/a,b suspends at two broadcasters, POST /chat/a broadcasts, POST /echo answers its sender. */
public final class Server extends AbstractReflectorAtmosphereHandler {
    private static final String GREETING = "subscribed\n"; // Atmosphere itself confirms nothing
    private static final long POLL_MS = 25_000;

    @Override
    public void onRequest(AtmosphereResource resource) throws IOException {
        var request = resource.getRequest();
        var path = request.getPathInfo();
        var broadcasters = resource.getAtmosphereConfig().getBroadcasterFactory();
        if (request.getMethod().equals("GET")) {
            var isNew = "0".equals(request.getHeader("X-Atmosphere-tracking-id"));
            var isPoll = resource.transport() == AtmosphereResource.TRANSPORT.LONG_POLLING;
            var channels = new ArrayList<Broadcaster>();
            for (var name : path.substring("/chat/".length()).split(",")) {
                channels.add(broadcasters.lookup(name, true));
            }
            if (isNew && isPoll) { // what is published from now on waits for its next poll
                for (var channel : channels) {
                    channel.getBroadcasterConfig().getBroadcasterCache().cacheCandidate(channel.getID(), resource.uuid());
                }
                resource.write(GREETING);
                return;
            }
            resource.setBroadcaster(channels.get(0)).suspend(isPoll ? POLL_MS : -1);
            for (var channel : channels.subList(1, channels.size())) {
                channel.addAtmosphereResource(resource);
            }
            if (isNew) {
                channels.get(0).broadcast(GREETING, resource);
            }
            return;
        }
        var message = request.getReader().readLine() + "\n"; // a newline ends each message of a stream
        if (path.equals("/echo")) {
            resource.write(message);
        } else {
            broadcasters.lookup(path.substring("/chat/".length()), true).broadcast(message);
        }
    }

    public static void main(String[] arguments) throws Exception {
        var server = new org.eclipse.jetty.server.Server();
        var connector = new ServerConnector(server);
        connector.setHost(System.getenv("HOST"));
        connector.setPort(Integer.parseInt(System.getenv("PORT")));
        connector.setIdleTimeout(120_000);
        connector.setAcceptQueueSize(4096);
        server.addConnector(connector);

        var context = new ServletContextHandler("/");
        server.setHandler(context);
        JakartaWebSocketServletContainerInitializer.configure(context, null);
        var atmosphere = new AtmosphereServlet();
        var servlet = new ServletHolder(atmosphere);
        servlet.setAsyncSupported(true);
        servlet.setInitOrder(1);
        servlet.setInitParameter(ApplicationConfig.WEBSOCKET_IDLETIME, "120000");
        servlet.setInitParameter(ApplicationConfig.BROADCASTER_CACHE, "org.atmosphere.cache.UUIDBroadcasterCache");
        servlet.setInitParameter(ApplicationConfig.DISABLE_ATMOSPHEREINTERCEPTORS, PaddingAtmosphereInterceptor.class.getName());
        context.addServlet(servlet, "/*");
        var handler = new Server();
        atmosphere.framework().addAtmosphereHandler("/chat/*", handler).addAtmosphereHandler("/echo", handler);

        server.start();
        System.out.println("{\"listening\":\"" + connector.getHost() + ":" + connector.getLocalPort() + "\"}");
    }
}
