#!/bin/sh
# Commits on every other branch and moves tags and notes: only the run's branch is pushed.
#: then
deliver
evilcommit=$(echo evil | git commit-tree HEAD^{tree} -p HEAD)
for ref in refs/heads/main refs/heads/other refs/tags/v1 refs/tags/v2 refs/notes/commits refs/heads/interlock/issue-2; do
	git update-ref "$ref" "$evilcommit"
done
git tag -a -m annotated v3
