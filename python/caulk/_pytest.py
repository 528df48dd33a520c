"""The pytest plugin: `@pytest.mark.leakfree(steps=5)`, `@pytest.mark.flat(repeats=5)` and `--caulk`.

A marked test runs a few times more, and fails when memory in use has grown by then; its text names what keeps it. With
`--caulk` a table at the end says which tests left how much behind, those that pytest-xdist ran elsewhere included.
"""

from __future__ import annotations

import gc
import inspect
from collections.abc import Generator
from typing import Any

import pytest

#: Growth per step from which on a marked test fails, in bytes.
_PER_STEP = 64 * 1024
#: Tests in the table.
_MOST = 20

_growth: pytest.StashKey[dict[str, int]] = pytest.StashKey()
#: Has a test been found to leak?
_found: pytest.StashKey[bool] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--caulk`."""
    group = parser.getgroup("caulk")
    group.addoption("--caulk", action="store_true", help="print how much memory each test left in use")


def pytest_configure(config: pytest.Config) -> None:
    """The marker, and a place for the table."""
    text = (
        "leakfree(steps=5, min_bytes=None): run the test `steps` times more and fail where memory in use grows by "
        "`min_bytes` over all of them (64 KiB per step)"
    )
    config.addinivalue_line("markers", text)
    text = (
        "flat(repeats=5, warmup=2, min_bytes=65536): run the test again and fail where memory in use grows by `min_bytes` "
        "with every repetition, as `caulk.flat` does"
    )
    config.addinivalue_line("markers", text)
    config.stash[_growth] = {}


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, Any, Any]:
    """Runs a marked test again, with the same fixtures."""
    marker = pyfuncitem.get_closest_marker("leakfree")
    if marker is None:
        flat = pyfuncitem.get_closest_marker("flat")
        return (yield) if flat is None else _flat(pyfuncitem, flat, (yield))
    steps, min_bytes = _arguments(*marker.args, **marker.kwargs)
    if inspect.iscoroutinefunction(pyfuncitem.obj):
        pytest.fail("leakfree cannot run an `async def` test again", pytrace=False)
    result = yield
    from ._leaks import LeakFound, leak_check

    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    # The first run, pytest's own, may import and cache; the second may still fill what the first one made.
    pyfuncitem.obj(**arguments)
    leak = None
    try:
        with leak_check(min_bytes):
            for _ in range(steps):
                pyfuncitem.obj(**arguments)
    except LeakFound as found:
        leak = found
    # Outside the handler: pytest shows what an error came of, and that would be the same text.
    if leak is not None:
        pyfuncitem.stash[_found] = True
        pytest.fail(f"over {steps} more runs of the test, {leak}", pytrace=False)
    return result


def _flat(item: pytest.Function, marker: pytest.Mark, result: Any) -> Any:
    """Repeats a test that is marked as flat."""
    from ._flat import flat
    from ._leaks import LeakFound

    arguments = {name: item.funcargs[name] for name in item._fixtureinfo.argnames}
    try:
        repeated = flat(item.obj, **marker.kwargs)
    except (TypeError, ValueError) as error:
        raise pytest.UsageError(str(error)) from None
    leak = None
    try:
        repeated(**arguments)
    except LeakFound as found:
        leak = found
    if leak is not None:
        item.stash[_found] = True
        pytest.fail(f"every repetition of the test keeps more: {leak}", pytrace=False)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    """Leaves the first line of a leak to the summary, which repeats all of it where ``CI`` is set, and by ``-vv``.

    With ``--tb=no`` the summary alone says what was found.
    """
    report = yield
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash is not None and item.stash.get(_found, False) and item.config.option.tbstyle != "no":
        crash.message = crash.message.partition("\n")[0].removesuffix(":")
    return report


def _arguments(steps: int = 5, min_bytes: int | None = None) -> tuple[int, int]:
    if steps < 1:
        raise pytest.UsageError(f"leakfree needs at least one step, not {steps}")
    return steps, steps * _PER_STEP if min_bytes is None else min_bytes


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    """Measures what a test leaves in use, its fixtures included."""
    if not item.config.getoption("caulk"):
        return (yield)
    from ._leaks import in_use

    gc.collect()
    before = in_use()
    result = yield
    gc.collect()
    item.config.stash[_growth][item.nodeid] = in_use() - before
    return result


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker of pytest-xdist hands over what its tests left."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["caulk"] = session.config.stash[_growth]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Takes it; a worker that crashed has none to give."""
    output = getattr(node, "workeroutput", {})
    node.config.stash[_growth].update(output.get("caulk", {}))


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """The table, the test that left most first."""
    growth = config.stash[_growth]
    if not config.getoption("caulk") or not growth:
        return
    from ._memory import format_bytes

    terminalreporter.section("memory left in use by each test")
    rows = sorted(growth.items(), key=lambda row: -row[1])
    for name, size in rows[:_MOST]:
        terminalreporter.write_line(f"{'+' if size > 0 else ''}{format_bytes(size):>9}  {name}")
    if len(rows) > _MOST:
        terminalreporter.write_line(f"{'':>9}  and {len(rows) - _MOST} more that left less")
