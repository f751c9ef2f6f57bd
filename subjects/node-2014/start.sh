# The server on the Node.js of its time, on io.js, or on a later Node.js: what an experiment changes to find a cause.
# Arguments are options of Node.js.
case "${NODE_VERSION:-0.10}" in
  0.10) node=node_modules/node-0.10/node-v0.10.35-linux-x64/bin/node ;;
  0.12) node=node_modules/node-0.12/bin/node ;;
  iojs-1) node=node_modules/iojs-1/iojs-v1.8.1-linux-x64/bin/iojs ;;
  iojs-3) node=node_modules/iojs-3/bin/iojs ;;
  today) node=node ;;
  *) echo "NODE_VERSION is '$NODE_VERSION'; it can be 0.10, 0.12, iojs-1, iojs-3 or today" >&2; exit 2 ;;
esac
exec "$node" "$@" server.js
