#!/bin/sh
# Brings a test that sets filters, hooks and a monitor in its tree and leaves the change to git: nothing runs outside.
#: check sh test.sh
#: file answer
#: file test.sh
{
	sed -n "/^[A-Z]*='/p" "$0"
	echo 'printf "#!/bin/sh\ntouch $MARK\n" > .git/evil; chmod 755 .git/evil'
	echo 'git config core.fsmonitor .git/evil; git config core.hooksPath .git; git config gc.auto 1; cp .git/evil .git/post-checkout'
	echo 'chmod 000 .git'
	echo 'grep -qx fixed answer'
} > test.sh
fix
