//! Python source: functions, the places where containers grow, and edits.
