//! What is hidden, and what stays.

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

/// Every way in which a secret with a name was seen to be handed to a program.
#[test]
fn shapes() {
    let table = [
        // Options.
        ("--db-password | x", "--db-password | ***"),
        ("--db-password=x y", "--db-password=***"),
        ("-passin | pass:x", "-passin | ***"),
        ("--jwtFile | x | --AUTHKEY=y", "--jwtFile | *** | --AUTHKEY=***"),
        ("-Dauth.user=x", "-Dauth.user=***"),
        ("--no-auth | t.py", "--no-auth | t.py"),
        ("--password | --lr | 3", "--password | --lr | 3"),
        // Letters have no name: `-p` is a port, a project, a profile.
        ("-p | 8080 | -u | t.py", "-p | 8080 | -u | t.py"),
        // Variables.
        ("DB_PASS=a b,c&d | cmd", "DB_PASS=*** | cmd"),
        ("env | MYSQL_PWD=x | GOOGLE_CREDS=y | cmd", "env | MYSQL_PWD=*** | GOOGLE_CREDS=*** | cmd"),
        (
            "docker | -e | DB_PASS=a b | -e | A=1 | -eJWT=y",
            "docker | -e | DB_PASS=*** | -e | A=1 | -eJWT=***",
        ),
        ("--env=DB_PASS=a b", "--env=DB_PASS=***"),
        ("--env | A=1,DB_PASS=x,B=2", "--env | A=1,DB_PASS=***,B=2"),
        ("--env=A=1,DB_PASS=x,B=2", "--env=A=1,DB_PASS=***,B=2"),
        ("bash | -lc | env DB_PASS=x cmd --lr 1", "bash | -lc | env DB_PASS=*** cmd --lr 1"),
        ("sh | -c | DB_PASS='a b'c\\ d cmd", "sh | -c | DB_PASS=*** cmd"),
        ("sh | -c | A=\"$(x)\" DB_PASS=\"$(get \"y z\")\" cmd", "sh | -c | A=\"$(x)\" DB_PASS=\"***\" cmd"),
        // Hydra and OmegaConf.
        ("db.password=x | +auth.token=x", "db.password=*** | +auth.token=***"),
        ("++a.secret=x | ~db.secret=x | ~db.secret", "++a.secret=*** | ~db.secret=*** | ~db.secret"),
        ("auth.user=x | +db/auth@cred.x=y", "auth.user=*** | +db/auth@cred.x=***"),
        ("db={user: me, password: x}", "db={user: me, password: ***}"),
        ("auth={user: me, key: x}", "auth=***"),
        // JSON, Python, YAML.
        (r#"{"auth": {"user": "me", "key": "x"}, "lr": 1}"#, r#"{"auth": ***, "lr": 1}"#),
        (r"{'dbPass': 'a \'b', 'lr': 1}", r"{'dbPass': '***', 'lr': 1}"),
        (r#""{\"jwt\": \"a b\", \"lr\": 1}""#, r#""{\"jwt\": \"***\", \"lr\": 1}""#),
        ("-c | f(password=get(\"x\", 1), lr=2)", "-c | f(password=***, lr=2)"),
        ("-c | environ['DB_PASS'] = x or 'y'", "-c | environ['DB_PASS'] = *** or 'y'"),
        ("credentials: x", "credentials: ***"),
        // Headers.
        ("--header | Authorization: Bearer x", "--header | Authorization: Bearer ***"),
        ("--header=Authorization: Token a b", "--header=Authorization: Token ***"),
        ("-H | Proxy-Authorization: AWS4 a=b, c=d", "-H | Proxy-Authorization: ***"),
        ("-H | Cookie: a=b; c=d", "-H | Cookie: ***"),
        ("sh | -c | curl -H 'X-Auth: a b' h --lr 1", "sh | -c | curl -H 'X-Auth: ***' h --lr 1"),
        // URLs.
        ("https://me:p@ss@h/x | https://t0k@h", "https://***@h/x | https://***@h"),
        ("git+https://me:p/w#x@h/x y", "git+https://***@h/x y"),
        ("http://a:b@h/x?u=http://c:d@e/y", "http://***@h/x?u=http://***@e/y"),
        ("https://h/x?auth=a&y=1", "https://h/x?auth=***&y=1"),
        ("Server=h;Uid=me;PWD=/x1;A=b", "Server=h;Uid=me;PWD=***;A=b"),
    ];
    for (command, expected) in table {
        check(command, expected);
    }
}

#[test]
fn what_only_looks_like_a_shape_stays() {
    for command in [
        "PASSES=3",
        "--num-passes | 3 | --compass | north | --bypass-cache | t.py",
        "--lowpass | 300 | author=me | paper.authors=[a,b]",
        "pytest | tests/test_auth.py::test_login",
        "tail | auth_log.csv:3 | auth.example.org:8080",
        "PWD=/home/me | sh | -c | OLDPWD=/x PWD=$HOME cmd",
        "-c | for x in y: pass",
        "-v | /run/secrets:/run/secrets:ro",
        "password == x",
        "https://h:80/a@b",
    ] {
        check(command, command);
    }
    assert_eq!(redact_variable("PWD", "/home/me"), "/home/me");
    assert_eq!(redact_variable("OLDPWD", "/"), "/");
    assert_eq!(redact_variable("MYSQL_PWD", "/"), "***");
}

#[test]
fn long_arguments_are_taken() {
    for piece in ["-=", "--a=", "\"", "pass='", "://", "auth=[", "\\"] {
        let text = piece.repeat(20_000);
        let _ = redact(&["-c".to_owned(), text.clone(), text]);
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(500))]
    #[test]
    fn no_text_is_too_strange(
        text in r#"(auth|PASS|PWD|Bearer|Cookie|-|x|ü|1|=|:|"|'|\\|\$\(|\(|\)|\{|\}|\[|\]|/|://|@|;|,|\.| |\n){0,16}"#
    ) {
        let once = redact(&["-c".to_owned(), text.clone()]);
        let _ = redact(&[text]);
        let _ = redact(&once);
    }
}
