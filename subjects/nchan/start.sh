#!/bin/sh
# Writes nginx's configuration for HOST and PORT, and becomes nginx. All of its files are in this folder.
set -e
sed -e "s/@HOST@/$HOST/" -e "s/@PORT@/$PORT/" nginx.conf.in > nginx.conf
ulimit -n "$(ulimit -H -n)"
exec nginx -p "$PWD" -c nginx.conf -e stderr
