#!/bin/sh
# Leaves daemons that are to commit and write long after its end: they are ended, what is pushed is what was checked.
#: then
deliver
for how in setsid nohup; do
	$how sh -c "sleep 20; while :; do echo evil > answer; git commit -q -am evil; done" > /dev/null 2>&1 < /dev/null &
done
(setsid perl -e 'fork and exit; sleep 1 while 1' > /dev/null 2>&1 &)
exit 0
