#!/bin/sh
# Truncates, seeks and links over its own output: the log stays, with what it printed before.
echo before
: > /proc/self/fd/1
perl -e 'seek STDOUT, 0, 0; truncate STDOUT, 0'
ln -sf "$FOREIGN/secret" /proc/self/fd/1
rm -rf "$STATE/logs"
deliver
exec >&- 2>&- <&-
exit 0
