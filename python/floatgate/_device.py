"""The shape of a device, for policies and schemes."""

from typing import NamedTuple


class Device(NamedTuple):
    """The shape of a device. Blocks and pages are numbered from 0 over all dies, die by die.

    For policies with the options ``groups`` and ``ru_rows`` a die stands for a group, a block for a unit.

    >>> device = Device(logical_pages=64, dies=2, blocks_per_die=10, pages_per_block=4)
    >>> device.blocks_of(1), device.pages_of(11), device.logical_blocks_per_die
    (range(10, 20), range(44, 48), 8)
    """

    logical_pages: int
    """Pages that the host sees."""
    dies: int
    """Dies."""
    blocks_per_die: int
    """Blocks of each."""
    pages_per_block: int
    """Pages of each."""
    ascending: bool = True
    """Whether the pages of a block must be programmed in ascending order."""

    @property
    def blocks(self) -> int:
        """Blocks of all dies."""
        return self.dies * self.blocks_per_die

    @property
    def pages(self) -> int:
        """Pages of all blocks."""
        return self.blocks * self.pages_per_block

    @property
    def logical_blocks_per_die(self) -> int:
        """Blocks of a die that the logical pages would fill."""
        return self.logical_pages // (self.dies * self.pages_per_block)

    def blocks_of(self, die: int) -> range:
        """The blocks of a die."""
        return range(die * self.blocks_per_die, (die + 1) * self.blocks_per_die)

    def pages_of(self, block: int) -> range:
        """The pages of a block."""
        return range(block * self.pages_per_block, (block + 1) * self.pages_per_block)

    def block_of(self, page: int) -> int:
        """The block of a page."""
        return page // self.pages_per_block

    def die_of(self, block: int) -> int:
        """The die of a block."""
        return block // self.blocks_per_die
