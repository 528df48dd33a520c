//! Criteria that findings decide: each leak fails the one that its class belongs to.

use caulk_core::{Bytes, Finding, Series, VerdictUnit};

use crate::classes::criterion;
use crate::{Checked, Criterion, Observed};

/// Places that a check names.
const MOST_PLACES: usize = 5;

/// The check that fails because of leaks that belong to this criterion; `None` if there are none.
pub(crate) fn failed(observed: &Observed<'_>, name: Criterion) -> Option<Checked> {
    let found: Vec<&Finding> = observed.leaks().filter(|finding| criterion(finding.class) == name).collect();
    let first = found.first()?;
    let plural = if found.len() == 1 { "" } else { "s" };
    let rate =
        first.growth.as_ref().and_then(|growth| rate(growth.series, growth.bytes_per_unit, growth.unit));
    let rate = rate.map_or_else(String::new, |rate| format!(", the first {rate}"));
    let figure = format!("{} leak{plural}{rate}: {}", found.len(), first.class.summary());
    Some(Checked::fail(name, figure).at(found.into_iter().take(MOST_PLACES).map(place).collect()))
}

/// `train.py:12  trainer.history  (unbounded-history)`.
fn place(finding: &Finding) -> String {
    let site = finding.sites.first().map(|site| format!("{}:{}", site.file, site.line));
    let container = if finding.holder.is_empty() { &finding.container } else { &finding.holder };
    let parts = [site.unwrap_or_default(), container.clone(), format!("({})", finding.class)];
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join("  ")
}

/// `4.00 MB per epoch`; `None` for growth of no bytes.
pub(crate) fn rate(series: Series, per_unit: f64, unit: VerdictUnit) -> Option<String> {
    let counts = matches!(series, Series::Fds | Series::Threads | Series::Children);
    let unit = unit_name(unit);
    match per_unit {
        _ if counts => Some(format!("{per_unit:.1} per {unit}")),
        0.0 => None,
        bytes => Some(format!("{} per {unit}", Bytes::signed(bytes))),
    }
}

pub(crate) fn unit_name(unit: VerdictUnit) -> &'static str {
    match unit {
        VerdictUnit::Epoch => "epoch",
        VerdictUnit::Steps => "step",
        VerdictUnit::Seconds => "second",
    }
}
