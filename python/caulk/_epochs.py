"""Which loop around the optimizer steps counts epochs, and when it turns.

At each step the frames on the stack are looked up, outermost to innermost, and with them the loops that each is in.
The loops common to all the places that step end with the *step loop*; the nearest one above it whose turns cover more
than one step counts the epochs. That a loop has turned is read off its variable, or off the loop inside it starting
over, without ever making a frame's dictionary of locals.

Knows no torch: a step is a call of [`Epochs.observe`] with a key that tells one optimizer from another.
"""

import sys

from caulk._loops import LoopIndex

#: Steps for which a place that steps counts as being in use.
_RECENT = 32
#: A place that steps more rarely than this (a second optimizer, once per epoch) does not decide which loop steps.
_RARE = 16
#: Steps of loops side by side (discriminator, then generator) that make an epoch of what is around them.
_MANY = 32
_MOST_SITES = 512
_MOST_RESETS = 16
#: Events after which a place is looked at by its known way; every so many events it is looked at in full.
_SETTLED = 128
_FULL_LOOK = 1024
_GENERATORS = 0x20 | 0x80 | 0x200


def _same_call(_frame, _event, _arg):
    """Marks a frame as seen, in `f_trace`; never called unless somebody traces, and then does nothing."""


class Level:
    """A loop on the stack."""

    __slots__ = ("child", "index", "linked", "loop")

    def __init__(self, loop, index, linked):
        self.loop = loop
        #: Which frame, counted from the innermost.
        self.index = index
        #: Does a turn of the level above start this loop anew? Not where a generator lies between.
        self.linked = linked
        #: Frame called from this one, where the next level is in another frame.
        self.child = None


class Site:
    """A place that steps: frames and instructions from the optimizer to the outermost."""

    __slots__ = ("codes", "count", "first", "following", "last", "levels", "loops", "path", "read")

    def __init__(self, codes, levels, now):
        #: Kept, so that the numbers in the signature stay theirs.
        self.codes = codes
        #: The place that came next, the last time.
        self.following = None
        #: Once settled: codes and instructions from the innermost frame to that of the epoch loop, ...
        self.path = None
        #: ... and the variable there that is unchanged where the loop has not turned: (name, is it fast?, loop).
        self.read = None
        self.levels = levels
        self.loops = [level.loop for level in levels]
        self.count = 0
        self.first = now
        self.last = now


class Epochs:
    """Finds the epoch loop from steps as they come."""

    def __init__(self, read_local):
        self._read = read_local
        self._index = LoopIndex()
        #: Batches that data loaders have handed out: a loop that turns once per batch counts no epochs.
        self.deliveries = 0
        self._resets = 0
        self.forget()

    def forget(self):
        """Starts over: another process, or another kind of step."""
        self._sites = {}
        self._last = None
        self._events = 0
        self._prefix = []
        #: Do optimizers step directly in the innermost common loop, and in further loops inside it?
        self._direct = False
        self._deeper = False
        #: Has the program gone on to a part of its own, whose epochs are counted on?
        self._new_part = False
        self._index.forget()
        #: The loop that counts the epochs, once known.
        self.epoch_loop = None
        #: The loop that counts the steps, as far as known.
        self.step_loop = None
        #: Was the last event in the same turn of the step loop as the one before?
        self.same_step = False
        #: Had there been an event before at the place of the last one?
        self.known_site = False

    def observe(self, frame, key=None):
        """Takes note of a step by `key` (by this place, if `None`) in `frame`; returns the epochs begun since the last."""
        if self._resets > _MOST_RESETS:
            return 0
        epochs = self.glance(frame)
        if epochs is not None:
            return epochs
        frames = []
        signature = []
        while frame is not None:
            frames.append(frame)
            signature.append(id(frame.f_code))
            signature.append(frame.f_lasti)
            frame = frame.f_back
        signature = tuple(signature)
        site = self._sites.get(signature)
        self._events = now = self._events + 1
        self.known_site = site is not None
        if site is None:
            site = self._new_site(signature, frames)
            self._find_prefix(site)
        elif site.last < now - _RECENT or not now % _RECENT:
            self._find_prefix(site)
        site.last = now
        site.count += 1
        if self._last is not None:
            self._last.following = site
        self._last = site
        epochs = self._advance(site, frames, site if key is None else key)
        self._settle(site, frames)
        return epochs

    def glance(self, frame):
        """The short way of `observe`: `None` unless this is the place that was expected, in the same turn of the loop that
        counts epochs, or in the next one where each turn is one step.
        """
        site = self._last
        if site is None:
            return None
        site = site.following
        if site is None or site.path is None:
            return None
        below = None
        for code, offset in site.path:
            if frame is None or frame.f_code is not code or frame.f_lasti != offset:
                return None
            below = frame
            frame = frame.f_back
        epochs = 0
        if site.read is not None:
            name, fast, loop = site.read
            try:
                value = self._value(below, name, fast)
            except LookupError:
                return None
            if (value if type(value) is int else -1 - id(value)) != loop.token:
                if loop is not site.loops[-1] or type(value) is not int or value - loop.token != loop.stride:
                    return None
                loop.token = value
                loop.advances += 1
                loop.reported = loop.advances
                epochs = 1
        self._events = now = self._events + 1
        if not now % _FULL_LOOK:
            site.path = None
        site.last = now
        site.count += 1
        self._last = site
        self.known_site = True
        self.same_step = False
        return epochs

    def _settle(self, site, frames):
        """Finds the short way for a place that has shown what it does."""
        site.path = site.read = None
        known = self.epoch_loop
        depth = len(frames)
        if known is None:
            # Nothing around this place has turned but once per step, for long: nothing will.
            if site.count < _SETTLED or any(_turns_rarely(loop, site.count) for loop in site.loops):
                return
            # A loop without a variable that can be read turns when the one inside it starts over, at any time.
            if any(
                outer.token is None and _leading(inner.token) is not None
                for outer, inner in zip(site.loops, site.loops[1:])
            ):
                return
        else:
            if known not in site.loops or len(known.names) != 1 or known.token is None:
                return
            if site.loops[-1] is not self.step_loop and self.step_loop is not known:
                return
            # The loops around it cannot have turned without this one having started over, and so can be left alone,
            # unless it is in its first turn.
            if known.token == known.first and any(loop.advances for loop in site.loops[: site.loops.index(known)]):
                return
            site.read = (*known.names[0], known)
            depth = site.levels[site.loops.index(known)].index + 1
        site.path = tuple((frame.f_code, frame.f_lasti) for frame in frames[:depth])

    def _new_site(self, signature, frames):
        if len(self._sites) >= _MOST_SITES:
            self._sites.clear()
            self._last = None
            self._resets += 1
        inside = 0
        # The loops of torch itself around the hooks that it calls are none of the program's.
        while inside < len(frames) and _is_torch(frames[inside]):
            inside += 1
        levels = []
        linked = True
        for index in range(len(frames) - 1, inside - 1, -1):
            code = frames[index].f_code
            linked = linked and not code.co_flags & _GENERATORS
            for loop in self._index.enclosing(code, frames[index].f_lasti):
                if loop.counter is not None:
                    levels.append(Level(loop.counter, index, linked))
                    linked = False
                levels.append(Level(loop, index, linked))
                linked = True
        for level, below in zip(levels, levels[1:]):
            if below.index != level.index:
                level.child = level.index - 1
        site = Site([frame.f_code for frame in frames], levels, self._events)
        self._sites[signature] = site
        return site

    def _find_prefix(self, current):
        """Finds the loops common to the places that step nowadays."""
        current.last = now = self._events
        sites = [
            site
            for site in self._sites.values()
            if site.levels
            and site.last >= now - _RECENT
            and (site.count <= 1 or now - site.first <= site.count * _RARE)
        ]
        if not sites:
            return
        prefix = _common([site.loops for site in sites])
        if not prefix and self._prefix and current.levels:
            # Nothing in common: another part of the program.
            self._resets += self.epoch_loop is None
            self._take_alone(current)
            return
        self._prefix = prefix
        self._direct = any(len(site.loops) == len(prefix) for site in sites)
        self._deeper = any(len(site.loops) > len(prefix) for site in sites)
        self.step_loop = prefix[-1] if prefix else None

    def _take_alone(self, site):
        """Forgets that other places have stepped lately."""
        for other in self._sites.values():
            if other is not site:
                other.last = self._events - _RECENT - 1
        self._prefix = site.loops
        self._direct, self._deeper = True, False
        self.step_loop = site.loops[-1]

    def _advance(self, site, frames, key):
        levels = site.levels
        known = self.epoch_loop
        upto = len(levels)
        if known is not None and known not in site.loops:
            if not levels:
                return 0
            # The program has left the loop: what comes is another part of it, whose epochs are counted on.
            known = self.epoch_loop = None
            self._new_part = True
            self._take_alone(site)
        if known is not None:
            upto = site.loops.index(known) + (1 if known.token is not None else 2)
            if upto < len(self._prefix) < len(levels):
                upto = len(self._prefix)
            upto = min(upto, len(levels))
        tokens = [self._token(level, frames) for level in levels[:upto]]
        turned = []
        moved = False
        for position, token in enumerate(tokens):
            level = levels[position]
            loop = level.loop
            moved = moved and level.linked
            if moved:
                loop.first = None
            if token is not None:
                moved = self._compare(loop, token) or moved
                loop.token = token
                if loop.first is None:
                    loop.first = token
            elif not moved and position + 1 < upto:
                moved = self._restarted(level, levels[position + 1].loop, tokens[position + 1], frames)
            if moved:
                self._turn(loop)
                turned.append(loop)
            if known is None:
                self._count(loop, key)
        self.same_step = self._is_same_step(site, turned)
        if known is None:
            known = self.epoch_loop = self._choose(site, turned)
        if self._new_part:
            self._new_part = False
            for loop in site.loops:
                loop.reported = loop.advances
            return 1
        if known is None or known not in turned:
            return 0
        epochs = known.advances - known.reported
        known.reported = known.advances
        return epochs

    def _token(self, level, frames):
        """What stands for the present turn of a loop; `None` where nothing does."""
        loop = level.loop
        names = loop.names
        if not names:
            return None
        frame = frames[level.index]
        values = []
        try:
            for name, fast in names:
                value = self._value(frame, name, fast)
                if type(value) is int:
                    values.append(value)
                elif loop.is_for:
                    # Two turns in a row have different objects, since the first is let go after the second is there.
                    values.append(-1 - id(value))
        except LookupError:
            return None
        if len(values) == 1:
            return values[0]
        return tuple(values) or None

    def _value(self, frame, name, fast):
        """Value of a variable, or of an attribute of one; `LookupError` where it cannot be read without side effects."""
        name, dot, attribute = name.partition(".")
        value = self._read(frame, name) if fast else frame.f_globals[name]
        return _attribute(value, attribute) if dot else value

    def _compare(self, loop, token):
        before = loop.token
        if before is None or before == token:
            return False
        now, then = _leading(token), _leading(before)
        # Where the loop has been begun anew there is no first value yet, and the stride says nothing.
        if loop.first is not None and now is not None and then is not None:
            loop.odd += loop.stride is not None and now - then != loop.stride
            loop.stride = now - then
        return True

    def _restarted(self, level, inner, token, frames):
        """Has the loop inside started over? Then the one around it, that has no variable of its own, has turned."""
        now = _leading(token)
        if now is not None:
            then = _leading(inner.token)
            return then is not None and now < then and now == _leading(inner.first) and _is_regular(inner)
        if level.child is None:
            return False
        return self._is_new_call(level, frames)

    def _is_new_call(self, level, frames):
        """Is the function called from the loop's body another call than at the step before?"""
        child = frames[level.child]
        loop = level.loop
        mark = child.f_trace
        if mark is _same_call:
            return False
        if mark is not None or sys.gettrace() is not None:
            # Somebody traces: what the mark would say cannot be relied on until it has been set again.
            loop.marked = None
            return False
        offset = frames[level.index].f_lasti
        if loop.marked is None:
            loop.marked = offset
            child.f_trace = _same_call
            return False
        if loop.marked != offset:
            return False
        child.f_trace = _same_call
        return True

    def _turn(self, loop):
        loop.advances += 1
        batches = (self.deliveries - loop.deliveries) / loop.advances if loop.deliveries is not None else 0
        loop.most_rounds = max(loop.most_rounds, loop.rounds)
        # All data in one step: an epoch where the program itself calls it that, and hands out nothing else.
        is_whole = loop.rounds >= 2 or (loop.is_for and loop.counts_epochs and len(loop.names) == 1)
        if is_whole and not 0.5 < batches < 1.5:
            loop.qualified = True
        loop.rounds = 0
        loop.seen.clear()

    def _count(self, loop, key):
        """Counts rounds of optimizers: one of them stepping again begins another."""
        if loop.deliveries is None:
            loop.deliveries = self.deliveries
        if key in loop.seen or not loop.seen:
            loop.rounds += 1
            loop.seen.clear()
        loop.seen.add(key)

    def _is_same_step(self, site, turned):
        step = self.step_loop
        return (
            self.epoch_loop is not None
            and step is not None
            and step is not self.epoch_loop
            and site.loops[-1] is not step
            and step in site.loops
            and step.token is not None
            and step not in turned
        )

    def _choose(self, site, turned):
        """The loop that counts epochs, if it has turned just now."""
        prefix = self._prefix
        if not turned or site.loops[: len(prefix)] != prefix:
            return None
        above = prefix if prefix and self._covers_steps(prefix) else prefix[:-1]
        # What the program itself calls an epoch is worth waiting for.
        named = [loop for loop in above if loop.counts_epochs and not _turns_always(loop)]
        for loop in reversed(named[-1:] or above):
            if loop.qualified:
                return loop if loop in turned else None
        return None

    def _covers_steps(self, prefix):
        """Does a turn of the innermost common loop cover many steps, in loops side by side or that bytecode hides, or
        is it all that the program calls an epoch?
        """
        *around, last = prefix
        if not last.qualified:
            return False
        if last.most_rounds < 2:
            return not any(loop.counts_epochs for loop in around)
        if self._deeper and last.counts_epochs:
            return True
        if not self._direct:
            return last.most_rounds >= _MANY
        return last.is_for and last.advances >= 2 and _leading(last.token) is not None and _is_regular(last)


def _turns_always(loop):
    """Does it turn with every step, whatever its name?"""
    return loop.advances >= 2 and loop.most_rounds < 2


def _turns_rarely(loop, steps):
    return bool(loop.names) and loop.advances * 2 < steps


def _is_torch(frame):
    return str(frame.f_globals.get("__name__")).partition(".")[0] == "torch"


def _attribute(owner, name):
    """An attribute that an object has itself, without running any of its code."""
    for each in type(owner).__mro__:
        if name in each.__dict__ and hasattr(type(each.__dict__[name]), "__get__"):
            raise LookupError(name)
    try:
        return object.__getattribute__(owner, name)
    except AttributeError:
        raise LookupError(name) from None


def _leading(token):
    """The number that a loop counts with: its variable, or the first of several."""
    if type(token) is tuple:
        token = token[0]
    return token if token is not None and token >= 0 else None


def _is_regular(loop):
    """Does the loop count in equal strides? Labels and random numbers do not."""
    return loop.stride is not None and loop.odd * 4 <= loop.advances


def _common(chains):
    prefix = chains[0]
    for chain in chains[1:]:
        length = 0
        for one, other in zip(prefix, chain):
            if one is not other:
                break
            length += 1
        prefix = prefix[:length]
    return prefix
