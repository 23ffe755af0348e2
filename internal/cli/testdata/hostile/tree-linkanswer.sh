#!/bin/sh
# Makes the answer itself a link to a file of the operator's that would pass: the checks see none there, and fail.
#: exit 8
#: says the checks failed
#: base echo fixed > "$(dirname "$REPO")/fixed"
ln -sf "$(dirname "$REPO")/fixed" answer
git add answer && git commit -q -m link
