#!/bin/sh
# The base branch has a name that a shell would run and that a person would misread: it is a name and nothing else.
#: branch a$(touch${IFS}x);`x`&&--force
#: base git branch 'interlock/x|y'
deliver
