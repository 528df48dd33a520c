"""The armed trace charges growth to the line that did it, whatever way the container was made to grow."""

from __future__ import annotations

import array
import asyncio
import collections
import functools
import gc
import heapq
import inspect
import logging.handlers
import os
import queue
import subprocess
import sys
import textwrap
import threading
import time
import weakref

import pytest

_agent = pytest.importorskip("caulk._agent", reason="caulk is not installed: cargo xtask develop")

# Before 3.12 a tracer or profiler of somebody else's (coverage, a debugger) keeps the trace from being armed.
NATIVE = sys.version_info < (3, 12)
pytestmark = pytest.mark.skipif(
    NATIVE and (sys.gettrace() is not None or sys.getprofile() is not None), reason="the tests are traced themselves"
)


def marked(function, mark="# grows") -> int:
    """Number of the line of a function that ends with a mark."""
    lines, first = inspect.getsourcelines(function)
    found = [first + index for index, line in enumerate(lines) if line.rstrip().endswith(mark)]
    assert len(found) == 1, found
    return found[0]


def watch(target, name, kind="object", slot="", home=""):
    return (1, kind, target, slot, name, home)


def traced(work, *watches, **limits):
    """Hits and progress of a trace that is armed while `work` runs."""
    _agent.trace_arm(list(watches), **limits)
    try:
        work()
    finally:
        progress = _agent.trace_poll()
        hits = _agent.trace_disarm()
    return hits, progress


def places(hits):
    return [(hit["line"], hit["growth"]) for hit in hits]


class Keeper:
    """Grows each of its containers by ten, in every way there is."""

    def __init__(self):
        self.items = []
        self.table = {}
        self.seen = set()
        self.recent = collections.deque()
        self.bytes = bytearray()
        self.numbers = array.array("d")

    def append(self):
        for index in range(10):
            before = index
            self.items.append(before)  # grows
            before = None

    def extend(self):
        for index in range(5):
            self.items.extend([index, index])  # grows

    def add(self):
        for index in range(10):
            self.seen.add(index)  # grows

    def insert(self):
        for index in range(10):
            self.items.insert(0, index)  # grows

    def aliased(self):
        push = self.items.append
        for index in range(10):
            before = index
            push(before)  # grows

    def store(self):
        for index in range(10):
            self.table[index] = index  # grows

    def in_place(self):
        for index in range(5):
            self.items += [index, index]  # grows

    def slices(self):
        for index in range(5):
            self.items[len(self.items) :] = [index, index]  # grows

    def mapped(self):
        list(map(self.items.append, range(10)))  # grows

    def heap(self):
        for index in range(10):
            heapq.heappush(self.items, index)  # grows

    def comprehension(self):
        for _ in range(2):
            [self.items.append(index) for index in range(5)]  # grows

    def in_lambda(self):
        keep = lambda value: self.items.append(value)  # noqa: E731  # grows
        for index in range(10):
            keep(index)

    def several_lines(self):
        for index in range(10):
            self.items.append(  # grows
                dict(
                    index=index,
                )
            )

    def update(self):
        for index in range(10):
            self.table.update({("update", index): index})  # grows

    def setdefault(self):
        for index in range(10):
            self.table.setdefault(("default", index), []).append(index)  # grows

    def appendleft(self):
        for index in range(10):
            self.recent.appendleft(index)  # grows

    def bytes_added(self):
        for _ in range(5):
            self.bytes += b"ab"  # grows

    def numbers_added(self):
        for index in range(10):
            self.numbers.append(index)  # grows

    def generator(self):
        def generate():
            for index in range(10):
                yield index
                self.items.append(index)  # grows

        for _ in generate():
            pass

    def with_a_callee(self):
        for index in range(10):
            self.items.append(self.also_a_candidate(index))  # grows

    def also_a_candidate(self, index):
        found = self.items[-1:]
        return found or index

    def recursive(self, depth=10):
        if depth:
            self.items.append(depth)  # grows
            self.recursive(depth - 1)

    def raises(self):
        def fail():
            self.items.append(1)
            raise ValueError

        for _ in range(10):
            try:
                fail()  # called
            except ValueError:
                continue


CASES = {
    "items": [
        "append", "extend", "insert", "aliased", "in_place", "slices", "mapped", "heap", "comprehension", "in_lambda",
        "several_lines", "generator", "with_a_callee", "recursive",
    ],
    "table": ["store", "update", "setdefault"],
    "seen": ["add"],
    "recent": ["appendleft"],
    "bytes": ["bytes_added"],
    "numbers": ["numbers_added"],
}  # fmt: skip


@pytest.mark.parametrize(("name", "way"), [(name, way) for name, ways in CASES.items() for way in ways])
@pytest.mark.parametrize("kind", ["object", "slot"])
def test_every_way_to_grow_is_caught_at_its_line(name, way, kind):
    keeper = Keeper()
    work = getattr(keeper, way)
    target = watch(getattr(keeper, name), name) if kind == "object" else watch(keeper, name, "slot", name)
    hits, progress = traced(work, target)
    assert places(hits) == [(marked(work), 10)]
    hit = hits[0]
    assert hit["file"] == hit["user_file"] == __file__ and hit["user_line"] == hit["line"]
    assert progress["unexplained"] == [(1, 0)] and progress["stopped"] is None and not progress["blind"]


def test_functions_keep_their_names():
    keeper = Keeper()
    for way in ("append", "comprehension"):
        hits, _ = traced(getattr(keeper, way), watch(keeper.items, "items"))
        expected = way if NATIVE and sys.version_info < (3, 11) else f"Keeper.{way}"
        assert hits[0]["function"] == expected


def test_a_function_left_by_an_exception_is_charged():
    keeper = Keeper()
    hits, _ = traced(keeper.raises, watch(keeper.items, "items"))
    line = inspect.getsourcelines(keeper.raises)[1] + 2
    assert places(hits) == [(line, 10)]


def remember(container, value):
    container.append(value)  # grows


def test_a_helper_that_is_handed_the_container_is_charged():
    kept = []

    def work():
        for index in range(10):
            remember(kept, index)

    hits, _ = traced(work, watch(kept, "kept"))
    assert places(hits) == [(marked(remember), 10)]


class Rebound:
    shared = ()
    __slots__ = ("__dict__", "slotted")

    def __init__(self):
        self.value = []
        self.slotted = ()

    def attribute(self):
        for index in range(10):
            self.value = [*self.value, index]  # grows
            self.value = list(self.value)

    def slot(self):
        for index in range(10):
            self.slotted = (*self.slotted, index)  # grows

    def on_the_class(self):
        for index in range(10):
            Rebound.shared = (*Rebound.shared, index)  # grows


REBOUND = ""


def rebind_global():
    global REBOUND
    for _ in range(10):
        REBOUND = REBOUND + "x"  # grows


def test_functions_that_only_read_the_name_come_last():
    # As many as a large program has; nothing refers to them but this list.
    names = {}
    exec(compile("\n".join(f"def f{n}(x): return x.items()" for n in range(300)), __file__, "exec"), names)
    keeper = Keeper()
    for work in keeper.in_place, keeper.slices:
        hits, _ = traced(work, watch(keeper.items, "items"))
        assert places(hits) == [(marked(work), 10)], work


def test_a_name_bound_to_a_longer_value_is_growth():
    rebound = Rebound()
    module = sys.modules[__name__]
    of_class = f"{__name__}.Rebound"
    for work, owner, name, home in [
        (rebound.attribute, rebound, "value", of_class),
        (rebound.slot, rebound, "slotted", of_class),
        (rebound.on_the_class, Rebound, "shared", of_class),
        (rebind_global, module, "REBOUND", __name__),
    ]:
        # As the agent asks: in a session of all tests more functions than are watched mention a `value`.
        hits, _ = traced(work, watch(owner, name, "slot", name, home))
        assert places(hits) == [(marked(work), 10)], name


def test_a_key_an_index_and_a_closure_can_be_bound_anew():
    totals, row = {"loss": ()}, [()]

    def make():
        history = ()

        def keep(index):
            nonlocal history
            history = (*history, index)  # grows

        return keep

    keep = make()

    def by_key():
        for index in range(10):
            totals["loss"] = (*totals["loss"], index)  # grows

    def by_index():
        for index in range(10):
            row[0] = (*row[0], index)  # grows

    def by_closure():
        for index in range(10):
            keep(index)

    assert places(traced(by_key, watch(totals, "totals", "slot", "loss"))[0]) == [(marked(by_key), 10)]
    assert places(traced(by_index, watch(row, "row", "slot", "0"))[0]) == [(marked(by_index), 10)]
    assert places(traced(by_closure, watch(keep, "history", "slot", "history"))[0]) == [(marked(keep), 10)]


def test_a_local_of_a_running_function_is_watched():
    def run():
        total = ()
        name = "run" if sys.version_info < (3, 11) else run.__qualname__
        _agent.trace_arm([watch(name, "total", "local", "total")])
        for index in range(10):
            before = index
            total = (*total, before)  # grows
        return _agent.trace_disarm()

    assert places(run()) == [(marked(run), 10)]


def test_a_local_of_two_calls_is_not_one_variable():
    def deepen(depth):
        local = [0] * (10 - depth)
        if depth:
            deepen(depth - 1)
        return local

    def run():
        name = "run" if sys.version_info < (3, 11) else run.__qualname__
        _agent.trace_arm([watch(name, "local", "local", "local")])
        local = [1]
        deepen(5)
        local = list(local)
        return _agent.trace_disarm()

    assert run() == []


def test_code_of_a_property_is_never_run():
    class Guarded:
        @property
        def value(self):
            raise SystemExit

        def __len__(self):
            raise SystemExit

        def __getattr__(self, name):
            raise SystemExit

        def use(self):
            return self.value

    guarded = Guarded()
    with pytest.raises(RuntimeError, match="own code"):
        _agent.trace_arm([watch(guarded, "value", "slot", "value")])
    with pytest.raises(RuntimeError, match="own code"):
        _agent.trace_arm([watch(guarded, "value")])


class Loud(list):
    def __len__(self):
        raise SystemExit


def test_a_subclass_is_measured_without_its_methods():
    loud = Loud()

    def work():
        for index in range(10):
            loud.append(index)  # grows

    assert places(traced(work, watch(loud, "loud"))[0]) == [(marked(work), 10)]


def test_library_code_is_told_with_the_users_line():
    jobs = queue.Queue()

    def produce():
        for index in range(10):
            before = index
            jobs.put(before)  # grows

    hits, _ = traced(produce, watch(jobs, "queue", home="queue.Queue"))
    assert [(hit["user_line"], hit["growth"]) for hit in hits] == [(marked(produce), 10)]
    assert hits[0]["file"] == queue.__file__ and hits[0]["user_file"] == __file__


def test_wrappers_of_containers_are_opened():
    handler = logging.handlers.MemoryHandler(1000)
    counts, cached = collections.Counter(), functools.lru_cache(maxsize=None)(str)
    records = collections.UserList()

    def work():
        for index in range(10):
            handler.buffer.append(index)
            counts[index] += 1
            cached(index)
            records.append(index)

    hits, _ = traced(
        work,
        (1, "object", handler.buffer, "", "buffer", ""),
        (2, "object", counts, "", "counts", ""),
        (3, "object", cached, "", "cached", ""),
        (4, "object", records, "", "records", ""),
    )
    first = inspect.getsourcelines(work)[1]
    assert [(hit["id"], hit["user_line"] - first, hit["growth"]) for hit in hits] == [
        (1, 2, 10),
        (2, 3, 10),
        (3, 4, 10),
        (4, 5, 10),
    ]


def test_threads_are_reached_whenever_they_start():
    keeper = Keeper()

    def later():
        thread = threading.Thread(target=keeper.append)
        thread.start()
        thread.join()

    hits, _ = traced(later, watch(keeper.items, "items"))
    assert places(hits) == [(marked(keeper.append), 10)]

    stop = threading.Event()

    def background():
        while not stop.is_set():
            stop.wait(0.001)
            keeper.items.append(1)  # grows

    def busy():
        for _ in range(20):
            len(keeper.items)
            time.sleep(0.002)

    thread = threading.Thread(target=background)
    thread.start()
    hits, _ = traced(busy, watch(keeper.items, "items"))
    stop.set()
    thread.join()
    assert [hit["line"] for hit in hits] == [marked(background)]


def test_coroutines_are_followed():
    keeper = Keeper()

    async def work():
        for index in range(5):
            await asyncio.sleep(0)
            keeper.items.append(index)  # grows

    async def both():
        await asyncio.gather(work(), work())

    hits, _ = traced(lambda: asyncio.run(both()), watch(keeper.items, "items"))
    assert places(hits) == [(marked(work), 10)]


def test_it_ends_after_enough_hits_and_lets_go():
    keeper = Keeper()
    _agent.trace_arm([watch(keeper.items, "items")], max_hits=3)
    keeper.append()
    progress = _agent.trace_poll()
    assert progress["enough"] and progress["hits"] == [(1, 3)]
    assert places(_agent.trace_disarm()) == [(marked(keeper.append), 3)]


class Kept(list):
    """A list that can be referred to weakly."""


def test_what_the_program_drops_is_dropped():
    kept = Kept()
    reference = weakref.ref(kept)

    def work():
        nonlocal kept
        kept.append(1)
        kept = None
        for _ in range(3):
            time.sleep(0)

    _agent.trace_arm([watch(kept, "kept")])
    work()
    _agent.trace_poll()
    assert reference() is None
    assert len(_agent.trace_disarm()) == 1


def test_nothing_is_left_behind():
    keeper = Keeper()
    count = sys.getrefcount(keeper.items)
    for _ in range(20):
        traced(keeper.append, watch(keeper.items, "items"), watch(keeper, "items", "slot", "items"))
    after = sys.getrefcount(keeper.items)
    assert after == count
    assert sys.gettrace() is None and sys.getprofile() is None
    if not NATIVE:
        assert [sys.monitoring.get_tool(number) for number in (3, 4)] == [None, None]


def test_the_programs_own_tracer_is_left_alone():
    keeper, seen = Keeper(), []

    def tracer(frame, event, argument):
        seen.append(event)
        return tracer

    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        if NATIVE:
            with pytest.raises(RuntimeError, match="in use"):
                _agent.trace_arm([watch(keeper.items, "items")])
        else:
            hits, _ = traced(keeper.append, watch(keeper.items, "items"))
            assert places(hits) == [(marked(keeper.append), 10)]
        assert sys.gettrace() is tracer
    finally:
        sys.settrace(before)


@pytest.mark.parametrize("install", ["settrace", "setprofile"])
def test_a_tracer_that_comes_later_gets_the_place(install):
    keeper, seen = Keeper(), []

    def tracer(frame, event, argument):
        seen.append(frame.f_code.co_name)
        return tracer

    getter = getattr(sys, install.replace("set", "get"))
    before = getter()
    _agent.trace_arm([watch(keeper.items, "items")])
    keeper.append()
    getattr(sys, install)(tracer)
    try:
        keeper.append()
        assert getter() is tracer
        progress = _agent.trace_poll()
        hits = _agent.trace_disarm()
        assert getter() is tracer
    finally:
        getattr(sys, install)(before)
    assert "append" in seen
    assert places(hits) == [(marked(keeper.append), 10 if NATIVE else 20)]
    assert (progress["stopped"] is not None) is NATIVE


@pytest.mark.skipif(NATIVE, reason="sys.monitoring is new in 3.12")
def test_numbers_of_other_tools_are_left_alone():
    keeper, lines = Keeper(), []
    monitoring = sys.monitoring
    monitoring.use_tool_id(4, "somebody")
    monitoring.register_callback(4, monitoring.events.LINE, lambda code, line: lines.append(line))
    monitoring.set_local_events(4, keeper.append.__func__.__code__, monitoring.events.LINE)
    try:
        hits, _ = traced(keeper.append, watch(keeper.items, "items"))
        assert places(hits) == [(marked(keeper.append), 10)]
        count = len(lines)
        keeper.append()
        assert count > 0 and len(lines) == 2 * count
        monitoring.use_tool_id(3, "somebody else")
        with pytest.raises(RuntimeError, match="taken"):
            _agent.trace_arm([watch(keeper.items, "items")])
    finally:
        monitoring.set_local_events(4, keeper.append.__func__.__code__, 0)
        monitoring.free_tool_id(4)
        if monitoring.get_tool(3) is not None:
            monitoring.free_tool_id(3)


def test_a_fork_ignores_what_was_armed():
    keeper = Keeper()
    _agent.trace_arm([watch(keeper.items, "items")])
    child = os.fork()
    if child == 0:
        keeper.append()
        os._exit(int(len(keeper.items) != 10))
    assert os.waitpid(child, 0)[1] == 0
    keeper.append()
    assert places(_agent.trace_disarm()) == [(marked(keeper.append), 10)]


def test_what_grows_under_another_name_is_found_where_anything_grows():
    keeper = Keeper()
    _agent.trace_arm([watch(keeper.items, "_".join(["nobody", "says", "this"]))])
    keeper.append()
    assert places(_agent.trace_disarm()) == [(marked(keeper.append), 10)]


def test_reasons_are_given():
    nobody_says = "_".join(["nobody", "says", "this"])
    with pytest.raises(RuntimeError, match="no function mentions"):
        _agent.trace_arm([(1, "slot", Keeper(), nobody_says, nobody_says, "")])
    with pytest.raises(RuntimeError, match="cannot be watched"):
        _agent.trace_arm([watch(7, "items")])


def decode(count):
    """Stands for a decoder that keeps every frame of a video."""
    frames = []
    for _ in range(count):
        frames.append(bytearray(4 << 20))
        time.sleep(0.005)
    return len(frames)


def test_the_line_of_a_peak_is_found():
    with open("/proc/self/statm") as statm:
        resident = int(statm.read().split()[1]) * os.sysconf("SC_PAGESIZE")
    _agent.peak_arm(resident + (40 << 20))
    decode(1)
    decode(40)
    found = _agent.peak_disarm()
    assert found is not None
    size, file, line, function, names = found
    first = inspect.getsourcelines(decode)[1]
    assert size > resident + (60 << 20)
    assert (file, function) == (__file__, "decode") and first < line <= first + 6
    assert names[0][:2] == ("frames", "list") and names[0][2] > 10
    _agent.peak_arm(1 << 50)
    decode(1)
    assert _agent.peak_disarm() is None


STRESS = """
    import queue, random, sys, threading, time
    from caulk import _agent

    sys.setswitchinterval(1e-5)
    items, table, jobs, stop = [], {}, queue.Queue(50), False

    def grow(count):
        for index in range(count):
            items.append(index)
            table[random.random()] = index
            try:
                if index % 3:
                    raise ValueError
                table.update({index: items})
            except ValueError:
                items.extend([1, 2])
            [items.append(other) for other in range(3)]
            if len(items) > 5000:
                items.clear()
                table.clear()

    def generate():
        for index in range(10):
            items.append(index)
            yield index

    def run():
        while not stop:
            grow(20)
            sum(generate())
            try:
                jobs.put_nowait(items)
                jobs.get_nowait()
            except (queue.Full, queue.Empty):
                pass

    def spawn():
        while not stop:
            threads = [threading.Thread(target=grow, args=(5,)) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

    threads = [threading.Thread(target=target, daemon=True) for target in (run, run, run, spawn, spawn)]
    for thread in threads:
        thread.start()
    found, end = set(), time.monotonic() + 3
    while time.monotonic() < end:
        peak = random.random() < 0.2
        if peak:
            _agent.peak_arm(1000)
        else:
            watches = [(1, "object", items, "", "items", ""), (2, "object", jobs, "", "queue", "queue.Queue")]
            _agent.trace_arm(watches, max_hits=random.choice([3, 50, 10**6]))
        for _ in range(random.randint(1, 5)):
            time.sleep(random.random() * 0.01)
            _agent.trace_poll()
        if peak:
            _agent.peak_disarm()
        else:
            found.update((hit["id"], hit["line"]) for hit in _agent.trace_disarm())
    stop = True
    for thread in threads:
        thread.join()
    print(sorted({line for number, line in found if number == 1}))
"""


def test_many_threads_and_many_armings_are_safe(tmp_path):
    program = tmp_path / "stress.py"
    program.write_text(textwrap.dedent(STRESS))
    command = [sys.executable, "-X", "faulthandler", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    source = program.read_text().splitlines()
    lines = [number for number, line in enumerate(source, 1) if "items.append(" in line or "items.extend(" in line]
    found = [int(number) for number in done.stdout.strip("[]\n").split(",")]
    assert found and set(found) <= set(lines)


NATIVE_THREADS = """
    import ctypes, time
    from caulk import _agent

    library, items = ctypes.CDLL(None), []

    @ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
    def work(_):
        items.append(1)

    end = time.monotonic() + 2
    while time.monotonic() < end:
        _agent.trace_arm([(1, "object", items, "", "items", "")], max_hits=10**6)
        threads = [ctypes.c_ulong() for _ in range(4)]
        for thread in threads:
            assert library.pthread_create(ctypes.byref(thread), None, work, None) == 0
        for index in range(50):
            items.append(len(items))
        for thread in threads:
            library.pthread_join(thread, None)
        _agent.trace_disarm()
        items.clear()
"""


def test_threads_that_enter_python_from_native_code_are_safe():
    program = textwrap.dedent(NATIVE_THREADS)
    command = [sys.executable, "-X", "faulthandler", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


class Payload:
    """Something that tells when it is gone."""


def test_a_watch_keeps_an_object_of_a_cycle_from_no_collection():
    keeper = Keeper()
    keeper.itself = keeper
    gone = weakref.ref(keeper)
    # An attribute that is not there makes an error, which refers to the object, at every look.
    watches = [watch(keeper, "items", kind="slot", slot="items"), watch(keeper, "absent", kind="slot", slot="absent")]
    _agent.trace_arm(watches)
    try:
        Keeper().append()
        del keeper, watches
        gc.collect()
        assert gone() is None
    finally:
        _agent.trace_disarm()


def test_a_watch_lets_go_of_what_nobody_else_holds():
    held = [Payload()]
    gone = weakref.ref(held[0])
    _agent.trace_arm([watch(held, "held")])
    try:
        del held
        _agent.trace_poll()
        assert gone() is None
    finally:
        _agent.trace_disarm()


def test_watching_runs_no_mode_of_the_programs():
    torch = pytest.importorskip("torch")
    from torch.overrides import TorchFunctionMode

    seen = []

    class Functions(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            seen.append(function)
            return function(*args, **(kwargs or {}))

    weight = torch.nn.Parameter(torch.ones(2))
    (weight * 2).sum().backward()
    holder = Payload()
    holder.total = torch.zeros(())

    def work():
        with Functions():
            for _ in range(3):
                holder.total = weight.sum() + holder.total
                weight.grad = None

    work()
    without = len(seen)
    seen.clear()
    watches = [
        (1, "slot", weight, "grad", "grad", ""),
        (2, "slot", holder, "total", "total", ""),
    ]
    _hits, progress = traced(work, *watches)
    assert progress["events_seen"] > 0
    assert len(seen) == without
