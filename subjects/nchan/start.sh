#!/bin/sh
# Writes nginx's configuration for HOST and PORT, and becomes nginx. All of its files are in this folder.
set -e
tls=${TLS_CERTIFICATE:+ ssl; ssl_certificate $TLS_CERTIFICATE; ssl_certificate_key $TLS_KEY}
sed -e "s/@HOST@/$HOST/" -e "s/@PORT@/$PORT/" -e "s|@TLS@|$tls|" nginx.conf.in > nginx.conf
ulimit -n "$(ulimit -H -n)"
exec nginx -p "$PWD" -c nginx.conf -e stderr
