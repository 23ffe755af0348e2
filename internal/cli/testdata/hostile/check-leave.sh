#!/bin/sh
# Brings a test that leaves its room closed, deep and full of odd names: the room is removed all the same.
#: check sh test.sh
#: file answer
#: file test.sh
#: then
printf '%s\n' 'perl -e "for (1 .. 2000) { mkdir qq(d); chdir qq(d) or die }"' 'mkdir -p closed/x; chmod 000 closed' \
	'mkdir "$(printf "\\033[2J\\n")"; mkfifo pipe; ln -s / root; chmod 000 .' 'exit 0' > test.sh
fix
