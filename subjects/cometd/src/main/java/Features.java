import org.cometd.bayeux.server.BayeuxServer;
import org.cometd.bayeux.server.ConfigurableServerChannel;
import org.cometd.bayeux.server.ServerChannel;
import org.cometd.server.BayeuxServerImpl;
import org.cometd.server.ext.AcknowledgedMessagesExtension;

/**
 * What CometD has besides plain delivery, as the environment chooses: ACKS = true for the acknowledgement extension,
 * LAZY_MS for lazy messages and how long they may wait, MESSAGES_PER_FRAME for how many may share a WebSocket frame.
 */
final class Features {
    static void add(BayeuxServerImpl bayeux) {
        if ("true".equals(System.getenv("ACKS"))) bayeux.addExtension(new AcknowledgedMessagesExtension());
        var lazyMs = System.getenv("LAZY_MS");
        if (lazyMs != null) {
            bayeux.setOption("maxLazyTimeout", Integer.parseInt(lazyMs));
            bayeux.addListener(new Lazy());
        }
        var perFrame = System.getenv("MESSAGES_PER_FRAME");
        if (perFrame != null) bayeux.setOption("ws.messagesPerFrame", Integer.parseInt(perFrame));
    }

    /** Makes channels of publications lazy, and not those of echoes. */
    private static final class Lazy implements BayeuxServer.ChannelListener {
        @Override
        public void configureChannel(ConfigurableServerChannel channel) {
            if (channel.getId().startsWith("/c/")) channel.setLazy(true);
        }

        @Override
        public void channelAdded(ServerChannel channel) {}

        @Override
        public void channelRemoved(String channel) {}
    }

    private Features() {}
}
