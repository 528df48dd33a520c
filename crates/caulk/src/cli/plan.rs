//! `caulk plan`: its arguments.

use std::ffi::OsString;

use camino::Utf8PathBuf;
use clap::{Args, ValueEnum, ValueHint};

use super::format::Format;
use crate::settings::{InputShape, Size, VideoSize};

const HELP: &str = "\
Examples:
  caulk plan --preset vit_gru --gpu \"GTX 1650\" --ram 16GB     settings that fit, with reasons
  caulk plan --preset slowfast --vram 8GB --output safe.yaml  write them, too
  caulk plan --preset x3d                                     what fits cards from 4 to 80 GB
  caulk plan --model net:make --input 3x224x224 --auto        a model of yours, run without memory
  caulk plan --ram 8GB -- python train.py                     some steps of a training, measured
  caulk plan --gpu T4 -- python train.py                      the same, and its model on a GPU that is not here
  caulk plan --config model.toml --gpu T4                     a model by its layers
  caulk plan --preset x3d --gpu T4 --explain                  and where each figure comes from

Presets: logistic_regression, svm, naive_cnn, vit_gru, vit_transformer, slowfast, x3d.

The effective batch (batch x accumulation) stays what it was. Smaller batches come first, down to 4 samples \
at a time, then 16 bit, then gradient checkpointing; frames and sizes change only where nothing else fits. Every figure is predicted, not measured, and has its \
interval; a plan fits if it does so at the highest.

A model file names one sample, how it is trained now, and the layers; each preset is one, and `--print-config` prints it:

  name = \"mine\"
  layers = [{ conv = { out = 32, kernel = 3 } }, \"batch-norm\", \"relu\", \"global-pool\", { linear = { out = 10 } }]
  [input]
  channels = 3
  size = 64

Exit code: 1 where nothing fits, else 0; 2 wrong arguments; 125 failed.";

/// Predict a training's memory, and find settings that fit a GPU and a machine
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    pub(crate) what: What,

    /// GPU by name: "GTX 1650", T4, "A100 80GB"
    #[arg(long, value_name = "NAME", conflicts_with = "auto")]
    pub(crate) gpu: Option<String>,

    /// Memory of the GPU: 4GB
    #[arg(long, value_name = "SIZE", conflicts_with_all = ["gpu", "auto"])]
    pub(crate) vram: Option<Size>,

    /// Memory of the host: 16GB
    #[arg(long, value_name = "SIZE")]
    pub(crate) ram: Option<Size>,

    /// This machine: its memory, its processors, the GPU that torch sees
    #[arg(long)]
    pub(crate) auto: bool,

    /// With a command: end it after so many optimizer steps
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) steps: u64,

    /// With a command: end it after so many seconds in any case
    #[arg(long, value_name = "N", default_value_t = 180, value_parser = clap::value_parser!(u64).range(1..=86400))]
    pub(crate) seconds: u64,

    /// Lines on standard error while the training runs or the model is counted
    #[arg(long, value_enum, default_value_t, value_name = "WHEN")]
    pub(crate) progress: Progress,

    /// Say where each figure comes from
    #[arg(long)]
    pub(crate) explain: bool,

    /// Interpreter that runs the model, or is asked for a GPU [default: python, else python3, as the shell finds it]
    #[arg(long, value_name = "PYTHON", value_hint = ValueHint::ExecutablePath)]
    pub(crate) python: Option<Utf8PathBuf>,

    /// Write the settings to this file: YAML with comments, or JSON where it is called .json
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<Utf8PathBuf>,

    /// Format of what is printed
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,

    #[command(flatten)]
    pub(crate) before: Before,
}

/// When to print lines on how far it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Progress {
    /// If standard error is a terminal, every 5 seconds
    #[default]
    Auto,
    /// Also into files and pipes, there every 30 seconds
    Line,
    /// Never
    None,
}

/// The model.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct What {
    /// A model that caulk knows
    #[arg(long, value_name = "NAME")]
    pub(crate) preset: Option<String>,

    /// A model of yours: a function or class without arguments, by module and name
    #[arg(long, value_name = "MODULE:NAME", requires = "input")]
    pub(crate) model: Option<String>,

    /// A file with the model's layers
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) config: Option<Utf8PathBuf>,

    /// A run that was recorded (`caulk runs`): what it held
    #[arg(long, value_name = "RUN")]
    pub(crate) run: Option<String>,

    /// A training, run for some steps and measured
    #[arg(last = true, value_name = "COMMAND", value_hint = ValueHint::CommandWithArguments)]
    pub(crate) command: Vec<OsString>,

    /// Print the file of a preset, as a start for one of yours
    #[arg(long, value_name = "NAME")]
    pub(crate) print_config: Option<String>,
}

/// How it is trained now.
#[derive(Debug, Args)]
#[command(next_help_heading = "The training as it is now")]
pub(crate) struct Before {
    /// Shape of one sample, without the batch: 3x224x224; `i` in front for token numbers: i512
    #[arg(long, value_name = "SHAPE", requires = "model")]
    pub(crate) input: Option<InputShape>,

    /// Samples of one forward pass [default: the model's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=65536))]
    pub(crate) batch: Option<u64>,

    /// Forward passes of one optimizer step [default: the model's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=65536))]
    pub(crate) accumulation: Option<u64>,

    /// Numbers of the forward pass
    #[arg(long, value_enum, default_value_t)]
    pub(crate) precision: Precision,

    /// What keeps states beside the parameters
    #[arg(long, value_enum, default_value_t)]
    pub(crate) optimizer: Optimizer,

    /// Frames of a clip [default: the model's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=4096), conflicts_with = "model")]
    pub(crate) frames: Option<u64>,

    /// Height and width of images, in pixels [default: the model's]
    #[arg(long, value_name = "PIXELS", value_parser = clap::value_parser!(u64).range(1..=16384), conflicts_with = "model")]
    pub(crate) size: Option<u64>,

    /// Workers of the data loader [default: the model's, else 4]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(0..=1024))]
    pub(crate) workers: Option<u64>,

    /// The video that each clip is cut from: width x height x frames, 1920x1080x300
    #[arg(long, value_name = "WxHxN")]
    pub(crate) video: Option<VideoSize>,

    /// Data set that the program loads into memory: 3GB
    #[arg(long, value_name = "SIZE")]
    pub(crate) dataset: Option<Size>,
}

/// See [`caulk_plan::Precision`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Precision {
    /// 32 bit
    #[default]
    #[value(name = "32")]
    Full,
    /// float16 under autocast
    #[value(name = "16")]
    Half,
    /// bfloat16 under autocast
    #[value(name = "bf16")]
    Brain,
}

impl From<Precision> for caulk_plan::Precision {
    fn from(precision: Precision) -> Self {
        match precision {
            Precision::Full => Self::Full,
            Precision::Half => Self::Half,
            Precision::Brain => Self::Brain,
        }
    }
}

/// See [`caulk_plan::Optimizer`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Optimizer {
    /// Adam, with or without decoupled weight decay
    #[default]
    Adam,
    /// SGD with momentum
    Momentum,
    /// SGD without
    Sgd,
    /// Adam with states of 8 bit
    #[value(name = "adam8bit")]
    Adam8bit,
}

impl From<Optimizer> for caulk_plan::Optimizer {
    fn from(optimizer: Optimizer) -> Self {
        match optimizer {
            Optimizer::Adam => Self::Adam,
            Optimizer::Momentum => Self::Momentum,
            Optimizer::Sgd => Self::Sgd,
            Optimizer::Adam8bit => Self::Adam8bit,
        }
    }
}
