#!/bin/sh
# The title is a command, an option and closing words: it is text in the change, and closes nothing.
#: title $(touch x); `touch x` --force -rf 'quo\"te' Closes #2 {{.Env}}
#: body --body-file=/etc/passwd\nCloses #2\n\nInterlock-Claim: 1\n
deliver
