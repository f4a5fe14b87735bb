//! The working set of `tpcc`: its tiers, and in which blocks they lie.

use super::GenerateError;
use super::params::Values;
use super::patterns::Tier;

/// The tiers of `tpcc` over a working set of so many pages.
pub(super) fn tiers(values: &Values<'_>, working: u64) -> Result<Vec<Tier>, GenerateError> {
    let shares = values.pairs("tiers")?;
    let wrong = |message: &str| values.wrong("tiers", message);
    let (mut pages, mut requests) = (0u64, 0u64);
    let mut tiers = Vec::with_capacity(shares.len());
    let mut first = 0;
    for (share, of_requests) in shares {
        pages = pages.saturating_add(share);
        requests = requests.saturating_add(of_requests);
        if pages > 100 || requests > 100 {
            return Err(wrong("the shares add up to more than 100 %"));
        }
        let end = working * pages / 100;
        if end == first {
            return Err(wrong(
                "a tier has no page: its share of the working set is too small",
            ));
        }
        tiers.push(Tier {
            first,
            end,
            below: requests,
        });
        first = end;
    }
    if requests != 100 {
        return Err(wrong("the shares of the requests do not add up to 100 %"));
    }
    Ok(tiers)
}

/// The pages of the working set, tier by tier, of a permutation of the space; behind them, what is left of it.
pub(super) fn place(
    values: &Values<'_>,
    tiers: &[Tier],
    mut pages: Vec<u32>,
) -> Result<Vec<u32>, GenerateError> {
    let share = values.number("blocks", 1, 100)?;
    let block_pages = values.number("block_pages", 1, 1 << 20)?;
    let is_apart = values.is_second("order", ["scattered", "tiers"])?;
    if share == 100 && !is_apart {
        return Ok(pages);
    }
    let blocks = (pages.len() as u64).div_ceil(block_pages);
    let working = tiers.last().map_or(0, |tier| tier.end);
    // Block b is the chosen one number floor(b * share / 100), if it is chosen.
    let chosen = |block: u64| {
        let number = block * share / 100;
        ((block + 1) * share / 100 > number).then_some(number)
    };
    let number_of = |page: u32| chosen(u64::from(page) / block_pages);
    let few = || {
        values.wrong(
            "blocks",
            &format!(
                "{share} % of {blocks} blocks of {block_pages} pages have no room for the {working} pages of the \
                 working set, each tier in its part of them: more blocks or a smaller working"
            ),
        )
    };
    if !is_apart {
        pages.retain(|&page| number_of(page).is_some());
        return if (pages.len() as u64) < working {
            Err(few())
        } else {
            Ok(pages)
        };
    }
    let all = blocks * share / 100;
    // A tier has the part of the chosen blocks that it has of the working set.
    let first_block = |tier: &Tier| all * tier.first / working;
    let mut at: Vec<u64> = tiers.iter().map(|tier| tier.first).collect();
    let mut placed = vec![0; working as usize];
    for &page in &pages {
        let Some(number) = number_of(page) else {
            continue;
        };
        let tier = tiers.partition_point(|tier| first_block(tier) <= number) - 1;
        if at[tier] < tiers[tier].end {
            placed[at[tier] as usize] = page;
            at[tier] += 1;
        }
    }
    match at.iter().zip(tiers).all(|(&at, tier)| at == tier.end) {
        true => Ok(placed),
        false => Err(few()),
    }
}
