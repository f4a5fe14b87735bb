#!/usr/bin/env bash
# lastpp.sh OUT-FOLDER [NAME...]: records Postmark and Iozone as in LAST++'s Table IV at a sixteenth of the size
# (see ../README.md). Needs root; IOZONE is the path of iozone if it is not in the path.
#
# The paper had NTFS and does not state the programs' settings: these are ours, chosen for a sixteenth of what it wrote.
set -euo pipefail
out=${1:?usage: lastpp.sh OUT-FOLDER [NAME...]}; shift
here=$(cd "$(dirname "$0")" && pwd)
export FS=ext4 DISK_MIB=1024 MEMORY_MIB=256 DIRTY_MIB=44 WRITE_MB_S=10 REQUEST_KIB=0
export IOZONE=${IOZONE:-$(command -v iozone || true)}
record() { "$here/record.sh" "$out/ext4-$1.csv.xz" -- bash -euo pipefail -c "$2"; }

for name in ${*:-postmark iozone}; do
    case $name in
        postmark) record postmark 'printf "set location %s\nset number 18000\nset transactions 27000\nrun\nquit\n" "$M" > "$M.cfg"
                                   postmark "$M.cfg" > /dev/null; rm "$M.cfg"' ;;
        # Write, rewrite, read, reread, random read and write of 54 MiB, in records of 4 and 8 KB, with fsync.
        iozone)
            [ -x "$IOZONE" ] || { echo "lastpp.sh: IOZONE is not set to a program" >&2; exit 2; }
            record iozone 'cd "$M"; "$IOZONE" -a -e -i 0 -i 1 -i 2 -s 54m -y 4k -q 8k -f "$M/file" > /dev/null' ;;
        *) echo "lastpp.sh: no workload $name" >&2; exit 2 ;;
    esac
done
