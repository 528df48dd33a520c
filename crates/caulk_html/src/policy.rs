//! The Content-Security-Policy of the page: its own style and script, known by their hashes, and nothing else.

use sha2::{Digest as _, Sha256};

use crate::base64;

/// The policy for a page with this style and this script.
pub(crate) fn policy(style: &str, script: &str) -> String {
    let hash = |text: &str| format!("'sha256-{}'", base64::encode(&Sha256::digest(text.as_bytes())));
    format!(
        "default-src 'none'; style-src {}; script-src {}; base-uri 'none'; form-action 'none'; \
         require-trusted-types-for 'script'; trusted-types 'none'",
        hash(style),
        hash(script)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_style_and_this_script_are_allowed() {
        let policy = policy("", "");
        // SHA-256 of nothing.
        let nothing = "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='";
        assert!(policy.contains(&format!("style-src {nothing}; script-src {nothing};")), "{policy}");
        assert!(!policy.contains("unsafe"), "{policy}");
    }
}
