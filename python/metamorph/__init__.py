"""Transformations of Python programs that keep their meaning, and how well `caulk check` bears them.

`cargo xtask metamorph` drives this package; see `__main__`.
"""
