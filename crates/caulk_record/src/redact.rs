//! Secrets out of command lines and environments.
//!
//! Told by name (`--api-key X`, `HF_TOKEN=X`, `model.password: X`, also inside shell and Python text), by place
//! (`https://user:password@host`, `?signature=X`, `Bearer X`), or by look (`hf_...`, `sk-...`, a JSON web token). In
//! doubt, hidden: a report reads as well without the value of `--pad-token`.

/// What stands for a secret.
const HIDDEN: &str = "***";

/// Last words of a name that make its value a secret.
const SECRETS: [&str; 17] = [
    "accesskey",
    "apikey",
    "auth",
    "authorization",
    "cookie",
    "credential",
    "credentials",
    "dsn",
    "passphrase",
    "passwd",
    "password",
    "privatekey",
    "pwd",
    "secret",
    "secretkey",
    "signature",
    "token",
];

/// Beginnings of well-known tokens.
const PREFIXES: [&str; 16] = [
    "hf_",
    "sk-",
    "sk_",
    "ghp_",
    "gho_",
    "ghs_",
    "ghu_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "xoxa-",
    "AKIA",
    "AIza",
    "npm_",
    "pypi-",
];

/// Letters after which such a beginning is believed.
const LONG_ENOUGH: usize = 16;

/// The command with its secrets replaced by `***`. Redacting twice changes nothing more.
pub fn redact(command: &[String]) -> Vec<String> {
    let mut after_flag = false;
    let redact_one = |argument: &String| {
        // `--use-auth-token --epochs 3`: a flag follows, not a value.
        let is_value = after_flag && !argument.starts_with('-');
        after_flag = is_secret_flag(argument);
        if is_value { HIDDEN.to_owned() } else { redact_text(argument) }
    };
    command.iter().map(redact_one).collect()
}

/// The value of an environment variable, or `***` if the name says that it is a secret; secrets inside it are replaced.
pub fn redact_variable(name: &str, value: &str) -> String {
    if is_secret_name(name) && !value.is_empty() { HIDDEN.to_owned() } else { redact_text(value) }
}

/// `--token`: the secret is the next argument.
fn is_secret_flag(argument: &str) -> bool {
    argument.starts_with('-') && argument.bytes().all(is_name_byte) && is_secret_name(argument)
}

/// Whether the value of this name is a secret, by its last words: `wandb_api_key`, `model.hfToken`, `X-Auth-Token`, but
/// not `tokenizer`, `max_tokens`, `key` or `sort-keys`.
fn is_secret_name(name: &str) -> bool {
    let last = name.rsplit('.').find(|part| !part.is_empty()).unwrap_or_default();
    let words = words(last);
    let Some(word) = words.last() else {
        return false;
    };
    SECRETS.contains(&word.as_str()) || word == "key" && words.len() > 1
}

/// Lower-case words of a name in any style: `api_key`, `api-key`, `apiKey`, `API_KEY`.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for c in name.chars() {
        if !c.is_ascii_alphanumeric() || c.is_ascii_uppercase() && was_lower {
            words.push(String::new());
        }
        if c.is_ascii_alphanumeric() {
            words.last_mut().expect("never empty").push(c.to_ascii_lowercase());
        }
        was_lower = c.is_ascii_lowercase() || c.is_ascii_digit();
    }
    words.retain(|word| !word.is_empty());
    words
}

const fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
}

/// Secrets inside a text: an argument `NAME=value`, a shell command, Python code, JSON, a URL, a header.
fn redact_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let length = rest.bytes().take_while(|byte| is_name_byte(*byte)).count();
        let (name, after) = rest.split_at(length);
        if name.is_empty() {
            let user = user_information(rest);
            let (kept, skipped) =
                user.unwrap_or((rest.chars().next().map_or("", |c| &rest[..c.len_utf8()]), 0));
            out += kept;
            rest = &rest[kept.len() + skipped..];
            if skipped > 0 {
                out += HIDDEN;
            }
            continue;
        }
        rest = after;
        if is_token(name) {
            out += HIDDEN;
            continue;
        }
        out += name;
        if let Some((between, value)) = secret_after(name, after) {
            out += between;
            out += HIDDEN;
            rest = &after[between.len() + value..];
        }
    }
    out
}

/// `://user:password@`: what to keep, and how many bytes to hide.
fn user_information(rest: &str) -> Option<(&str, usize)> {
    let authority = rest.strip_prefix("://")?;
    let end = authority.find(|c: char| "/?#\"' \t\n".contains(c)).unwrap_or(authority.len());
    // A password may hold `@`: the last one counts.
    let at = authority[..end].rfind('@')?;
    Some((&rest[..3], at))
}

/// What lies between a secret's name and its value, and the length of the value.
fn secret_after<'a>(name: &str, after: &'a str) -> Option<(&'a str, usize)> {
    let is_bearer = name.eq_ignore_ascii_case("bearer") || name.eq_ignore_ascii_case("basic");
    if !is_bearer && !is_secret_name(name) {
        return None;
    }
    let blank = |text: &str| text.len() - text.trim_start_matches([' ', '\t']).len();
    // `'password': 'x'`, `environ["TOKEN"] = "x"`.
    let closing = after.len() - after.trim_start_matches(['"', '\'', ']', ')', '\\']).len();
    let mut start = closing + blank(&after[closing..]);
    let sign = after[start..].chars().next();
    if matches!(sign, Some('=' | ':')) && !after[start + 1..].starts_with(['=', '/']) {
        start += 1;
        start += blank(&after[start..]);
    } else if !(closing == 0 && start > 0 && (is_bearer || name.starts_with('-'))) {
        return None;
    }
    let value = &after[start..];
    if value.starts_with('-') && name.starts_with('-') && start == blank(after) {
        return None; // Another flag.
    }
    // `Authorization: Bearer x`: the scheme stays, the next turn hides the rest.
    if ["bearer ", "basic "].iter().any(|scheme| starts_with_ignoring_case(value, scheme)) {
        return None;
    }
    let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''));
    let length = match quote {
        Some(quote) => {
            start += 1;
            value[1..].find(quote).unwrap_or(value.len() - 1)
        }
        None => value.find(|c: char| c.is_whitespace() || "&;,|\"')}]".contains(c)).unwrap_or(value.len()),
    };
    (length > 0).then(|| (&after[..start], length))
}

fn starts_with_ignoring_case(text: &str, prefix: &str) -> bool {
    text.get(..prefix.len()).is_some_and(|head| head.eq_ignore_ascii_case(prefix))
}

/// Whether the word looks like a token of a service, or a JSON web token.
fn is_token(word: &str) -> bool {
    let is_known = |prefix: &&str| {
        let tail = word.strip_prefix(*prefix);
        tail.is_some_and(|tail| tail.len() >= LONG_ENOUGH && tail.bytes().any(|byte| byte.is_ascii_digit()))
    };
    let is_web_token = word.starts_with("eyJ") && word.len() > 40 && word.matches('.').count() == 2;
    is_web_token || PREFIXES.iter().any(is_known)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Arguments are separated by ` | `.
    fn check(command: &str, expected: &str) {
        let split = |text: &str| text.split(" | ").map(String::from).collect::<Vec<_>>();
        assert_eq!(redact(&split(command)), split(expected));
        assert_eq!(redact(&split(expected)), split(expected), "twice");
    }

    #[test]
    fn flags_with_secret_names() {
        check("--token | x", "--token | ***");
        check("--api-key=x | --lr=0.1", "--api-key=*** | --lr=0.1");
        check("--hub_token | x | --wandb_api_key | y z", "--hub_token | *** | --wandb_api_key | ***");
        check("--use-auth-token | --epochs | 3", "--use-auth-token | --epochs | 3");
        check("model.hfToken=x | ++db.password=y", "model.hfToken=*** | ++db.password=***");
        check("-H | Authorization: Bearer abc", "-H | Authorization: Bearer ***");
        check("-H | X-Api-Key: abc", "-H | X-Api-Key: ***");
    }

    #[test]
    fn names_that_only_look_alike_stay() {
        for argument in [
            "--tokenizer | gpt2",
            "--max-tokens=512",
            "--token-dim | 64",
            "--sort-keys | a",
            "--key | loss",
            "--author=me",
            "python | -m | secrets",
            "--monitor=val/loss",
            "sk-learn",
            "token == x",
            "http://host:80/a@b",
            "lr=0.1 epochs=3",
        ] {
            check(argument, argument);
        }
    }

    #[test]
    fn assignments_of_environment_variables() {
        check("env | HF_TOKEN=x | WANDB_API_KEY=y | A=b", "env | HF_TOKEN=*** | WANDB_API_KEY=*** | A=b");
        assert_eq!(redact_variable("AWS_SECRET_ACCESS_KEY", "x"), "***");
        assert_eq!(redact_variable("CUDA_VISIBLE_DEVICES", "0,1"), "0,1");
        assert_eq!(redact_variable("HTTP_PROXY", "http://me:pw@proxy:3128"), "http://***@proxy:3128");
    }

    #[test]
    fn text_inside_one_argument() {
        check(
            "sh | -c | TOKEN=x python t.py --password 'a b' --lr 1",
            "sh | -c | TOKEN=*** python t.py --password '***' --lr 1",
        );
        check("-c | os.environ['HF_TOKEN'] = 'x'; run()", "-c | os.environ['HF_TOKEN'] = '***'; run()");
        check(r#"{"password": "x", "lr": 1}"#, r#"{"password": "***", "lr": 1}"#);
        check("-c | login(token=\"x y\", n=1)", "-c | login(token=\"***\", n=1)");
    }

    #[test]
    fn urls_and_tokens() {
        check("postgres://me:p@ss@db/x?sslmode=1", "postgres://***@db/x?sslmode=1");
        check("https://h/x?token=abc&y=1#z", "https://h/x?token=***&y=1#z");
        check("s3://b/k?X-Amz-Signature=abc&y=1", "s3://b/k?X-Amz-Signature=***&y=1");
        check("hf_abcdefgh1234567890", "***");
        check("x=ghp_abcdefgh1234567890,y", "x=***,y");
    }

    #[test]
    fn any_text_is_taken() {
        for text in ["", "ü=ß", "://", "token=", "token='", "--token=\"", "password:", "token = ", "é://ü@ö"]
        {
            let once = redact(&[text.to_owned()]);
            assert_eq!(redact(&once), once, "{text}");
        }
    }
}
