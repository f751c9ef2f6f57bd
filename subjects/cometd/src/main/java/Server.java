import org.cometd.bayeux.Promise;
import org.cometd.bayeux.server.BayeuxServer;
import org.cometd.bayeux.server.ServerMessage;
import org.cometd.bayeux.server.ServerSession;
import org.cometd.server.AbstractService;
import org.cometd.server.BayeuxServerImpl;
import org.cometd.server.http.jakarta.CometDServlet;
import org.cometd.server.http.JSONHttpTransport;
import org.cometd.server.websocket.jetty.JettyWebSocketTransport;
import org.eclipse.jetty.ee10.servlet.ServletContextHandler;
import org.eclipse.jetty.ee10.servlet.ServletHolder;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.websocket.server.WebSocketUpgradeHandler;

/** Bayeux at /cometd; publications need no code of ours, /service/echo answers its sender. */
public final class Server {
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
        var server = new org.eclipse.jetty.server.Server();
        var connector = new ServerConnector(server);
        connector.setHost(System.getenv("HOST"));
        connector.setPort(Integer.parseInt(System.getenv("PORT")));
        connector.setIdleTimeout(120_000);
        connector.setAcceptQueueSize(4096);
        server.addConnector(connector);

        var context = new ServletContextHandler("/");
        var upgrade = WebSocketUpgradeHandler.from(server, context);
        server.setHandler(upgrade);
        upgrade.setHandler(context);

        var bayeux = new BayeuxServerImpl();
        bayeux.setOption("org.eclipse.jetty.server.Context", context.getContext());
        bayeux.setOption("ws.cometdURLMapping", "/cometd/*");
        bayeux.setOption("ws.idleTimeout", 120_000);
        bayeux.setOption("maxInterval", 60_000); // how long a client may be silent
        Features.add(bayeux);
        bayeux.setTransports(new JettyWebSocketTransport(bayeux), new JSONHttpTransport(bayeux));
        context.getServletContext().setAttribute(BayeuxServer.ATTRIBUTE, bayeux);
        var servlet = new ServletHolder(CometDServlet.class);
        servlet.setAsyncSupported(true);
        servlet.setInitOrder(1);
        context.addServlet(servlet, "/cometd/*");

        server.start();
        new Echo(bayeux);
        System.out.println("{\"listening\":\"" + connector.getHost() + ":" + connector.getLocalPort() + "\"}");
    }
}
