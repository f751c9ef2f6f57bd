# The server on the Node.js of its time, or on a later one: what an experiment changes to find a cause. Arguments are
# options of Node.js.
case "${NODE_VERSION:-0.10}" in
  0.10) node=node_modules/node-0.10/node-v0.10.35-linux-x64/bin/node ;;
  0.12) node=node_modules/node-0.12/bin/node ;;
  today) node=node ;;
  *) echo "NODE_VERSION is '$NODE_VERSION'; it can be 0.10, 0.12 or today" >&2; exit 2 ;;
esac
exec "$node" "$@" server.js
