#!/bin/sh
# Makes refs with names that are options, shadows and paths: none is taken for anything else, none is pushed.
#: then
deliver
for ref in refs/heads/--upload-pack=touch refs/heads/HEAD refs/heads/refs/heads/main refs/tags/main refs/tags/HEAD \
	refs/heads/main refs/remotes/origin/main refs/interlock/claims/1 refs/interlock/issues/1 refs/interlock/changes/1 \
	"refs/heads/\$(touch)" refs/heads/master; do
	mkdir -p ".git/$(dirname "$ref")"
	echo "$BASE" > ".git/$ref"
done
git rev-parse --verify -q "$BASE" > '.git/refs/heads/x:y'
