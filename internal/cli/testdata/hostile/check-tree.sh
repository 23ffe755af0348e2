#!/bin/sh
# Brings a test that changes and commits in the tree it is checked in: what is pushed is what was checked.
#: check sh test.sh
#: file answer
#: file test.sh
printf '%s\n' 'grep -qx fixed answer || exit 1' 'echo evil > answer' 'git -c user.name=x -c user.email=x@x commit -q -am evil' \
	'git update-ref refs/heads/main HEAD' 'git tag -f v1' 'true' > test.sh
fix
