#!/bin/sh
# The issue is full of terminal codes: neither a prompt nor a screen has one of them.
#: title The answer\x1b[2J is wrong
#: body \x1b]0;owned\x07\x1b[31mred\u009b31m\x08\x08\r\nline\x7f
LC_ALL=C grep -q "$(printf '\033')" "$INTERLOCK_PROMPT_FILE" && exit 1
deliver
