//! The page as a whole: small whatever goes into it, and nothing in it is loaded, run or taken for markup.

use caulk_core::{GpuSample, GpuUse, Recording, RunInfo, Sample, Sampled};
use caulk_html::{
    Cell, Curve, Excerpt, FindingCard, LineRow, MOST_BYTES, Mood, PageAnswer, PageInput, Paper, PaperPart,
    PaperSection, Row, SideFigure, SideRow, SourceLine,
};

const HOSTILE: &str = "</script><img src=x onerror=alert(1)>\u{202e}\"'&";

fn input<'a>(recording: &'a Recording, text: &str, many: usize) -> PageInput<'a> {
    let row = || Row::new(text, text);
    let finding = || FindingCard {
        message: text.into(),
        holder: text.into(),
        path: vec![text.into(); 30],
        excerpts: vec![
            Excerpt {
                place: text.into(),
                lines: vec![SourceLine { number: 1, text: text.into(), marked: true }],
                ..Excerpt::default()
            };
            20
        ],
        rows: vec![row(); 30],
        evidence: vec![row(); 30],
        twins: vec![text.into(); 30],
        fix: text.into(),
        severity: "error",
        ..FindingCard::default()
    };
    let line = || LineRow {
        file: text.into(),
        function: text.into(),
        text: text.into(),
        live: Sampled { bytes: 1e6, deviation: 1e3 },
        ..LineRow::default()
    };
    PageInput {
        title: text.into(),
        command: text.into(),
        banners: vec![text.into(); many],
        answer: PageAnswer {
            mood: Mood::Bad,
            brief: text.into(),
            sentence: text.into(),
            ..PageAnswer::default()
        },
        figures: Vec::new(),
        about: vec![row()],
        recording,
        gpus: &[],
        level: None,
        forecast: None,
        verdicts: Vec::new(),
        findings: (0..many).map(|_| finding()).collect(),
        lines: (0..many).map(|_| line()).collect(),
        per: ("epoch", 1.0),
        changes: &[],
        stacks: &[],
        notes: vec![text.into(); many],
        lives: vec![text.into(); many],
    }
}

fn recording() -> Recording {
    let sample = |time: u64| Sample {
        time_ns: time * 1_000_000_000,
        pid: 1 + (time % 500) as u32,
        rss_bytes: time << 20,
        ..Sample::default()
    };
    Recording {
        info: RunInfo { end_ns: Some(100_000_000_000_000), ..RunInfo::default() },
        samples: (1..100_000).map(sample).collect(),
        ..Recording::default()
    }
}

#[test]
fn a_page_is_small_whatever_goes_into_it() {
    let recording = recording();
    // Quotes are six times as long in a page.
    let page = caulk_html::html(&input(&recording, &"\"".repeat(1000), 200));
    assert!(page.len() <= MOST_BYTES, "{}", page.len());
}

#[test]
fn names_are_text_and_nothing_is_loaded() {
    let recording = recording();
    let page = caulk_html::html(&input(&recording, HOSTILE, 2));
    for markup in
        ["<img", "http:", "https:", "src=\"", "@import", "url(", " style=\"", "javascript:", "\u{202e}"]
    {
        assert!(!page.contains(markup), "{markup}");
    }
    assert_eq!(page.matches("<script").count(), 1);
    assert!(page.contains("default-src 'none'; style-src 'sha256-"));
    assert!(page.contains("&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;\u{FFFD}&quot;"));
}

#[test]
fn gpus_have_a_chart_and_a_table() {
    let look = |second: u64| GpuSample {
        time_ns: second * 1_000_000_000,
        used_bytes: second << 30,
        ..GpuSample::default()
    };
    let recording = Recording { gpus: (1..20).map(look).collect(), ..recording() };
    let gpu = GpuUse {
        device: 0,
        name: "NVIDIA <H200>".into(),
        total_bytes: 140 << 30,
        peak_bytes: 19 << 30,
        last_bytes: 19 << 30,
        processes: Vec::new(),
        hottest_celsius: Some(60),
        busy_percent: Some(80),
        slowed: Vec::new(),
        ledger: None,
    };
    let page = caulk_html::html(&PageInput { gpus: &[gpu], ..input(&recording, "a", 1) });
    assert!(page.contains("id=\"gpus\"") && page.contains("NVIDIA &lt;H200&gt;") && page.contains("60 °C"));
    assert!(page.contains("GPU memory over time: 1 curve, 19.0 GB at most"));
}

#[test]
fn an_empty_recording_has_a_page_too() {
    let recording = Recording::default();
    let page = caulk_html::html(&input(&recording, "", 0));
    assert!(page.contains("The heap of this run was not sampled."));
    assert!(!page.contains("NaN") && !page.contains("inf%"));
}

fn paper(text: &str, many: usize) -> Paper {
    let cell = || Cell::new(text).with(Mood::Bad).over(vec![text.into(); many]);
    let side = || Some(SideFigure { median: 2.0, interval: Some([1.0, 3.0]), text: text.into() });
    let sides =
        || SideRow { label: text.into(), sides: [side(), None], change: text.into(), mood: Mood::Bad };
    let trace = || Curve { name: text.into(), readings: (0..many * 100).map(|at| at as f64).collect() };
    let part = |part| PaperSection { id: "part", title: "Part".into(), parts: vec![part] };
    Paper {
        title: text.into(),
        command: text.into(),
        answer: PageAnswer { mood: Mood::Bad, brief: text.into(), ..PageAnswer::default() },
        figures: Vec::new(),
        about: vec![Row::new(text, text)],
        sections: vec![
            part(PaperPart::Text(text.into())),
            part(PaperPart::Table("checks", &["check", "result"], vec![vec![cell(), cell()]; many])),
            part(PaperPart::Findings(vec![
                FindingCard { message: text.into(), ..FindingCard::default() };
                many
            ])),
            part(PaperPart::Sides([text.into(), text.into()], (0..many).map(|_| sides()).collect())),
            part(PaperPart::Traces(text.into(), (0..many).map(|_| trace()).collect())),
            part(PaperPart::Patch(
                format!("--- {text}\n+++ {text}\n@@ -1 +1 @@\n-{text}\n+{text}\n").repeat(many),
            )),
        ],
    }
}

#[test]
fn smaller_pages_are_as_safe_and_as_small() {
    let page = caulk_html::paper(&paper(HOSTILE, 2));
    for markup in ["<img", "http:", "https:", "src=\"", "url(", " style=\"", "javascript:", "\u{202e}"] {
        assert!(!page.contains(markup), "{markup}");
    }
    assert_eq!(page.matches("<script").count(), 1);
    assert!(page.contains("default-src 'none'; style-src 'sha256-"));
    assert!(!page.contains("NaN") && !page.contains("inf%"));
    assert!(caulk_html::paper(&paper(&"\"".repeat(1000), 100)).len() <= MOST_BYTES);
    caulk_html::paper(&Paper::default());
}
