//! Recordings made up in memory, and the findings that they must give.

mod classes;
mod cycles;
mod gpu;
mod heap;
mod keepers;
mod native;
mod patterns;
mod resources;
mod retention;
mod run;
mod severity;
mod shares;
mod small;
mod unaccounted;
mod verdicts;
mod within;
mod workers;
