#!/usr/bin/env bash
# blogftl.sh OUT-FOLDER [NAME...]: records the workloads of BLogFTL's Table 3 (see ../README.md). Needs root.
#
# The programs: postmark and bonnie++ are packages of Debian; Bonnie and tiotest are built from their authors' sources and
# found through BONNIE and TIOTEST, each a path. Whatever is missing is said, and its workloads are left out.
#
# The disk takes 5 MB a second, so that pages that grow old are written out, as on the paper's board (about 1 MB a
# second). No request is longer than a page of 4 KB: that is what the paper's numbers of requests fit.
set -euo pipefail
out=${1:?usage: blogftl.sh OUT-FOLDER [NAME...]}; shift
here=$(cd "$(dirname "$0")" && pwd)
export FS=ext2 DISK_MIB=300 MEMORY_MIB=256 DIRTY_MIB=44 WRITE_MB_S=5 REQUEST_KIB=4
export BONNIE=${BONNIE:-$(command -v Bonnie || true)} TIOTEST=${TIOTEST:-$(command -v tiotest || true)}
names=${*:-bonnie-150 bonnie-200 postmark-150 postmark-200 tiobench-4 tiobench-6 cp-large cp-small}
failed=0

# What is copied lies in memory, outside the disk and the workload's memory group.
source=$(mktemp -d); export source
clean() { mountpoint -q "$source" && umount "$source"; rmdir "$source"; }
trap clean EXIT

record() { "$here/record.sh" "$out/ext2-$1.csv.xz" -- bash -euo pipefail -c "$2"; }
need() { [ -n "${!1}" ] && [ -x "${!1}" ] || { echo "blogftl.sh: $name: $1 is not set to a program; left out" >&2; failed=1; return 1; }; }

for name in $names; do
    size=${name##*-}; export size
    case $name in
        # The size is in MiB. Bonnie calls fsync after each of its passes.
        bonnie-*) need BONNIE && record "$name" '"$BONNIE" -d "$M" -s "$size" > /dev/null' ;;
        bonnie++-*) record "$name" 'chmod 777 "$M"; bonnie++ -d "$M" -s "$size" -r $((size / 2)) -n 0 -u nobody -q > /dev/null' ;;
        # Files of 500 to 10,000 bytes and 500 transactions are PostMark's own; 200 files make 1 MB.
        postmark-*) record "$name" 'printf "set location %s\nset number %d\nrun\nquit\n" "$M" $((size * 200)) > "$M.cfg"
                                    postmark "$M.cfg" > /dev/null; rm "$M.cfg"' ;;
        # 240 MiB in all; 1,000 random writes and reads a thread, tiotest's own number in version 0.3.
        tiobench-*) need TIOTEST && record "$name" '"$TIOTEST" -t "$size" -f $((240 / size)) -r 1000 -b 4096 -d "$M" > /dev/null' ;;
        cp-*)
            mountpoint -q "$source" || mount -t tmpfs -o size=220m none "$source"
            rm -rf "${source:?}"/*; mkdir "$source/set"
            if [ "$size" = large ]; then head -c 200M /dev/urandom > "$source/set/file"
            else for i in $(seq 2000); do head -c 100K /dev/urandom > "$source/set/$i"; done; fi
            record "$name" 'for copy in 1 2; do cp -r "$source/set" "$M/"; done' ;;
        *) echo "blogftl.sh: no workload $name" >&2; exit 2 ;;
    esac || failed=1
done
exit $failed
