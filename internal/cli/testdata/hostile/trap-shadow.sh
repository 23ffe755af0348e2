#!/bin/sh
# Plants a ref and a file named like HEAD and like the branch, which lead elsewhere: what is taken in is HEAD itself.
deliver
branch=$(git symbolic-ref HEAD)
mkdir -p ".git/refs/tags/$(dirname "${branch#refs/heads/}")" .git/refs/remotes/HEAD
echo "$BASE" > ".git/refs/tags/${branch#refs/heads/}"
echo "$BASE" > .git/FETCH_HEAD
echo "$BASE" > .git/ORIG_HEAD
echo "$BASE" > .git/refs/HEAD
echo "$BASE" > .git/refs/heads/HEAD
