#!/bin/sh
# Measures a drive for `floatgate fit`. Printed by `floatgate recipe fit`.
#
#   THIS DESTROYS ALL DATA ON THE DEVICE NAMED BELOW, AND WEARS IT:
#   each run trims the device, fills a part of it, and writes that part @ROUNDS@ times over.
#
# Run it on a device that holds nothing: sh THIS_SCRIPT --destroy-all-data
set -eu

DEVICE=@DEVICE@
OUT=@OUT@
ROUNDS=@ROUNDS@   # bytes written in each run, in sizes of what it writes to
EVERY=@EVERY@     # seconds between two readings of the counters
MIB=1048576

if [ "${1-}" != "--destroy-all-data" ]; then
    echo "This destroys all data on $DEVICE. To do so: sh $0 --destroy-all-data" >&2
    exit 2
fi
if [ -e "$OUT" ]; then
    echo "$OUT is there already; move it away" >&2
    exit 2
fi

@COUNTERS@

# Options of fio that all of its runs share.
writes() {
    fio --name=fit --ioengine=@ENGINE@ --@TARGET@="$DEVICE" --direct=1 --output=/dev/null "$@"
}

# measure RUN WORKLOAD PERCENT DISTRIBUTION
measure() {
    span=$((LOGICAL * $3 / 100))
    span=$((span - span % MIB))
    echo "$1: $((span / MIB)) MiB, written $ROUNDS times" >&2
    writes --rw=trim --bs=1M --size="$((LOGICAL - LOGICAL % MIB))"
    writes --rw=write --bs=1M --iodepth=4 --size="$span"
    writes --rw=randwrite --bs=4k --iodepth=32 --norandommap=1 --randrepeat=0 \
        --random_distribution="$4" --size="$span" --io_size="$((span * ROUNDS))" &
    writer=$!
    while kill -0 "$writer" 2>/dev/null; do
        row "$1" "$2" "$span"
        sleep "$EVERY"
    done
    wait "$writer"
    row "$1" "$2" "$span"
}

# row RUN WORKLOAD SPAN
row() {
    read_counters=$(counters)
    printf '%s,%s,%s,%s,%s,%s\n' "$1" "$2" "$LOGICAL" "$3" "$read_counters" "$(date +%s.%N)" >>"$OUT"
}

echo "run,workload,logical_bytes,span_bytes,host_bytes,media_bytes,seconds" >"$OUT"
@RUNS@
echo "$OUT is complete: floatgate fit $OUT" >&2
