//! Options of `caulk run` for alarms: when something is worth an interruption.

use clap::Args;

use crate::settings::{Factor, Share, Size};

/// When to warn while the program runs.
#[derive(Debug, Args)]
#[command(next_help_heading = "Alarms, each at most once")]
pub(crate) struct AlarmArgs {
    /// Warn when a training process has grown by this much since its first epoch
    #[arg(long, value_name = "SIZE", default_value = "2GB")]
    pub(crate) alarm_growth: Size,

    /// Warn when this share of a GPU's memory is taken (as its driver says it, once torch uses it)
    #[arg(long, value_name = "SHARE", default_value = "95%")]
    pub(crate) alarm_gpu: Share,

    /// Warn when steps take this many times as long as before, for two seconds and more
    #[arg(long, value_name = "FACTOR", default_value = "3")]
    pub(crate) alarm_slow: Factor,

    /// Warn when a GPU is this hot, in degrees Celsius; or a processor, ten degrees later
    #[arg(long, value_name = "DEGREES", default_value_t = 85, value_parser = clap::value_parser!(u32).range(30..=120))]
    pub(crate) alarm_heat: u32,

    /// No alarms
    #[arg(long)]
    pub(crate) no_alarms: bool,
}
