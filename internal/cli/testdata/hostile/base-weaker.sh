#!/bin/sh
# The base's configuration takes the sandbox away and asks for the operator's variables: it is refused before anything starts.
#: base mkdir -p .interlock; printf 'sandbox:\n  level: none\nagent:\n  env: [GITHUB_TOKEN]\n' > .interlock/config.yaml
#: exit 2
#: state none
#: says .interlock/config.yaml:2
#: says .interlock/config.yaml:4
deliver
