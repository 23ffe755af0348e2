#!/bin/sh
# Commits names that differ by case alone, one of them a link to the outside: taken in as what they are.
#: file ANSWER
#: file Answer
#: file answer
fix
echo other > Answer
ln -s /etc ANSWER
git add -A && git commit -q -m case
