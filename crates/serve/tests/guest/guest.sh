#!/bin/sh
# A Linux guest under QEMU (no KVM needed) whose disk is a served device: ext4, files with checksums, a power-off.
#
#   guest.sh DEVICE PHASE SOCKET KERNEL
#
# DEVICE  vhost (SOCKET is that of --vhost-user) or nvme (QEMU's NVMe controller on NBD; SOCKET is that of --socket)
# PHASE   write   make a file system, write files, sync, unmount, power off
#         cut     the same, but after the sync it goes on writing until QEMU is killed by this script
#         verify  mount (which replays the journal), compare all checksums of what was synced, unmount, fsck, power off
# KERNEL  folder in which a kernel package was unpacked: dpkg-deb -x linux-image-*-cloud-amd64_*.deb KERNEL
#
# Needs qemu-system-x86_64, a static busybox, mke2fs, e2fsck, cpio. Exit code 0: the guest did its phase; 77: something is
# not installed. Nothing of this machine is mounted or changed but a temporary folder.
set -eu

if [ $# -ne 4 ]; then
    sed -n '2,14p' "$0" >&2
    exit 2
fi
device=$1 phase=$2 socket=$3 kernel=$4
for program in qemu-system-x86_64 busybox mke2fs e2fsck cpio gzip timeout ldd; do
    if ! PATH=$PATH:/sbin:/usr/sbin command -v "$program" >/dev/null; then
        echo "skipped: $program is not installed"
        exit 77
    fi
done
PATH=$PATH:/sbin:/usr/sbin
image=$(ls "$kernel"/boot/vmlinuz-* | head -n 1)
case $phase in write | cut | verify) ;; *) echo "PHASE $phase: write, cut or verify" >&2; exit 2 ;; esac
case $device in
vhost)
    disk=vda
    set -- -chardev "socket,id=c,path=$socket" -device vhost-user-blk-pci,chardev=c,num-queues=2
    ;;
nvme)
    disk=nvme0n1
    set -- -drive "file=nbd+unix:///?socket=$socket,format=raw,if=none,id=d,discard=unmap" \
        -device nvme,drive=d,serial=floatgate
    ;;
*)
    echo "DEVICE $device: vhost or nvme" >&2
    exit 2
    ;;
esac

work=$(mktemp -d)
qemu=
finish() {
    # timeout passes it on to QEMU.
    [ -z "$qemu" ] || kill "$qemu" 2>/dev/null || :
    rm -rf "$work"
}
trap finish EXIT
# Who stops it wants to know how far the guest came.
trap 'tail -n 5 "$work/log" >&2 || :; exit 1' INT TERM HUP

# The guest's whole system: busybox, the tools of ext4 with their libraries, what the kernel has as modules.
root=$work/root
mkdir -p "$root/bin" "$root/tools" "$root/modules" "$root/proc" "$root/sys" "$root/dev" "$root/mnt"
cp "$(command -v busybox)" "$root/bin/busybox"
for tool in mke2fs e2fsck; do
    cp "$(command -v $tool)" "$root/tools/"
    for library in $(ldd "$(command -v $tool)" | grep -o '/[^ ]*'); do
        mkdir -p "$root$(dirname "$library")"
        cp -L "$library" "$root$library"
    done
done
# In the order in which they need each other; some are built into the kernel.
number=10
for module in virtio_ring virtio virtio_pci_legacy_dev virtio_pci_modern_dev virtio_pci virtio_blk crc32c_generic \
    mbcache jbd2 ext4 nvme-core nvme; do
    for file in $(find "$kernel/lib/modules" -name "$module.ko"); do
        cp "$file" "$root/modules/$number-$module.ko"
        number=$((number + 1))
    done
done

cat >"$root/init" <<INIT
#!/bin/busybox sh
disk=/dev/$disk phase=$phase
INIT
cat >>"$root/init" <<'INIT'
/bin/busybox --install -s /bin
export PATH=/bin
fail() { echo "guest: failed: $*"; poweroff -f; }
mount -t proc proc /proc && mount -t sysfs sys /sys && mount -t devtmpfs dev /dev || fail mount
for module in /modules/*.ko; do insmod $module || fail $module; done
tries=0
while [ ! -b $disk ]; do
    tries=$((tries + 1))
    [ $tries -lt 100 ] || fail "no $disk"
    usleep 100000
done
queue=/sys/block/${disk#/dev/}/queue
echo "guest: $(cat $queue/write_cache), discard of $(cat $queue/discard_granularity) bytes"
case $phase in
write | cut)
    /tools/mke2fs -q -F -t ext4 $disk || fail mke2fs
    mount -t ext4 -o discard $disk /mnt && grep -q ' /mnt ext4 ' /proc/mounts || fail mount
    mkdir /mnt/kept /mnt/dropped
    for i in 1 2 3 4 5 6 7 8; do
        dd if=/dev/urandom of=/mnt/kept/$i bs=64k count=$((i * 2)) 2>/dev/null || fail dd
        cp /mnt/kept/$i /mnt/dropped/$i || fail cp
    done
    sync
    # Discarded while what lies beside it is kept.
    rm -r /mnt/dropped
    (cd /mnt/kept && sha256sum * >/mnt/sums) || fail sums
    sync
    echo "guest: flushed"
    while [ $phase = cut ]; do
        dd if=/dev/urandom of=/mnt/more bs=4k count=256 conv=fsync 2>/dev/null || fail "writing on"
        mv /mnt/more /mnt/more.old
    done
    ;;
verify)
    mount -t ext4 -o discard $disk /mnt && grep -q ' /mnt ext4 ' /proc/mounts || fail mount
    [ "$(wc -l </mnt/sums)" = 8 ] || fail "no sums"
    (cd /mnt/kept && sha256sum -c -s /mnt/sums) || fail "checksums differ"
    ;;
esac
umount /mnt || fail umount
/tools/e2fsck -f -n $disk >/dev/null || fail e2fsck
echo "guest: done"
poweroff -f
INIT
chmod +x "$root/init"
(cd "$root" && find . | cpio -o -H newc --quiet | gzip -1) >"$work/initramfs"

log=$work/log
: >"$log"
timeout 400 qemu-system-x86_64 -machine q35 -m 256 -nographic -nodefaults -no-reboot -serial "file:$log" \
    -object memory-backend-memfd,id=mem,size=256M,share=on -numa node,memdev=mem \
    -kernel "$image" -initrd "$work/initramfs" -append "console=ttyS0 panic=-1 quiet no_timer_check" "$@" &
qemu=$!
# Until timeout has its child.
sleep 0.5
if [ "$phase" = cut ]; then
    # QEMU is timeout's child; it may also end by itself, if the guest fails.
    while [ -n "$(cat "/proc/$qemu/task/$qemu/children" 2>/dev/null)" ] && ! grep -q 'guest: flushed' "$log"; do
        sleep 0.2
    done
    # In the middle of what follows.
    sleep 2
    for child in $(cat "/proc/$qemu/task/$qemu/children"); do kill -9 "$child"; done
    wait "$qemu" || :
    wanted='guest: flushed'
else
    wait "$qemu" || :
    wanted='guest: done'
fi
qemu=
grep -a 'guest: ' "$log" || :
if grep -aq 'guest: failed' "$log" || ! grep -aq "$wanted" "$log"; then
    tail -n 20 "$log" >&2
    exit 1
fi
