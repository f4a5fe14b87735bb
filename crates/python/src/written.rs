//! The schemes that a run can choose from when something of it is [written in Python](crate::own).

use std::sync::OnceLock;

use floatgate::Cli;
use floatgate::errors::{Outcome, Problem};
use floatgate::library::Scheme;
use floatgate_schemes::page::PageBy;
use floatgate_schemes::parts::placement::Rules;

use crate::own::{self, Own};
use crate::policies::{ByPlacement, BySelection};
use crate::scheme::PyScheme;

/// Checks that the scheme of a run follows its policies, if it has any.
///
/// # Errors
/// If it does not know of them.
pub fn check(scheme: &str) -> Outcome<()> {
    let has_policies =
        |own: &Own| (own.placement.is_some() || own.selection.is_some()).then_some(());
    match own::read(has_policies) {
        Some(()) if scheme != ByPlacement::KEY => Err(Problem::new(format!(
            "placement= and selection= go with the scheme {}, not with {scheme}",
            ByPlacement::KEY
        ))),
        _ => Ok(()),
    }
}

/// The schemes of Floatgate, and among them the one that is written in Python or follows what is. All of them, as
/// a device is sized for all.
pub fn schemes(own: &Own) -> &'static [Scheme] {
    static WHOLE: OnceLock<Cli> = OnceLock::new();
    static PLACED: OnceLock<Cli> = OnceLock::new();
    static CHOSEN: OnceLock<Cli> = OnceLock::new();
    let cli = match (&own.scheme, &own.placement, &own.selection) {
        (Some(_), _, _) => WHOLE.get_or_init(|| Cli::new().scheme::<PyScheme>()),
        (_, None, None) => return crate::schemes(),
        (_, Some(_), _) => PLACED.get_or_init(|| Cli::new().scheme::<PageBy<ByPlacement>>()),
        (_, None, Some(_)) => CHOSEN.get_or_init(|| Cli::new().scheme::<PageBy<BySelection>>()),
    };
    cli.schemes()
}
