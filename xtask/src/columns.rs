//! Text in columns.

/// Pads every cell to the width of its column; two spaces between columns, none at the ends of lines.
pub(crate) fn align<const N: usize>(rows: &[[String; N]]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<_> = (0..N).map(width).collect();
    let line = |row: &[String; N]| {
        let padded = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn columns_are_as_wide_as_their_widest_cell() {
    let rows = [["a", "b", "c"], ["long", "", "c"], ["ä", "b", ""]].map(|row| row.map(String::from));
    assert_eq!(align(&rows), "a     b  c\nlong     c\nä     b");
}
