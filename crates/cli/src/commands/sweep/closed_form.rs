//! What the device of a cell would come to if its writes were uniform, by the closed formula (docs/spec/analytic.md): a
//! line to hold the rules of placement against.

use floatgate_catalog::Scheme;
use floatgate_core::options::Value;
use floatgate_sim::analytic::{greedy, usable_pages};
use floatgate_sim::config::RunConfig;

/// The option that says which append point a page takes: what has it collects as the formula wants, or can.
const SEPARATION: &str = "separation";
/// What of the options shapes the space that pages have.
const SHAPING: [&str; 3] = ["gc_low", "groups", "ru_rows"];

/// Write amplification under uniform single-page writes with greedy victims and one append point, whatever rules the
/// cell has: the spare space is all that it is about.
pub fn uniform(scheme: &Scheme, config: &RunConfig) -> Option<f64> {
    let options = &scheme.info.options;
    options.iter().find(|option| option.key == SEPARATION)?;
    let mut plain = config.clone();
    plain.options.retain(|(key, _)| SHAPING.contains(&&**key));
    plain
        .options
        .push((SEPARATION.into(), Value::Text("none".into())));
    let texts = scheme.life.simulated.options(&plain).ok()?;
    let number = |key: &str| -> Option<u32> {
        let (_, text) = texts.iter().find(|(known, _)| *known == key)?;
        text.parse().ok()
    };
    let device = &config.device;
    let groups = match number("groups")? {
        0 => device.dies,
        groups => groups,
    };
    let rows = number("ru_rows")?.max(1);
    let unit = (device.dies / groups) * rows * device.part.pages_per_block;
    let usable = usable_pages(device.blocks / rows, number("gc_low")?, unit);
    let ratio = usable / (device.logical_pages as f64 / f64::from(groups));
    (ratio > 1.0).then(|| greedy(ratio, unit))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Settings;
    use crate::config::resolve::Plan;

    fn of(scheme: &str, sets: &[&str]) -> Option<f64> {
        let schemes = floatgate_catalog::catalog();
        let scheme = schemes.iter().find(|known| known.info.key == scheme)?;
        let mut settings = Settings::default();
        let device = [
            "device.page_bytes=4096",
            "device.dies=4",
            "device.logical_pages=46080",
            "device.blocks_per_die=202",
        ];
        for set in device.iter().chain(sets) {
            settings.add_argument(set, &schemes).unwrap();
        }
        let mut plan = Plan::of(&settings).unwrap();
        plan.device.part.pages_per_block = 64;
        uniform(scheme, &plan.run_of(scheme, &settings))
    }

    /// The row of docs/spec/analytic.md with 202 blocks, 180 of data: 4.722.
    #[test]
    fn the_line_is_that_of_the_spare_space_whatever_the_rules() {
        let plain = of("page", &[]).expect("a value");
        assert!((plain - 4.722).abs() < 5e-4, "{plain}");
        assert_eq!(of("page", &["scheme.separation=sepbit"]), Some(plain));
        assert_eq!(of("hat", &["scheme.gc_policy=fifo"]), Some(plain));
        let later = of("page", &["scheme.gc_low=6"]).expect("a value");
        assert!(later > plain + 0.5, "{later}");
        // Larger units over the same blocks: the larger, the nearer to FIFO, which has 5.069 there.
        let units = of("page", &["scheme.groups=1"]).expect("a value");
        assert!(units > plain + 0.1 && units < 5.069, "{units}");
        // Logical pages without any room beside them.
        assert_eq!(of("page", &["device.blocks_per_die=181"]), None);
        assert_eq!(of("dftl", &[]), None);
        assert_eq!(of("fast", &[]), None);
    }
}
