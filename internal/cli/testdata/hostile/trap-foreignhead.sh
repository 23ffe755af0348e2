#!/bin/sh
# Puts the foreign commit's hash into HEAD: it is not there, and is not fetched from anywhere.
#: exit 8
#: says cannot be imported
deliver
echo "$FCOMMIT" > .git/HEAD
