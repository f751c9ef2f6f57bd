#!/bin/sh
# HEAP is the most that the heap may grow to, as in -Xmx; COLLECTOR is parallel, g1 or serial, or else Java's own choice.
# Arguments are further options of Java.
set -- "$@" "-Xmx${HEAP:-1g}"
case "${COLLECTOR:-}" in
    '') ;;
    parallel) set -- "$@" -XX:+UseParallelGC ;;
    g1) set -- "$@" -XX:+UseG1GC ;;
    serial) set -- "$@" -XX:+UseSerialGC ;;
    *)
        echo "COLLECTOR is $COLLECTOR, but must be parallel, g1 or serial" >&2
        exit 2
        ;;
esac
exec java "$@" -cp 'target/server.jar:lib/*' Server
