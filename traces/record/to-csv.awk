# The text of the tracepoint block:block_rq_issue to the trace format of ../README.md.
#   program-123 [001] ..... 40469.455334: block_rq_issue: 7,0 W 4096 () 1024 + 8 none,0,0 [program]
# The first request is at 0; the clock has microseconds, of which clock_us are one step of the times written.
BEGIN { print "time_ns,op,offset,size" }
/: block_rq_issue: / {
    at = match($0, /[0-9]+\.[0-9]+: block_rq_issue: /)
    split(substr($0, at), f, " ")
    split(f[1], clock, "[.:]")
    t = clock[1] * 1000000 + clock[2]
    if (!begun++) first = t
    ns = int((t - first) / clock_us) * clock_us * 1000
    # A leading F with a letter behind it is a flush that goes before the request.
    kind = f[4]
    if (kind ~ /^F/) { printf "%.0f,F,0,0\n", ns; kind = substr(kind, 2) }
    match($0, /\) [0-9]+ \+ [0-9]+ /)
    split(substr($0, RSTART, RLENGTH), place, " ")
    if (place[4] == 0) next
    op = kind ~ /^D/ ? "T" : kind ~ /^R/ ? "R" : kind ~ /^N/ ? "Z" : kind ~ /^W/ ? "W" : ""
    if (op == "") { print "to-csv.awk: unknown kind " f[4] > "/dev/stderr"; exit 1 }
    printf "%.0f,%s,%.0f,%.0f\n", ns, op, place[2] * 512, place[4] * 512
}
