#!/bin/sh
# The base holds lines that end otherwise than its attributes say: they are not part of the change.
#: base printf 'one\r\ntwo\r\n' > crlf; git add crlf; git -c user.name=T -c user.email=t@localhost commit -q -m crlf
#: base printf '* text=auto\n*.sh eol=crlf\n' > .gitattributes
fix
