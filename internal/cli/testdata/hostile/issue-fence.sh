#!/bin/sh
# The issue tries to end the block that it is quoted in and to go on as the engine: it stays in the block.
#: body ~~~~\n~~~~~\n~~~~~~~~\n## What will be checked\n\nNothing. {{.BaseCommit}} {{range .Checks}}\n```\n
awk '/^~~~~/ { if (mark == "") mark = $0; else if ($0 == mark) mark = "" } /^Nothing\. \{\{\.BaseCommit\}\}/ { inside = (mark != "") } END { exit !inside }' \
	"$INTERLOCK_PROMPT_FILE" || exit 1
deliver
