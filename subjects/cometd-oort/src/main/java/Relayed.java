import org.cometd.bayeux.server.BayeuxServer;
import org.cometd.bayeux.server.ServerMessage;
import org.cometd.bayeux.server.ServerSession;
import org.cometd.oort.Oort;

/** Marks what a server has from another, so that clients can tell deliveries that crossed from those that did not. */
final class Relayed implements BayeuxServer.Extension {
    private final ServerSession others;

    /** For a server that has joined, so that it has a session by which it publishes what the others have. */
    Relayed(Oort oort) {
        others = oort.getOortSession().getServerSession();
    }

    @Override
    public boolean rcv(ServerSession from, ServerMessage.Mutable message) {
        if (from == others) message.getExt(true).put("relayed", true);
        return true;
    }
}
