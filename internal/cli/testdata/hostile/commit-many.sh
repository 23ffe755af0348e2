#!/bin/sh
# Leaves 3,000 commits, each with a change: all are looked at and pushed, in time.
{
	echo 'reset refs/heads/many'
	echo "from $BASE"
	for n in $(seq 3000); do
		printf 'commit refs/heads/many\ncommitter a <a@b> %s +0000\ndata 2\nx\nM 100644 inline answer\ndata %s\n%s\n' $n $((${#n} + 1)) $n
	done
} | git fast-import --quiet
git update-ref HEAD refs/heads/many
git reset -q --hard
deliver
