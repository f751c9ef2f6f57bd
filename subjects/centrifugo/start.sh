#!/bin/sh
# Runs Centrifugo at HOST and PORT, with TLS if a certificate is named.
set -e
if [ -n "$TLS_CERTIFICATE" ]; then
    export CENTRIFUGO_HTTP_SERVER_TLS_ENABLED=true
    export CENTRIFUGO_HTTP_SERVER_TLS_CERT_PEM="$TLS_CERTIFICATE" CENTRIFUGO_HTTP_SERVER_TLS_KEY_PEM="$TLS_KEY"
fi
exec ./centrifugo --config config.json --http_server.address "$HOST" --http_server.port "$PORT"
