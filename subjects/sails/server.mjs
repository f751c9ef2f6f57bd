import sails from "sails";

const actions = {
  join(req, res) {
    sails.sockets.join(req, req.param("channel"), () => res.ok());
  },
  send(req, res) {
    sails.sockets.broadcast(req.param("channel"), "msg", req.body.data);
    res.ok();
  },
  echo(req, res) {
    res.json(req.body.data);
  },
};

sails.lift({
  environment: "production",
  explicitHost: process.env.HOST,
  port: Number(process.env.PORT),
  log: { level: "warn" },
  hooks: { session: false },
  sockets: {
    transports: ["polling", "websocket"],
    // Production wants to be told which origins may connect: all.
    beforeConnect: (handshake, proceed) => proceed(undefined, true),
  },
  routes: {
    "POST /join": { fn: actions.join },
    "POST /send": { fn: actions.send },
    "POST /echo": { fn: actions.echo },
  },
}, (error) => {
  if (error) throw error;
  const { server } = sails.hooks.http;
  // A connection for posts may be silent between two pings of Engine.IO (25 s); Node would close it after 5 s.
  server.keepAliveTimeout = 65_000;
  const { address, port } = server.address();
  console.log(JSON.stringify({ listening: `${address}:${port}` }));
});
