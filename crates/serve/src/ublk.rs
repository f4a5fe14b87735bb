//! The device as a block device of this machine through the kernel's ublk driver (Linux 6.0 and later, module `ublk_drv`):
//! `/dev/ublkbN`, with no file and no loop device between. Only with the feature `ublk`, whose library needs libclang to be
//! built.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use libublk::ctrl::{UblkCtrl, UblkCtrlBuilder};
use libublk::io::{BufDescList, UblkDev, UblkIOCtx, UblkQueue};
use libublk::{BufDesc, UblkError, UblkFlags, UblkIORes, sys};

use crate::shared::{Export, Failure, Shared};

/// Requests of the kernel that wait here at a time.
const DEPTH: u16 = 64;
/// Bytes of a request.
const REQUEST_BYTES: u32 = 512 << 10;
/// Bytes of a discard, or of zeroes.
const RANGE_BYTES: u32 = 1 << 30;
/// Sectors of the kernel, whatever those of the device are.
const SECTOR_SHIFT: u32 = 9;
/// How often it is looked whether it is the end.
const ROUND: Duration = Duration::from_millis(50);

/// Serves the device to the kernel until `stop` is set or somebody deletes the block device; `tell` is called with its
/// path once it is there.
///
/// # Errors
/// If the kernel has no ublk driver, or does not allow it.
pub fn serve(
    shared: &Arc<Shared>,
    stop: &AtomicBool,
    tell: impl FnOnce(&str) + Send + Sync + 'static,
) -> Result<(), String> {
    let told = |error: UblkError| error.to_string();
    let builder = UblkCtrlBuilder::default()
        .name("floatgate")
        .nr_queues(1)
        .depth(DEPTH)
        .io_buf_bytes(REQUEST_BYTES)
        .dev_flags(UblkFlags::UBLK_DEV_F_ADD_DEV);
    let control = builder.build().map_err(told)?;
    let over = AtomicBool::new(false);
    let outcome = std::thread::scope(|threads| {
        threads.spawn(|| {
            while !stop.load(Ordering::Relaxed) && !over.load(Ordering::Relaxed) {
                std::thread::sleep(ROUND);
            }
            // What the kernel has asked is answered before its queue ends.
            let _ = control.kill_dev();
        });
        let (export, served) = (shared.export(), Arc::clone(shared));
        let outcome = control.run_target(
            move |device: &mut UblkDev| {
                describe(device, export);
                Ok(())
            },
            move |queue, device: &UblkDev| {
                // A queue that cannot begin is a device that the kernel gives up.
                let _ = serve_queue(queue, device, &served);
            },
            move |control: &UblkCtrl| tell(&control.get_bdev_path()),
        );
        over.store(true, Ordering::Relaxed);
        outcome
    });
    let deleted = control.del_dev();
    outcome.and(deleted).map(drop).map_err(told)
}

/// Tells the kernel what the device is.
fn describe(device: &mut UblkDev, export: Export) {
    device.set_default_params(export.bytes);
    let parameters = &mut device.tgt.params;
    let basic = &mut parameters.basic;
    basic.attrs = sys::UBLK_ATTR_VOLATILE_CACHE | sys::UBLK_ATTR_FUA;
    if export.is_read_only {
        basic.attrs |= sys::UBLK_ATTR_READ_ONLY;
    }
    basic.logical_bs_shift = export.sector_bytes.ilog2() as u8;
    for shift in [
        &mut basic.physical_bs_shift,
        &mut basic.io_min_shift,
        &mut basic.io_opt_shift,
    ] {
        *shift = export.page_bytes.ilog2() as u8;
    }
    parameters.types |= sys::UBLK_PARAM_TYPE_DISCARD;
    parameters.discard.discard_granularity = export.page_bytes;
    parameters.discard.max_discard_sectors = RANGE_BYTES >> SECTOR_SHIFT;
    parameters.discard.max_write_zeroes_sectors = RANGE_BYTES >> SECTOR_SHIFT;
    parameters.discard.max_discard_segments = 1;
}

fn serve_queue(number: u16, device: &UblkDev, shared: &Shared) -> Result<(), UblkError> {
    // One set for the kernel to know where the bytes lie, one after the other for this thread to use.
    let buffers = device.alloc_queue_io_bufs();
    let queue = UblkQueue::new(number, device)?
        .submit_fetch_commands_unified(BufDescList::Slices(Some(&buffers)))?;
    let mut buffers = buffers;
    queue.wait_and_handle_io(|queue: &UblkQueue<'_>, tag: u16, _: &UblkIOCtx| {
        let asked = queue.get_iod(tag);
        let buffer = &mut buffers[usize::from(tag)];
        let request = Request {
            operation: asked.op_flags & 0xff,
            flags: asked.op_flags,
            offset: asked.start_sector << SECTOR_SHIFT,
            bytes: u64::from(asked.nr_sectors) << SECTOR_SHIFT,
        };
        let result = match request.perform(shared, buffer.as_mut_slice()) {
            Ok(bytes) => bytes,
            Err(failure) => -(failure as i32),
        };
        let slice = BufDesc::Slice(buffer.as_slice());
        // Refused only if the queue has gone, which ends the loop by itself.
        let _ = queue.complete_io_cmd_unified(tag, slice, Ok(UblkIORes::Result(result)));
    });
    Ok(())
}

/// What the kernel asks.
struct Request {
    operation: u32,
    flags: u32,
    offset: u64,
    bytes: u64,
}

impl Request {
    /// Does it; the bytes that were moved.
    fn perform(&self, shared: &Shared, buffer: &mut [u8]) -> Result<i32, Failure> {
        shared.export().check(self.offset, self.bytes)?;
        let fua = self.flags & sys::UBLK_IO_F_FUA != 0;
        let data = buffer.get_mut(..self.bytes as usize);
        match self.operation {
            sys::UBLK_IO_OP_READ => shared.read(self.offset, data.ok_or(Failure::TooLong)?)?,
            sys::UBLK_IO_OP_WRITE => {
                shared.write(self.offset, data.ok_or(Failure::TooLong)?, fua)?;
            }
            sys::UBLK_IO_OP_FLUSH => shared.flush()?,
            sys::UBLK_IO_OP_DISCARD => shared.trim(self.offset, self.bytes)?,
            sys::UBLK_IO_OP_WRITE_ZEROES => {
                let may_drop = self.flags & sys::UBLK_IO_F_NOUNMAP == 0;
                shared.write_zeroes(self.offset, self.bytes, may_drop)?;
                if fua {
                    shared.flush()?;
                }
            }
            _ => return Err(Failure::Unsupported),
        }
        i32::try_from(self.bytes).map_err(|_| Failure::TooLong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vhost::tests::{BYTES, shared};

    fn ask(shared: &Shared, op_flags: u32, offset: u64, data: &mut [u8]) -> Result<i32, Failure> {
        let request = Request {
            operation: op_flags & 0xff,
            flags: op_flags,
            offset,
            bytes: data.len() as u64,
        };
        request.perform(shared, data)
    }

    #[test]
    fn the_kernel_s_requests_are_done_and_others_refused() {
        let shared = shared();
        let mut data = vec![7; 4096];
        let write = sys::UBLK_IO_OP_WRITE;
        assert_eq!(ask(&shared, write, 2048, &mut data), Ok(4096));
        let through = write | sys::UBLK_IO_F_FUA;
        assert_eq!(ask(&shared, through, 512, &mut [8; 512]), Ok(512));
        assert_eq!(ask(&shared, sys::UBLK_IO_OP_FLUSH, 0, &mut []), Ok(0));
        let mut found = vec![1; 6144];
        assert_eq!(ask(&shared, sys::UBLK_IO_OP_READ, 0, &mut found), Ok(6144));
        assert_eq!(found[..512], [0; 512]);
        assert_eq!(found[512..1024], [8; 512]);
        assert_eq!(found[2048..], data);
        let discard = sys::UBLK_IO_OP_DISCARD;
        assert_eq!(ask(&shared, discard, 2048, &mut [0; 2048]), Ok(2048));
        let zeroes = sys::UBLK_IO_OP_WRITE_ZEROES | sys::UBLK_IO_F_NOUNMAP;
        assert_eq!(ask(&shared, zeroes, 4096, &mut [0; 512]), Ok(512));
        assert_eq!(ask(&shared, sys::UBLK_IO_OP_READ, 0, &mut found), Ok(6144));
        assert_eq!(found[2048..4608], [0; 2560]);
        assert_eq!(found[4608..], [7; 1536]);
        for (operation, offset) in [
            (write, BYTES - 512),
            (write, u64::MAX - 511),
            (write, 5),
            (99, 0),
        ] {
            let refused = ask(&shared, operation, offset, &mut [9; 1024]);
            assert!(refused.is_err(), "{operation} at {offset}");
        }
        assert_eq!(ask(&shared, sys::UBLK_IO_OP_READ, 0, &mut found), Ok(6144));
        assert_eq!(
            found[..512],
            [0; 512],
            "nothing was done of what was refused"
        );
    }
}
