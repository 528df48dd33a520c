"""Fetches single files of the package index that pip is configured for; builds and runs nothing of them.

`fetch.py pin NAME VERSION` prints the entry of packages.toml for the source distribution, else for a wheel.
`fetch.py get FOLDER NAME FILE SHA256` checks the file's hash and unpacks its Python sources into FOLDER.

`pip download` would run a source distribution's build to learn what it depends on; the parts of pip used here do not.
"""

import hashlib
import io
import pathlib
import sys
import tarfile
import zipfile

from pip._internal.commands.download import DownloadCommand

SOURCES = (".py", ".ipynb")


class Fetch(DownloadCommand):
    def run(self, options, args):
        options.ignore_requires_python = True
        self.session = self.get_default_session(options)
        self.finder = self._build_package_finder(options, self.session)
        action, *words = args
        return {"pin": self.pin, "get": self.get}[action](*words)

    def links(self, name):
        return [(str(found.version), found.link) for found in self.finder.find_all_candidates(name)]

    def pin(self, name, version):
        links = [link for found, link in self.links(name) if found == version]
        link = min(links, key=lambda link: (link.is_wheel, link.filename))
        print(f'[[package]]\nname = "{name}"\nversion = "{version}"')
        print(f'file = "{link.filename}"\nsha256 = "{link.hash}"\n')
        return 0

    def get(self, folder, name, filename, sha256):
        link = next(link for _, link in self.links(name) if link.filename == filename)
        response = self.session.get(link.url_without_fragment)
        response.raise_for_status()
        content = response.content
        found = hashlib.sha256(content).hexdigest()
        if found != sha256:
            raise SystemExit(f"{filename} has hash {found} and should have {sha256}")
        unpack(content, filename, pathlib.Path(folder))
        return 0


def unpack(content, filename, folder):
    for name, text in members(io.BytesIO(content), filename):
        path = pathlib.PurePosixPath(name)
        if path.suffix not in SOURCES or path.is_absolute() or ".." in path.parts:
            continue
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text())


def members(file, filename):
    if filename.endswith((".whl", ".zip")):
        archive = zipfile.ZipFile(file)
        return [(name, lambda name=name: archive.read(name)) for name in archive.namelist()]
    archive = tarfile.open(fileobj=file)
    regular = [member for member in archive.getmembers() if member.isfile()]
    return [(member.name, lambda member=member: archive.extractfile(member).read()) for member in regular]


if __name__ == "__main__":
    sys.exit(Fetch("fetch", "").main(sys.argv[1:]))
