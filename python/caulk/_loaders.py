"""Passes over a `DataLoader`: which of them train, and when the next one begins.

A pass trains if an optimizer steps between its own batches; a batch handed out with gradients off belongs to
validation. Iterators are watched from outside and never replaced.
"""

import weakref


class Pass:
    """One iteration over a loader."""

    __slots__ = ("batches", "ended", "iterator", "loader", "since_step", "steps")

    def __init__(self, iterator, reference):
        self.iterator = reference
        #: The sampler of batches is the loader's own, the same in every pass.
        self.loader = id(iterator._index_sampler)
        self.batches = 0
        self.since_step = 0
        self.steps = 0
        self.ended = False

    def is_over(self):
        """Has it been exhausted, or dropped?"""
        return self.ended or self.iterator() is None


class Passes:
    """All passes under way."""

    def __init__(self):
        self.forget()

    def forget(self):
        """Starts over: in the child of a fork."""
        self._open = {}
        #: Passes that have handed out batches, with gradients on, since the last step.
        self.delivered = []
        self._training = None
        #: Training passes after the first.
        self.turns = 0
        #: Batches handed out.
        self.batches = 0

    def batch(self, iterator, with_gradients):
        """A batch is about to be given to the program."""
        self.batches += 1
        current = self._open.get(id(iterator))
        if current is None or current.iterator() is not iterator or iterator._num_yielded <= current.batches:
            current = self._begin(iterator)
        current.batches = iterator._num_yielded
        if with_gradients:
            current.since_step += 1
            since = self.delivered
            if not since or since[-1] is not current:
                since.append(current)
                del since[:-8]

    def _begin(self, iterator):
        number = id(iterator)
        opened = self._open

        def drop(reference):
            current = opened.get(number)
            if current is not None and current.iterator is reference:
                del opened[number]

        old = opened.get(number)
        if old is not None:
            old.ended = True
        current = opened[number] = Pass(iterator, weakref.ref(iterator, drop))
        return current

    def end(self, iterator):
        """The iterator has no more batches."""
        current = self._open.get(id(iterator))
        if current is not None:
            current.ended = True

    def step(self):
        """An optimizer has stepped; is it the first step of another training pass?"""
        since = self.delivered
        if not since:
            return False
        self.delivered = []
        last = since[-1]
        # Loaders read side by side have handed out as many batches; a validation pass before it has not.
        together = [each for each in since if each is last or (each.since_step == last.since_step and not each.ended)]
        for each in since:
            each.since_step = 0
        began = [each for each in together if not each.steps]
        for each in together:
            each.steps += 1
        training = self._training
        if training is None:
            self._training = last
            return False
        for each in began:
            if each.loader == training.loader or training.is_over():
                self._training = each
                self.turns += 1
                return True
        return False
