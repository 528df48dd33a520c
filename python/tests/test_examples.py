"""Programs that leak are named at their line; programs that only look like it are left alone."""

from __future__ import annotations

import pytest
from harness import PROGRAMS, ROOT, Run, marked_line

LEAKS = [
    # program, classes that are right, last name of the container
    ("list_in_loop.py", {"graph-kept-in-container"}, "peaks"),
    ("running_total.py", {"loss-kept-with-graph"}, "total"),
    ("crowded_heap.py", {"graph-kept-in-container"}, "kept"),
    ("dict_history.py", {"graph-kept-in-container"}, "history"),
    ("cached_by_tensor.py", {"cache-keyed-by-tensor", "cached-method"}, "encode"),
    ("cached_tables.py", {"unbounded-history", "global-accumulation"}, "seen_of"),
    ("hook_each_epoch.py", {"hook-never-removed"}, "register_forward_hook"),
    ("gradient_hooks.py", {"hook-never-removed"}, "_backward_hooks"),
    ("masked_gradients.py", {"hook-never-removed"}, "_backward_hooks"),
    ("figures.py", {"figure-not-closed"}, ""),
    ("step_outputs.py", {"step-outputs-not-cleared", "graph-kept-in-container"}, "validation_step_outputs"),
    ("state_fed_back.py", {"state-not-detached"}, "state"),
    ("native_buffers.py", {"native-growth"}, "malloc"),
    ("global_results.py", {"global-accumulation"}, "RESULTS"),
    ("transitions.py", {"global-accumulation"}, "memory"),
    ("model_snapshots.py", {"unbounded-history"}, "members"),
    ("byte_log.py", {"unbounded-history"}, "raw"),
    ("text_log.py", {"unbounded-history"}, "texts"),
    ("param_groups.py", {"optimizer-recreated"}, "optimizer"),
    ("nonlocal_total.py", {"loss-kept-with-graph"}, "total"),
    ("layer_states.py", {"state-not-detached"}, "hidden"),
    ("mock_recorder.py", {"calls-recorded"}, "board"),
    ("remembered_calls.py", {"global-accumulation"}, "LAST"),
    ("upload_pool.py", {"unbounded-queue"}, "pool"),
    ("step_chain.py", {"unbounded-history"}, "latest"),
    ("local_chain.py", {"unbounded-history"}, "state"),
    ("lagging_arrays.py", {"unbounded-queue"}, "beside"),
    ("lagging_reader.py", {"unbounded-queue"}, "beside"),
    ("unfilled_list.py", {"unbounded-history"}, "rows"),
    ("linked_trips.py", {"unbounded-history"}, "trip"),
    ("wrapped_epochs.py", {"unbounded-history"}, "loss_of"),
    ("nested_datasets.py", {"unbounded-history"}, "data"),
    ("weak_keys.py", {"unbounded-history"}, "known.data"),
    ("context_trace.py", {"global-accumulation"}, "TRACE"),
    ("exit_callbacks.py", {"callback-keeps-tensor"}, "atexit"),
    ("pending_uploads.py", {"unbounded-history"}, "pending"),
    ("finalizers.py", {"global-accumulation"}, "_registry"),
    ("compressors.py", {"unbounded-history"}, "open"),
    ("profiler_on.py", {"profiler-left-on"}, ""),
    ("uncollected_tree.py", {"reference-cycle"}, "origin"),
    ("uncollected_trials.py", {"reference-cycle"}, "logger"),
    ("uncollected_places.py", {"reference-cycle"}, "scene"),
    ("log_buffer.py", {"log-records-kept"}, "log.handlers[0].buffer"),
    ("handlers_kept.py", {"unbounded-history"}, "handlers"),
    ("named_loggers.py", {"unbounded-history"}, "loggerDict"),
    ("caught_errors.py", {"exception-keeps-frames"}, "failed"),
    ("records_by_epoch.py", {"unbounded-history"}, "by_epoch"),
    ("every_third_epoch.py", {"graph-kept-in-container"}, "seen"),
    ("rows_rebuilt.py", {"unbounded-history"}, "rows"),
    ("class_banks.py", {"view-pins-storage"}, "by_label"),
    ("borrowed_slices.py", {"view-pins-storage"}, "crops"),
    ("bounded_method_cache.py", {"cached-method"}, "turned"),
    ("entries_replaced.py", {"unbounded-history"}, "rows"),
    ("mapped_copies.py", {"unbounded-cache", "unbounded-history"}, "mapped"),
    ("numbered_buffers.py", {"unbounded-history"}, "_buffers"),
    ("numbered_attributes.py", {"graph-kept-in-container"}, "__dict__"),
    ("added_heads.py", {"unbounded-history"}, "heads"),
    ("among_many.py", {"unbounded-history"}, "kept"),
    ("after_many.py", {"unbounded-history"}, "kept"),
    ("inference_loop.py", {"graph-kept-in-container"}, "outputs"),
    ("without_collector.py", {"unbounded-history"}, "seen"),
]


@pytest.mark.parametrize(("name", "classes", "container"), LEAKS, ids=[leak[0].removesuffix(".py") for leak in LEAKS])
def test_a_leak_is_named_at_its_line(run_caulk, name, classes, container):
    program = PROGRAMS / name
    run: Run = run_caulk(program)
    assert run.code == 0, run.told()
    assert run.verdict()["state"] == "grows", run.told()
    finding = run.alarm_at(name, marked_line(program))
    assert finding is not None, run.told()
    assert finding["class"] in classes, run.told()
    assert container in finding["container"] or container in finding["holder"], run.told()


@pytest.mark.parametrize("name", sorted(path.name for path in PROGRAMS.glob("clean_*.py")))
def test_a_program_that_only_looks_like_a_leak_is_left_alone(run_caulk, name):
    run: Run = run_caulk(PROGRAMS / name)
    assert run.code == 0, run.told()
    assert run.alarms == [], run.told()
    assert run.verdict()["state"] not in ("grows", "grows-within-epoch"), run.told()


def test_the_example_of_the_readme_is_explained_to_a_person(run_caulk):
    program = ROOT / "examples" / "train_detector.py"
    line = marked_line(program, "self.val_ious.append(iou)")
    run: Run = run_caulk(program, "--epochs", "8", "--steps", "16")
    finding = run.alarm_at(program.name, line)
    assert finding is not None, run.told()
    assert finding["class"] == "graph-kept-in-container", run.told()
    for text in (f"train_detector.py:{line}", "self.val_ious.append(iou)", "trainer.val_ious", "detach"):
        assert text in run.stderr, run.told()
    # What caulk says is no output of the program.
    assert [line.split(":")[0] for line in run.stdout.splitlines()] == [f"epoch {n}" for n in range(1, 9)]
