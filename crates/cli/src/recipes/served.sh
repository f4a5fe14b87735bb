CONTROL=@CONTROL@
for tool in fio floatgate awk; do
    command -v "$tool" >/dev/null || { echo "$tool is needed" >&2; exit 2; }
done
LOGICAL=$(floatgate stat "$CONTROL" --prometheus | awk '$1 == "floatgate_device_bytes" { printf "%.0f\n", $2 }')
PAGE=$(floatgate stat "$CONTROL" --json | sed 's/.*"page_bytes":\([0-9]*\).*/\1/')

# host_bytes,media_bytes, read together: bytes of writes that were done, and all programmed pages of the chip.
counters() {
    floatgate stat "$CONTROL" --prometheus | awk -v page="$PAGE" '
        $1 == "floatgate_request_bytes_total{kind=\"write\"}" { host = $2 }
        $1 == "floatgate_chip_operations_total{operation=\"program\"}" { programs = $2 }
        END { printf "%.0f,%.0f\n", host, programs * page }'
}
