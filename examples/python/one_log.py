"""A whole scheme in Python: page mapping with one open block a die. Pages are appended to it; when a die is down to its last
erased block, the block with the fewest valid pages is copied there and erased.

    floatgate.simulate(OneLog, trace="skew:space=4096:distinct=2000:writes=6000")
    floatgate.test_scheme(OneLog)
"""

import floatgate

HOST = 0  # the tag of a page that the host has written; of a moved page see `tag`


def tag(victim: int, is_last: bool) -> int:
    """The tag of a page moved out of a block: even with the last of them, which says that the block is empty."""
    return 2 * victim + 1 + is_last


class OneLog(floatgate.Scheme):
    def __init__(self, device: floatgate.Device) -> None:
        if device.blocks_per_die < device.logical_blocks_per_die + 2:
            raise floatgate.Refused(f"{device.blocks_per_die} blocks a die: two more than its data takes are needed")
        self.device = device
        self.map: list[int | None] = [None] * device.logical_pages
        self.page_at: list[int | None] = [None] * device.pages
        self.valid = [0] * device.blocks
        self.erased: list[list[int]] = [list(device.blocks_of(die)) for die in range(device.dies)]
        self.open = [range(0)] * device.dies  # the pages of the open block that are left

    @classmethod
    def tables(cls, device: floatgate.Device) -> list[tuple[str, int, int]]:
        return [("page map", device.logical_pages, 32)]

    def format(self, flash: floatgate.Flash, full: bool) -> None:
        for die in range(self.device.dies if full else 0):
            first = die  # of the pages of this die: die, die + dies, ...
            for _ in range(self.device.logical_blocks_per_die):
                block = self.erased[die].pop(0)
                pages = [first + i * self.device.dies for i in range(self.device.pages_per_block)]
                flash.preload(block, pages)
                for at, page in zip(self.device.pages_of(block), pages):
                    self.put(page, at)
                first = pages[-1] + self.device.dies

    def write_page(self, flash: floatgate.Flash, page: int, slot: int) -> None:
        at = self.take(flash, page % self.device.dies)
        flash.program(slot, at, page, tag=HOST)
        self.put(page, at)

    def read_page(self, flash: floatgate.Flash, page: int, slot: int) -> None:
        at = self.map[page]
        if at is None:
            flash.absent(slot)
        else:
            flash.read(slot, at)

    def trim_page(self, flash: floatgate.Flash, page: int, slot: int) -> None:
        at, self.map[page] = self.map[page], None
        if at is not None:
            self.valid[self.device.block_of(at)] -= 1

    def put(self, page: int, at: int) -> None:
        """A page is programmed there; its old copy becomes invalid."""
        old = self.map[page]
        if old is not None:
            self.valid[self.device.block_of(old)] -= 1
        self.map[page], self.page_at[at] = at, page
        self.valid[self.device.block_of(at)] += 1

    def take(self, flash: floatgate.Flash, die: int) -> int:
        """The next page to program on a die."""
        if not self.open[die]:
            block = self.erased[die].pop(0)
            self.open[die] = self.device.pages_of(block)
            if not self.erased[die]:
                self.collect(flash, die, block)
        at, self.open[die] = self.open[die][0], self.open[die][1:]
        return at

    def collect(self, flash: floatgate.Flash, die: int, target: int) -> None:
        """Moves the pages of the emptiest block to an erased one, and erases it."""
        victim = min((b for b in self.device.blocks_of(die) if b != target), key=self.valid.__getitem__)
        held = [(at, self.page_at[at]) for at in self.device.pages_of(victim)]
        moving = [(at, page) for at, page in held if page is not None and self.map[page] == at]
        for at, page in moving:
            to, self.open[die] = self.open[die][0], self.open[die][1:]
            flash.copy(at, to, page, tag=tag(victim, at == moving[-1][0]))
            self.put(page, to)
        flash.erase(victim)
        self.erased[die].append(victim)

    def recover(self, flash: floatgate.Flash, full_scan: bool) -> None:
        found = dict(self.scan(flash))
        # The last page of a collection voids what its victim holds, whose erase may have been cut.
        for end in [oob for oob in found.values() if oob.tag > HOST and oob.tag % 2 == 0]:
            for at in self.device.pages_of(end.tag // 2 - 1):
                if at in found and found[at].sequence < end.sequence:
                    del found[at]
        # A collection that was cut before begins anew: its victim still has all that was copied.
        for block in [block for block in range(self.device.blocks) if self.is_cut(found, block)]:
            for at in self.device.pages_of(block):
                found.pop(at, None)
        for at, oob in sorted(found.items(), key=lambda item: item[1].sequence):
            self.put(oob.page, at)
        for block in range(self.device.blocks):
            if self.valid[block] == 0 and flash.written(block) > 0:
                flash.erase(block)
        flash.drain()
        self.erased = [[b for b in self.device.blocks_of(die) if self.valid[b] == 0] for die in range(self.device.dies)]
        if not all(self.erased):
            raise floatgate.Refused("a die has no erased block")

    def scan(self, flash: floatgate.Flash) -> "list[tuple[int, floatgate.Oob]]":
        """All pages that this scheme has written; the one after the last may have been cut."""
        found = []
        for block in range(self.device.blocks):
            for at in self.device.pages_of(block)[: flash.written(block) + 1]:
                oob, _ = flash.read_oob(at)
                if oob and oob.role == "data" and oob.page < self.device.logical_pages and oob.sequence < 1 << 63:
                    if oob.page % self.device.dies == self.device.die_of(block):
                        found.append((at, oob))
        return found

    def is_cut(self, found: "dict[int, floatgate.Oob]", block: int) -> bool:
        """Whether a block holds nothing but copies of what another one still holds."""
        here = [found[at] for at in self.device.pages_of(block) if at in found]
        if not here or here[0].tag == HOST or here[0].tag // 2 >= self.device.blocks:
            return False
        victim = [found[at] for at in self.device.pages_of((here[0].tag - 1) // 2) if at in found]
        older = {oob.page: oob.sequence for oob in victim}
        return all(oob.tag == here[0].tag and older.get(oob.page, oob.sequence) < oob.sequence for oob in here)

    def audit(self, flash: floatgate.Flash) -> int:
        valid = [0] * self.device.blocks
        for page, at in enumerate(self.map):
            if at is not None:
                block = self.device.block_of(at)
                assert self.page_at[at] == page and at - block * self.device.pages_per_block < flash.written(block)
                valid[block] += 1
        assert valid == self.valid, "valid pages are counted"
        assert all(flash.written(block) == 0 for die in self.erased for block in die), "erased blocks are erased"
        return sum(valid)
