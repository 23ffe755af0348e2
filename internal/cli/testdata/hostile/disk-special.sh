#!/bin/sh
# Leaves FIFOs, sockets and device nodes uncommitted: nothing waits for them, they stay out, the work is taken in.
fix
mkfifo pipe
perl -MSocket -e 'socket(my $s, PF_UNIX, SOCK_STREAM, 0); bind($s, pack_sockaddr_un("socket"))'
mknod device c 1 3 2> /dev/null
mknod disk b 7 0 2> /dev/null
exit 0
