//! Where a video is: a file, or a URL as fsspec understands it.

/// Where a name of the manifest leads from the folder, or URL, that names are relative to.
///
/// A name that is a URL stands for itself. A chain such as `zip://a.mp4::videos.zip` ends in a file of the folder. A URL of a
/// file of this machine is that file.
pub fn locate(base: &str, name: &str) -> String {
    if is_url(name) {
        return local(name).map_or_else(|| anchored(base, name), ToOwned::to_owned);
    }
    if !is_url(base) {
        return joined(base, name);
    }
    local(base).map_or_else(|| within(base, name), |folder| joined(folder, name))
}

/// Whether it begins as a URL does, perhaps behind what it is to go through: `simplecache::s3://`.
pub fn is_url(text: &str) -> bool {
    let scheme = |text: &str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "+.-".contains(c);
        text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.chars().all(plain)
    };
    text.split_once("://").is_some_and(|(before, _)| before.split("::").all(scheme))
}

/// The file that a plain URL names without a protocol being spoken.
fn local(url: &str) -> Option<&str> {
    let path = url.strip_prefix("file://").or_else(|| url.strip_prefix("local://"))?;
    (!path.contains("::")).then_some(path)
}

fn joined(folder: &str, name: &str) -> String {
    if folder.is_empty() || name.starts_with('/') {
        name.to_owned()
    } else {
        format!("{}/{name}", folder.trim_end_matches('/'))
    }
}

/// A URL with a name behind the path of the first link that has one.
fn within(url: &str, name: &str) -> String {
    let links: Vec<&str> = url.split("::").collect();
    let first = links.iter().position(|link| link.contains("://"));
    let link = |(at, link): (usize, &&str)| match Some(at) == first {
        true if link.ends_with("://") => format!("{link}{name}"),
        true => joined(link, name),
        false => (*link).to_owned(),
    };
    links.iter().enumerate().map(link).collect::<Vec<_>>().join("::")
}

/// A URL whose chain, if it is one, ends in a file of a folder.
fn anchored(folder: &str, url: &str) -> String {
    match url.rsplit_once("::") {
        Some((links, file)) if !file.contains("://") && !is_url(folder) => {
            format!("{links}::{}", joined(folder, file))
        }
        _ => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(base: &str, name: &str, expected: &str) {
        assert_eq!(locate(base, name), expected, "{base} {name}");
    }

    #[test]
    fn names_are_of_the_folder() {
        check("", "a.mp4", "a.mp4");
        check("set", "videos/a.mp4", "set/videos/a.mp4");
        check("set/", "a.mp4", "set/a.mp4");
        check("set", "/elsewhere/a.mp4", "/elsewhere/a.mp4");
        check("set", "12:30::x.mp4", "set/12:30::x.mp4");
    }

    #[test]
    fn urls_stand_for_themselves() {
        check("set", "s3://bucket/a.mp4", "s3://bucket/a.mp4");
        check("set", "simplecache::s3://bucket/a.mp4", "simplecache::s3://bucket/a.mp4");
        check("set", "file:///a b.mp4", "/a b.mp4");
        check("set", "zip://a.mp4::videos.zip", "zip://a.mp4::set/videos.zip");
        check("set", "zip://a.mp4::/x/videos.zip", "zip://a.mp4::/x/videos.zip");
        check("set", "zip://a.mp4::s3://bucket/videos.zip", "zip://a.mp4::s3://bucket/videos.zip");
    }

    #[test]
    fn names_may_be_relative_to_a_url() {
        check("s3://bucket/set", "videos/a.mp4", "s3://bucket/set/videos/a.mp4");
        check("s3://bucket/", "a.mp4", "s3://bucket/a.mp4");
        check("simplecache::s3://bucket", "a.mp4", "simplecache::s3://bucket/a.mp4");
        check("zip://::videos.zip", "a.mp4", "zip://a.mp4::videos.zip");
        check("zip://in::videos.zip", "a.mp4", "zip://in/a.mp4::videos.zip");
        check("file:///set", "a.mp4", "/set/a.mp4");
    }
}
