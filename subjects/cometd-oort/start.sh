#!/bin/sh
# HEAP is the most that the heap of all servers together may grow to, as in -Xmx. Arguments are further options of Java.
exec java "$@" "-Xmx${HEAP:-2g}" -cp 'target/server.jar:lib/*' Server
