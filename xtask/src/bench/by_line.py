"""Runs a program with memory_profiler on every function that it defines, as `@profile` above each would have it.

Usage: by_line.py OUTPUT PROGRAM [ARGUMENTS]
"""

import ast
import sys
from pathlib import Path

from memory_profiler import LineProfiler, show_results


class Decorated(ast.NodeTransformer):
    """Generators are left out: it measures them only until they are made."""

    def visit_FunctionDef(self, node):
        self.generic_visit(node)
        if not any(isinstance(part, ast.Yield | ast.YieldFrom) for part in ast.walk(node)):
            node.decorator_list.append(ast.Name("profile", ast.Load()))
        return node


output, program = map(Path, sys.argv[1:3])
del sys.argv[:2]
sys.path[0] = str(program.parent)
profiler = LineProfiler(backend="psutil")
tree = ast.fix_missing_locations(Decorated().visit(ast.parse(program.read_text())))
names = sys.modules["__main__"].__dict__
names.update(__file__=str(program), profile=profiler)
try:
    exec(compile(tree, str(program), "exec"), names)
finally:
    with output.open("w") as stream:
        show_results(profiler, stream=stream)
