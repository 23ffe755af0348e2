#!/bin/sh
# Plants packs of 2 GiB that are holes, and an index that belongs to none: bounded in time, the work comes in or is refused.
deliver
for n in 1 2; do
	pack=.git/objects/pack/pack-000000000000000000000000000000000000000$n
	truncate -s 2G "$pack.pack"
	head -c 1100 /dev/zero > "$pack.idx"
done
