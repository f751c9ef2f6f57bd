import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.cometd.bayeux.Promise;
import org.cometd.bayeux.server.BayeuxServer;
import org.cometd.bayeux.server.ServerMessage;
import org.cometd.bayeux.server.ServerSession;
import org.cometd.client.http.jetty.JettyHttpClientTransport;
import org.cometd.client.transport.ClientTransport;
import org.cometd.client.websocket.jetty.JettyWebSocketTransport;
import org.cometd.oort.Oort;
import org.cometd.server.AbstractService;
import org.cometd.server.BayeuxServerImpl;
import org.cometd.server.http.JSONHttpTransport;
import org.cometd.server.http.jakarta.CometDServlet;
import org.eclipse.jetty.client.HttpClient;
import org.eclipse.jetty.ee10.servlet.ServletContextHandler;
import org.eclipse.jetty.ee10.servlet.ServletHolder;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.websocket.client.WebSocketClient;
import org.eclipse.jetty.websocket.server.WebSocketUpgradeHandler;

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
                if (other != oort && !hears(oort, other)) {
                    System.err.println(oort.getURL() + " has not joined " + other.getURL() + " within " + JOINING_MAX_S + " s");
                    System.exit(1);
                }
        System.out.println("{\"listening\":\"" + HOST + ":" + port + "\"}");
    }

    private static ServerConnector connector(org.eclipse.jetty.server.Server server, int port) {
        var connector = new ServerConnector(server);
        connector.setHost(HOST);
        connector.setPort(port);
        connector.setReusePort(true);
        connector.setIdleTimeout(120_000);
        connector.setAcceptQueueSize(4096);
        server.addConnector(connector);
        return connector;
    }

    private static BayeuxServerImpl start(org.eclipse.jetty.server.Server server) throws Exception {
        var context = new ServletContextHandler("/");
        var upgrade = WebSocketUpgradeHandler.from(server, context);
        server.setHandler(upgrade);
        upgrade.setHandler(context);

        var bayeux = new BayeuxServerImpl();
        bayeux.setOption("org.eclipse.jetty.server.Context", context.getContext());
        bayeux.setOption("ws.cometdURLMapping", "/cometd/*");
        bayeux.setOption("ws.idleTimeout", 120_000);
        bayeux.setOption("maxInterval", 60_000); // how long a client may be silent
        bayeux.setTransports(
            new org.cometd.server.websocket.jetty.JettyWebSocketTransport(bayeux), new JSONHttpTransport(bayeux));
        context.getServletContext().setAttribute(BayeuxServer.ATTRIBUTE, bayeux);
        var servlet = new ServletHolder(CometDServlet.class);
        servlet.setAsyncSupported(true);
        servlet.setInitOrder(1);
        context.addServlet(servlet, "/cometd/*");
        server.start();
        new Echo(bayeux);
        return bayeux;
    }

    private static Oort join(BayeuxServerImpl bayeux, int port, String links) throws Exception {
        var oort = new Oort(bayeux, "http://" + HOST + ":" + port + "/cometd");
        ClientTransport.Factory factory = links.equals("http")
            ? new JettyHttpClientTransport.Factory(new HttpClient())
            : new JettyWebSocketTransport.Factory(new WebSocketClient());
        oort.setClientTransportFactories(List.of(factory));
        oort.setSecret("one cluster");
        oort.start();
        oort.observeChannel("/c/**");
        return oort;
    }

    /** Whether one hears of what is published at the other, once it does. */
    private static boolean hears(Oort oort, Oort other) throws InterruptedException {
        for (var waited = 0; waited < JOINING_MAX_S * 50; waited++) {
            var comet = oort.findComet(other.getURL());
            if (comet != null && comet.isConnected()) return true;
            TimeUnit.MILLISECONDS.sleep(20);
        }
        return false;
    }
}
