"""The compiled agent, from the crate `caulk_agent`. Called by `caulk._bootstrap` and the hooks, with the GIL held."""

from collections.abc import Callable
from types import FrameType
from typing import Any, ClassVar, final

_Held = tuple[str, list[str], str, str, int]

__version__: str

def start(settings: str, argv: list[str], rank: int | None, worker: int | None) -> bool:
    """Connects to the supervisor that `CAULK_SOCKET` names and greets it; false where there is none."""

class Around:
    """Calls `begin(args, kwargs)` before `original` and, where that is not `None`, `end(ticket, args, result, failure)` after.

    `failure` is the type of what `original` has raised, or `None`. What either hook raises goes to `failed(error)`, unless
    the program must see it (Ctrl-C, what a handler of a signal raises). No frame of it stands in tracebacks. As an
    attribute of a class it is a method. With `is_pass`, `original` is a backward pass: what torch's threads allocate for it
    is this thread's doing.
    """

    def __init__(
        self,
        original: Callable[..., Any],
        begin: Callable[[tuple[Any, ...], dict[str, Any] | None], object],
        end: Callable[[Any, tuple[Any, ...], Any, type[BaseException] | None], None],
        failed: Callable[[Exception], object],
        is_pass: bool,
    ) -> None: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def __get__(self, instance: object | None, owner: type | None = None) -> Any: ...

class Hook:
    """A function that a library is to call, without a frame of its own; what it raises is treated as by [`Around`]."""

    def __init__(self, call: Callable[..., object], failed: Callable[[Exception], object]) -> None: ...
    def __call__(self, *args: Any) -> None: ...

def boundary(unit: int, index: int, steps: int, phase: int, level: int, of: int = 0) -> None:
    """Cuts a boundary; `of` is the process whose boundary it is, for one that works for another.

    `unit`: 0 epoch, 1 steps, 2 seconds; `phase`: 0 run, 1 train, 2 validation, 3 test; `level`: 0 for figures alone,
    1 for a census where it is worth its cost.
    """

def progress_of(pid: int) -> tuple[int, int, int] | None:
    """How far a process is that has cut boundaries.

    One more than the numbers of the last epoch and of the last step at which it did, and its optimizer steps then.
    """

def is_main_interpreter() -> bool:
    """Does the interpreter run that the process began with?"""

def clock(call: Callable[[], object] | None) -> None:
    """Has this called some times a second as long as the program allocates, by the main thread; `None` stops it.

    Nothing comes of it where the heap sampler is not loaded.
    """

class Collected:
    """A callback for `gc.callbacks`: calls `call(info)` after every collection; what it raises is raised in the program."""

    def __init__(self, call: Callable[[dict[str, int]], object]) -> None: ...
    def __call__(self, phase: str, info: dict[str, int]) -> None: ...

def raise_later(error: BaseException) -> bool:
    """Has the thread raise it, if the program must see it, once it is back in the program's code; else false."""

def raised_by_handler(error: BaseException, programs: bool = False) -> bool:
    """Has a handler of a signal raised it, amid whatever ran? Its traceback then begins at the handler.

    `programs`: was code of the program's called?
    """

def step(steps: int) -> None:
    """An optimizer step is done; so many in all."""

def rank(rank: int) -> None:
    """The process has this rank in a distributed job, which the environment has not said."""

def loop(unit: int, file: str, line: int, function: str, variable: str, source: str) -> None:
    """A loop of the program was recognised, by `source`: `loop`, `dataloader`, `lightning`, `transformers`, `caulk.epoch`."""

def backward_site(
    file: str,
    line: int,
    function: str,
    count: int,
    retain_graph: bool,
    create_graph: bool,
    stale: int,
    checked: int,
) -> None:
    """A line starts backward passes: `count` so far; of `checked` ones, `stale` began with gradients already applied."""

def passes() -> int:
    """Backward passes under way, one inside the other, on whatever thread."""

def made_segment(name: str) -> None:
    """The program has made a segment of shared memory."""

def note_hook_failed(where: str, reason: str) -> None:
    """A hook has failed, and caulk has taken itself out."""

def note_no_callbacks(library: str, lacks: str) -> None:
    """A library lacks what a hook needs."""

def note_not_watched(module: str) -> None:
    """A module is loaded in a way that takes no hook."""

@final
class LoaderKept:
    """Why a plan leaves a data loader as it is."""

    Rank: ClassVar[LoaderKept]
    Iterable: ClassVar[LoaderKept]
    OwnSampler: ClassVar[LoaderKept]

def note_loader_kept(file: str, line: int, reason: LoaderKept) -> None:
    """A plan has left the loader that is made here as it is."""

def note_loader_changed(file: str, line: int, changes: list[tuple[str, str, str]]) -> None:
    """A plan has changed settings of the loader that is made here: each by name, from one value to another."""

def asked(seconds: float = 0.0) -> tuple[int, int, int] | None:
    """The next request of the guard: its number, what to do, and the step; `None` where none comes within `seconds`."""

def standing(steps: int, epochs: int, way: str, spare_signal: bool, cuda: tuple[int, int]) -> None:
    """How far the process is, how it can save its state, and bytes reserved on GPUs of how many there."""

def answer(id: int, outcome: int, steps: int, freed_bytes: int, path: str, text: str) -> None:
    """What came of a request: `outcome` 0 done, 1 failed, 2 at this step, 3 arrived."""

def gpu_refused(device: int, asked: int, limit: int, free: int) -> None:
    """A GPU has no memory for so many bytes. `limit`: the most that the process may have of it; `free`: by the driver."""

def uncaught(types: list[str], text: str) -> None:
    """An exception that nobody has caught ends the program."""

def bye(steps: int, epochs: int) -> None:
    """The process ends in an orderly way."""

def stop() -> None:
    """Caulk has failed: whatever is armed is taken off, and nothing is armed again."""

def after_fork() -> None:
    """In the child of a fork: forgets the parent's connection and findings. `start` makes the child's own."""

def configure_user_files(prefixes: list[str]) -> None:
    """Sets the folders whose files are not the user's: the standard library, caulk itself."""

def is_user_file(filename: str) -> bool:
    """Is this file name of a code object one of the user's own?"""

def read_local(frame: FrameType, name: str) -> object:
    """Value of a local, cell or free variable, without a dictionary of locals being made; raises `LookupError`."""

def user_frame() -> tuple[str, int, str] | None:
    """File, line and function of the innermost frame of the user's code."""

def frames_usable() -> bool:
    """Can locals of frames be read on this interpreter?"""

def memory_figures(cgroup: str | None = None) -> tuple[int, int, int, int | None]:
    """Resident, virtual and swapped bytes of this process, and the number in the file of its cgroup."""

def bytes_in_use() -> tuple[int, int]:
    """Bytes that malloc has handed out, and blocks of Python's own allocator."""

def trim_malloc() -> bool:
    """Asks glibc to give free pages back to the system; false where it had none, or another allocator is in use."""

def take_census() -> tuple[int, list[tuple[str, int, int]]]:
    """Objects in all, and count and shallow bytes by type; raises `RuntimeError` where the heap cannot be walked."""

def pinned_by(tensor: object) -> tuple[int, int, int, int, list[tuple[str, int]], bool] | None:
    """Of a plain tensor: storage, bytes shown, graph nodes, bytes these saved, their types, cut short?"""

def holders_of(object: object) -> list[_Held]:
    """Expression, path, function, file and line of every way by which the program reaches an object."""

def judge_bytes(
    readings: list[tuple[float, float]],
) -> tuple[str, float, tuple[float, float] | None, int | None, str]:
    """State, growth per step, its interval, readings still needed, and why, of pairs of step and bytes."""

class Lengths:
    """Lengths of all containers at one moment."""

    def __init__(self) -> None: ...
    def grown(self) -> list[tuple[str, int, int, int, _Held, str]]:
        """Of containers that are longer now: type, lengths before and after, bytes per element, holder, name."""

    def __len__(self) -> int: ...
