#!/bin/busybox sh
# The first process of a guest: makes or verifies files on the disk that Floatgate serves to it, and says so on its console.
# The kernel's command line says what to do: phase=write, or phase=verify and kept=N.
/bin/busybox mkdir -p /dev /proc /sys /mounted
/bin/busybox --install -s /bin
mount -t devtmpfs none /dev
mount -t proc none /proc
mount -t sysfs none /sys
# Programs of e2fsprogs are called by their paths: the shell prefers its own.
# A kernel that has them built in, or another device, needs none.
for module in virtio_ring virtio virtio_pci_modern_dev virtio_pci_legacy_dev virtio_pci virtio_blk; do
    [ -f /modules/$module.ko ] && insmod /modules/$module.ko
done
value() { sed -n "s/.*$1=\([a-z0-9]*\).*/\1/p" /proc/cmdline; }
end() { echo "guest: $*"; sync; poweroff -f; }
is_mounted() { grep -q " /mounted ext4 " /proc/mounts; }
content() { seq $(($1 * 1000)) $(($1 * 1000 + 200 + $1 * 37 % 900)); }

disk=
for try in $(seq 100); do
    for name in vda nvme0n1; do [ -b /dev/$name ] && disk=/dev/$name; done
    [ -n "$disk" ] && break
    sleep 0.1
done
[ -n "$disk" ] || end "failed: no disk"

if [ "$(value phase)" = write ]; then
    /e2fsprogs/mke2fs -q -t ext4 -F $disk || end "failed: mke2fs"
    mount -t ext4 -o discard $disk /mounted && is_mounted || end "failed: mount"
    n=1
    # An fsync of a new file keeps its name too.
    while content $n | dd of=/mounted/$n conv=fsync 2> /dev/null; do
        # Said once it is kept, not before.
        echo "kept $n"
        n=$((n + 1))
    done
    end "failed: write"
fi

mount -t ext4 -o discard $disk /mounted && is_mounted || end "failed: mount"
for n in $(seq "$(value kept)"); do
    content $n > /expected
    cmp -s /expected /mounted/$n || end "failed: file $n is lost"
done
umount /mounted || end "failed: umount"
/e2fsprogs/e2fsck -f -n $disk > /checked 2>&1 || { cat /checked; end "failed: e2fsck"; }
end "passed"
