#!/bin/sh
# Commits a tree of 5,000 levels, whose paths no system can open: refused in time, with the reason.
#: exit 8
#: says cannot be imported
deliver
tree=$(git rev-parse HEAD^{tree})
perl -e '
	use Digest::SHA qw(sha1_hex); use Compress::Zlib;
	my $h = $ARGV[0];
	for (1 .. 5000) {
		my $d = "40000 d\0" . pack("H*", $h);
		my $o = "tree " . length($d) . "\0" . $d;
		$h = sha1_hex($o);
		mkdir ".git/objects/" . substr($h, 0, 2);
		open my $f, ">", ".git/objects/" . substr($h, 0, 2) . "/" . substr($h, 2) or die; print $f compress($o); close $f;
	}
	print $h' "$tree" > .git/hash
tree=$({ git ls-tree HEAD; printf '40000 tree %s\tdeep\n' "$(cat .git/hash)"; } | git mktree)
git update-ref HEAD "$(echo deep | git commit-tree "$tree" -p HEAD)"
