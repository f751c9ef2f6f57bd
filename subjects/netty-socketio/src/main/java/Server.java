import com.corundumstudio.socketio.Configuration;
import com.corundumstudio.socketio.SocketIOServer;

public final class Server {
    public static void main(String[] arguments) {
        var config = new Configuration();
        config.setHostname(System.getenv("HOST"));
        config.setPort(Integer.parseInt(System.getenv("PORT")));
        config.setHttpCompression(false);
        config.setWebsocketCompression(false);
        config.setUseLinuxNativeEpoll(true);

        var server = new SocketIOServer(config);
        server.addEventListener("join", String.class, (client, channel, ack) -> {
            client.joinRoom(channel);
            client.sendEvent("joined", channel);
        });
        server.addMultiTypeEventListener("pub", (client, values, ack) -> {
            String channel = values.first();
            server.getRoomOperations(channel).sendEvent("msg", values.<Object>second());
        }, String.class, Object.class);
        server.addEventListener("echo", Object.class, (client, data, ack) -> client.sendEvent("echo", data));

        server.start();
        System.out.printf("{\"listening\":\"%s:%d\"}%n", config.getHostname(), config.getPort());
    }
}
