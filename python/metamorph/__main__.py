"""Transforms programs and checks every variant: `python -m metamorph --caulk PATH`."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from . import table
from .corpus import ROOT, all_programs
from .measure import Job, measured
from .transformations import TRANSFORMATIONS

GOAL = 0.97


def main() -> int:
    """0 if leaks stay found and clean programs stay so."""
    parser = argparse.ArgumentParser(prog="metamorph", description=__doc__)
    parser.add_argument("--caulk", type=Path, required=True, help="the command to measure")
    parser.add_argument("--zoo", type=Path, help="folder of scenarios, each with a truth.toml")
    parser.add_argument("--seed", type=int, default=0, help="which pairs and triples")
    parser.add_argument("--only", nargs="+", default=[], choices=sorted(TRANSFORMATIONS), metavar="TRANSFORMATION")
    parser.add_argument("--program", default="", help="only programs whose name holds this")
    parser.add_argument("--share", type=float, default=1.0, help="of the variants, how many: a seeded sample")
    parser.add_argument(
        "--run", action="store_true", help="run programs of the zoo instead of checking: they must grow or not"
    )
    parser.add_argument("--json", type=Path, help="also write every result there")
    parser.add_argument("--failures", type=Path, default=ROOT / "target/metamorph")
    args = parser.parse_args()
    programs = [program for program in all_programs(args.zoo) if args.program in program.id]
    job = Job(args.caulk.resolve(), args.seed, tuple(args.only), args.failures, args.share, args.run)
    rows = measured(job, programs, 1 if args.run else os.cpu_count() or 1)
    if args.json:
        args.json.write_text(json.dumps([row.plain() for row in rows]))
    print(table.rendered(rows))
    flagged = sum(bool(row.flagged) for row in rows)
    print(f"\n{len(programs)} programs, {len(rows)} variants; variants judged otherwise: {args.failures}")
    return 0 if table.share(rows) >= GOAL and not flagged else 1


if __name__ == "__main__":
    sys.exit(main())
