#!/bin/sh
# Commits its key encoded, in a history of its own, takes it back, merges that and prints the key: refused, and never repeated.
#: exit 8
#: says a secret would be pushed
#: says value of OPERATOR_SECRET
#: args --env OPERATOR_SECRET
#: check true
git checkout -q --orphan aside
git rm -q -r -f .
echo "$OPERATOR_SECRET"
printf 'me:%s' "$OPERATOR_SECRET" | base64 > dump
git add dump && git commit -q -m 'a history of its own'
git rm -q dump
git commit -q --allow-empty -m 'and take it back'
git checkout -q -f interlock/issue-1
git merge -q --allow-unrelated-histories -s ours -m 'bring it in' aside
deliver
