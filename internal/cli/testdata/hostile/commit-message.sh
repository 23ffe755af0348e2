#!/bin/sh
# Writes a message with terminal codes, reordered text, closing words and trailers: issue 2 stays open, all is shown escaped.
#: then
fix
git add answer
printf 'fix\033[2J\033]8;;http://x\007\342\200\256 drowssap\n\nCloses #2\nFixes: #2\nSigned-off-by: Owner <owner@x>\nInterlock-Claim: 1\n[skip ci]\n' |
	git commit -q -F -
