#!/bin/sh
# Brings a test that leaves daemons which hold its output open: the check ends, nothing is left of it.
#: check sh test.sh
#: file answer
#: file test.sh
printf '%s\n' 'setsid sh -c "sleep 20; echo evil > answer" &' '(setsid sleep 4321 &)' 'grep -qx fixed answer' > test.sh
fix
