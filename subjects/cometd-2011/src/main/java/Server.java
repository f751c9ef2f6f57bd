import org.cometd.bayeux.server.BayeuxServer;
import org.cometd.bayeux.server.ServerMessage;
import org.cometd.bayeux.server.ServerSession;
import org.cometd.server.AbstractService;
import org.cometd.server.BayeuxServerImpl;
import org.cometd.server.CometdServlet;
import org.cometd.websocket.server.WebSocketTransport;
import org.eclipse.jetty.server.nio.SelectChannelConnector;
import org.eclipse.jetty.servlet.ServletContextHandler;
import org.eclipse.jetty.servlet.ServletHolder;

/** Bayeux at /cometd; publications need no code of ours, /service/echo answers its sender. */
public final class Server {
    public static final class Echo extends AbstractService {
        public Echo(BayeuxServer bayeux) {
            super(bayeux, "echo");
            addService("/service/echo", "echo");
        }

        public void echo(ServerSession client, ServerMessage message) {
            client.deliver(getServerSession(), message.getChannel(), message.getData(), null);
        }
    }

    public static void main(String[] arguments) throws Exception {
        var server = new org.eclipse.jetty.server.Server();
        var connector = new SelectChannelConnector();
        connector.setHost(System.getenv("HOST"));
        connector.setPort(Integer.parseInt(System.getenv("PORT")));
        connector.setMaxIdleTime(120_000);
        connector.setAcceptQueueSize(4096);
        server.addConnector(connector);

        var bayeux = new BayeuxServerImpl();
        bayeux.setOption("maxInterval", 60_000); // how long a client may be silent
        Features.add(bayeux);
        bayeux.addTransport(new WebSocketTransport(bayeux));
        bayeux.setAllowedTransports("websocket", "long-polling");
        var context = new ServletContextHandler(server, "/");
        context.setAttribute(BayeuxServer.ATTRIBUTE, bayeux);
        var servlet = new ServletHolder(CometdServlet.class);
        servlet.setInitOrder(1);
        context.addServlet(servlet, "/cometd/*");

        server.start();
        new Echo(bayeux);
        System.out.println("{\"listening\":\"" + connector.getHost() + ":" + connector.getLocalPort() + "\"}");
    }
}
