#!/usr/bin/env bash
# record.sh: runs one workload on a fresh file system and records the requests that the kernel issues to the disk.
#
#   record.sh OUT.csv.xz -- WORKLOAD [ARGUMENT...]     needs root
#
# The disk is a loop device over a file in memory (tmpfs), so that no other disk has a say in the times. The workload
# is called with the mount point in $M. The tracepoint block:block_rq_issue is recorded from mkfs to umount; what comes
# out is the trace format of ../README.md. The script undoes all it did: mounts, loop device, memory and tracing group.
#
# Settings, from the environment:
#   FS=ext2|ext4     file system [ext2]; ext2 has 1 KB blocks and inodes of 128 bytes, as mke2fs made them in 2011
#   DISK_MIB=300     size of the disk
#   MEMORY_MIB=256   memory of the workload, page cache included
#   DIRTY_MIB=44     unwritten pages above which writers wait: 20 % (Linux' vm.dirty_ratio) of 220 MB free of 256
#   WRITE_MB_S=0     writes a second that the disk takes, in 10^6 bytes; 0: as fast as memory. Linux writes pages out by age
#                    too, so a disk that is too fast sees fewer writes than a slow one
#   REQUEST_KIB=4    largest request; 0 leaves the kernel's own limit
#   CLOCK_US=10      times are cut to so many microseconds: finer ones only make the file larger
#   MKFS_OPTIONS     in place of the options above
set -euo pipefail
fail() { echo "record.sh: $*" >&2; exit 2; }
out=${1:-}; [ -n "$out" ] && [ "${2:-}" = -- ] && [ $# -ge 3 ] || fail "usage: record.sh OUT.csv.xz -- WORKLOAD [ARGUMENT...]"
shift 2
FS=${FS:-ext2} DISK_MIB=${DISK_MIB:-300} MEMORY_MIB=${MEMORY_MIB:-256} DIRTY_MIB=${DIRTY_MIB:-44} WRITE_MB_S=${WRITE_MB_S:-0} CLOCK_US=${CLOCK_US:-10}
REQUEST_KIB=${REQUEST_KIB:-4}
[ "$(id -u)" = 0 ] || fail "needs root: it makes a loop device and mounts it"
for program in losetup "mkfs.$FS" xz awk; do
    command -v "$program" >/dev/null || fail "$program is missing (Debian: apt-get install e2fsprogs mount xz-utils mawk)"
done
[ -d /sys/kernel/tracing/events/block ] || fail "needs tracefs: mount -t tracefs none /sys/kernel/tracing"
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$(dirname "$out")"; out=$(cd "$(dirname "$out")" && pwd)/$(basename "$out")

# Memory groups of version 1 or 2, whichever has the controller.
if [ -d /sys/fs/cgroup/memory ]; then group=/sys/fs/cgroup/memory/record.$$ limit=memory.limit_in_bytes
elif grep -qw memory /sys/fs/cgroup/cgroup.controllers; then group=/sys/fs/cgroup/record.$$ limit=memory.max
else fail "no memory control groups: the page cache would hold the whole disk"; fi

work=$(mktemp -d) events=/sys/kernel/tracing/instances/record.$$ loop='' tracer=''
clean() {
    set +e
    [ -n "$tracer" ] && kill "$tracer" 2>/dev/null && wait "$tracer" 2>/dev/null
    [ -d "$events" ] && rmdir "$events"
    mountpoint -q "$work/m" && umount "$work/m"
    [ -n "$loop" ] && [ "$WRITE_MB_S" != 0 ] && echo "$(cat "/sys/block/$(basename "$loop")/dev") 0" > "$throttle"
    [ -n "$loop" ] && echo 0 > "/sys/block/$(basename "$loop")/queue/max_sectors_kb"
    [ -n "$loop" ] && losetup -d "$loop"
    mountpoint -q "$work/disk" && umount "$work/disk"
    [ -d "$group" ] && rmdir "$group"
    rm -rf "$work/raw" "$work/csv"; rmdir "$work/m" "$work/disk" "$work"
}
trap clean EXIT
mkdir "$work/m" "$work/disk" "$group" "$events"
echo $((MEMORY_MIB << 20)) > "$group/$limit"
mount -t tmpfs -o size=$((DISK_MIB + 8))m none "$work/disk"
# Written once, so that its memory is not the workload's.
dd if=/dev/zero of="$work/disk/image" bs=1M count="$DISK_MIB" status=none
loop=$(losetup -f --show "$work/disk/image"); [ -b "$loop" ] || fail "no loop device"
name=$(basename "$loop") queue=/sys/block/$(basename "$loop")/queue
bdi=/sys/class/bdi/$(cat "/sys/block/$name/dev")
# 0 is the kernel's own limit. A loop device keeps the limit of its last user, so it is written in either case.
echo "$REQUEST_KIB" > "$queue/max_sectors_kb"
# The limit of unwritten pages is the disk's own, so that nothing else on the machine is slowed.
[ -w "$bdi/max_bytes" ] || fail "$bdi/max_bytes is missing: needs Linux 6.2 or newer"
throttle=/sys/fs/cgroup/blkio/blkio.throttle.write_bps_device
if [ "$WRITE_MB_S" != 0 ]; then
    # Pages are written out by the kernel and not by the workload's group, so the limit is the root's, for this disk only.
    [ -w "$throttle" ] || fail "WRITE_MB_S needs the blkio controller of control groups version 1"
    echo "$(cat "/sys/block/$name/dev") $((WRITE_MB_S * 1000000))" > "$throttle"
fi
echo 1 > "$bdi/strict_limit"; echo $((DIRTY_MIB << 20)) > "$bdi/max_bytes"

device=$(( ($(stat -c '0x%t' "$loop") << 20) | $(stat -c '0x%T' "$loop") ))
echo 32768 > "$events/buffer_size_kb"
echo mono > "$events/trace_clock"
for event in block_rq_issue block_bio_queue; do
    echo "dev == $device" > "$events/events/block/$event/filter"
    echo 1 > "$events/events/block/$event/enable"
done
cat "$events/trace_pipe" > "$work/raw" & tracer=$!
default='-b 1024 -I 128 -m 0 -E nodiscard'
[ "$FS" = ext2 ] || default='-E nodiscard,lazy_itable_init=0,lazy_journal_init=0'
# shellcheck disable=SC2086
"mkfs.$FS" -q -F ${MKFS_OPTIONS:-$default} "$loop"
mount -t "$FS" "$loop" "$work/m"; mountpoint -q "$work/m"
M=$work/m bash -c 'echo $$ > "$0/cgroup.procs"; exec "$@"' "$group" "$@"
umount "$work/m"
sleep 1
echo 0 > "$events/tracing_on"
sleep 1
kill "$tracer"; wait "$tracer" 2>/dev/null || true; tracer=''
lost=$(cat "$events"/per_cpu/cpu*/stats | awk '/^(overrun|commit overrun|dropped events)/ {n += $NF} END {print n + 0}')
[ "$lost" = 0 ] || fail "$lost events were lost: give buffer_size_kb more"

awk -v clock_us="$CLOCK_US" -f "$here/to-csv.awk" "$work/raw" > "$work/csv"
[ "$(wc -l < "$work/csv")" -gt 1 ] || fail "nothing was recorded"
xz -9e -c "$work/csv" > "$out"
echo "$(basename "$out"): $(awk -F, 'NR>1{n++;k[$2]++;b[$2]+=$4} END{printf "%d requests, %d writes, %.0f KB, %d reads, %.0f KB", n, k["W"], b["W"]/1024, k["R"], b["R"]/1024}' "$work/csv"), $(grep -c block_bio_queue "$work/raw") queued, $(stat -c %s "$out") bytes"
