//! Flows as they are asked for: a table `[[flow]]` each in a file, or a `--flow` each on the command line.

use floatgate_catalog::Scheme;
use floatgate_sim::flows::{Arbitration, FlowConfig, Link, Priority};

use super::load::argument_value;
use super::{Settings, load};
use crate::errors::{Outcome, Place, Problem};

/// Flows of a run but for how they are read.
#[derive(Debug)]
pub struct Given {
    /// For all of them.
    pub link: Link,
    /// Each with the keys that were given, of its section `flow`.
    pub each: Vec<(FlowConfig, Settings)>,
}

/// Keys of the section `host` that only flows have.
const OF_FLOWS: [&str; 3] = ["host.arbitration", "host.burst", "host.max_request"];

/// Takes the flows out of the settings and adds those of the command line; none if there are none.
///
/// # Errors
/// Points at what is wrong.
pub fn taken(
    settings: &mut Settings,
    arguments: &[String],
    schemes: &[Scheme],
) -> Outcome<Option<Given>> {
    let mut flows = std::mem::take(&mut settings.flows);
    for argument in arguments {
        let place = Place::Argument(format!("--flow {argument}"));
        flows.push((of_argument(argument, &place, schemes)?, place));
    }
    if flows.is_empty() {
        // What is there anyway may be written down.
        let is_default = link(settings) == Link::default();
        return match OF_FLOWS.iter().find_map(|key| settings.get(key)) {
            Some(setting) if !is_default => {
                Err(Problem::new(format!("{} is about flows", setting.written))
                    .at(&setting.place)
                    .help("name flows with --flow or [[flow]] (docs/hosts.md), or leave it out"))
            }
            _ => Ok(None),
        };
    }
    let link = link(settings);
    let n = flows.len();
    let mut each: Vec<(FlowConfig, Settings)> = Vec::new();
    for (i, (given, place)) in flows.into_iter().enumerate() {
        let config = flow(&given, &place, (i, n), settings, &link)?;
        if each.iter().any(|(other, _)| other.name == config.name) {
            let text = format!("two flows are called {}", config.name);
            return Err(Problem::new(text).at(&given.place_or("flow.name", &place)));
        }
        each.push((config, given));
    }
    Ok(Some(Given { link, each }))
}

/// `name=db,trace=oltp-postgres,queue_depth=8`.
fn of_argument(argument: &str, place: &Place, schemes: &[Scheme]) -> Outcome<Settings> {
    let mut flow = Settings::default();
    for part in argument.split(',') {
        let Some((key, text)) = part.split_once('=') else {
            let text = format!("{part:?} is no key=value");
            return Err(Problem::new(text)
                .at(place)
                .help("for example --flow name=db,trace=oltp-postgres,queue_depth=8"));
        };
        let value = argument_value(text.trim(), place);
        load::add_to_flow(&mut flow, key.trim(), value, place.clone(), schemes)?;
    }
    Ok(flow)
}

fn link(settings: &Settings) -> Link {
    let default = Link::default();
    Link {
        arbitration: settings
            .text("host.arbitration")
            .and_then(Arbitration::from_name)
            .unwrap_or_default(),
        burst: settings.small("host.burst").unwrap_or(default.burst),
        max_request_bytes: settings
            .whole("host.max_request")
            .unwrap_or(default.max_request_bytes),
    }
}

/// One of some flows, by its number.
fn flow(
    given: &Settings,
    place: &Place,
    (number, flows): (usize, usize),
    settings: &Settings,
    link: &Link,
) -> Outcome<FlowConfig> {
    let problem = |key: &str, text: &str| {
        let at = given.place_or(key, place);
        Err(Problem::new(format!("{key}: {text}")).at(&at))
    };
    if given.get("flow.trace").is_none() {
        return problem("flow.trace", "a flow needs a trace")
            .map_err(|problem| problem.help("a file, a bundled trace or a generator"));
    }
    let (from, share) = (given.number("flow.from"), given.number("flow.share"));
    if from.is_some() != share.is_some() {
        let key = if from.is_some() {
            "flow.from"
        } else {
            "flow.share"
        };
        return problem(key, "from and share go together");
    }
    if from
        .zip(share)
        .is_some_and(|(from, share)| from + share > 1.0 + 1e-9)
    {
        return problem(
            "flow.share",
            "from and share are more than the device together",
        );
    }
    let weighted = link.arbitration == Arbitration::Weighted;
    if given.get("flow.weight").is_some() && !weighted {
        return problem(
            "flow.weight",
            "counts only with host.arbitration = \"weighted\"",
        );
    }
    if given.get("flow.priority").is_some() && link.arbitration == Arbitration::RoundRobin {
        let text = "counts only with host.arbitration = \"priority\" or \"weighted\"";
        return problem("flow.priority", text);
    }
    let name = given.text("flow.name").map(String::from);
    let even = FlowConfig::even("", number, flows);
    Ok(FlowConfig {
        name: name.unwrap_or_else(|| format!("flow{}", number + 1)),
        queue_depth: given.small("flow.queue_depth").unwrap_or(0),
        from: from.unwrap_or(even.from),
        share: share.unwrap_or(even.share),
        priority: given
            .text("flow.priority")
            .and_then(Priority::from_name)
            .unwrap_or_default(),
        weight: given.small("flow.weight").unwrap_or(even.weight),
        stream: given.small("flow.stream").map(|stream| stream as u16),
        speed: given
            .number("flow.speed")
            .or(settings.number("host.speed"))
            .unwrap_or(even.speed),
        start_ns: given.whole("flow.start").unwrap_or(even.start_ns),
    })
}
