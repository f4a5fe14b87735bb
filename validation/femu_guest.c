/*
 * The only program of the guest that wall_femu.py boots. It writes the pages that /work lists to the drive, one page a
 * request, in their order, and says on the console what the drive's SMART log has before and after the measured part.
 *
 *     gcc -O2 -static -o femu_guest validation/femu_guest.c
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/nvme_ioctl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>

/* FEMU's counters are in bytes of the SMART log that the standard reserves. */
enum { GET_LOG_PAGE = 2, SMART_LOG = 2, LOG_BYTES = 512, HOST_AT = 200, MOVED_AT = 208 };
enum { PAGE_BYTES = 4096, DEPTH = 512 };

static int set(const char *file, const char *value)
{
    int out = open(file, O_WRONLY);
    int good = out >= 0 && write(out, value, strlen(value)) == (ssize_t)strlen(value);
    close(out);
    return good;
}

/*
 * Process 1 never returns. The machine ends at once: where Linux shut the drive down first, one run of FEMU ended in a
 * segmentation fault of the thread that reads the queues, perhaps of one that Linux was deleting.
 */
static void end(const char *why)
{
    printf("guest: %s\n", why);
    fflush(stdout);
    tcdrain(STDOUT_FILENO);
    set("/proc/sysrq-trigger", "b");
    for (;;)
        pause();
}

static void need(int good, const char *what)
{
    if (!good) {
        perror(what);
        end("failed");
    }
}


static void tell_counters(int drive, const char *when)
{
    static unsigned char log[LOG_BYTES] __attribute__((aligned(PAGE_BYTES)));
    struct nvme_admin_cmd ask = {
        .opcode = GET_LOG_PAGE,
        .nsid = 0xffffffff,
        .addr = (uintptr_t)log,
        .data_len = LOG_BYTES,
        .cdw10 = (LOG_BYTES / 4 - 1) << 16 | SMART_LOG,
    };
    uint64_t host, moved;

    need(ioctl(drive, NVME_IOCTL_ADMIN_CMD, &ask) == 0, "SMART log");
    memcpy(&host, log + HOST_AT, sizeof host);
    memcpy(&moved, log + MOVED_AT, sizeof moved);
    printf("%s host=%llu moved=%llu\n", when, (unsigned long long)host, (unsigned long long)moved);
}

static void write_pages(int drive, aio_context_t queue, const uint32_t *pages, size_t count)
{
    static unsigned char data[PAGE_BYTES] __attribute__((aligned(PAGE_BYTES)));
    struct iocb requests[DEPTH], *list[DEPTH];
    struct io_event done[DEPTH];

    for (size_t at = 0; at < count;) {
        size_t n = count - at < DEPTH ? count - at : DEPTH;
        memset(requests, 0, sizeof requests);
        for (size_t i = 0; i < n; i++) {
            requests[i].aio_lio_opcode = IOCB_CMD_PWRITE;
            requests[i].aio_fildes = drive;
            requests[i].aio_buf = (uintptr_t)data;
            requests[i].aio_nbytes = PAGE_BYTES;
            requests[i].aio_offset = (int64_t)pages[at + i] * PAGE_BYTES;
            list[i] = &requests[i];
        }
        need(syscall(SYS_io_submit, queue, n, list) == (long)n, "io_submit");
        need(syscall(SYS_io_getevents, queue, n, n, done, NULL) == (long)n, "io_getevents");
        for (size_t i = 0; i < n; i++)
            if (done[i].res != PAGE_BYTES)
                end("failed: a write");
        at += n;
    }
}

int main(void)
{
    uint32_t head[2]; /* writes before the measured part, measured ones; then their pages */
    aio_context_t queue = 0;
    int drive = -1;

    mkdir("/dev", 0755);
    mkdir("/proc", 0755);
    mkdir("/sys", 0755);
    mount("none", "/dev", "devtmpfs", 0, NULL); /* the kernel may have done it */
    need(mount("none", "/proc", "proc", 0, NULL) == 0, "/proc");
    need(mount("none", "/sys", "sysfs", 0, NULL) == 0, "/sys");
    for (int i = 0; i < 200 && drive < 0; i++) {
        drive = open("/dev/nvme0n1", O_RDWR | O_DIRECT);
        if (drive < 0)
            usleep(100000);
    }
    need(drive >= 0, "/dev/nvme0n1");
    /* Requests neither change places nor become one. */
    need(set("/sys/block/nvme0n1/queue/scheduler", "none"), "scheduler");
    need(set("/sys/block/nvme0n1/queue/nomerges", "2"), "nomerges");

    FILE *work = fopen("/work", "rb");
    need(work && fread(head, sizeof *head, 2, work) == 2, "/work");
    size_t count = (size_t)head[0] + head[1];
    uint32_t *pages = malloc(count * sizeof *pages);
    need(pages && fread(pages, sizeof *pages, count, work) == count, "/work");

    need(syscall(SYS_io_setup, DEPTH, &queue) == 0, "io_setup");
    write_pages(drive, queue, pages, head[0]);
    tell_counters(drive, "before");
    write_pages(drive, queue, pages + head[0], head[1]);
    tell_counters(drive, "after");
    end("passed");
}
