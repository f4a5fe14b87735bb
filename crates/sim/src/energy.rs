//! Energy by component (docs/spec/timing.md, section 5; HAT Table 4).

use floatgate_core::report::{FlashCounters, Memory, Table};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::clock::{FlashOp, Machine, Mode, OpKind};
use crate::config::{Device, EnergyBasis};
use crate::flash::Fine;

/// Supply voltage of all devices, V.
const VOLT: f64 = 3.3;
/// Current of a PCM read, mA.
const PCM_READ_MA: f64 = 8.0;
/// Current of a PCM write, mA.
const PCM_WRITE_MA: f64 = 35.0;
/// Current of a DRAM access, mA.
const DRAM_ACCESS_MA: f64 = 125.0;
/// Time that a DRAM access draws it: the row cycle.
const DRAM_ACCESS_NS: u64 = 66;
/// Refresh current of one DRAM chip, mA.
const DRAM_REFRESH_MA: f64 = 3.0;
/// Bytes of one DRAM chip.
const DRAM_CHIP_BYTES: u64 = 32 << 20;

/// Energy by component, uJ (docs/spec/timing.md section 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Energy {
    /// Page and OOB reads, uJ.
    pub flash_read_uj: f64,
    /// Page programs, uJ.
    pub flash_program_uj: f64,
    /// Block erases, uJ.
    pub flash_erase_uj: f64,
    /// Map entries read from phase-change memory, uJ.
    pub pcm_read_uj: f64,
    /// Map entries written to phase-change memory, uJ.
    pub pcm_write_uj: f64,
    /// Accesses to tables in DRAM, uJ.
    pub dram_access_uj: f64,
    /// Refresh of the DRAM chips that hold tables, uJ.
    pub dram_refresh_uj: f64,
    /// All together, uJ.
    pub total_uj: f64,
}

impl Energy {
    /// The components with their names, uJ; without the total.
    pub fn components(&self) -> [(&'static str, f64); 7] {
        [
            ("flash read", self.flash_read_uj),
            ("flash program", self.flash_program_uj),
            ("flash erase", self.flash_erase_uj),
            ("pcm read", self.pcm_read_uj),
            ("pcm write", self.pcm_write_uj),
            ("dram access", self.dram_access_uj),
            ("dram refresh", self.dram_refresh_uj),
        ]
    }
}

fn microjoules(ma: f64, ns: f64) -> f64 {
    VOLT * ma * ns * 1e-6
}

/// Time of an operation that draws current, ns.
fn counted_ns(machine: &Machine, basis: EnergyBasis, kind: OpKind) -> f64 {
    let op = FlashOp::new(kind, 0);
    let cell = Machine {
        mode: Mode::NoCmd,
        ..machine.clone()
    }
    .phases(op)
    .cell_ns();
    // Planes that work together draw current each.
    let data = if basis == EnergyBasis::Cell {
        0
    } else {
        machine.data_ns(op)
    };
    (cell * u64::from(machine.together.max(1)) + data) as f64
}

/// The energy of a run.
pub fn energy(
    device: &Device,
    counters: &FlashCounters,
    fine: &Fine,
    tables: &[Table],
    dram_accesses: u64,
    elapsed_ns: u64,
) -> Energy {
    let machine = device.machine();
    let ma = device.part.flash_ma;
    let each = |kind| counted_ns(&machine, device.energy_basis, kind);
    // Of a copy-back only the cell times count: its read and its program move no data.
    let cell = |kind| counted_ns(&machine, EnergyBasis::Cell, kind);
    let copybacks = fine.copybacks as f64;
    let whole_reads = (counters.reads.sum() - fine.short_reads) as f64 - copybacks;
    let short_data = if device.energy_basis == EnergyBasis::Cell {
        0
    } else {
        fine.short_read_data_ns
    };
    let read_ns = whole_reads * each(OpKind::Read)
        + (copybacks + fine.short_reads as f64) * cell(OpKind::Read)
        + short_data as f64
        + counters.oob_reads.sum() as f64 * each(OpKind::OobRead);
    // Read again, or in another time than the usual one; the commands of a retry draw nothing.
    let sensing_ns = fine.sensing_ns.iter().copied().fold(0, u64::wrapping_add);
    let commands_ns = fine.read_retries as f64 * machine.retry_cycles_ns() as f64;
    let sensing_ns = sensing_ns.cast_signed() as f64 - commands_ns;
    let read_ns = read_ns + sensing_ns * f64::from(machine.together.max(1));
    let program_ns = (counters.programs.sum() as f64 - copybacks) * each(OpKind::Program)
        + copybacks * cell(OpKind::Program);
    let programming_ns = (fine.programming_ns.iter().copied()).fold(0, u64::wrapping_add);
    let program_ns = program_ns + programming_ns.cast_signed() as f64;
    let erase_ns = counters.erases.sum() as f64 * each(OpKind::Erase);
    let one_bit = fine
        .one_bit
        .ns
        .map(|[cell_ns, data_ns]| match device.energy_basis {
            EnergyBasis::Cell => cell_ns as f64,
            EnergyBasis::CellAndTransfer => (cell_ns + data_ns) as f64,
        });
    let (read_ns, program_ns) = (read_ns + one_bit[0], program_ns + one_bit[1]);
    let erase_ns = erase_ns + one_bit[2];
    // A chip of its own holds entries of whole words: HAT counts 4 bytes an entry.
    let dram_bytes: u64 = tables
        .iter()
        .filter(|t| t.memory == Memory::Dram)
        .map(Table::word_bytes)
        .sum();
    let chips = dram_bytes.div_ceil(DRAM_CHIP_BYTES) as f64;
    let mut energy = Energy {
        flash_read_uj: microjoules(ma, read_ns),
        flash_program_uj: microjoules(ma, program_ns),
        flash_erase_uj: microjoules(ma, erase_ns),
        pcm_read_uj: microjoules(
            PCM_READ_MA,
            counters.pcm_reads as f64 * device.pcm_read_ns as f64,
        ),
        pcm_write_uj: microjoules(
            PCM_WRITE_MA,
            counters.pcm_writes as f64 * device.pcm_write_ns as f64,
        ),
        dram_access_uj: microjoules(DRAM_ACCESS_MA, dram_accesses as f64 * DRAM_ACCESS_NS as f64),
        dram_refresh_uj: microjoules(DRAM_REFRESH_MA, chips * elapsed_ns as f64),
        total_uj: 0.0,
    };
    energy.total_uj = energy.components().iter().map(|(_, uj)| uj).sum();
    energy
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::part::part;
    use floatgate_core::report::ByCause;

    fn device(mode: Mode) -> Device {
        Device {
            mode,
            ..Device::one_die_a_channel(part("ssdsim").unwrap().clone(), 1, 16, 512)
        }
    }

    fn of(counters: FlashCounters, fine: Fine, dram: u64, elapsed_ns: u64) -> Energy {
        let tables = [Table::dram("map", 8 << 20, 23)];
        energy(
            &device(Mode::Onfi),
            &counters,
            &fine,
            &tables,
            dram,
            elapsed_ns,
        )
    }

    fn near(value: f64, expected: f64) {
        assert!(
            (value - expected).abs() < 1e-9 * expected.max(1.0),
            "{value}, expected {expected}"
        );
    }

    /// HAT's check value for the erase, and the table of one operation each.
    #[test]
    fn single_operations() {
        let host = |n| ByCause {
            host: n,
            ..ByCause::default()
        };
        let zero = FlashCounters::default();
        let none = Fine::default();
        near(
            of(
                FlashCounters {
                    erases: host(1),
                    ..zero
                },
                none,
                0,
                0,
            )
            .total_uj,
            123.75,
        );
        near(
            of(
                FlashCounters {
                    reads: host(1),
                    ..zero
                },
                none,
                0,
                0,
            )
            .flash_read_uj,
            6.006,
        );
        near(
            of(
                FlashCounters {
                    programs: host(1),
                    ..zero
                },
                none,
                0,
                0,
            )
            .flash_program_uj,
            20.856,
        );
        near(
            of(
                FlashCounters {
                    oob_reads: host(1),
                    ..zero
                },
                none,
                0,
                0,
            )
            .flash_read_uj,
            1.782,
        );
        let copyback = FlashCounters {
            reads: host(1),
            programs: host(1),
            ..zero
        };
        near(
            of(
                copyback,
                Fine {
                    copybacks: 1,
                    ..none
                },
                0,
                0,
            )
            .total_uj,
            18.15,
        );
        // A page that takes 30 us, read twice: 40 us more than a read in 20 us, and a command that draws nothing.
        let sensed = Fine {
            read_retries: 1,
            sensing_ns: [40_175, 0, 0],
            ..none
        };
        let read = FlashCounters {
            reads: host(1),
            ..zero
        };
        near(of(read, sensed, 0, 0).total_uj, 6.006 + 3.3);
        let pcm = of(
            FlashCounters {
                pcm_reads: 1,
                pcm_writes: 1,
                ..zero
            },
            none,
            0,
            0,
        );
        near(pcm.pcm_read_uj, 0.003_036);
        near(pcm.pcm_write_uj, 10.395);
        near(of(zero, none, 1, 0).dram_access_uj, 0.027_225);
        near(of(zero, none, 0, 1_000_000_000).dram_refresh_uj, 9900.0);
        let mixed = FlashCounters {
            reads: host(2),
            programs: host(1),
            erases: host(1),
            ..zero
        };
        near(of(mixed, none, 0, 0).total_uj, 156.618);
    }

    /// HAT's page read without command cycles: 20 us + 2112 bytes of 0.025 us = 72.8 us.
    #[test]
    fn page_read_of_the_paper() {
        let machine = device(Mode::NoCmd).machine();
        assert_eq!(machine.duration_ns(FlashOp::new(OpKind::Read, 0)), 72_800);
    }
}
