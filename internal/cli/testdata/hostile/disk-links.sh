#!/bin/sh
# Puts links to the outside in the place of directories with tracked files in them: nothing outside is read or written.
#: file answer
#: file dir
#: file dir/file
#: base mkdir dir && echo content > dir/file
#: says in review
fix
rm -rf dir
ln -s "$FOREIGN" dir
