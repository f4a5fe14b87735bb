//! What the host does with pages, and moves of pages between log blocks.

use super::{Hybrid, Log, LogPage, Loss, Watch, programmable};
use floatgate_core::address::{DieLpn, Lbn, Ppn};
use floatgate_core::flash::{Cause, Flash, Oob, Role, Slot};

impl<W: Watch> Hybrid<W> {
    /// First steps of a page write: takes a data block if there is none, and programs the page in it if its
    /// position can be. Returns whether that was all.
    ///
    /// # Errors
    /// Those of the flash.
    #[inline]
    pub fn write_to_data<F: Flash>(
        &mut self,
        flash: &mut F,
        slot: Slot,
        lpn: DieLpn,
    ) -> Result<bool, F::Error> {
        let (lbn, offset) = self.split(lpn);
        if self.data[lbn.index()].is_none() {
            self.take_data(flash, lbn)?;
        }
        let block = self.data[lbn.index()];
        if !programmable(flash, block, offset) {
            return Ok(false);
        }
        let to = self.space.geometry.ppn(block, offset);
        let oob = Oob::new(self.space.device_lpn(lpn), Role::Data);
        let done = flash.program_host(slot, to, oob, F::Token::default())?;
        self.replace(flash, lpn, to, done);
        self.move_newest(lpn, to, Loss::Overwritten);
        Ok(true)
    }

    /// The host's page `lpn` is being programmed at `to`: an old copy on another die must stay until it is.
    #[inline]
    fn replace<F: Flash>(&self, flash: &mut F, lpn: DieLpn, to: Ppn, done: F::Token) {
        let old = self.newest(lpn);
        if self.space.dies > 1 && old.is_some() {
            let geometry = &self.space.geometry;
            if geometry.die_of(geometry.block_of(old)) != geometry.die_of(geometry.block_of(to)) {
                flash.replaced(old, done);
            }
        }
    }

    #[cold]
    fn take_data<F: Flash>(&mut self, flash: &mut F, lbn: Lbn) -> Result<(), F::Error> {
        let die = self.die_of_logical(lbn);
        self.data[lbn.index()] = self.pools[die as usize].take();
        self.map_event(flash, die, Some(lbn), None)
    }

    /// Takes a free block of a die as log block, owned by one logical block or shared.
    ///
    /// # Errors
    /// Those of the flash.
    pub fn take_log<F: Flash>(
        &mut self,
        flash: &mut F,
        die: u32,
        owner: Option<Lbn>,
    ) -> Result<Log, F::Error> {
        let pbn = self.pools[die as usize].take();
        let log = self.logs.add(die, pbn);
        if let Some(lbn) = owner {
            self.logs.own(log, lbn);
            self.logs[log].is_sequential = true;
        }
        self.map_event(flash, die, None, Some(log))?;
        Ok(log)
    }

    /// Programs a host page at the next position of a log block.
    ///
    /// # Errors
    /// Those of the flash.
    #[inline]
    pub fn append<F: Flash>(
        &mut self,
        flash: &mut F,
        slot: Slot,
        log: Log,
        lpn: DieLpn,
        role: Role,
    ) -> Result<(), F::Error> {
        let position = self.written(flash, log);
        self.write_at(flash, slot, log, position, lpn, role)
    }

    /// Programs a host page at a given position of a log block.
    ///
    /// # Errors
    /// Those of the flash.
    #[inline]
    pub fn write_at<F: Flash>(
        &mut self,
        flash: &mut F,
        slot: Slot,
        log: Log,
        position: u32,
        lpn: DieLpn,
        role: Role,
    ) -> Result<(), F::Error> {
        let to = self.space.geometry.ppn(self.log_block(log), position);
        let oob = Oob::new(self.space.device_lpn(lpn), role);
        let done = flash.program_host(slot, to, oob, F::Token::default())?;
        self.replace(flash, lpn, to, done);
        self.logs[log].host_pages += 1;
        self.logs
            .note_page(LogPage { log, position }, lpn, self.split(lpn));
        self.move_newest(lpn, to, Loss::Overwritten);
        Ok(())
    }

    /// Copies the newest version of a page to the next position of a log block.
    ///
    /// # Errors
    /// Those of the flash.
    pub fn copy_to_log<F: Flash>(
        &mut self,
        flash: &mut F,
        log: Log,
        lpn: DieLpn,
        role: Role,
    ) -> Result<(), F::Error> {
        self.carry_to_log(flash, log, lpn, role, 0)
    }

    /// The same with a [tag](move_tag) that tells a move from the middle of one: needed where the copies of
    /// one move may fill a log block that the budget has no room for before the emptied block is erased.
    ///
    /// # Errors
    /// Those of the flash.
    pub fn carry_to_log<F: Flash>(
        &mut self,
        flash: &mut F,
        log: Log,
        lpn: DieLpn,
        role: Role,
        tag: u32,
    ) -> Result<(), F::Error> {
        let position = self.written(flash, log);
        let to = self.space.geometry.ppn(self.log_block(log), position);
        self.copy(flash, lpn, to, role, tag)?;
        self.logs
            .note_page(LogPage { log, position }, lpn, self.split(lpn));
        self.move_newest(lpn, to, Loss::Moved);
        Ok(())
    }

    pub(super) fn copy<F: Flash>(
        &mut self,
        flash: &mut F,
        lpn: DieLpn,
        to: Ppn,
        role: Role,
        tag: u32,
    ) -> Result<(), F::Error> {
        let lpn_of_device = self.space.device_lpn(lpn);
        let oob = Oob {
            lpn: lpn_of_device,
            role,
            tag,
        };
        flash.copy(self.newest(lpn), to, oob, Cause::Gc, F::Token::default())?;
        Ok(())
    }

    /// Reads the newest version of a page for the host; zeroes if it is not live.
    ///
    /// # Errors
    /// Those of the flash.
    #[inline]
    pub fn read<F: Flash>(
        &mut self,
        flash: &mut F,
        slot: Slot,
        lpn: DieLpn,
    ) -> Result<(), F::Error> {
        self.read_after(flash, slot, lpn, F::Token::default())
    }

    /// The same once `after`, the translation of the page, is done.
    ///
    /// # Errors
    /// Those of the flash.
    #[inline]
    pub fn read_after<F: Flash>(
        &mut self,
        flash: &mut F,
        slot: Slot,
        lpn: DieLpn,
        after: F::Token,
    ) -> Result<(), F::Error> {
        self.verify(flash, lpn)?;
        let at = self.newest(lpn);
        if at.is_none() {
            flash.absent(slot, after);
            return Ok(());
        }
        flash.read_host(slot, at, after)?;
        Ok(())
    }

    /// Drops a page; it is not live any more.
    #[inline]
    pub fn trim(&mut self, lpn: DieLpn) {
        if self.newest(lpn).is_some() {
            self.move_newest(lpn, Ppn::NONE, Loss::Trimmed);
        }
    }
}
