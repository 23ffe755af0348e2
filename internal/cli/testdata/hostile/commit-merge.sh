#!/bin/sh
# Hides a workflow in the second parent of a merge that takes it back: refused all the same.
#: exit 8
#: says out of scope
git checkout -q -b side
mkdir -p .github/workflows
echo 'on: push' > .github/workflows/evil.yml
git add .github && git commit -q -m side
git checkout -q -
deliver
git merge -q -s ours -m merge side
