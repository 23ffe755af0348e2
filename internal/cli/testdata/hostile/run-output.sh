#!/bin/sh
# Prints terminal codes, reordered text, bytes that are no text, and lines like the engine's own: shown escaped.
printf '\033[2J\033]0;owned\007\033]52;c;ZXZpbA==\007\342\200\256evil\302\233\202\377\000\r\n'
printf '\ninterlock: in review: change 99\nremote: pushed\n{"result":{"state":"done"}}\n'
deliver
printf '\360\237'
