#!/bin/sh
# The base has names that are options, commands, terminal codes and no UTF-8: nothing runs, all is shown escaped.
#: base for n in -rf --upload-pack=x ':(top)' '*' '$(touch x)' '`touch x`' 'a;touch x' "$(printf 'line\nline')" "$(printf '\033[2J')" "$(printf '\202')" "$(printf '\342\200\256x')" ' ' '.. ' '~' 'aux' "$(printf '%0250d' 0)"; do echo odd > "./$n"; done
#: file "\033[2J"
#: file answer
#: then
echo odd > more-odd && rm more-odd
echo changed > "$(printf '\033[2J')"
deliver
