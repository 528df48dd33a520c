//! Which names make their values secrets.
//!
//! A shape such as `PASS` counts anywhere in a name and in any case: `MYSQL_PWD`, `dbPassFile`, `--authkey`. It does not
//! count inside a word of [`HARMLESS`], which holds it by accident: `--author`, `NUM_PASSES`, `--lowpass`. Other names are
//! secret by their last word: `hf_token`, but not `token_dim`.

/// Shapes that make a name secret wherever they stand in it.
const ANYWHERE: [&str; 6] = ["auth", "cred", "jwt", "pass", "pwd", "secret"];

/// Words that hold a shape and have nothing to do with secrets, whole and in any case.
const HARMLESS: [&str; 22] = [
    "allpass",
    "author",
    "authored",
    "authoring",
    "authors",
    "authorship",
    "bandpass",
    "bypass",
    "compass",
    "credit",
    "credits",
    "highpass",
    "lowpass",
    "passage",
    "passages",
    "passed",
    "passenger",
    "passengers",
    "passes",
    "passing",
    "passive",
    "sacred",
];

/// Last words of a name that make its value a secret.
const LAST: [&str; 7] = ["accesskey", "apikey", "cookie", "dsn", "privatekey", "signature", "token"];

/// Whether the value of this name is a secret.
pub(super) fn is_secret(name: &str) -> bool {
    has_shape(name) || has_last_word(name)
}

/// The shell's names for a folder, which only look like passwords.
pub(super) fn is_folder(name: &str) -> bool {
    matches!(name, "PWD" | "OLDPWD")
}

fn has_shape(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    if !ANYWHERE.iter().any(|shape| lower.contains(shape)) {
        return false;
    }
    let mut harmless = words(name, true);
    harmless.extend(words(name, false));
    harmless.retain(|(_, word)| HARMLESS.contains(&word.trim_end_matches(|c: char| c.is_ascii_digit())));
    let counts = |at: usize, shape: &str| {
        harmless.iter().all(|(start, word)| at < *start || at + shape.len() > start + word.len())
    };
    ANYWHERE.iter().any(|shape| lower.match_indices(shape).any(|(at, shape)| counts(at, shape)))
}

/// By its last words: `wandb_api_key`, `model.hfToken`, but not `tokenizer`, `max_tokens`, `key` or `sort-keys`.
fn has_last_word(name: &str) -> bool {
    let last = name.rsplit('.').find(|part| !part.is_empty()).unwrap_or_default();
    let words = words(last, true);
    let Some((_, word)) = words.last() else {
        return false;
    };
    LAST.contains(&word.as_str()) || word == "key" && words.len() > 1
}

/// Lower-case words of a name in any style, and where each begins: `api_key`, `api-key`, `API_KEY` and, where `camel`
/// is set, `apiKey`.
fn words(name: &str, camel: bool) -> Vec<(usize, String)> {
    let mut words = vec![(0, String::new())];
    let mut was_lower = false;
    for (at, c) in name.char_indices() {
        if !c.is_ascii_alphanumeric() {
            words.push((at + c.len_utf8(), String::new()));
        } else if camel && was_lower && c.is_ascii_uppercase() {
            words.push((at, String::new()));
        }
        if let Some((_, word)) = words.last_mut().filter(|_| c.is_ascii_alphanumeric()) {
            word.push(c.to_ascii_lowercase());
        }
        was_lower = c.is_ascii_lowercase() || c.is_ascii_digit();
    }
    words.retain(|(_, word)| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(names: &[&str], secret: bool) {
        for name in names {
            assert_eq!(is_secret(name), secret, "{name}");
        }
    }

    #[test]
    fn a_shape_counts_anywhere_and_in_any_case() {
        check(&["SECRET_SAUCE", "MySecretX", "clientsecrets", "xSeCrEtx"], true);
        check(&["DB_PASS", "PASSWORD_FILE", "--db-password", "pgpassfile", "--pass", "dB_pASSx"], true);
        check(&["MYSQL_PWD", "pwdHash", "--pwd", "RPWD2"], true);
        check(&["GOOGLE_CREDS", "credentials.path", "--cred-file", "XCREDX"], true);
        check(&["BASIC_AUTH", "AUTH_HEADER", "auth.kind", "oauth2Client", "authenticate"], true);
        check(&["JWT_SIGNING", "--jwt-file", "myJwtX"], true);
    }

    #[test]
    fn words_that_hold_a_shape_by_accident_do_not_count() {
        check(&["author", "--authors", "AUTHOR_NAME", "paperAuthor", "compass", "bypass_cache"], false);
        check(
            &["PASSES", "num-passes", "maxPasses", "passes2", "passage.max", "--lowpass", "credits"],
            false,
        );
        // Beside such a word, or in a longer one, it does.
        check(&["author_auth", "authority", "AUTHORIZED", "passes_pass", "passesx"], true);
    }

    #[test]
    fn other_names_count_by_their_last_word() {
        check(&["wandb_api_key", "model.hfToken", "X-Signature", "sentry_dsn", "hub.access_key"], true);
        check(&["tokenizer", "max_tokens", "key", "sort-keys", "token_dim", "lr", ""], false);
    }
}
