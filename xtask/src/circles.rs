//! No circle of files inside a crate: of two files one alone imports from the other, directly or through others.

mod files;
mod scan;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use cargo_metadata::{MetadataCommand, TargetKind};

use crate::console::failure;
use crate::workspace::Workspace;
use files::{Edge, Files};

/// Files of a crate that import from each other, all from all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Circle {
    pub name: String,
    /// Paths below the crate's folder of sources.
    pub files: Vec<String>,
    /// The imports that make it, one line for each pair of files.
    pub imports: Vec<String>,
}

impl fmt::Display for Circle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.files.join(", "))?;
        self.imports.iter().try_for_each(|import| write!(f, "\n    {import}"))
    }
}

/// Reads the sources of both workspaces and fails with every circle.
pub(crate) fn check(workspace: &Workspace) -> anyhow::Result<()> {
    let found: Vec<String> = circles(workspace)?.iter().map(ToString::to_string).collect();
    if found.is_empty() {
        return Ok(());
    }
    Err(failure(
        format!("files of a crate import from each other in a circle:\n  {}", found.join("\n  ")),
        "move what both need into its own file, below both",
    ))
}

/// The circles of every crate of both workspaces.
pub(crate) fn circles(workspace: &Workspace) -> anyhow::Result<Vec<Circle>> {
    let mut found = Vec::new();
    for manifest in ["Cargo.toml", "caulk-clips/Cargo.toml"] {
        for (name, root) in roots(workspace, manifest)? {
            found.extend(circles_of(&name, &root)?);
        }
    }
    Ok(found)
}

/// Every crate's name with the file that it begins with.
fn roots(workspace: &Workspace, manifest: &str) -> anyhow::Result<Vec<(String, PathBuf)>> {
    let metadata = MetadataCommand::new()
        .manifest_path(workspace.path(manifest))
        .no_deps()
        .exec()
        .with_context(|| format!("failed to read the manifests of `{manifest}`"))?;
    let product = |kind: &TargetKind| {
        !matches!(kind, TargetKind::Test | TargetKind::Bench | TargetKind::Example | TargetKind::CustomBuild)
    };
    let packages = metadata.packages.iter().flat_map(|package| {
        let targets = package.targets.iter().filter(|target| target.kind.iter().any(product));
        targets.map(|target| (package.name.to_string(), target.src_path.clone().into_std_path_buf()))
    });
    Ok(packages.collect())
}

fn circles_of(name: &str, root: &Path) -> anyhow::Result<Vec<Circle>> {
    let files = Files::read(root)?;
    let edges = files.edges();
    let found = components(files.names.len(), &edges).into_iter().map(|circle| Circle {
        name: name.to_owned(),
        files: circle.iter().map(|file| files.names[*file].clone()).collect(),
        imports: imports(&files, &edges, &circle),
    });
    Ok(found.collect())
}

/// One line for each file of a circle that imports from another.
fn imports(files: &Files, edges: &[Edge], circle: &BTreeSet<usize>) -> Vec<String> {
    let mut pairs: BTreeMap<(usize, usize), BTreeMap<&str, usize>> = BTreeMap::new();
    for edge in edges.iter().filter(|edge| circle.contains(&edge.from) && circle.contains(&edge.to)) {
        pairs.entry((edge.from, edge.to)).or_default().entry(&edge.path).or_insert(edge.line);
    }
    let line = |((from, to), paths): ((usize, usize), BTreeMap<&str, usize>)| {
        let paths: Vec<_> = paths.iter().map(|(path, line)| format!("{path} (line {line})")).collect();
        format!("{} -> {}: {}", files.names[from], files.names[to], paths.join(", "))
    };
    pairs.into_iter().map(line).collect()
}

/// Sets of files that all lead to each other.
fn components(count: usize, edges: &[Edge]) -> Vec<BTreeSet<usize>> {
    let mut reach: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); count];
    for edge in edges {
        reach[edge.from].insert(edge.to);
    }
    for through in 0..count {
        let further = reach[through].clone();
        for from in reach.iter_mut().filter(|from| from.contains(&through)) {
            from.extend(&further);
        }
    }
    let mutual = |file: usize| -> BTreeSet<usize> {
        reach[file].iter().copied().filter(|other| reach[*other].contains(&file)).collect()
    };
    let found: BTreeSet<_> = (0..count).map(mutual).filter(|circle| circle.len() > 1).collect();
    found.into_iter().collect()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use std::fs;

    use super::*;

    fn check_circles(sources: &[(&str, &str)], expected: &[&str]) {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in sources {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let found = circles_of("x", &folder.path().join("lib.rs")).unwrap();
        assert_eq!(found.iter().map(ToString::to_string).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn files_that_import_from_each_other_are_a_circle() {
        let root = ("lib.rs", "mod a; mod b; mod c;");
        let (a, b) = (("a.rs", "use crate::b::B;\npub struct A(B);"), ("b.rs", "pub struct B(crate::c::C);"));
        check_circles(&[root, a, b, ("c.rs", "pub struct C;")], &[]);
        let expected = "x: a.rs, b.rs, c.rs\n    a.rs -> b.rs: crate::b::B (line 1)\n    \
                        b.rs -> c.rs: crate::c::C (line 1)\n    c.rs -> a.rs: super::a::A (line 1)";
        check_circles(&[root, a, b, ("c.rs", "pub struct C(Box<super::a::A>);")], &[expected]);
    }

    #[test]
    fn a_parent_may_declare_and_export_its_children_alone() {
        let child = ("a.rs", "use crate::A;\npub struct B(A);");
        check_circles(&[("lib.rs", "mod a;\npub use a::B;\npub struct A;"), child], &[]);
        let expected =
            "x: lib.rs, a.rs\n    lib.rs -> a.rs: a::B (line 2)\n    a.rs -> lib.rs: crate::A (line 1)";
        check_circles(&[("lib.rs", "mod a;\npub use a::B;\npub struct A(Box<B>);"), child], &[expected]);
    }

    #[test]
    fn a_name_is_imported_from_the_file_that_defines_it() {
        let root = ("lib.rs", "mod a; mod b;\npub use a::A;\npub use b::*;");
        let (a, b) = (("a.rs", "pub struct A;"), ("b.rs", "use crate::A;\npub struct B(A);"));
        check_circles(&[root, a, b], &[]);
        let expected =
            "x: a.rs, b.rs\n    a.rs -> b.rs: crate::B (line 1)\n    b.rs -> a.rs: crate::A (line 1)";
        check_circles(&[root, ("a.rs", "pub struct A(Box<crate::B>);"), b], &[expected]);
    }

    #[test]
    fn tests_may_import_from_everywhere() {
        let root = ("lib.rs", "mod a; mod b;");
        let a = ("a.rs", "pub struct A;\n#[cfg(test)]\nmod tests { use crate::b::B; }");
        check_circles(&[root, a, ("b.rs", "pub struct B(crate::a::A);")], &[]);
    }

    #[test]
    fn this_workspace_has_no_circles() {
        assert_eq!(circles(&Workspace::here()).unwrap(), Vec::new());
    }
}
