for tool in fio nvme od blockdev; do
    command -v "$tool" >/dev/null || { echo "$tool is needed" >&2; exit 2; }
done
LOGICAL=$(blockdev --getsize64 "$DEVICE")

# The number of eight bytes at a place of a log page.
log_number() {
    nvme get-log "$DEVICE" --log-id="$1" --log-len=512 --raw-binary | od -An -tu8 -j"$2" -N8 | tr -d ' '
}
# host_bytes,media_bytes: data units written, of 512,000 bytes each (SMART log), and physical media units written, in
# bytes (OCP's SMART log C0h).
counters() {
    units=$(log_number 2 48)
    echo "$((units * 512000)),$(log_number 0xC0 0)"
}
