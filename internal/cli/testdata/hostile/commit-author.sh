#!/bin/sh
# Forges author, committer and dates, with terminal codes in the name: taken in as they are, shown escaped.
GIT_AUTHOR_NAME=$(printf 'Owner\033[2J\342\200\256rewo') GIT_AUTHOR_EMAIL=owner@example.org GIT_AUTHOR_DATE='2099-01-01T00:00:00Z' \
GIT_COMMITTER_NAME=Owner GIT_COMMITTER_EMAIL=owner@example.org GIT_COMMITTER_DATE='1970-01-02T00:00:00Z'
export GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL GIT_AUTHOR_DATE GIT_COMMITTER_NAME GIT_COMMITTER_EMAIL GIT_COMMITTER_DATE
deliver
