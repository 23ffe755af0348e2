#!/bin/sh
# Sets core.hooksPath to a directory with every hook there is: none of them runs.
#: then
deliver
mkdir .git/evil
for hook in applypatch-msg commit-msg fsmonitor-watchman post-applypatch post-checkout post-commit post-index-change \
	post-merge post-receive post-rewrite post-update pre-applypatch pre-auto-gc pre-commit pre-merge-commit pre-push \
	pre-rebase pre-receive prepare-commit-msg proc-receive push-to-checkout reference-transaction sendemail-validate update; do
	evil ".git/evil/$hook"
done
mkdir -p .git/hooks && cp .git/evil/* .git/hooks/
echo '[core] hooksPath = '"$HERE/.git/evil" >> .git/config
echo more >> answer
echo fixed > answer
