//! Memory over time: a curve of every process, with epochs, validations, events, the baseline and the limit.
//!
//! Everything is placed in parts of the picture, so that it fits every width without a script.

use caulk_core::Series;
use maud::{Markup, html};

use crate::axis;
use crate::buckets::Buckets;
use crate::input::{Level, PageInput};
use crate::marks::{self, Marks};
use crate::room::Room;
use crate::series::{self, Curve, Curves, Kind};
use crate::words;

/// Spans of a curve as it is drawn first.
const COARSE: usize = 360;
/// Width of the box that curves are drawn in; its height is 1000.
const WIDTH: f64 = 3600.0;
/// Width of an epoch's label, in percent.
const LABEL: f64 = 7.0;

/// The axes of a chart.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Axes {
    pub(crate) end_s: f64,
    pub(crate) most: f64,
}

impl Axes {
    /// Part of the width, in percent.
    pub(crate) fn x(self, at_s: f64) -> f64 {
        if self.end_s > 0.0 { (100.0 * at_s / self.end_s).clamp(0.0, 100.0) } else { 0.0 }
    }

    /// Part of the height from the top, in percent.
    pub(crate) fn y(self, value: f64) -> f64 {
        if self.most > 0.0 { 100.0 - 100.0 * value / self.most } else { 100.0 }
    }
}

/// Percent with enough digits for a pixel.
pub(crate) fn percent(part: f64) -> String {
    let text = format!("{part:.2}");
    format!("{}%", text.trim_end_matches('0').trim_end_matches('.'))
}

/// The chart of host memory.
pub(crate) fn host(input: &PageInput<'_>, curves: &Curves, marks: &Marks, room: Room) -> Markup {
    let (shown, left_out) = series::shown(&curves.host, room.series);
    let highest = shown.iter().map(|curve| curve.fine.highest()).fold(0.0, f64::max);
    let sizes = axis::sizes(highest * 1.02, 5.0);
    let axes = Axes { end_s: curves.end_s, most: sizes.last().copied().unwrap_or(1.0) };
    let level = input.level.as_ref().filter(|level| is_of_host(level.series));
    let level = level.map(|level| (level, marks::read(input.recording, &level.process, curves)));
    let note = if left_out > 0 {
        format!(
            "{left_out} further processes with less memory are not drawn; the table of processes has them."
        )
    } else {
        String::new()
    };
    html! {
        (plot("memory", "Memory over time", &shown, axes, &sizes, marks, level, room))
        @if let Some((level, _)) = level {
            p.caption { span.key.baseline-key {} " Baseline: " (level.text) "." }
        }
        @if !marks.validations.is_empty() { p.caption { span.key.validation-key {} " Validation." } }
        @if !note.is_empty() { p.caption { (note) } }
    }
}

/// The chart of GPUs.
pub(crate) fn gpus(curves: &Curves, marks: &Marks, room: Room) -> Markup {
    let (shown, _) = series::shown(&curves.gpus, room.series);
    let highest = shown.iter().map(|curve| curve.fine.highest()).fold(0.0, f64::max);
    let sizes = axis::sizes(highest * 1.02, 5.0);
    let axes = Axes { end_s: curves.end_s, most: sizes.last().copied().unwrap_or(1.0) };
    plot("gpu", "GPU memory over time", &shown, axes, &sizes, marks, None, room)
}

/// Series in bytes that the chart of host memory can show.
fn is_of_host(series: Series) -> bool {
    matches!(series, Series::InUse | Series::Rss | Series::Pss | Series::Shm | Series::MappedFiles)
}

#[expect(clippy::too_many_arguments, reason = "parts of one picture")]
fn plot(
    id: &str,
    label: &str,
    shown: &[&Curve],
    axes: Axes,
    sizes: &[f64],
    marks: &Marks,
    level: Option<(&Level, [f64; 2])>,
    room: Room,
) -> Markup {
    let curves = if shown.len() == 1 { "1 curve".to_owned() } else { format!("{} curves", shown.len()) };
    let title = format!("{label}: {curves}, {} at most", words::bytes(highest(shown)));
    let fine = (room.fine / shown.len().max(1)).min(shown.first().map_or(1, |curve| curve.fine.0.len()));
    html! {
        div.chart id=(id) data-end=(format!("{:.3}", axes.end_s)) data-most=(format!("{:.0}", axes.most)) {
            div.chart-tools role="group" aria-label={ "Zoom: " (label) } {
                button type="button" data-zoom="in" aria-label="Zoom in" { "+" }
                button type="button" data-zoom="out" aria-label="Zoom out" { "−" }
                button type="button" data-zoom="whole" { "whole run" }
                output.readout aria-live="polite" {}
            }
            svg.y-axis aria-hidden="true" {
                @for size in sizes { text x="100%" y=(percent(axes.y(*size))) { (words::bytes(*size)) } }
            }
            div.canvas tabindex="0" role="group" aria-label={ (title) ". Arrow keys move a marker, plus and minus zoom." } {
                svg.plot role="img" aria-label=(title) {
                    svg.zoomed width="100%" height="100%" viewBox={ "0 0 " (WIDTH) " 1000" } preserveAspectRatio="none" {
                        g { @for [from, to] in &marks.validations {
                            rect.validation x=(scaled(axes, *from)) y="0" height="1000"
                                width=(format!("{:.1}", (axes.x(*to) - axes.x(*from)) / 100.0 * WIDTH)) {}
                        } }
                        g { @for (at_s, _) in &marks.epochs {
                            path.epoch d={ "M" (scaled(axes, *at_s)) " 0V1000" } {}
                        } }
                    }
                    @for size in sizes {
                        @let y = percent(axes.y(*size));
                        line.grid x1="0" x2="100%" y1=(y) y2=(y) {}
                    }
                    svg.zoomed width="100%" height="100%" viewBox={ "0 0 " (WIDTH) " 1000" } preserveAspectRatio="none" {
                        @for (index, curve) in shown.iter().enumerate() {
                            path.curve.(style(&curve.kind, index)) data-curve=(index)
                                data-fine=(curve.fine.coarser(fine).encoded(axes.most))
                                d=(curve.fine.coarser(COARSE).path(axes.most, WIDTH)) {}
                        }
                        @if let Some((level, read)) = level { (baseline(level, read, axes)) }
                        @for event in &marks.events {
                            path.event d={ "M" (scaled(axes, event.at_s)) " 0V1000" } {}
                        }
                    }
                    line.cursor x1="0" x2="0" y1="0" y2="100%" {}
                }
            }
            svg.x-axis aria-hidden="true" {
                @for at_s in axis::times(axes.end_s, 6.0) {
                    text x=(percent(axes.x(at_s))) y="14" { (words::time(at_s)) }
                }
            }
            (epoch_axis(marks, axes))
        }
        ul.legend {
            @for (index, curve) in shown.iter().enumerate() {
                li { button type="button" aria-pressed="true" data-chart=(id) data-toggle=(index) {
                    svg.swatch aria-hidden="true" width="28" height="10" { path.curve.(style(&curve.kind, index)) d="M0 5H28" {} }
                    " " (curve.name)
                } }
            }
        }
        (events(marks))
    }
}

fn highest(shown: &[&Curve]) -> f64 {
    shown.iter().map(|curve| curve.fine.highest()).fold(0.0, f64::max)
}

fn scaled(axes: Axes, at_s: f64) -> String {
    format!("{:.1}", axes.x(at_s) / 100.0 * WIDTH)
}

/// Color and dash of a curve: the whole is grey, the leading process bold.
pub(crate) fn style(kind: &Kind, index: usize) -> String {
    match kind {
        Kind::Tree => "tree".into(),
        Kind::InUse(caulk_core::Role::Main, 0) => "c0 leading".into(),
        _ => format!("c{} d{}", index % 7 + 1, index / 7 % 3),
    }
}

/// The verdict's line through its last reading, within its interval, over the time of its readings.
fn baseline(level: &Level, [from, to]: [f64; 2], axes: Axes) -> Markup {
    let x = |at_s: f64| scaled(axes, at_s);
    let y = |value: f64| format!("{:.0}", axes.y(value) * 10.0);
    let length = to - from;
    let band = level.interval.map(|[low, high]| {
        // Both lines meet the baseline in its middle.
        let middle = level.last - level.slope * length / 2.0;
        let corner = |slope: f64, at_s: f64| {
            format!("{} {}", x(at_s), y(middle + slope * (at_s - from - length / 2.0)))
        };
        format!("M{}L{}L{}L{}Z", corner(low, from), corner(low, to), corner(high, to), corner(high, from))
    });
    html! {
        @if let Some(band) = band { path.band d=(band) {} }
        path.baseline d={ "M" (x(from)) " " (y(level.last - level.slope * length)) "L" (x(to)) " " (y(level.last)) } {}
    }
}

/// Numbers of epochs below the times, where there is room for them.
fn epoch_axis(marks: &Marks, axes: Axes) -> Markup {
    let mut last = f64::NEG_INFINITY;
    let has_room = |(at_s, _): &&(f64, u64)| {
        let x = axes.x(*at_s);
        let fits = x - last >= LABEL;
        if fits {
            last = x;
        }
        fits
    };
    let shown: Vec<_> = marks.epochs.iter().filter(has_room).collect();
    html! {
        @if !shown.is_empty() {
            svg.x-axis.epochs aria-hidden="true" {
                @for (at_s, number) in shown { text x=(percent(axes.x(*at_s))) y="12" { "epoch " (number) } }
            }
        }
    }
}

fn events(marks: &Marks) -> Markup {
    html! {
        @if !marks.events.is_empty() {
            details.events open { summary { "Events" }
                ol { @for event in &marks.events {
                    li { time { (words::time(event.at_s)) } " " (event.text) }
                } }
                @if marks.more_events > 0 { p.caption { (marks.more_events) " earlier events are left out." } }
            }
        }
    }
}

/// The same curve as a thumbnail.
pub(crate) fn thumbnail(curve: &Buckets, most: f64) -> String {
    curve.coarser(60).path(most, 600.0)
}
