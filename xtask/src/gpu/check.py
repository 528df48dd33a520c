"""Runs the scenarios beside this file on a GPU, under the caulk beside it: `python check.py [DEVICE]`.

Any CPython from 3.10 on with torch will do, and nothing else is needed. What comes of it lies in `results`; `cargo xtask
gpu-check --results FOLDER` judges it where the tree is.
"""

from __future__ import annotations

import datetime
import json
import os
import platform
import subprocess
import sys
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
SITE = HERE / "site"
RESULTS = HERE / "results"
LIMIT_S = 300


def install() -> None:
    """The wheel, unpacked beside this file: the machine's own Python stays as it is."""
    (wheel,) = HERE.glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        for name in packed.namelist():
            # What a wheel carries beside its packages has a folder of its own, by where it goes.
            _, data, below = name.partition(".data/")
            place = below.replace("scripts/", "bin/", 1).replace("platlib/", "", 1) if data else name
            target = SITE / place
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(packed.read(name))
    (SITE / "bin" / "caulk").chmod(0o755)


def device(name: str) -> dict[str, str]:
    import torch

    told = {"python": platform.python_version(), "torch": torch.__version__, "device": name}
    if name.startswith("cuda"):
        told["device"] = torch.cuda.get_device_name(0)
        told["cuda"] = str(torch.version.cuda)
    told["date"] = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    return told


def run(command: list[str], folder: Path, out: Path, name: str) -> str:
    """The end of what the program says where it fails; an empty text where it does not."""
    environment = {**os.environ, "MPLBACKEND": "Agg", "CAULK_PACKAGE": str(SITE / "caulk")}
    with (out / f"{name}.out").open("w") as stdout, (out / f"{name}.err").open("w") as stderr:
        try:
            code = subprocess.run(
                command, cwd=folder, stdout=stdout, stderr=stderr, env=environment, timeout=LIMIT_S, check=False
            ).returncode
        except subprocess.TimeoutExpired:
            return f"did not end within {LIMIT_S} s"
    if code == 0:
        return ""
    lines = (out / f"{name}.err").read_text(errors="replace").strip().splitlines()
    return f"ended with {code}: {lines[-1] if lines else 'nothing said'}"


def scenario(found: dict, side: str, name: str) -> str:
    folder = HERE / "scenarios" / found["id"]
    out = RESULTS / f"{found['id']}-{side}"
    out.mkdir(parents=True, exist_ok=True)

    def program(epochs: int, steps: int) -> list[str]:
        moved = [sys.executable, str(HERE / "move.py"), name, f"{side}/main.py"]
        return [*moved, "--epochs", str(epochs), "--steps", str(steps)]

    failure = run(program(1, 2), folder, out, "plain")
    if failure:
        return f"cannot be moved: {failure}"
    caulk = [str(SITE / "bin" / "caulk"), "run", "--progress", "none", "--output", str(out / "run")]
    caulk += ["--report-json", str(out / "report.json"), "--"]
    return run([*caulk, *program(found["epochs"], found["steps"])], folder, out, "stdout")


def main() -> None:
    name = sys.argv[1] if len(sys.argv) > 1 else "cuda"
    install()
    RESULTS.mkdir(exist_ok=True)
    told = {"machine": device(name), "failures": {}}
    for found in json.loads((HERE / "scenarios.json").read_text()):
        for side in found["sides"]:
            failure = scenario(found, side, name)
            print(f"{found['id']} {side}: {failure or 'ran'}", flush=True)
            if failure:
                told["failures"][f"{found['id']}-{side}"] = failure
    (RESULTS / "run.json").write_text(json.dumps(told, indent=2) + "\n")


if __name__ == "__main__":
    main()
