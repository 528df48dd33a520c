//! The way to the limit: what was taken so far, and the wedge between the earliest and the latest moment that it is full.

use caulk_core::{LimitKind, Recording};
use maud::{Markup, html};

use crate::axis;
use crate::buckets::Buckets;
use crate::chart::{Axes, percent};
use crate::input::Forecast;
use crate::series::Curves;
use crate::words;

const SPANS: usize = 240;
const WIDTH: f64 = 2400.0;
/// Latest end of the picture, in lengths of the way to the earliest end.
const LATEST: f64 = 4.0;

/// What counts against the limit, over time; empty where that was not recorded.
fn taken(forecast: &Forecast, recording: &Recording, curves: &Curves) -> Vec<(f64, f64)> {
    let limits = &recording.info.limits;
    let of_system = recording.system.iter().skip(1).filter_map(|sample| {
        let bytes = match forecast.limit.kind {
            LimitKind::Cgroup => sample.cgroup_bytes?.saturating_sub(sample.cgroup_cache_bytes.unwrap_or(0)),
            LimitKind::Physical => limits.physical_bytes.checked_sub(sample.available_bytes)?,
            LimitKind::Budget => sample.tree_rss_bytes,
            LimitKind::Shm => sample.shm_used_bytes?,
            _ => return None,
        };
        Some((curves.seconds(sample.time_ns), bytes as f64))
    });
    let of_gpu = recording.gpus.iter().filter(|sample| {
        forecast.limit.kind == LimitKind::Gpu
            && sample.pid.is_none()
            && sample.total_bytes == Some(forecast.limit.bytes)
    });
    let of_gpu = of_gpu.map(|sample| (curves.seconds(sample.time_ns), sample.used_bytes as f64));
    let of_process = recording.samples.iter().filter_map(|sample| {
        let bytes = match forecast.limit.kind {
            LimitKind::RlimitAs => sample.address_space_bytes?,
            LimitKind::RlimitData => sample.data_bytes?,
            _ => return None,
        };
        Some((curves.seconds(sample.time_ns), bytes as f64))
    });
    of_system.chain(of_gpu).chain(of_process).collect()
}

/// The picture; nothing where the limit is no memory, is reached already, or what counts against it was not recorded.
pub(crate) fn forecast(forecast: &Forecast, recording: &Recording, curves: &Curves) -> Markup {
    let [early, late] = forecast.until_s;
    let readings = taken(forecast, recording, curves);
    let whole = curves.end_s + late.min(LATEST * early.max(1.0));
    let fine = Buckets::of(readings.into_iter(), whole, SPANS);
    let Some(now) = fine.last().filter(|_| early > 0.0 && early.is_finite()) else {
        return html! { p { (forecast.text) } };
    };
    let limit = forecast.limit.bytes as f64;
    let sizes = axis::sizes(limit.max(fine.highest()) * 1.02, 4.0);
    let axes = Axes { end_s: whole, most: sizes.last().copied().unwrap_or(1.0) };
    let x = |at_s: f64| format!("{:.0}", axes.x(at_s) / 100.0 * WIDTH);
    let y = |value: f64| format!("{:.0}", axes.y(value) * 10.0);
    let end = curves.end_s;
    // A line to a moment beyond the picture leaves it where it is by then.
    let to = |until: f64| {
        let part = ((whole - end) / until).min(1.0);
        format!("{} {}", x(end + until * part), y(now + (limit - now) * part))
    };
    let latest = if late.is_finite() { to(late) } else { format!("{} {}", x(whole), y(now)) };
    let label = format!("Forecast: {}", forecast.text);
    html! {
        p { (forecast.text) }
        div.chart.forecast {
            svg.y-axis aria-hidden="true" {
                @for size in &sizes { text x="100%" y=(percent(axes.y(*size))) { (words::bytes(*size)) } }
            }
            div.canvas { svg.plot role="img" aria-label=(label) {
                @for size in &sizes {
                    @let at = percent(axes.y(*size));
                    line.grid x1="0" x2="100%" y1=(at) y2=(at) {}
                }
                svg width="100%" height="100%" viewBox={ "0 0 " (WIDTH) " 1000" } preserveAspectRatio="none" {
                    path.wedge d={ "M" (x(end)) " " (y(now)) "L" (to(early)) "L" (x(whole)) " " (y(limit)) "L" (latest) "Z" } {}
                    path.curve.c0.leading d=(fine.path(axes.most, WIDTH)) {}
                    path.baseline d={ "M" (x(end)) " " (y(now)) "L" (to(early)) } {}
                    path.limit d={ "M0 " (y(limit)) "H" (WIDTH) } {}
                    path.now d={ "M" (x(end)) " 0V1000" } {}
                }
                text.limit-name x="8" y=(percent(axes.y(limit))) dy="-6" { (forecast.name) }
            } }
            svg.x-axis aria-hidden="true" {
                @for at_s in axis::times(whole, 6.0) { text x=(percent(axes.x(at_s))) y="14" { (words::time(at_s)) } }
            }
        }
        p.caption { span.key.now-key {} " End of the recording. The shaded wedge lies between the earliest and the latest moment." }
    }
}
