# -*- coding: utf-8 -*-
from __future__ import annotations
import asyncio, torch as th; from collections import *
größe: list[int] = []
π = 3.14; größe.append(π)
if größe: größe.append(2); größe[0:0] = [1]
def f(a, /, b=größe, *args, c: int = 2, **kw) -> "list[int]": b.append(a); return b
async def g(xs):
    async for x in xs:
        async with x as (y, *z), open(f"{x!r:>{10}}") as h:
            await asyncio.sleep(0); z.append(y)
            yield [v async for v in x if (w := v) and größe.append(w)]
@staticmethod
@th.no_grad()
def k(x): return (lambda q, *r: q.extend(r))(x, *x)
class A[T](dict, metaclass=type):
    xs = xs2 = []; __slots__ = ("a",)
    def __iadd__(self, o, xs=[]): xs += [o]; self[o] = self; return self
    def m(self):
        global größe
        größe = größe + [self]
        self.a.b["c"][d := 1].e.append(
            d,  # a comment
        )
        del self.a.b[0], self.xs[:-3]
        match self:
            case A(xs=[*rest]) | {"xs": rest, **more}:
                rest.append(self)
            case (1 | 2) as n if n: self.xs.append(n)
            case _: pass
        try: self.xs.append(1 if self else 2)
        except (A, *[B]) as e: self.xs.append(e); raise
        finally: self.xs *= 2
        for self.xs[0], (self.q, *self.r) in zip(self.xs, self.xs): continue
        else: self.xs.append("\N{BULLET} ''' " '"' r"\d" u"")
        x = y = self.xs; x.append(y); x, y = y, x
        return super().m().append(not -~1 ** 2 @ 3 // 4 << 5 & 6 | 7 ^ 8 < 9 != 10 is not None in [])
while True:
    größe.insert(0, ...); größe.extend(x for x in größe); break
print(*größe, **{}, sep="", end=f'{größe.append(1)=}')
