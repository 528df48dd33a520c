//! The list of crates that are compiled into a wheel, as a software bill of materials in the format of `CycloneDX`.
//!
//! maturin adds such a list of the agent alone. This one is of the command, the agent and the heap sampler together.

use std::collections::BTreeSet;

use anyhow::Context;
use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Package, PackageId};
use serde_json::{Value, json};

use crate::workspace::Workspace;

/// Packages of this tree that end in the wheel.
const SHIPPED: [&str; 3] = ["caulk", "caulk_agent", "caulk_preload"];

/// The bill of what this tree compiles for Linux.
///
/// # Source
/// `CycloneDX` 1.6: <https://cyclonedx.org/docs/1.6/json/>
pub(crate) fn bill(workspace: &Workspace) -> anyhow::Result<Value> {
    let metadata = MetadataCommand::new()
        .current_dir(workspace.root())
        .other_options(["--locked".into(), "--filter-platform".into(), "x86_64-unknown-linux-gnu".into()])
        .exec()
        .context("failed to list the dependencies")?;
    let shipped = shipped(&metadata)?;
    let packages = metadata.packages.iter().filter(|package| shipped.contains(&package.id));
    let version = metadata.packages.iter().find(|package| package.name.as_str() == "caulk");
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {
            "type": "application",
            "name": "caulk",
            "version": version.map(|package| package.version.to_string()),
        }},
        "components": packages.map(component).collect::<Vec<_>>(),
    }))
}

/// Everything that the shipped packages are linked with.
fn shipped(metadata: &Metadata) -> anyhow::Result<BTreeSet<PackageId>> {
    let graph = metadata.resolve.as_ref().context("cargo has resolved no dependencies")?;
    let is_shipped = |package: &&Package| SHIPPED.contains(&package.name.as_str());
    let mut open: Vec<_> = metadata.packages.iter().filter(is_shipped).map(|package| &package.id).collect();
    let mut found = BTreeSet::new();
    while let Some(id) = open.pop() {
        if !found.insert(id.clone()) {
            continue;
        }
        let node = graph.nodes.iter().find(|node| node.id == *id).context("a package is not in the graph")?;
        let linked = node
            .deps
            .iter()
            .filter(|dependency| dependency.dep_kinds.iter().any(|info| info.kind == DependencyKind::Normal));
        open.extend(linked.map(|dependency| &dependency.pkg));
    }
    Ok(found)
}

fn component(package: &Package) -> Value {
    let (name, version) = (package.name.as_str(), package.version.to_string());
    let purl = format!("pkg:cargo/{name}@{version}");
    let mut component =
        json!({"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl});
    if let Some(licence) = &package.license {
        // Old manifests separate alternatives by a slash, which SPDX does not know.
        component["licenses"] = json!([{"expression": licence.replace('/', " OR ")}]);
    }
    component
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn the_bill_has_what_is_linked_and_nothing_that_tests_need() {
        let bill = bill(&Workspace::here()).unwrap();
        let names: Vec<&str> =
            bill["components"].as_array().unwrap().iter().filter_map(|one| one["name"].as_str()).collect();
        for linked in ["caulk_wire", "dlmalloc", "parquet", "pyo3", "ruff_python_parser"] {
            assert!(names.contains(&linked), "{linked}: {names:?}");
        }
        assert!(!names.contains(&"insta") && !names.contains(&"xtask"), "{names:?}");
        let licensed = |one: &Value| one["licenses"][0]["expression"].is_string();
        assert!(bill["components"].as_array().unwrap().iter().all(licensed), "{bill:#}");
    }
}
