//! A recording and the program's sources to findings.
