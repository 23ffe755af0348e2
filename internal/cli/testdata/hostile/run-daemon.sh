#!/bin/sh
# Leaves daemons that commit and write as soon as it has ended: they are ended, what is pushed is what was checked.
#: then
deliver
for how in setsid nohup; do
	$how sh -c "while kill -0 $$; do :; done; while :; do echo evil > answer; git commit -q -am evil; done" > /dev/null 2>&1 < /dev/null &
done
(setsid perl -e 'fork and exit; sleep 1 while 1' > /dev/null 2>&1 &)
exit 0
