//! A run written down as the configuration that gives it again, whatever the trace is.

use std::fmt::Write;

use floatgate_core::options::OptionValue;
use floatgate_sim::clock::{Mode, Schedule};
use floatgate_sim::config::{Beyond, Copyback, EnergyBasis, RunConfig};

use super::document::toml_key;
use super::resolve::Plan;

/// TOML of a sized device, its start and its ageing, and of a scheme with all of its options. Of the host it has what
/// decides where addresses go.
pub fn configuration(
    plan: &Plan,
    config: &RunConfig,
    scheme: &str,
    options: &[(&str, String)],
) -> String {
    let mut out = String::new();
    let mut section = |name: &str, lines: Vec<(&str, String)>| {
        let _ = writeln!(out, "[{name}]");
        for (key, value) in lines {
            let _ = writeln!(out, "{key} = {value}");
        }
    };
    section("device", device(plan, config));
    section(
        "host",
        vec![
            ("beyond", quoted(beyond(config.host.beyond))),
            (
                "compact_region_pages",
                config
                    .host
                    .region_pages(config.device.part.page_bytes)
                    .to_string(),
            ),
        ],
    );
    if !config.device.schedule.is_plain() {
        section("schedule", schedule(&config.device.schedule));
    }
    let steps: Vec<String> = config.ageing.iter().map(quoted).collect();
    section(
        "run",
        vec![
            ("start", quoted(config.start.name())),
            ("ageing", format!("[{}]", steps.join(", "))),
        ],
    );
    section("scheme", vec![("name", quoted(scheme))]);
    let given = options.iter().filter(|(_, value)| value != "-");
    let given = given.map(|(key, value)| (*key, option(value)));
    section(&format!("schemes.{}", toml_key(scheme)), given.collect());
    out
}

fn device(plan: &Plan, config: &RunConfig) -> Vec<(&'static str, String)> {
    let device = &config.device;
    let part = &device.part;
    let mut lines = vec![
        ("part", quoted(part.name)),
        ("dies", device.dies.to_string()),
        ("channels", device.channels.to_string()),
        ("allocation", quoted(device.allocation.name())),
        ("dies_per_package", device.package_dies.to_string()),
        ("logical_pages", device.logical_pages.to_string()),
        ("blocks_per_die", device.blocks.to_string()),
        ("log_percent", format!("{:?}", plan.log_percent)),
        // As they are given: of one plane.
        ("page_bytes", (part.page_bytes / part.together).to_string()),
        ("oob_bytes", (part.oob_bytes / part.together).to_string()),
        ("sectors", (part.sectors / part.together).to_string()),
        ("pages_per_block", part.pages_per_block.to_string()),
        ("planes", (part.planes * part.together).to_string()),
        ("multi_plane", (part.together > 1).to_string()),
        ("t_bers_ns", part.t_bers_ns.to_string()),
        ("t_r_oob_ns", part.t_r_oob_ns.to_string()),
        ("cycle_ns", part.cycle_ns.to_string()),
        ("in_ps", part.in_ps.to_string()),
        ("out_ps", part.out_ps.to_string()),
        ("program_order", quoted(device.program_order.name())),
        (
            "mode",
            quoted(match device.mode {
                Mode::Onfi => "onfi",
                Mode::NoCmd => "nocmd",
                Mode::Flat => "flat",
            }),
        ),
        ("copyback", (device.copyback != Copyback::Off).to_string()),
        (
            "copyback_parity",
            (device.copyback == Copyback::Parity).to_string(),
        ),
        ("cache_commands", device.cache_commands.to_string()),
        ("flash_ma", format!("{:?}", part.flash_ma)),
        (
            "energy_basis",
            quoted(match device.energy_basis {
                EnergyBasis::CellAndTransfer => "cell+transfer",
                EnergyBasis::Cell => "cell",
            }),
        ),
        ("pcm_read_ns", device.pcm_read_ns.to_string()),
        ("pcm_write_ns", device.pcm_write_ns.to_string()),
        ("wear_leveling", quoted(device.wear_leveling.show())),
        ("wear_gap", device.wear_gap.to_string()),
    ];
    lines.push(match part.t_r_by_page_ns.as_slice() {
        [] => ("t_r_ns", part.t_r_ns.to_string()),
        ns => ("t_r_by_page", list(ns.iter().map(|&ns| ns as f64 / 1000.0))),
    });
    match part.t_prog_by_page_ns.as_slice() {
        [] => lines.extend([
            ("t_prog_ns", part.t_prog_ns.to_string()),
            ("one_shot", part.one_shot.to_string()),
        ]),
        ns => lines.push((
            "t_prog_by_page",
            list(ns.iter().map(|&ns| ns as f64 / 1000.0)),
        )),
    }
    if !device.read_retry.is_empty() {
        lines.push(("read_retry", list(&device.read_retry)));
        lines.push(("erases_before", device.erases_before.to_string()));
    }
    lines.extend(part.endurance.map(|n| ("endurance", n.to_string())));
    lines
}

fn list<T: std::fmt::Debug>(items: impl IntoIterator<Item = T>) -> String {
    format!("{:?}", items.into_iter().collect::<Vec<T>>())
}

fn schedule(schedule: &Schedule) -> Vec<(&'static str, String)> {
    vec![
        ("policy", quoted(schedule.policy.name())),
        ("overtakes", schedule.overtakes.to_string()),
        ("suspend", quoted(schedule.suspend.name())),
        ("t_suspend_ns", schedule.suspend_ns.to_string()),
        ("t_resume_ns", schedule.resume_ns.to_string()),
        ("suspend_limit", schedule.suspend_limit.to_string()),
        ("gc_low", schedule.gc_low.to_string()),
        ("gc_high", schedule.gc_high.to_string()),
    ]
}

fn beyond(beyond: Beyond) -> &'static str {
    match beyond {
        Beyond::Error => "error",
        Beyond::Wrap => "wrap",
        Beyond::Compact => "compact",
    }
}

fn quoted(text: impl std::fmt::Display) -> String {
    format!("{:?}", text.to_string())
}

/// An option's value as TOML has it: numbers and truth values without quotes.
fn option(text: &str) -> String {
    match text.parse::<i64>().is_ok() || matches!(text, "true" | "false") {
        true => text.into(),
        false => quoted(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Settings;
    use crate::config::sizing::{Extent, size};
    use floatgate_sim::part::PARTS;

    #[test]
    fn what_is_written_gives_the_same_run() {
        let schemes = floatgate_catalog::catalog();
        for (part, scheme) in PARTS.iter().zip(schemes.iter().cycle().skip(1)) {
            let mut settings = Settings::default();
            for set in [
                &format!("device.part={}", part.name),
                "device.capacity_mib=96",
                "device.t_prog_us=77.5",
                "device.wear_leveling=static",
                "device.energy_basis=cell",
                "run.start=empty",
                "run.ageing=fill,overwrite:0.25",
                "host.beyond=compact",
            ] {
                settings.add_argument(set, &schemes).unwrap();
            }
            let mut plan = Plan::of(&settings).unwrap();
            let extent = Extent::new(&plan.host, plan.device.part.page_bytes);
            size(
                &mut plan,
                &settings,
                &extent,
                &schemes,
                &[(scheme, &settings)],
            )
            .unwrap();
            let config = plan.run_of(scheme, &settings);
            let options = scheme.life.simulated.options(&config).unwrap();
            let text = configuration(&plan, &config, scheme.info.key, &options);

            let mut again = Settings::default();
            again.add_text("written", text, &schemes).unwrap();
            let plan_again = Plan::of(&again).unwrap();
            let config_again = plan_again.run_of(scheme, &again);
            assert_eq!(config_again.device, config.device);
            assert_eq!(
                (config_again.start, &config_again.ageing),
                (config.start, &config.ageing)
            );
            assert_eq!(config_again.host.beyond, config.host.beyond);
            assert_eq!(
                scheme.life.simulated.options(&config_again).unwrap(),
                options
            );
        }
    }
}
