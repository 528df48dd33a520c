"""`caulk_clips.ray_prepare` on a cluster of two nodes."""

from __future__ import annotations

import subprocess
import zipfile
from pathlib import Path

import pytest
import videos
from clipwork import CLIPS, NEEDED, WORKER
from harness import program_environment

pytest.importorskip("ray.data", reason="the cluster")
pytestmark = [pytest.mark.full, NEEDED]


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch):
    import ray
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("CAULK_CLIP", str(WORKER))
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    # Tasks import what this test does, wherever it is installed.
    import caulk_clips

    monkeypatch.setenv("PYTHONPATH", str(Path(caulk_clips.__file__).parents[1]))
    node = {"num_cpus": 1, "object_store_memory": 80_000_000}
    cluster = Cluster(initialize_head=True, head_node_args=node)
    cluster.add_node(**node)
    ray.init(address=cluster.address, log_to_driver=False)
    yield cluster
    ray.shutdown()
    cluster.shutdown()


def everything(folder: Path) -> dict[str, bytes]:
    """Its locks, too."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_two_nodes_make_the_same_as_one_run(cluster: object, tmp_path: Path) -> None:
    from caulk_clips import ray_prepare

    rows = ["video_path,label"]
    for number in range(8):
        videos.encode(tmp_path / f"{number}.mp4", 20, size=(160, 96))
        rows.append(f"{number}.mp4,{number % 2}")
    (tmp_path / "bad.mp4").write_bytes(b"nothing")
    (tmp_path / "videos.csv").write_text("\n".join([*rows, "bad.mp4,0"]) + "\n")
    words = ["prepare", "videos.csv", "--out", "local", "--frames", "4", "--size", "48", "--augment", "2"]
    local = subprocess.run([CLIPS, *words], cwd=tmp_path, env=program_environment(), check=False)
    assert local.returncode == 1
    ray_prepare(tmp_path / "videos.csv", tmp_path / "spread", frames=4, size=48, augment=2, tasks=4)
    assert everything(tmp_path / "spread") == everything(tmp_path / "local")
    # A second time there is nothing left but the video that gives no clips.
    ray_prepare(tmp_path / "videos.csv", tmp_path / "spread", frames=4, size=48, augment=2, tasks=4)
    assert everything(tmp_path / "spread") == everything(tmp_path / "local")
    # From an archive, which every task copies them out of.
    with zipfile.ZipFile(tmp_path / "videos.zip", "w") as archive:
        for video in tmp_path.glob("*.mp4"):
            archive.write(video, video.name)
    source = f"zip://::{tmp_path}/videos.zip"
    options = {"frames": 4, "size": 48, "augment": 2, "tasks": 4, "source": source, "scratch": tmp_path / "scratch"}
    ray_prepare(tmp_path / "videos.csv", tmp_path / "copied", **options)
    assert everything(tmp_path / "copied") == everything(tmp_path / "local")
    assert not list((tmp_path / "scratch").iterdir())
    with pytest.raises(RuntimeError, match="other settings"):
        ray_prepare(tmp_path / "videos.csv", tmp_path / "spread", frames=5, size=48, augment=2, tasks=4)
