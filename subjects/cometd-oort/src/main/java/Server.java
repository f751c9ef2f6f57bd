import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.channels.ServerSocketChannel;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.cometd.bayeux.Promise;
import org.cometd.bayeux.server.BayeuxServer;
import org.cometd.bayeux.server.ServerMessage;
import org.cometd.bayeux.server.ServerSession;
import org.cometd.client.transport.ClientTransport;
import org.cometd.client.transport.LongPollingTransport;
import org.cometd.oort.Oort;
import org.cometd.server.AbstractService;
import org.cometd.server.CometDServlet;
import org.cometd.websocket.client.WebSocketTransport;
import org.eclipse.jetty.client.HttpClient;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.servlet.ServletContextHandler;
import org.eclipse.jetty.servlet.ServletHolder;
import org.eclipse.jetty.websocket.jsr356.server.deploy.WebSocketServerContainerInitializer;

/**
 * Several CometD servers that Oort joins. Clients connect to the one port on which all listen; each server has a port of
 * its own for the others.
 */
public final class Server {
    private static final String HOST = System.getenv("HOST");
    private static final int JOINING_MAX_S = 20;

    public static final class Echo extends AbstractService {
        public Echo(BayeuxServer bayeux) {
            super(bayeux, "echo");
            addService("/service/echo", "echo");
        }

        public void echo(ServerSession client, ServerMessage message) {
            client.deliver(getServerSession(), message.getChannel(), message.getData(), Promise.noop());
        }
    }

    public static void main(String[] arguments) throws Exception {
        var nodes = Integer.parseInt(System.getenv().getOrDefault("NODES", "3"));
        var links = System.getenv().getOrDefault("LINKS", "websocket");
        if (nodes < 1 || !links.equals("websocket") && !links.equals("http")) {
            System.err.println("NODES must be at least 1, and LINKS websocket or http; they are " + nodes + " and " + links);
            System.exit(2);
        }
        var port = Integer.parseInt(System.getenv("PORT"));
        List<Oort> cluster = new ArrayList<>();
        for (var node = 0; node < nodes; node++) {
            var server = new org.eclipse.jetty.server.Server();
            var shared = connector(server, port);
            var own = connector(server, 0);
            var bayeux = start(server);
            port = shared.getLocalPort();
            cluster.add(join(bayeux, own.getLocalPort(), links));
        }
        for (var oort : cluster)
            for (var other : cluster)
                if (other != oort) oort.observeComet(other.getURL());
        for (var oort : cluster)
            for (var other : cluster)
                if (other != oort && !knows(oort, other)) {
                    System.err.println(oort.getURL() + " has not joined " + other.getURL() + " within " + JOINING_MAX_S + " s");
                    System.exit(1);
                }
        System.out.println("{\"listening\":\"" + HOST + ":" + port + "\"}");
    }

    private static ServerConnector connector(org.eclipse.jetty.server.Server server, int port)
            throws IOException {
        var connector = new ServerConnector(server);
        var channel = ServerSocketChannel.open();
        channel.setOption(StandardSocketOptions.SO_REUSEPORT, true);
        channel.bind(new InetSocketAddress(HOST, port), 4096);
        connector.open(channel);
        connector.setIdleTimeout(120_000);
        server.addConnector(connector);
        return connector;
    }

    private static BayeuxServer start(org.eclipse.jetty.server.Server server) throws Exception {
        var context = new ServletContextHandler(server, "/");
        WebSocketServerContainerInitializer.configure(context, null);
        var servlet = new ServletHolder(CometDServlet.class);
        servlet.setInitParameter(
            "transports", "org.cometd.websocket.server.WebSocketTransport,org.cometd.server.transport.JSONTransport");
        servlet.setInitParameter("ws.cometdURLMapping", "/cometd/*");
        servlet.setInitParameter("ws.idleTimeout", "120000");
        servlet.setInitParameter("maxInterval", "60000"); // how long a client may be silent
        servlet.setAsyncSupported(true);
        servlet.setInitOrder(1);
        context.addServlet(servlet, "/cometd/*");
        server.start();
        var bayeux = (BayeuxServer) context.getServletContext().getAttribute(BayeuxServer.ATTRIBUTE);
        new Echo(bayeux);
        return bayeux;
    }

    private static Oort join(BayeuxServer bayeux, int port, String links) throws Exception {
        var oort = new Oort(bayeux, "http://" + HOST + ":" + port + "/cometd");
        ClientTransport.Factory factory = links.equals("http")
            ? new LongPollingTransport.Factory(new HttpClient())
            : new WebSocketTransport.Factory();
        oort.setClientTransportFactories(List.of(factory));
        oort.setSecret("one cluster");
        oort.start();
        oort.observeChannel("/c/**");
        bayeux.addExtension(new Relayed(oort));
        return oort;
    }

    /** Whether one knows the other, once it does. */
    private static boolean knows(Oort oort, Oort other) throws InterruptedException {
        for (var waited = 0; waited < JOINING_MAX_S * 50; waited++) {
            if (oort.getKnownComets().contains(other.getURL())) return true;
            TimeUnit.MILLISECONDS.sleep(20);
        }
        return false;
    }
}
