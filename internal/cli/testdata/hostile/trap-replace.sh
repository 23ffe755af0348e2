#!/bin/sh
# Replaces the base and its own commit by others: what is taken in is the commit itself.
deliver
real=$(git rev-parse HEAD)
echo evil > answer && git commit -q -am evil
git replace "$real" HEAD
git replace "$BASE" HEAD
git reset -q --soft "$real"
git update-ref HEAD "$real"
echo fixed > answer
