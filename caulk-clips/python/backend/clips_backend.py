"""What `pip install` of this tree runs: compiles what the wheel carries beside the command, then leaves the rest to maturin."""

import shutil
import subprocess
from pathlib import Path

import maturin
from maturin import (
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

#: caulk's source tree, whose automation builds FFmpeg.
TREE = Path(__file__).resolve().parents[3]
NO_CARGO = "caulk-clips is compiled when it is installed from source, and `cargo` is not on the path: install Rust (https://rustup.rs)"


def compile_worker():
    if shutil.which("cargo") is None:
        raise SystemExit(NO_CARGO)
    subprocess.run(["cargo", "run", "--quiet", "--package", "xtask", "--", "package", "--clips"], check=True, cwd=TREE)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    compile_worker()
    return maturin.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    compile_worker()
    return maturin.build_editable(wheel_directory, config_settings, metadata_directory)


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    compile_worker()
    return maturin.prepare_metadata_for_build_wheel(metadata_directory, config_settings)


def prepare_metadata_for_build_editable(metadata_directory, config_settings=None):
    compile_worker()
    return maturin.prepare_metadata_for_build_editable(metadata_directory, config_settings)
