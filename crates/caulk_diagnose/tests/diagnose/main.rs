//! Recordings made up in memory, and the findings that they must give.

mod classes;
mod patterns;
mod run;
mod severity;
mod verdicts;
