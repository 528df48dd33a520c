"""Loops of a function, from its bytecode: which of them an instruction is in, and which variables tell an iteration.

Arithmetic on code objects; knows no frames. Loops are the strongly connected parts of the control flow graph, with the
edges that exceptions take, so that handlers that the compiler moves to the end of a function (3.11 and later) are
neither lost nor taken for loops. Each code object is looked at once.
"""

import dis
from bisect import bisect_right

_ENDS = frozenset(
    "JUMP_FORWARD JUMP_ABSOLUTE JUMP_BACKWARD JUMP_BACKWARD_NO_INTERRUPT RETURN_VALUE RETURN_CONST RAISE_VARARGS "
    "RERAISE".split()
)
_JUMPS = frozenset(dis.hasjrel) | frozenset(dis.hasjabs)
_BACKWARD = frozenset(code for name, code in dis.opmap.items() if "BACKWARD" in name)
_SUMS = frozenset("INPLACE_ADD INPLACE_SUBTRACT BINARY_ADD BINARY_SUBTRACT".split())
_COMPREHENSIONS = tuple(f".<locals>.<{kind}>" for kind in ("genexpr", "listcomp", "setcomp", "dictcomp"))
_SUM_SIGNS = frozenset(["+", "+=", "-", "-="])
_LOADS = frozenset("LOAD_FAST LOAD_FAST_BORROW LOAD_NAME LOAD_GLOBAL LOAD_DEREF".split())


class Loop:
    """One `for` or `while` of a function, and what `_epochs` has seen of it."""

    __slots__ = (
        "advances",
        "blocks",
        "code",
        "counter",
        "deliveries",
        "first",
        "header",
        "is_for",
        "line",
        "marked",
        "most_rounds",
        "names",
        "odd",
        "qualified",
        "reported",
        "rounds",
        "seen",
        "stride",
        "token",
        "up_to_epochs",
    )

    def __init__(self, code, header, blocks):
        self.code = code
        self.header = header
        self.blocks = blocks
        #: Variables whose values, together, change exactly once per iteration: (name, is it a fast local?). The name of
        #: an attribute of a variable, `self.epoch`, has a dot.
        self.names = ()
        #: Stands above this loop for a variable set in its body that counts epochs by its name.
        self.counter = None
        self.is_for = False
        #: Does it go through a number of epochs: `for number in range(1, epochs + 1)`?
        self.up_to_epochs = False
        self.line = code.co_firstlineno
        self.forget()

    def forget(self):
        """Drops what was seen: a new process, or another part of the program."""
        self.token = None
        self.first = None
        self.rounds = 0
        self.most_rounds = 0
        self.seen = set()
        self.advances = 0
        self.reported = 0
        self.deliveries = None
        self.qualified = False
        self.marked = None
        self.stride = None
        self.odd = 0

    @property
    def variable(self):
        """The loop's variable, as the source calls it."""
        return self.names[0][0] if self.names else ""

    @property
    def counts_epochs(self):
        """Does the program itself call what this loop counts an epoch?"""
        return self.up_to_epochs or any(is_epoch_name(name) for name, _ in self.names)


def is_epoch_name(name):
    """Is this what people call a variable that counts epochs?"""
    name = name.rpartition(".")[2].lower()
    return "epoch" in name or name == "ep"


def is_epoch_count(name):
    """Is this what people call a number of epochs: `epochs`, `max_epochs`, `num_epoch`?"""
    name = name.lower()
    return name.endswith("epochs") or name in ("num_epoch", "max_epoch", "n_epoch", "nb_epoch", "total_epoch")


class LoopIndex:
    """Loops of all code objects asked about."""

    def __init__(self):
        self._known = {}

    def enclosing(self, code, offset):
        """Loops around the instruction at `offset`, outermost first."""
        known = self._known.get(id(code))
        if known is None:
            # The code object is kept, so that its number stays its own.
            known = self._known[id(code)] = (code, *_analyse(code))
        _, starts, loops = known
        if not loops:
            return ()
        block = bisect_right(starts, offset) - 1
        return tuple(loop for loop in loops if block in loop.blocks)

    def forget(self):
        """Drops what was seen of all loops."""
        for _, _, loops in self._known.values():
            for loop in loops:
                loop.forget()
                if loop.counter is not None:
                    loop.counter.forget()


def _analyse(code):
    """Offsets at which the basic blocks start, and the loops, outer before inner."""
    if _BACKWARD and not any(opcode in code.co_code[::2] for opcode in _BACKWARD):
        return (), ()
    instructions = list(dis.get_instructions(code))
    handlers = _handlers(code)
    starts = _block_starts(instructions, handlers)
    blocks = [[] for _ in starts]
    for instruction in instructions:
        blocks[bisect_right(starts, instruction.offset) - 1].append(instruction)
    successors = _successors(starts, blocks, handlers)
    loops = []
    _find_loops(set(range(len(starts))), successors, lambda header, members: loops.append(Loop(code, header, members)))
    loops = [loop for loop in loops if not _waits(loop, blocks, successors)]
    for loop in loops:
        nested = set().union(*(other.blocks for other in loops if other.blocks < loop.blocks))
        _describe(loop, blocks, nested)
    return tuple(starts), tuple(loops)


def _block_starts(instructions, handlers):
    starts = {0}
    after_jump = False
    for instruction in instructions:
        if after_jump:
            starts.add(instruction.offset)
        after_jump = instruction.opcode in _JUMPS or instruction.opname in _ENDS
        if instruction.opcode in _JUMPS:
            starts.add(instruction.argval)
    offsets = {instruction.offset for instruction in instructions}
    for begin, end, target in handlers:
        starts.update((begin, end, target))
    return sorted(starts & offsets)


def _successors(starts, blocks, handlers):
    number = {start: index for index, start in enumerate(starts)}
    successors = []
    for index, block in enumerate(blocks):
        following = set()
        for instruction in block:
            if instruction.opcode in _JUMPS and instruction.argval in number:
                following.add(number[instruction.argval])
        if block[-1].opname not in _ENDS and index + 1 < len(blocks):
            following.add(index + 1)
        for begin, end, target in handlers:
            if begin <= starts[index] < end and target in number:
                following.add(number[target])
        successors.append(following)
    return successors


def _handlers(code):
    """Rows (begin, end, target) of the exception table; 3.10 has none, its handlers are jump targets."""
    table = getattr(code, "co_exceptiontable", b"")
    position = 0
    rows = []

    def number():
        nonlocal position
        byte = table[position]
        position += 1
        value = byte & 63
        while byte & 64:
            byte = table[position]
            position += 1
            value = value << 6 | byte & 63
        return value

    while position < len(table):
        begin = number() * 2
        end = begin + number() * 2
        target = number() * 2
        number()
        rows.append((begin, end, target))
    return rows


def _find_loops(nodes, successors, found):
    """Reports each strongly connected part of `nodes`, then looks inside it, its header taken out."""
    work = [nodes]
    while work:
        nodes = work.pop()
        for part in _components(nodes, successors):
            if len(part) == 1 and not any(node in successors[node] for node in part):
                continue
            entered = {target for node in nodes - part for target in successors[node] if target in part}
            header = min(entered or part)
            found(header, frozenset(part))
            work.append(part - {header})


def _components(nodes, successors):
    """Strongly connected components, by Tarjan's algorithm without recursion."""
    number, low, stack, waiting, result = {}, {}, [], set(), []
    for root in sorted(nodes):
        if root in number:
            continue
        walk = [(root, iter(successors[root] & nodes))]
        number[root] = low[root] = len(number)
        stack.append(root)
        waiting.add(root)
        while walk:
            node, targets = walk[-1]
            target = next(targets, None)
            if target is None:
                walk.pop()
                if walk:
                    parent = walk[-1][0]
                    low[parent] = min(low[parent], low[node])
                if low[node] == number[node]:
                    part = set()
                    while node not in part:
                        member = stack.pop()
                        waiting.discard(member)
                        part.add(member)
                    result.append(part)
            elif target not in number:
                number[target] = low[target] = len(number)
                stack.append(target)
                waiting.add(target)
                walk.append((target, iter(successors[target] & nodes)))
            elif target in waiting:
                low[node] = min(low[node], number[target])
    return result


def _waits(loop, blocks, successors):
    """Is this the loop inside an `await` or `yield from`?"""
    backward = [blocks[index][-1].opname for index in loop.blocks if loop.header in successors[index]]
    return bool(backward) and all(name == "JUMP_BACKWARD_NO_INTERRUPT" for name in backward)


def _describe(loop, blocks, nested):
    """Finds the line, the kind and the variables of a loop."""
    header = blocks[loop.header]
    inside = [instruction for index in sorted(loop.blocks) for instruction in blocks[index]]
    directly = [instruction for index in sorted(loop.blocks - nested) for instruction in blocks[index]]
    lines = {}
    for begin, end, line in loop.code.co_lines():
        if line is not None:
            lines.update(dict.fromkeys(range(begin, end, 2), line))
    begins = [i.offset for i in header if i.opname == "FOR_ITER"] or [
        i.offset for i in directly if i.opname == "GET_ANEXT"
    ]
    loop.is_for = bool(begins)
    if loop.is_for:
        start = begins[0]
        loop.line = lines.get(start, loop.line)
        loop.up_to_epochs = any(is_epoch_count(name) for name in _iterated(blocks, start))
    else:
        loop.line = min((lines[i.offset] for i in directly if i.offset in lines), default=loop.line)
    stored = [pair for instruction in inside for pair in _stores(instruction)]
    names = []
    if loop.is_for:
        names = [pair for pair in _targets(inside, start) if "." in pair[0] or stored.count(pair) == 1]
    # Counted in the body itself (`epoch += 1`): changes once per turn of what is inside.
    counted = [] if names else _counters(directly)
    loop.names = tuple(names or counted)
    counting = [pair for i in directly for pair in _stores(i) if is_epoch_name(pair[0])]
    if counting and not (loop.is_for and names == counting):
        loop.counter = Loop(loop.code, loop.header, loop.blocks)
        loop.counter.line = loop.line
        loop.counter.names = (counting[0],)


def _iterated(blocks, start):
    """Names and texts in the expression that the `for` at `start` goes through."""
    before = [instruction for block in blocks for instruction in block if instruction.offset < start]
    names = []
    for instruction in reversed(before):
        name = instruction.opname
        if name.startswith("STORE_") or name in _ENDS or name == "POP_TOP" or instruction.opcode in _JUMPS:
            break
        if name.startswith("LOAD_"):
            values = instruction.argval if isinstance(instruction.argval, tuple) else (instruction.argval,)
            names.extend(value for value in values if isinstance(value, str))
    return names


def _stores(instruction):
    """Variables that an instruction sets: (name, is it a fast local?)."""
    name = instruction.opname
    if not name.startswith("STORE_"):
        return ()
    if name == "STORE_FAST_STORE_FAST":
        return tuple((each, True) for each in instruction.argval)
    if name == "STORE_FAST_LOAD_FAST":
        return ((instruction.argval[0], True),)
    if name.startswith(("STORE_FAST", "STORE_DEREF")):
        return ((instruction.argval, True),)
    if name in ("STORE_NAME", "STORE_GLOBAL"):
        return ((instruction.argval, False),)
    return ()


def _targets(inside, start):
    """Variables set by the `for` itself."""
    targets = []
    wanted = 1
    begun = False
    owner = None
    for instruction in inside:
        if instruction.offset <= start or wanted <= 0:
            continue
        name = instruction.opname
        if owner is not None and name == "STORE_ATTR":
            targets.append((f"{owner[0]}.{instruction.argval}", owner[1]))
            wanted -= 1
            begun, owner = True, None
        elif name == "UNPACK_SEQUENCE":
            wanted += instruction.arg - 1
            begun = True
        elif name == "UNPACK_EX":
            wanted += (instruction.arg & 255) + (instruction.arg >> 8)
            begun = True
        elif stores := _stores(instruction):
            targets.extend(stores)
            wanted -= len(stores)
            begun = True
        elif owner is None and name in _LOADS:
            # `for self.epoch in ...`, if the attribute is set next.
            owner = (instruction.argval, name.startswith(("LOAD_FAST", "LOAD_DEREF")))
        elif owner is not None or (begun and name not in ("NOP", "CACHE", "EXTENDED_ARG")) or name == "POP_TOP":
            break  # `for d[k] in ...`, or the body
    return targets


def _counters(directly):
    counters = []
    for before, instruction in zip(directly, directly[1:], strict=False):
        sums = before.opname in _SUMS or (before.opname == "BINARY_OP" and before.argrepr in _SUM_SIGNS)
        if sums:
            counters.extend(pair for pair in _stores(instruction) if pair not in counters)
    return counters[:4]


def where(code):
    """File and qualified name of the function, comprehensions counted to the function around them; on 3.10 the bare name."""
    name = getattr(code, "co_qualname", code.co_name)
    while name.endswith(_COMPREHENSIONS):
        name = name.rpartition(".<locals>.")[0]
    return code.co_filename, name
