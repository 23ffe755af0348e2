#!/bin/sh
# The issue hides text in comments, reordered and invisible characters: the agent and people read what can be seen, no more.
#: title Wrong\u202e<!-- hiddentitle --> answer
#: body Seen.<!-- hiddencomment -->\u202eesrever\u200b\U000e0041\U000e0042<!-<!-- x -->- hiddenagain -->\n<!-- never closed hiddenrest
grep -q hidden "$INTERLOCK_PROMPT_FILE" && exit 1
grep -q Seen "$INTERLOCK_PROMPT_FILE" || exit 1
LC_ALL=C grep -q "$(printf '\342\200\256')" "$INTERLOCK_PROMPT_FILE" && exit 1
deliver
