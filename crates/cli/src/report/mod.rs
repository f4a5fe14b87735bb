//! Results for people: the HTML report and the text of a single run.

pub mod slowest;
pub mod text;
pub mod why;

use floatgate_sim::record::Document;
use floatgate_sim::record::fleet::FleetDocument;
use floatgate_sim::record::papers::PapersDocument;
use floatgate_sim::record::sweep::SweepDocument;
use serde::Serialize;
use serde_json::Value;

use slowest::Slowest;

const TEMPLATE: &str = include_str!("report.html");
const STYLE: &str = include_str!("report.css");
const PLOTS: &str = include_str!("plots.js");
const CARDS: &str = include_str!("cards.js");
const OVER_TIME: &str = include_str!("over_time.js");
const RUNS: &str = include_str!("report.js");
const SLOWEST: &str = include_str!("slowest.js");
const FLEET: &str = include_str!("fleet.js");
const SEPARATION: &str = include_str!("separation.js");
const PAIRS: &str = include_str!("pairs.js");
const SWEEP: &str = include_str!("sweep.js");
const PAPERS: &str = include_str!("papers.js");

/// The report of a run or a comparison as one file that needs nothing else: data, style and script are inside. Of a run
/// its slowest request may be drawn.
pub fn html(document: &Document, slowest: Option<&Slowest>) -> String {
    #[derive(Serialize)]
    struct Drawn<'a> {
        #[serde(flatten)]
        document: &'a Document,
        #[serde(skip_serializing_if = "Option::is_none")]
        slowest: Option<&'a Slowest>,
    }
    page(&Drawn { document, slowest }, &[OVER_TIME, SLOWEST, RUNS])
}

/// The report of a fleet, likewise.
pub fn fleet_html(document: &FleetDocument) -> String {
    page(document, &[FLEET])
}

/// The report of a sweep, likewise.
pub fn sweep_html(document: &SweepDocument) -> String {
    page(document, &[SEPARATION, PAIRS, SWEEP])
}

/// The report of the papers, likewise.
pub fn papers_html(document: &PapersDocument) -> String {
    page(document, &[PAPERS])
}

fn page(document: &impl Serialize, scripts: &[&str]) -> String {
    let data = serde_json::to_value(document).unwrap_or_default();
    // `</script>` in a name must not end the data; JSON lets `<` be written otherwise.
    let data = round(&data).to_string().replace('<', "\\u003c");
    let (head, rest) = TEMPLATE.split_once("/*STYLE*/").unwrap_or((TEMPLATE, ""));
    let (body, rest) = rest.split_once("/*DATA*/").unwrap_or((rest, ""));
    let (middle, tail) = rest.split_once("/*SCRIPT*/").unwrap_or((rest, ""));
    let scripts = scripts.concat();
    [
        head, STYLE, body, &data, middle, PLOTS, CARDS, &scripts, tail,
    ]
    .concat()
}

/// Plots do not show more than five digits; without the others the file is half as large.
fn round(value: &Value) -> Value {
    match value {
        Value::Number(number) if number.is_f64() => {
            let x = number.as_f64().unwrap_or(0.0);
            format!("{x:.4e}")
                .parse::<f64>()
                .map_or(Value::Null, Value::from)
        }
        Value::Array(items) => items.iter().map(round).collect(),
        Value::Object(map) => map
            .iter()
            .map(|(key, value)| (key.clone(), round(value)))
            .collect(),
        other => other.clone(),
    }
}
