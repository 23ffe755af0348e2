#!/bin/sh
# Types commands of the operator's (accept, cancel, run without a sandbox) at the program it finds: they reach nothing.
deliver
export XDG_STATE_HOME="$STATE/.." HOME="$STATE"
for args in "change accept --repo $REPO 1" "cancel 1 --repo $REPO" "issue new --repo $REPO --title evil" \
	"run --repo $REPO --issue 2 --sandbox none --command true --checks true" "state restore $STATE/state.db"; do
	interlock --state-dir "$STATE" $args < /dev/null
	/interlock/bin/interlock $args < /dev/null
done
exit 0
