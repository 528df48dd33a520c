//! Where a model's figures come from: its layers, or a trace of the model itself.

use crate::model::{Cost, Mode};
use crate::replay::{Replayed, replay};
use crate::trace::Trace;
use crate::{Estimate, Model, ModelError, Settings, Video};

/// Bytes of a parameter, a gradient, an input's element: training keeps them at 32 bit.
const FULL: f64 = 4.0;

/// A model to plan for.
#[derive(Debug, Clone, PartialEq)]
pub enum Source {
    /// From its layers.
    Layers(Box<Model>),
    /// From what was counted while it ran.
    Trace(Trace),
}

/// What a model needs with some settings, in bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Demand {
    /// Parameters and buffers.
    pub(crate) model: f64,
    /// Gradients.
    pub(crate) gradients: f64,
    /// States of the optimizer.
    pub(crate) states: f64,
    /// What a forward pass keeps for the backward pass.
    pub(crate) saved: Estimate,
    /// What lives beside it for a moment.
    pub(crate) passing: Estimate,
    /// One sample, as the loader gives it.
    pub(crate) sample: f64,
    /// What its steps take on a GPU, by a replay of the trace.
    pub(crate) replayed: Option<Replayed>,
}

impl Source {
    /// Its name.
    pub fn name(&self) -> &str {
        match self {
            Self::Layers(model) => &model.name,
            Self::Trace(trace) => &trace.name,
        }
    }

    /// What it is, where that is known.
    pub fn summary(&self) -> &str {
        if let Self::Layers(model) = self { &model.summary } else { "" }
    }

    /// Number of its parameters.
    ///
    /// # Errors
    /// [`ModelError`] where a layer cannot take what comes to it.
    pub fn parameters(&self) -> Result<u64, ModelError> {
        Ok(match self {
            Self::Layers(model) => model.cost(None, None, Mode::default())?.parameters as u64,
            Self::Trace(trace) => trace.parameters,
        })
    }

    /// Where its figures come from.
    pub fn origin(&self) -> String {
        match self {
            Self::Layers(model) if model.source.is_empty() => "computed from its layers".into(),
            Self::Layers(model) => format!("computed from its layers, {}", model.source),
            Self::Trace(_) => "counted while it ran on tensors without contents".into(),
        }
    }

    /// What could not be counted as it would be on a GPU.
    pub fn notes(&self) -> &[String] {
        if let Self::Trace(trace) = self { &trace.notes } else { &[] }
    }

    pub(crate) fn video(&self) -> Option<Video> {
        if let Self::Layers(model) = self { model.video } else { None }
    }

    pub(crate) fn batch_norm(&self) -> bool {
        match self {
            Self::Layers(model) => model.cost(None, None, Mode::default()).is_ok_and(|cost| cost.batch_norm),
            Self::Trace(trace) => trace.batch_norm,
        }
    }

    /// What it needs with these settings; `None` where it was not traced with them.
    ///
    /// # Errors
    /// [`ModelError`] where a layer cannot take what comes to it.
    pub(crate) fn demand(&self, settings: &Settings) -> Result<Option<Demand>, ModelError> {
        match self {
            Self::Layers(model) => of_layers(model, settings).map(Some),
            Self::Trace(trace) => Ok(of_trace(trace, settings)),
        }
    }
}

fn of_layers(model: &Model, settings: &Settings) -> Result<Demand, ModelError> {
    let mode = Mode { mixed: settings.precision.is_mixed(), checkpointing: settings.checkpointing };
    let narrowed;
    let model = if settings.thirds < 3 {
        narrowed = model.narrowed(settings.thirds);
        &narrowed
    } else {
        model
    };
    let cost: Cost = model.cost(settings.frames, settings.size, mode)?;
    let batch = settings.batch as f64;
    let beside = |reached: f64, saved: f64| (reached - saved).max(0.0) * batch;
    let passing = Estimate::between(
        beside(cost.reached.low, cost.saved.low),
        beside(cost.reached.likely, cost.saved.likely),
        beside(cost.reached.high, cost.saved.high),
    );
    Ok(Demand {
        model: cost.parameters * FULL + cost.buffers,
        gradients: cost.parameters * FULL,
        states: cost.parameters * settings.optimizer.bytes(),
        saved: cost.saved * batch + Estimate::exact(cost.copies),
        passing,
        sample: model.shape(settings.frames, settings.size)?.iter().map(|n| *n as f64).product::<f64>()
            * FULL,
        replayed: None,
    })
}

fn of_trace(trace: &Trace, settings: &Settings) -> Option<Demand> {
    let wanted = (settings.batch, settings.precision.is_mixed(), settings.checkpointing);
    let run = trace.runs.iter().find(|run| (run.batch, run.mixed, run.checkpointing) == wanted)?;
    let saved = run.saved as f64;
    let peak = run.peak();
    let passing = peak.saturating_sub(run.saved) as f64;
    // Traces of networks without clips were 0 to 2.2 % below the real peak, one with clips 21 %: workspaces of libraries.
    let missing = peak as f64 * if trace.conv3d { 0.35 } else { 0.03 };
    // CUDA's autocast keeps less than the CPU's: 302 against 333 MB for a small language model.
    let least = if run.mixed { 0.88 } else { 1.0 };
    Some(Demand {
        model: trace.model_bytes as f64,
        gradients: trace.gradient_bytes as f64,
        states: trace.gradient_bytes as f64 / FULL * settings.optimizer.bytes(),
        saved: Estimate::exact(saved).times(least, 1.0, 1.0),
        passing: Estimate::between(least * passing, passing + missing / 2.0, passing + missing),
        sample: trace.sample_bytes as f64,
        replayed: Some(replay(trace, run, settings)),
    })
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::{Optimizer, Precision, TraceRun};

    fn trace(conv3d: bool) -> Source {
        let run = |batch, mixed| TraceRun {
            batch,
            mixed,
            checkpointing: false,
            saved: 1000 * batch,
            events: vec![1000 * batch as i64, 200 * batch as i64, -2, 100, -1],
            forward: 2,
            workspaces: vec![(2, 50 << 20)],
            products: true,
        };
        Source::Trace(Trace {
            name: "net".into(),
            parameters: 25,
            model_bytes: 100,
            gradient_bytes: 100,
            tensors: vec![100],
            trained: vec![100],
            sample_bytes: 10,
            batch_norm: false,
            conv3d,
            runs: vec![run(4, false), run(4, true), run(2, false)],
            notes: Vec::new(),
        })
    }

    fn demand(source: &Source, batch: u64, precision: Precision) -> Option<Demand> {
        let settings = Settings {
            batch,
            accumulation: 1,
            precision,
            checkpointing: false,
            frames: None,
            size: None,
            thirds: 3,
            optimizer: Optimizer::Adam,
            workers: 0,
            prefetch: 2,
            pin_memory: false,
            persistent_workers: false,
            decoding: None,
            validation_batch: batch,
            validation_every: 1,
        };
        source.demand(&settings).unwrap()
    }

    #[test]
    fn what_was_traced_is_taken_as_it_is_and_nothing_is_made_up() {
        let found = demand(&trace(false), 4, Precision::Full).unwrap();
        assert_eq!(found.saved, Estimate::exact(4000.0));
        assert!((found.states - 200.0).abs() < 1e-9 && (found.passing.low - 800.0).abs() < 1e-9, "{found:?}");
        assert!(found.passing.high < 1000.0, "{found:?}");
        assert_eq!(demand(&trace(false), 3, Precision::Full), None, "a batch that was not traced");
        assert_eq!(demand(&trace(false), 2, Precision::Half), None, "a width that was not traced");
    }

    #[test]
    fn steps_are_replayed_with_states_workspaces_and_gradients() {
        let found = demand(&trace(false), 4, Precision::Full).unwrap().replayed.unwrap();
        let model = 512.0 + 2.0 * 512.0 + found.cublas;
        assert!(found.allocated.low > model + 4800.0, "{found:?}");
        assert!(found.allocated.likely > model + f64::from(50 << 20), "the workspace counts: {found:?}");
        assert!(found.allocated.high >= found.allocated.likely && found.reserved.low >= found.allocated.low);
        let megabyte = f64::from(1 << 20);
        assert!((found.reserved.low / (2.0 * megabyte)).fract() < 1e-9, "segments: {found:?}");
    }

    #[test]
    fn what_a_trace_does_not_see_widens_the_interval() {
        let clips = demand(&trace(true), 4, Precision::Full).unwrap();
        assert!(clips.passing.high > 800.0 + 0.3 * 4800.0, "{clips:?}");
        let mixed = demand(&trace(false), 4, Precision::Half).unwrap();
        assert!(mixed.saved.low < 3600.0 && (mixed.saved.high - 4000.0).abs() < 1e-9, "{mixed:?}");
    }
}
