"""Magics for notebooks: `%caulk` tells what memory is used, `%%caulk` what a cell leaves behind."""

from __future__ import annotations

from typing import Any

from ._leaks import LeakFound, leak_check
from ._memory import format_bytes, get_memory_usage

_HELP = (
    """`%caulk` prints memory in use; `%%caulk` above a cell prints what the cell leaves behind, and what keeps it."""
)


def load(shell: Any) -> None:
    """Registers the magics with an IPython shell."""

    def caulk(line: str, cell: str | None = None) -> None:
        if cell is None:
            print(_HELP if line.strip() in ("help", "?") else get_memory_usage())
            return
        result = None
        check = leak_check()
        try:
            with check:
                result = shell.run_cell(cell)
        except LeakFound as found:
            print(found)
        else:
            print(f"{format_bytes(check.growth)} more in use than before")
        if result is not None:
            result.raise_error()

    caulk.__doc__ = _HELP
    shell.register_magic_function(caulk, "line_cell", "caulk")
