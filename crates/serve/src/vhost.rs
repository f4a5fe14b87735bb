//! The device as the disk of a virtual machine: a back end of vhost-user, for QEMU, Cloud Hypervisor and their like. The
//! requests lie in the guest's memory, which is mapped here, so that no byte passes through a socket.
//!
//! One machine at a time; the next one waits until the first has gone. Its monitor is trusted as far as its memory goes:
//! one that takes back memory which it gave ends this process, as it would any back end.

mod request;

use std::fmt;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use vhost::vhost_user::Listener;
use vhost::vhost_user::message::{VhostUserProtocolFeatures, VhostUserVirtioFeatures};
use vhost_user_backend::{VhostUserBackend, VhostUserDaemon, VringMutex, VringT};
use virtio_queue::QueueT;
use vm_memory::{GuestAddressSpace, GuestMemoryAtomic, GuestMemoryMmap};
use vmm_sys_util::epoll::EventSet;
use vmm_sys_util::eventfd::{EFD_NONBLOCK, EventFd};

use crate::shared::Shared;
use crate::socket::{OwnSocket, ROUND, wait};
use request::{RANGES_MAX, SECTOR_BYTES, Worker};

/// Queues that a guest may use, each with a thread of its own: while one waits for a flush others are read.
const QUEUES: usize = 4;
const QUEUE_SIZE: usize = 256;
/// The event that ends the threads of a connection; those below are the queues'.
const QUIT: u16 = QUEUES as u16 + 1;
/// Pieces of a request at most, and bytes of each: together less than a request may have.
const PIECES_MAX: u32 = 126;
const PIECE_BYTES_MAX: u32 = 256 << 10;
/// Sectors of a range of zeroes at most: what is written in one go.
const ZEROES_SECTORS_MAX: u32 = 1 << 21;

/// Bits of the virtio specification.
mod feature {
    pub const SIZE_MAX: u64 = 1 << 1;
    pub const SEG_MAX: u64 = 1 << 2;
    pub const READ_ONLY: u64 = 1 << 5;
    pub const BLOCK_SIZE: u64 = 1 << 6;
    pub const FLUSH: u64 = 1 << 9;
    pub const TOPOLOGY: u64 = 1 << 10;
    pub const CONFIG_WCE: u64 = 1 << 11;
    pub const MULTI_QUEUE: u64 = 1 << 12;
    pub const DISCARD: u64 = 1 << 13;
    pub const WRITE_ZEROES: u64 = 1 << 14;
    pub const INDIRECT: u64 = 1 << 28;
    pub const EVENT_INDEX: u64 = 1 << 29;
    pub const VERSION_1: u64 = 1 << 32;
}

/// Where `wce` stands in the configuration: whether there is a write cache, which the guest may switch.
const WCE_AT: usize = 32;
const CONFIG_BYTES: usize = 60;

type Memory = GuestMemoryAtomic<GuestMemoryMmap>;
type Vring = VringMutex<Memory>;

/// A socket that a virtual machine's monitor can connect to.
#[derive(Debug)]
pub struct VhostUser(OwnSocket);

impl VhostUser {
    /// Takes the socket, for this user alone. The file of a server that was killed is replaced; any other is left alone.
    ///
    /// # Errors
    /// If the name is taken, or cannot be used.
    pub fn bind(path: &Path) -> io::Result<Self> {
        OwnSocket::bind(path).map(Self)
    }

    /// Serves the device until `stop` is set.
    pub fn run(self, shared: &Arc<Shared>, stop: &AtomicBool) {
        while !stop.load(Ordering::Relaxed) {
            if !wait(self.0.listener()) {
                continue;
            }
            if self.converse(shared, stop).is_err() {
                // No threads or no files left: others may end meanwhile.
                std::thread::sleep(ROUND);
            }
        }
    }

    /// Serves one machine. How it parts is its own affair.
    fn converse(&self, shared: &Arc<Shared>, stop: &AtomicBool) -> io::Result<()> {
        let backend = Arc::new(Backend::new(Arc::clone(shared))?);
        let failed = |error: vhost_user_backend::Error| io::Error::other(error.to_string());
        let memory = backend.memory.clone();
        let daemon = VhostUserDaemon::new("vhost-user".into(), Arc::clone(&backend), memory);
        let mut daemon = daemon.map_err(failed)?;
        // Dropped before the daemon, which waits for the threads of the queues.
        let _quit = Quit(&backend);
        for handler in daemon.get_epoll_handlers() {
            handler.register_listener(backend.quit.as_raw_fd(), EventSet::IN, QUIT.into())?;
        }
        let mut listener = Listener::from(self.0.listener().try_clone()?);
        daemon.start(&mut listener).map_err(failed)?;
        until_over(&mut daemon, stop);
        Ok(())
    }
}

/// Ends the threads of a connection.
struct Quit<'a>(&'a Backend);

impl Drop for Quit<'_> {
    fn drop(&mut self) {
        self.0.is_over.store(true, Ordering::Relaxed);
        let _ = self.0.quit.write(1);
    }
}

/// Waits until the machine has gone, or hangs up when `stop` is set.
fn until_over(daemon: &mut VhostUserDaemon<Arc<Backend>>, stop: &AtomicBool) {
    let over = AtomicBool::new(false);
    let handle = daemon.shutdown_handle();
    std::thread::scope(|threads| {
        threads.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                if let (true, Some(handle)) = (stop.load(Ordering::Relaxed), &handle) {
                    handle.shutdown();
                }
                std::thread::sleep(ROUND);
            }
        });
        let _ = daemon.wait();
        over.store(true, Ordering::Relaxed);
    });
}

/// The device as one machine sees it.
struct Backend {
    shared: Arc<Shared>,
    memory: Memory,
    workers: [Mutex<Worker>; QUEUES],
    /// What the guest's driver wants of what was offered.
    acknowledged: AtomicU64,
    /// Whether the guest wants a write cache: then only a flush makes writes last.
    has_cache: AtomicBool,
    is_over: AtomicBool,
    quit: EventFd,
}

impl fmt::Debug for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Backend").finish_non_exhaustive()
    }
}

impl Backend {
    fn new(shared: Arc<Shared>) -> io::Result<Self> {
        Ok(Self {
            shared,
            memory: GuestMemoryAtomic::new(GuestMemoryMmap::new()),
            workers: Default::default(),
            acknowledged: AtomicU64::new(0),
            has_cache: AtomicBool::new(true),
            is_over: AtomicBool::new(false),
            quit: EventFd::new(EFD_NONBLOCK)?,
        })
    }

    /// What one thread reuses. One that panicked left nothing there that the next request needs.
    fn worker(&self, queue: usize) -> Option<MutexGuard<'_, Worker>> {
        let worker = self.workers.get(queue)?;
        Some(worker.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether every write has to last: the guest has switched the cache off, or knows no way to flush it.
    fn is_through(&self) -> bool {
        let acknowledged = self.acknowledged.load(Ordering::Relaxed);
        match acknowledged & feature::CONFIG_WCE {
            0 => acknowledged & feature::FLUSH == 0,
            _ => !self.has_cache.load(Ordering::Relaxed),
        }
    }

    /// The configuration that the guest reads: `struct virtio_blk_config`, little-endian.
    fn config(&self) -> [u8; CONFIG_BYTES] {
        let export = self.shared.export();
        let sectors = export.bytes / SECTOR_BYTES;
        let in_page = export.page_bytes / export.sector_bytes;
        let discard_max = sectors.min(u32::MAX.into()) as u32;
        let mut config = [0; CONFIG_BYTES];
        let mut put = |at: usize, bytes: &[u8]| config[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &sectors.to_le_bytes());
        put(8, &PIECE_BYTES_MAX.to_le_bytes());
        put(12, &PIECES_MAX.to_le_bytes());
        put(20, &export.sector_bytes.to_le_bytes());
        // Blocks of a physical one, as a power of two; the least and the best size of a request, in blocks.
        put(24, &[in_page.ilog2() as u8]);
        put(26, &(in_page as u16).to_le_bytes());
        put(28, &in_page.to_le_bytes());
        put(WCE_AT, &[self.has_cache.load(Ordering::Relaxed).into()]);
        put(34, &(QUEUES as u16).to_le_bytes());
        put(36, &discard_max.to_le_bytes());
        put(40, &RANGES_MAX.to_le_bytes());
        put(44, &(export.page_bytes / SECTOR_BYTES as u32).to_le_bytes());
        put(48, &discard_max.min(ZEROES_SECTORS_MAX).to_le_bytes());
        put(52, &RANGES_MAX.to_le_bytes());
        put(56, &[1]);
        config
    }

    /// Answers what lies in a queue.
    fn serve(&self, vring: &Vring, worker: &mut Worker) -> io::Result<()> {
        while !self.is_over.load(Ordering::Relaxed) {
            let memory = self.memory.memory();
            let next = vring.get_mut().get_queue_mut().pop_descriptor_chain(memory);
            let Some(chain) = next else {
                break;
            };
            let head = chain.head_index();
            let written = worker.answer(&self.shared, self.is_through(), chain);
            vring.add_used(head, written).map_err(io::Error::other)?;
            if vring.needs_notification().map_err(io::Error::other)? {
                vring.signal_used_queue()?;
            }
        }
        Ok(())
    }
}

impl VhostUserBackend for Backend {
    type Bitmap = ();
    type Vring = Vring;

    fn num_queues(&self) -> usize {
        QUEUES
    }

    fn max_queue_size(&self) -> usize {
        QUEUE_SIZE
    }

    fn features(&self) -> u64 {
        use feature::*;
        let always = SIZE_MAX | SEG_MAX | BLOCK_SIZE | FLUSH | TOPOLOGY | CONFIG_WCE | MULTI_QUEUE;
        let ring = INDIRECT | EVENT_INDEX | VERSION_1;
        let changes = match self.shared.export().is_read_only {
            true => READ_ONLY,
            false => DISCARD | WRITE_ZEROES,
        };
        always | ring | changes | VhostUserVirtioFeatures::PROTOCOL_FEATURES.bits()
    }

    fn acked_features(&self, features: u64) {
        self.acknowledged.store(features, Ordering::Relaxed);
    }

    fn protocol_features(&self) -> VhostUserProtocolFeatures {
        VhostUserProtocolFeatures::CONFIG
            | VhostUserProtocolFeatures::MQ
            | VhostUserProtocolFeatures::REPLY_ACK
    }

    fn reset_device(&self) {
        self.has_cache.store(true, Ordering::Relaxed);
    }

    // The rings know by themselves.
    fn set_event_idx(&self, _: bool) {}

    fn get_config(&self, offset: u32, size: u32) -> Vec<u8> {
        // What lies behind is for features that are not offered.
        let mut config = self.config().to_vec();
        let end = offset as usize + size as usize;
        if size as usize > vhost::vhost_user::message::VHOST_USER_CONFIG_SIZE as usize {
            return Vec::new();
        }
        config.resize(config.len().max(end), 0);
        config[offset as usize..end].to_vec()
    }

    fn set_config(&self, offset: u32, bytes: &[u8]) -> io::Result<()> {
        match (offset as usize, bytes) {
            (WCE_AT, [wanted @ (0 | 1)]) => {
                self.has_cache.store(*wanted == 1, Ordering::Relaxed);
                // What was written while there was a cache lasts from now on, as every write does.
                match wanted {
                    0 => self.shared.flush().map_err(|_| io::ErrorKind::Other.into()),
                    _ => Ok(()),
                }
            }
            _ => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    fn update_memory(&self, _: Memory) -> io::Result<()> {
        // It is the one that this back end was made with.
        Ok(())
    }

    fn queues_per_thread(&self) -> Vec<u64> {
        (0..QUEUES).map(|queue| 1 << queue).collect()
    }

    /// Returns once nothing is done for the queue any more: its thread holds what it works with.
    fn stop_vring(&self, queue: u32) -> io::Result<()> {
        drop(self.worker(queue as usize));
        Ok(())
    }

    fn handle_event(
        &self,
        event: u16,
        _: EventSet,
        vrings: &[Vring],
        thread: usize,
    ) -> io::Result<()> {
        if event == QUIT {
            // An error is what ends the thread.
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        let (Some(vring), Some(mut worker)) = (vrings.get(event as usize), self.worker(thread))
        else {
            return Ok(());
        };
        loop {
            vring.disable_notification().map_err(io::Error::other)?;
            self.serve(vring, &mut worker)?;
            // What came while notifications were off is not told of.
            let has_more = vring.enable_notification().map_err(io::Error::other)?;
            if !has_more || self.is_over.load(Ordering::Relaxed) {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
#[path = "vhost/tests.rs"]
pub(crate) mod tests;
