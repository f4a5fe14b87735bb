#!/bin/sh
# mounted.sh TYPE WHAT: mounts $FLOATGATE_STATE, which replays the journal, looks at what is in it, unmounts, and lets the
# file system's own checker look. Nothing happens outside the mounted state.
set -eu
here=$(dirname "$0") type=$1 what=$2
point=$(mktemp -d) loop=
clean() {
    set +e
    mountpoint -q "$point" && umount "$point"
    [ -n "$loop" ] && losetup --detach "$loop"
    rmdir "$point"
}
trap clean EXIT
trap 'exit 1' TERM INT HUP
# Before anything was said there need not be a file system.
grep -q . "$FLOATGATE_MARKS" || exit 0
loop=$(losetup --find --show "$FLOATGATE_STATE")
[ -b "$loop" ] || { echo "no loop device"; exit 1; }
options=noatime
[ "$type" = xfs ] && options=noatime,nouuid
mount -t "$type" -o $options "$loop" "$point"
mountpoint -q "$point"
python3 "$here/transactions.py" "check-$what" "$point" "$FLOATGATE_MARKS"
umount "$point"
case $type in
    ext4) e2fsck -fn "$loop" ;;
    xfs) xfs_repair -n "$loop" ;;
esac
