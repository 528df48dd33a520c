//! Models that caulk knows by name.

use crate::{Model, near};

/// Names with the text of their files, in order of size.
const PRESETS: [(&str, &str); 7] = [
    ("logistic_regression", include_str!("../data/presets/logistic_regression.toml")),
    ("svm", include_str!("../data/presets/svm.toml")),
    ("naive_cnn", include_str!("../data/presets/naive_cnn.toml")),
    ("vit_gru", include_str!("../data/presets/vit_gru.toml")),
    ("vit_transformer", include_str!("../data/presets/vit_transformer.toml")),
    ("slowfast", include_str!("../data/presets/slowfast.toml")),
    ("x3d", include_str!("../data/presets/x3d.toml")),
];

/// A name that is no preset's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no preset `{name}`\nhint: {}", near::hint(near, &presets().collect::<Vec<_>>()))]
pub struct UnknownPreset {
    /// As it was given.
    pub name: String,
    /// Names that are like it.
    pub near: Vec<String>,
}

/// Names of the presets.
pub fn presets() -> impl Iterator<Item = &'static str> {
    PRESETS.iter().map(|(name, _)| *name)
}

/// The text of a preset's file; in its name `-` and `_` are the same.
///
/// # Errors
/// [`UnknownPreset`] with those that are like it.
pub fn preset_text(name: &str) -> Result<&'static str, UnknownPreset> {
    let plain = name.to_ascii_lowercase().replace(['-', ' '], "_");
    let found = PRESETS.iter().find(|(known, _)| *known == plain);
    let unknown = || UnknownPreset { name: name.into(), near: near::names(&plain, presets()) };
    found.map(|(_, text)| *text).ok_or_else(unknown)
}

/// The preset of a name.
///
/// # Errors
/// As [`preset_text`].
///
/// # Panics
/// Never: a test reads each preset.
pub fn preset(name: &str) -> Result<Model, UnknownPreset> {
    Ok(Model::parse(preset_text(name)?).expect("a preset is a model"))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::model::Mode;

    /// In millions, as the papers and their reference implementations say it, within 3 %.
    fn check(name: &str, millions: f64) {
        let cost = preset(name).unwrap().cost(None, None, Mode::default()).unwrap();
        let found = cost.parameters / 1e6;
        assert!((found / millions - 1.0).abs() < 0.03, "{name}: {found} million");
    }

    #[test]
    fn every_preset_is_a_model() {
        for name in presets() {
            let model = preset(name).unwrap();
            assert_eq!(model.name, name);
            for (frames, size) in [(None, None), (Some(6), Some(112))] {
                model.cost(frames, size, Mode { mixed: true, checkpointing: true }).unwrap();
            }
        }
    }

    #[test]
    fn published_models_have_their_published_size() {
        // ViT-B/16 without its classifier: 85.8; the unit over frames: 1.6.
        check("vit_gru", 87.4);
        check("slowfast", 34.6);
        check("x3d", 3.79);
    }

    #[test]
    fn a_name_that_is_like_one() {
        let error = preset("vit-tranformer").unwrap_err().to_string();
        assert!(error.contains("`vit_transformer`"), "{error}");
        assert!(preset("ViT-GRU").is_ok());
        assert!(
            preset("zebra").unwrap_err().to_string().contains("svm"),
            "all of them where none is like it"
        );
    }
}
