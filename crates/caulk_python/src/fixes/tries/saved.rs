//! Figures that are saved by another function than the one that makes them.

use super::arrays::imported;
use crate::edit::line_after;
use crate::lines::Lines;
use crate::sites::{EditTry, TryKind};

/// Each figure of a file is closed behind the line that saves it: `plt.close(fig)`.
pub(crate) fn close_saved(file: &Lines<'_>) -> Vec<EditTry> {
    let saves = file.index.calls.iter().filter(|call| call.callee.last_name() == Some("savefig"));
    let close = |call: &crate::index::CallRecord| {
        let text = file.source.inline(call.callee_range);
        let figure = text.strip_suffix(".savefig")?;
        let (pyplot, needed) = imported(file, "matplotlib.pyplot", "plt", "import matplotlib.pyplot as plt");
        let given = if figure == pyplot { "" } else { figure };
        let line = format!("{pyplot}.close({given})");
        let edit = line_after(file, file.index.statements[call.place.statement].range, &line)?;
        let description = format!("Close the figure once it is saved: `{line}`.");
        let edits = needed.into_iter().chain([edit]).collect();
        Some(EditTry { kind: TryKind::Release, description, edits })
    };
    saves.filter_map(close).collect()
}
