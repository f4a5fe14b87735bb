for tool in fio blockdev awk; do
    command -v "$tool" >/dev/null || { echo "$tool is needed" >&2; exit 2; }
done
LOGICAL=$(blockdev --getsize64 "$DEVICE")
STAT="/sys/class/block/$(basename "$(readlink -f "$DEVICE")")/stat"

# host_bytes,media_bytes: what the kernel has written, in sectors of 512 bytes; the other is not known, and throughput is
# taken in its place.
counters() {
    awk '{ printf "%.0f,\n", $7 * 512 }' "$STAT"
}
