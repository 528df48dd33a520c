//! `file:` URIs and paths.

use std::str::FromStr;

use camino::{Utf8Path, Utf8PathBuf};
use lsp_types::Uri;

/// The path of a `file:` URI; `None` for buffers that are no files.
pub(super) fn to_path(uri: &Uri) -> Option<Utf8PathBuf> {
    let path = uri.as_str().strip_prefix("file://")?;
    // An authority such as `localhost` may stand before the path.
    let path = &path[path.find('/')?..];
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => hexadecimal(rest.next()?)? << 4 | hexadecimal(rest.next()?)?,
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok().map(Utf8PathBuf::from)
}

/// The URI of an absolute path.
pub(super) fn of_path(path: &Utf8Path) -> Option<Uri> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte);
    let escape = |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    let path: String = path.as_str().bytes().map(escape).collect();
    Uri::from_str(&format!("file://{path}")).ok()
}

fn hexadecimal(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|value| value as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(uri: &str, path: Option<&str>) {
        let parsed = Uri::from_str(uri).expect("a URI");
        assert_eq!(to_path(&parsed).as_deref().map(Utf8Path::as_str), path, "{uri}");
    }

    #[test]
    fn paths_come_out_of_uris() {
        check("file:///a/b.py", Some("/a/b.py"));
        check("file://localhost/a.py", Some("/a.py"));
        check("file:///a%20b/gr%C3%B6%C3%9Fe.py", Some("/a b/größe.py"));
        check("untitled:Untitled-1", None);
    }

    #[test]
    fn paths_go_into_uris_and_back() {
        let path = Utf8Path::new("/a b/größe#1.py");
        assert_eq!(of_path(path).as_ref().and_then(to_path).as_deref(), Some(path));
    }
}
