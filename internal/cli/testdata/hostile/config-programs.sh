#!/bin/sh
# Sets every other program that git may start (ssh, pager, editor, browser, aliases of all it calls): none of them runs.
deliver
evil .git/evil
for key in core.sshCommand core.pager core.editor core.gitProxy sequence.editor diff.tool merge.tool man.viewer web.browser \
	interactive.diffFilter sendemail.smtpServer pager.log pager.diff ssh.variant core.alternateRefsCommand receive.procReceiveRefs \
	trailer.x.command trailer.x.cmd submodule.x.update; do
	git config "$key" "$HERE/.git/evil"
done
for word in upload-pack fetch diff-tree cat-file rev-list merge-tree push status log; do git config "alias.$word" "!touch $MARK"; done
