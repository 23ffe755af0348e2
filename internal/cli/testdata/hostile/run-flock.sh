#!/bin/sh
# Holds locks on all that it borrows while another issue is worked: that one is not held up.
#: beside
flock /interlock/objects sleep 1234 &
flock /interlock/objects/pack sleep 1234 &
flock /interlock/task sleep 1234 &
before=$(ls /interlock/objects/pack | wc -l)
echo WORKING
for n in $(seq 600); do
	test "$(ls /interlock/objects/pack | wc -l)" -gt "$before" && break
	sleep 0.1
done
deliver
