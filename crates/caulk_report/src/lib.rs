//! Findings and verdicts for people and for programs.
