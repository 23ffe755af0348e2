#!/bin/sh
# Commits names with newlines, terminal codes, quotes and bytes that are no UTF-8: taken in, and shown escaped.
#: file answer
#: file "\033[2J\033]0;owned\a"
#: file "\202\203"
#: file "line\nline"
#: file "quo\"te"
#: file --option
#: file :(top)
#: file $(touch x)
#: file "\342\200\256gpj.exe"
#: file "tab\tname"
#: then
for name in "$(printf '\033[2J\033]0;owned\007')" "$(printf '\202\203')" "$(printf 'line\nline')" 'quo"te' --option ':(top)' \
	'$(touch x)' "$(printf '\342\200\256gpj.exe')" "$(printf 'tab\tname')"; do
	echo odd > "./$name"
done
fix
