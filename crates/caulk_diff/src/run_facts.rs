//! What one run brings to a comparison.

use caulk_core::{Series, State, VerdictUnit};
use serde::Serialize;

/// A number of one run with its interval, where it has one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Quantity {
    /// The number.
    pub value: f64,
    /// Its interval.
    pub interval: Option<[f64; 2]>,
}

/// Growth of a container, by the expression that holds it.
#[derive(Debug, Clone, PartialEq)]
pub struct ContainerGrowth {
    /// As a person would type it.
    pub holder: String,
    /// Bytes per unit.
    pub rate: Quantity,
}

/// Memory that a line holds at the end of the run.
#[derive(Debug, Clone, PartialEq)]
pub struct LineGrowth {
    /// Path.
    pub file: String,
    /// From 1. Two versions of a program have other numbers: lines are matched by their text where it is known.
    pub line: u32,
    /// Name of the function.
    pub function: String,
    /// Live bytes, sampled.
    pub live: Quantity,
}

/// One run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunFacts {
    /// Name of its recording.
    pub name: String,
    /// The script, module or program that ran.
    pub program: String,
    /// Version of caulk.
    pub version: String,
    /// Of the training process and of the series that decides: what it does, per what, how fast.
    pub memory: Option<(State, Series, VerdictUnit, Quantity)>,
    /// Slope of the GPU memory of the training process.
    pub gpu: Option<Quantity>,
    /// Peak of the tree, in bytes.
    pub host_peak: Option<f64>,
    /// Peak of the fullest GPU, in bytes.
    pub gpu_peak: Option<f64>,
    /// Seconds per step, or per epoch if no step was seen.
    pub seconds_per_step: Option<f64>,
    /// Containers that findings name.
    pub containers: Vec<ContainerGrowth>,
    /// Lines that hold memory.
    pub lines: Vec<LineGrowth>,
}
