//! A guest under QEMU whose disk is a device of Floatgate: it boots, makes a file system, writes; QEMU and the device are
//! killed; it boots again and finds what it had fsynced. QEMU emulates the processor, so this takes its time.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::device::floatgate;
use super::tools::{found, line, ran};
use crate::process::target;

/// How the disk reaches the guest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bus {
    /// QEMU's `nvme` device over its NBD client.
    Nvme,
    /// vhost-user-blk: the guest's queues are served by Floatgate itself.
    VhostUser,
}

/// Files that a guest has fsynced before the power goes.
const FILES: u64 = 60;
/// The longest that a boot with all that follows may take.
const PATIENCE: Duration = Duration::from_secs(240);
/// Kernel modules that a guest needs if its kernel has them not built in.
const MODULES: [&str; 6] = [
    "virtio",
    "virtio_ring",
    "virtio_pci_modern_dev",
    "virtio_pci_legacy_dev",
    "virtio_pci",
    "virtio_blk",
];

/// A kernel and a first file system for guests.
#[derive(Debug)]
pub struct Guest {
    folder: PathBuf,
    kernel: PathBuf,
}

/// Why no guest can be run here, if none can.
pub fn obstacle() -> Option<String> {
    let needed = [
        "qemu-system-x86_64",
        "busybox",
        "cpio",
        "dpkg-deb",
        "mke2fs",
        "e2fsck",
    ];
    let missing = needed.iter().find(|program| found(program).is_none());
    missing.map(|program| format!("{program} is not installed"))
}

/// A process that ends with this value.
struct Ends(Child);

impl Drop for Ends {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Guest {
    /// Takes a kernel from Debian's packages (it is not installed), and packs what the guest needs.
    pub fn new() -> Result<Self, String> {
        let folder = target().join("xtask-guest");
        let root = folder.join("root");
        let _ = std::fs::remove_dir_all(&root);
        for name in ["bin", "modules"] {
            let made = std::fs::create_dir_all(root.join(name));
            made.map_err(|error| format!("{}: {error}", root.display()))?;
        }
        let kernel = kernel(&folder)?;
        let modules = line("find")
            .arg(folder.join("kernel/lib/modules"))
            .args(["-name", "virtio*.ko"])
            .output();
        let modules = modules.map_err(|error| error.to_string())?.stdout;
        for path in String::from_utf8_lossy(&modules).lines().map(Path::new) {
            let name = path
                .file_stem()
                .and_then(|name| name.to_str())
                .unwrap_or_default();
            if MODULES.contains(&name) {
                copy(path, &root.join("modules").join(format!("{name}.ko")))?;
            }
        }
        copy(
            &found("busybox").unwrap_or_default(),
            &root.join("bin/busybox"),
        )?;
        for program in ["mke2fs", "e2fsck"] {
            let path = found(program).unwrap_or_default();
            copy(&path, &root.join("e2fsprogs").join(program))?;
            for library in libraries(&path)? {
                let inside = root.join(library.strip_prefix("/").unwrap_or(&library));
                copy(&library, &inside)?;
            }
        }
        let init = root.join("init");
        let write = || {
            std::fs::write(&init, include_str!("guest-init.sh"))?;
            std::fs::set_permissions(&init, PermissionsExt::from_mode(0o755))
        };
        write().map_err(|error| format!("{}: {error}", init.display()))?;
        ran(Command::new("sh").current_dir(&root).args([
            "-c",
            "find . | cpio --quiet --create --format=newc > ../root.cpio",
        ]))?;
        Ok(Self { folder, kernel })
    }

    /// Writes, kills, verifies. Returns the files compared.
    pub fn survive(&self, scheme: &str, bus: Bus) -> Result<u64, String> {
        let image = self.folder.join("guest.img");
        let _ = std::fs::remove_file(&image);
        let words = format!("image create --scheme {scheme} --set device.capacity_gib=0.0625");
        ran(floatgate(&words).arg(&image))?;
        let server = self.serve(&image, bus)?;
        let mut kept = 0;
        let qemu = self.boot(bus, "phase=write", &mut |said| {
            if let Some(n) = said.strip_prefix("kept ") {
                kept = n.trim().parse().unwrap_or(kept);
            }
            kept >= FILES
        })?;
        // The power goes: first the guest, then the device, each in the middle of its work.
        drop(qemu);
        drop(server);
        let server = self.serve(&image, bus)?;
        let mut outcome = None;
        let asked = format!("phase=verify kept={kept}");
        let qemu = self.boot(bus, &asked, &mut |said| {
            outcome = said.strip_prefix("guest: ").map(str::to_string);
            outcome.is_some()
        })?;
        drop(qemu);
        drop(server);
        ran(floatgate("image check").arg(&image))?;
        match outcome.as_deref().map(str::trim) {
            Some("passed") => Ok(kept),
            other => Err(format!("the guest said {other:?} after {kept} files")),
        }
    }

    fn socket(&self) -> PathBuf {
        self.folder.join("socket")
    }

    fn serve(&self, image: &Path, bus: Bus) -> Result<Ends, String> {
        let option = match bus {
            Bus::Nvme => "--socket",
            Bus::VhostUser => "--vhost-user",
        };
        let mut server = floatgate("serve");
        server.arg(image).arg(option).arg(self.socket());
        let server = server.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
        let mut server = Ends(server.map_err(|error| error.to_string())?);
        let mut told = String::new();
        if let Some(out) = server.0.stdout.take() {
            let _ = BufReader::new(out).read_line(&mut told);
        }
        match told.is_empty() {
            true => Err("floatgate serve gave no socket".into()),
            false => Ok(server),
        }
    }

    /// Boots, and reads the console until `is_enough` says so.
    fn boot(
        &self,
        bus: Bus,
        asked: &str,
        is_enough: &mut dyn FnMut(&str) -> bool,
    ) -> Result<Ends, String> {
        let socket = self.socket().display().to_string();
        let disk = match bus {
            Bus::Nvme => [
                "-drive".into(),
                format!(
                    "file=nbd+unix:///?socket={socket},format=raw,if=none,id=disk,cache=none,discard=unmap"
                ),
                "-device".into(),
                "nvme,drive=disk,serial=floatgate".into(),
            ],
            Bus::VhostUser => [
                "-chardev".into(),
                format!("socket,id=disk,path={socket}"),
                "-device".into(),
                "vhost-user-blk-pci,chardev=disk".into(),
            ],
        };
        let mut qemu = line(
            "qemu-system-x86_64 -machine q35,accel=tcg -cpu max -m 256 -display none -monitor none -serial stdio -no-reboot \
             -object memory-backend-memfd,id=memory,size=256M,share=on -numa node,memdev=memory -nic none",
        );
        qemu.args(disk)
            .arg("-kernel")
            .arg(&self.kernel)
            .arg("-initrd")
            .arg(self.folder.join("root.cpio"))
            .arg("-append")
            .arg(format!(
                "console=ttyS0 quiet panic=-1 no_timer_check {asked}"
            ));
        let qemu = qemu.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
        let mut qemu = Ends(qemu.map_err(|error| error.to_string())?);
        let console = qemu.0.stdout.take().ok_or("no console")?;
        let (tell, told) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            for said in BufReader::new(console).split(b'\n').map_while(Result::ok) {
                if tell.send(said).is_err() {
                    break;
                }
            }
        });
        let start = Instant::now();
        let mut last: Vec<String> = Vec::new();
        while start.elapsed() < PATIENCE {
            let rest = PATIENCE.saturating_sub(start.elapsed());
            let Ok(said) = told.recv_timeout(rest) else {
                break;
            };
            let said = String::from_utf8_lossy(&said).trim().to_string();
            if is_enough(&said) {
                return Ok(qemu);
            }
            last.push(said);
        }
        Err(format!(
            "the guest did not come to its end; it last said\n{}",
            last[last.len().saturating_sub(10)..].join("\n")
        ))
    }
}

/// Debian's kernel for virtual machines, unpacked in a folder.
fn kernel(folder: &Path) -> Result<PathBuf, String> {
    let boot = folder.join("kernel/boot");
    let there = || {
        let files = std::fs::read_dir(&boot).ok()?.flatten();
        let mut files = files.map(|file| file.path());
        files.find(|file| file.to_string_lossy().contains("/vmlinuz"))
    };
    if let Some(kernel) = there() {
        return Ok(kernel);
    }
    let told = ran(&mut line("apt-cache depends linux-image-cloud-amd64"))?;
    let mut words = told.split_whitespace().skip(1);
    let package = words.find(|word| word.starts_with("linux-image-"));
    let package = package.ok_or("apt-cache knows no kernel: apt-get update")?;
    ran(line("apt-get -q download").arg(package).current_dir(folder))?;
    let files = std::fs::read_dir(folder).map_err(|error| error.to_string())?;
    let mut files = files.flatten().map(|file| file.path());
    let is_package = |file: &PathBuf| file.extension().is_some_and(|extension| extension == "deb");
    let package = files
        .find(is_package)
        .ok_or("apt-get download left no package")?;
    ran(line("dpkg-deb -x").arg(&package).arg(folder.join("kernel")))?;
    there().ok_or("the package has no kernel".into())
}

/// The libraries of a program, its loader among them.
fn libraries(program: &Path) -> Result<Vec<PathBuf>, String> {
    let told = ran(line("ldd").arg(program))?;
    let paths = told.split_whitespace().filter(|word| word.starts_with('/'));
    Ok(paths.map(PathBuf::from).collect())
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let make = || {
        std::fs::create_dir_all(to.parent().unwrap_or(to))?;
        std::fs::copy(from, to)
    };
    let made = make().map(drop);
    made.map_err(|error| format!("{} to {}: {error}", from.display(), to.display()))
}
