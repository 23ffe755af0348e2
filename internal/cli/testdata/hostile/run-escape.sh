#!/bin/sh
# Tries the doors of a sandbox (namespaces, chroot, ptrace, cgroups, devices, core patterns): none opens.
deliver
unshare -rUm sh -c "touch $MARK"
nsenter -t 1 -a touch "$MARK"
chroot /proc/1/root touch "$MARK"
echo "|/bin/touch $MARK" > /proc/sys/kernel/core_pattern
echo 1 > /sys/fs/cgroup/cgroup.kill
mkdir /tmp/c && mount -t cgroup none /tmp/c && echo "$HERE/.git/evil" > /tmp/c/release_agent
perl -e 'open my $f, ">", "/proc/$$/mem"; kill 11, $$'
dd if=/dev/sda of=/dev/null count=1
su -c "touch $MARK"
exit 0
