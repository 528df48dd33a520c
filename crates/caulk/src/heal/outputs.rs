//! What the cells of an executed notebook put out, to be compared between runs: when and how often they ran is no output.

use serde_json::Value;

/// Parts of an output that are compared: its kind, text, pictures, the name and message of an exception.
const SHOWN: [&str; 6] = ["output_type", "name", "text", "data", "ename", "evalue"];

/// The outputs of all cells of a notebook, as JSON; `None` if the bytes are no notebook.
pub(super) fn of_notebook(bytes: &[u8]) -> Option<Vec<u8>> {
    let notebook: Value = serde_json::from_slice(bytes).ok()?;
    let outputs = notebook["cells"].as_array()?.iter().filter_map(|cell| cell["outputs"].as_array());
    let shown = |output: &Value| SHOWN.map(|part| output[part].clone());
    let all: Vec<[Value; 6]> = outputs.flatten().map(shown).collect();
    serde_json::to_vec(&all).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_counts_are_no_output() {
        let notebook = |count: u32, text: &str| {
            let source = serde_json::json!({"cells": [{
                "cell_type": "code",
                "execution_count": count,
                "metadata": {"execution": {"iopub.execute_input": format!("2026-01-0{count}")}},
                "outputs": [{"output_type": "stream", "name": "stdout", "text": [text]}],
                "source": [],
            }]});
            of_notebook(source.to_string().as_bytes())
        };
        assert_eq!(notebook(1, "loss 0.5\n"), notebook(2, "loss 0.5\n"));
        assert_ne!(notebook(1, "loss 0.5\n"), notebook(1, "loss 0.6\n"));
        assert_eq!(of_notebook(b"print(1)"), None);
    }
}
