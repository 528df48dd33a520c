"""What the documentation site has beside its pages: leak classes and the command, as caulk itself describes them.

`CAULK` names the command. `cargo xtask docs` builds it and sets the variable.
"""

from __future__ import annotations

import json
import os
import posixpath
import re
import subprocess
from pathlib import Path

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parent.parent
SOURCES = "https://github.com/caulk-dev/caulk/blob/main"
LINK = re.compile(r"(?<=\]\()[^)\s]+(?=\))")
CODE = re.compile(r"(^```.*?^```$|`[^`\n]+`)", re.MULTILINE | re.DOTALL)
GROUPS = {
    "graph": "Autograd graphs",
    "container": "Containers and caches",
    "reference": "References",
    "figure": "Figures",
    "loading": "Data loading",
    "media": "Media",
    "peak": "Peaks",
    "resource": "Resources",
    "run-time": "Seen in a running program alone",
}


def caulk(*words: str) -> str:
    command = os.environ.get("CAULK")
    if command is None:
        raise PluginError("CAULK does not name the command: build the site with `cargo xtask docs`")
    # Help is as wide everywhere.
    environment = {**os.environ, "COLUMNS": "110"}
    return subprocess.run([command, *words], env=environment, capture_output=True, text=True, check=True).stdout


def on_files(files: Files, config) -> Files:
    for name, text in {**classes(), "cli.md": commands()}.items():
        files.append(File.generated(config, name, content=text))
    return files


def classes() -> dict[str, str]:
    """A page for each leak class, and their list."""
    known = json.loads(caulk("rules", "--output-format", "json"))
    everything = [*known["rules"], *known["found_by_runs"]]
    pages = {f"classes/{one['name']}.md": one["explanation"] for one in everything}
    parts = [
        "# Leak classes\n\n`caulk run` reports them, and `caulk check` finds most of them in source: rules and findings have the "
        "same names. `caulk rule NAME` prints such a page in the terminal. The examples and cases of a page are the tests of its "
        "rule.\n"
    ]
    for group, title in GROUPS.items():
        rows = [
            f"| [{one['name']}]({one['name']}.md) | {one['summary']} |" for one in everything if one["group"] == group
        ]
        parts.append("\n".join([f"\n## {title}\n", "| class | what happens |", "|---|---|", *rows, ""]))
    if missing := {one["group"] for one in everything} - GROUPS.keys():
        raise PluginError(f"groups of classes without a title in docs/hooks.py: {missing}")
    return {**pages, "classes/index.md": "".join(parts)}


def commands() -> str:
    """The help of every command."""
    overview = caulk("--help")
    names = re.findall(r"^  ([a-z]+)  ", overview.split("Commands:")[1].split("Options:")[0], re.MULTILINE)
    parts = ["# Command line\n", "The help of each command, as `caulk COMMAND --help` prints it.\n", block(overview)]
    for name in names:
        if name == "help":
            continue
        # `clips` belongs to another package, which explains itself.
        text = (
            "See the guide [Clips of videos](guides/videos.md).\n" if name == "clips" else block(caulk(name, "--help"))
        )
        parts.append(f"## caulk {name}\n\n{text}")
    return "\n".join(parts)


def block(text: str) -> str:
    return f"```text\n{text.rstrip()}\n```\n"


def on_page_markdown(markdown: str, page, config, files) -> str:
    """Links out of `docs` lead to the source tree, where the same page is read, too."""
    folder = posixpath.dirname(page.file.src_uri)

    def resolved(match: re.Match[str]) -> str:
        link = match[0]
        path, _, anchor = link.partition("#")
        inside = posixpath.normpath(posixpath.join("docs", folder, path))
        outside = (
            "://" not in link and path and not (inside.startswith("docs/") and files.get_file_from_path(inside[5:]))
        )
        if not outside:
            return link
        if not (ROOT / inside).exists():
            raise PluginError(f"{page.file.src_uri}: there is no `{inside}`, to which `{link}` leads")
        return f"{SOURCES}/{inside}" + (f"#{anchor}" if anchor else "")

    pieces = CODE.split(markdown)
    return "".join(piece if at % 2 else LINK.sub(resolved, piece) for at, piece in enumerate(pieces))
