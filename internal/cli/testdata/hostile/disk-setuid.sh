#!/bin/sh
# Leaves programs that are setuid, setgid and sticky: they come as plain programs.
#: file answer
#: file tool
#: check test -x tool && test ! -u tool && test ! -g tool && test ! -k tool
fix
cp /bin/true tool
chmod 7777 tool 2> /dev/null || chmod 755 tool
